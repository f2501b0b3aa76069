"""Results of a search as plain data, and pure functions that choose settings; larger is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celltrain.running import statistics

if TYPE_CHECKING:
    Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with half the width of its 95 % interval."""

    mean: float
    half: float
    """NaN where there are fewer than two values."""

    @property
    def beyond(self) -> bool:
        """Whether the interval leaves zero out."""
        return abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial of the search, with the few seeds of the search: the better ones look better than they are."""

    generation: int
    parameters: dict[str, float]
    means: tuple[float, float] | None
    """Of the objectives; None where the trial failed."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """A setting that was run with the seeds of confirmation, which had no part in choosing it."""

    parameters: dict[str, float]
    estimates: tuple[Estimate, Estimate] | None
    """Of the objectives; None where a run failed."""
    label: str | None
    """The reference it is, if it is one."""
    chosen: bool
    """Whether selection had it on the front."""
    front: bool
    """Whether none of the others beats it in the means of confirmation."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a reference left on the table: the best in one objective among settings at least as good in the other.

    Chosen by the seeds of selection; the differences, setting less reference, are those of confirmation's, paired by seed.
    """

    reference: str
    objective: int
    """0 or 1: which of the two was made as good as can be."""
    parameters: dict[str, float]
    same: bool
    """Whether it is the reference itself: nothing better was found."""
    estimates: tuple[Estimate, Estimate]
    differences: tuple[Estimate, Estimate]
    """In the unit of the measure, whatever direction is better."""


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
    """So many points at most, front by front: the Pareto front, that of the others, and so on.

    Of the last front that has room for some, those are taken that are spread evenly along it. NaN is never taken.
    """
    chosen: list[int] = []
    left = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    while len(left) and len(chosen) < count:
        layer = left[statistics.pareto_front(x[left], y[left])]
        layer = layer[np.lexsort((layer, -y[layer], -x[layer]))]
        room = count - len(chosen)
        chosen += [int(i) for i in layer] if len(layer) <= room else [int(layer[i]) for i in _spread(len(layer), room)]
        left = np.setdiff1d(left, layer)
    return chosen


def best(x: Floats, y: Floats, least_y: float) -> int | None:
    """The point of largest x among those whose y is at least so much, of equal ones that of largest y; None without any."""
    enough = np.flatnonzero(np.isfinite(x) & (y >= least_y))
    if not len(enough):
        return None
    return int(enough[np.lexsort((enough, -y[enough], -x[enough]))[0]])


def _spread(count: int, chosen: int) -> list[int]:
    """So many places of a row, evenly, both ends among them; its middle where there is one."""
    if chosen == 1:
        return [count // 2]
    return [round(i * (count - 1) / (chosen - 1)) for i in range(chosen)]
