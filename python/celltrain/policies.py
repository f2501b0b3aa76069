"""Buffer policies of a port: `ct.policies.Epd(...)`. A page for each is in docs/models; `celltrain list policies` lists them."""

from __future__ import annotations

from celltrain.model.types import (
    Dfba,
    Dfba1998,
    DoubleEpd,
    DropFromFront,
    Epd,
    Fba,
    Formula,
    FormulaConstant,
    FormulaStart,
    PerVcAccounting,
    PerVcAccountingFixed,
    Policy,
    Ppd,
    Python,
    PythonSetting,
    SelectiveDrop,
    SingleDrop,
    TailDrop,
    VirtualQueuing,
    VirtualQueuingThreshold,
    VirtualQueuingWeighted,
    Wba,
    WeightedFba,
    WhenFull,
)

__all__ = [
    "Dfba",
    "Dfba1998",
    "DoubleEpd",
    "DropFromFront",
    "Epd",
    "Fba",
    "Formula",
    "FormulaConstant",
    "FormulaStart",
    "PerVcAccounting",
    "PerVcAccountingFixed",
    "Policy",
    "Ppd",
    "Python",
    "PythonSetting",
    "SelectiveDrop",
    "SingleDrop",
    "TailDrop",
    "VirtualQueuing",
    "VirtualQueuingThreshold",
    "VirtualQueuingWeighted",
    "Wba",
    "WeightedFba",
    "WhenFull",
]


def __dir__() -> list[str]:
    return __all__
