"""The tables of a scenario, one class each: `ct.models.Port(...)`. `celltrain.model.types` defines them."""

from __future__ import annotations

from celltrain.model.types import *
from celltrain.model.types import Policy as Policy
from celltrain.model.types import Stack as Stack
from celltrain.model.types import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
