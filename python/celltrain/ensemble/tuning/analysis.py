"""Results of a search as plain data, and pure functions that choose settings; larger is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from celltrain.running import statistics

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with half the width of its 95 % interval."""

    mean: float
    half: Annotated[float, BeforeValidator(lambda half: math.nan if half is None else half)]
    """NaN if there are fewer than two values."""

    @property
    def beyond(self) -> bool:
        """True if the interval leaves zero out."""
        return abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial of the search, with the few seeds of the search: the better ones look better than they are."""

    generation: int
    parameters: dict[str, float]
    means: tuple[float, float] | None
    """Of the objectives; None if the trial failed."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """A setting that was run with the seeds of confirmation, which had no part in choosing it."""

    parameters: dict[str, float]
    estimates: tuple[Estimate, Estimate] | None
    """Of the objectives; None if a run failed."""
    label: str | None
    """The reference it is, if it is one."""
    chosen: bool
    """True if selection had it on the front."""
    front: bool
    """True if no other setting beats it in the means of confirmation."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """Gain over a reference: the best setting in one objective among settings at least as good in the other.

    Chosen by the seeds of selection. The differences, setting less reference, are from the seeds of confirmation, paired.
    """

    reference: str
    objective: int
    """0 or 1: the objective that was made as good as can be."""
    parameters: dict[str, float]
    same: bool
    """True if it is the reference itself: nothing better was found."""
    estimates: tuple[Estimate, Estimate]
    differences: tuple[Estimate, Estimate]
    """In the unit of the measure; positive does not mean better."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One configuration."""

    values: dict[str, float | str]
    """By axis."""
    title: str
    trials: tuple[Tried, ...]
    confirmed: tuple[Confirmed, ...]
    """From the best in the first objective."""
    left: tuple[Left, ...]


def finalists(x: Floats, y: Floats, count: int) -> list[int]:
    """Returns at most `count` points, front by front: the Pareto front, the front of the others, and so on.

    From the last front that has room for some, points spread evenly along it are taken. NaN is never taken, larger is better.
    """
    chosen: list[int] = []
    left = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    while len(left) and len(chosen) < count:
        layer = left[statistics.pareto_front(x[left], y[left])]
        layer = layer[np.lexsort((layer, -y[layer], -x[layer]))]
        places = _spread(len(layer), min(len(layer), count - len(chosen)))
        chosen += [int(layer[place]) for place in places]
        left = np.setdiff1d(left, layer)
    return chosen


def _spread(count: int, chosen: int) -> list[int]:
    """Returns `chosen` places of a row, evenly spread with both ends, or its middle."""
    if chosen == 1:
        return [count // 2]
    return [round(i * (count - 1) / (chosen - 1)) for i in range(chosen)]


def best(x: Floats, y: Floats, least_y: float) -> int | None:
    """Returns the point of largest x, then of largest y, among those whose y is at least `least_y`; None without any."""
    enough = np.flatnonzero(np.isfinite(x) & (y >= least_y))
    if not len(enough):
        return None
    return int(enough[np.lexsort((enough, -y[enough], -x[enough]))[0]])
