"""ABR sources and the rate allocators of switches: `ct.abr.Erica(...)`."""

from __future__ import annotations

from celltrain.model.types import (
    Abr,
    Allocator,
    Efci,
    EqualShare,
    Erica,
    EricaPlus,
    MaxMin,
    RateFormat,
    Times,
    VcOptions,
)

__all__ = ["Abr", "Allocator", "Efci", "EqualShare", "Erica", "EricaPlus", "MaxMin", "RateFormat", "Times", "VcOptions"]


def __dir__() -> list[str]:
    return __all__
