"""Which settings go on to the next stage, and which one answers what was left on the table. Pure functions; larger is better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celltrain.running import statistics

if TYPE_CHECKING:
    Floats = NDArray[np.float64]


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
