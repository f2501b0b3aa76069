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
    """NaN for fewer than two values."""

    @property
    def beyond(self) -> bool:
        """True if the interval excludes zero."""
        return abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial of the search, with its few seeds: the best trials look better than they are."""

    generation: int
    parameters: dict[str, float]
    means: tuple[float, float] | None
    """Means of the objectives; None if the trial failed."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """A setting that was run with the seeds of confirmation, which were not used to choose it."""

    parameters: dict[str, float]
    estimates: tuple[Estimate, Estimate] | None
    """Estimates of the objectives; None if a run failed."""
    label: str | None
    """Name of the reference, if it is one."""
    chosen: bool
    """True if it was on the front of selection."""
    front: bool
    """True if no other setting beats it in the means of confirmation."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """Gain over a reference: the best setting in one objective among those at least as good in the other.

    It is chosen by the seeds of selection. Differences, setting less reference, are paired by the seeds of confirmation.
    """

    reference: str
    objective: int
    """0 or 1: the objective that was optimised."""
    parameters: dict[str, float]
    same: bool
    """True if the setting is the reference: nothing better was found."""
    estimates: tuple[Estimate, Estimate]
    differences: tuple[Estimate, Estimate]
    """In the unit of the measure, whichever direction is better."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One configuration."""

    values: dict[str, float | str]
    """Values by axis."""
    title: str
    trials: tuple[Tried, ...]
    confirmed: tuple[Confirmed, ...]
    """Settings from the best in the first objective."""
    left: tuple[Left, ...]


def finalists(x: Floats, y: Floats, count: int) -> list[int]:
    """Returns at most `count` points, front by front: the Pareto front, the front of the others, and so on.

    If the last front has too many points, evenly spread ones are taken. NaN is never taken.
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
    """Returns the point with the largest x among those with at least this y; of equal ones the largest y; None without any."""
    enough = np.flatnonzero(np.isfinite(x) & (y >= least_y))
    if not len(enough):
        return None
    return int(enough[np.lexsort((enough, -y[enough], -x[enough]))[0]])


def _spread(count: int, chosen: int) -> list[int]:
    """Returns evenly spread places of a row with both ends; for one place the middle."""
    if chosen == 1:
        return [count // 2]
    return [round(i * (count - 1) / (chosen - 1)) for i in range(chosen)]
