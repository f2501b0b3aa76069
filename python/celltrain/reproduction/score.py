"""How well a paper's printed numbers agree with an ensemble of seeds: per number, and per table, network and quantity.

What counts as agreement is decided here and nowhere else. None means "not defined", never zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celltrain.reproduction.paper import Number

# Decimal fractions such as 0.49 + 0.01 are not exact in binary; a comparison must not depend on it.
SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A number, what the seeds gave for it, and whether they agree."""

    number: Number
    values: tuple[float, ...]
    """One value a finished seed, in the order of `seeds`."""
    seeds: tuple[int, ...]

    @property
    def printed(self) -> float:
        """What the paper prints; not for an experiment, which has nothing in print."""
        assert self.number.published is not None, "an experiment has no printed value"
        return self.number.published

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float | None:
        """Standard deviation of the seeds (n - 1 in the denominator)."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval of the mean, by Student's distribution."""
        return None if self.sd is None else student(len(self.values) - 1) * self.sd / math.sqrt(len(self.values))

    @property
    def low(self) -> float:
        """Smallest value of any seed."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Largest value of any seed."""
        return max(self.values)

    @property
    def inside(self) -> bool | None:
        """Whether the printed value agrees with the seeds, by the number's own rule."""
        number, printed = self.number, self.number.published
        if printed is None:
            return None
        near_mean = abs(self.mean - printed) <= number.tolerance + SLACK
        if number.judged_by == "mean":
            return near_mean
        room = SLACK + (number.tolerance if number.judged_by == "range" else 2 * number.rounding)
        in_range = self.low - room <= printed <= self.high + room
        return in_range or (number.judged_by == "either" and near_mean)

    def to_dict(self) -> dict[str, Any]:
        """The number as `celltrain reproduce --json` gives it."""
        number = self.number
        return {
            "table": number.table,
            "row": number.row,
            "quantity": number.quantity.name,
            "unit": number.quantity.unit,
            "published": number.published,
            "mean": self.mean,
            "sd": self.sd,
            "interval": self.interval,
            "low": self.low,
            "high": self.high,
            "inside": self.inside,
            "scored": number.scored,
            "note": number.note,
            "network": number.network,
            "tolerance": number.tolerance,
            "judged_by": number.judged_by,
            "seeds": len(self.seeds),
        }


def summary(scored: Sequence[Scored]) -> dict[str, Any]:
    """The summary of `celltrain reproduce --json`: in all, per table, network and quantity, and per quantity."""
    published = [s for s in scored if s.number.published is not None]
    groups: dict[tuple[str, str | None, str], list[Scored]] = {}
    for one in published:
        groups.setdefault((one.number.table, one.number.network, one.number.quantity.name), []).append(one)
    counted = [s for s in published if s.number.scored]
    inside = sum(bool(s.inside) for s in counted)
    return {
        "scored": len(counted),
        "inside": inside,
        "share_inside": inside / len(counted) if counted else None,
        "by": [
            {"table": table, "network": network, "quantity": quantity, **group_scores(members)}
            for (table, network, quantity), members in groups.items()
        ],
        "by_quantity": [
            {"quantity": quantity, **group_scores([s for s in published if s.number.quantity.name == quantity])}
            for quantity in dict.fromkeys(s.number.quantity.name for s in published)
        ],
    }


def group_scores(group: Sequence[Scored]) -> dict[str, Any]:
    """One entry of the summary. Only scored numbers count; `ks` leaves out points, which are no draws."""
    counted = [s for s in group if s.number.scored]
    draws = [s for s in counted if not s.number.point]
    return {
        "scored": len(counted),
        "inside": sum(bool(s.inside) for s in counted),
        "mean_abs_error": mean_abs_error(counted),
        "mean_relative_error": mean_relative_error(counted),
        "self_error": self_error([s.values for s in counted]),
        "rank_correlation": spearman([s.printed for s in counted], [s.mean for s in counted]),
        "ks": ks([rank_among_seeds(s.printed, s.values, s.number.rounding) for s in draws]),
    }


def mean_abs_error(scored: Sequence[Scored]) -> float | None:
    """Mean distance of the printed values from the seeds' means."""
    return float(np.mean([abs(s.printed - s.mean) for s in scored])) if scored else None


def mean_relative_error(scored: Sequence[Scored]) -> float | None:
    """The same, each as a share of the printed value; numbers printed as zero do not count."""
    shares = [abs(s.printed - s.mean) / abs(s.printed) for s in scored if s.printed]
    return float(np.mean(shares)) if shares else None


def self_error(numbers: Sequence[Sequence[float]]) -> float | None:
    """Mean, over numbers and seeds, of the distance of one seed from the mean of the others."""
    misses = []
    for values in numbers:
        array = np.asarray(values, dtype=np.float64)
        if len(array) > 1:
            others = (array.sum() - array) / (len(array) - 1)
            misses.append(np.abs(array - others))
    return float(np.mean(np.concatenate(misses))) if misses else None


# The upper 2.5 % of Student's distribution with 1, 2, 3, ... degrees of freedom.
STUDENT = [
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
]


def student(freedom: int) -> float:
    """How many standard errors from the mean a 95 % interval reaches, for so many degrees of freedom."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    # The first two terms of the expansion by Cornish and Fisher: off by less than 0.001 from here on.
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of the ranks they take up."""
    array = np.asarray(values, dtype=np.float64)
    below = (array[None, :] < array[:, None]).sum(axis=1)
    equal = (array[None, :] == array[:, None]).sum(axis=1)
    result: NDArray[np.float64] = below + (equal + 1) / 2
    return result


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than three pairs or where one side does not vary."""
    return None if len(first) < 3 else rank_correlation(first, second)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The same for any number of pairs: two are enough to say which way a trend goes."""
    x, y = ranks(first), ranks(second)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else None


def rank_among_seeds(printed: float, values: Sequence[float], rounding: float) -> float:
    """Where a printed value stands among the seeds, from 0 to 1.

    Seeds that would be printed the same (within `rounding`) count half, so coarse printing has no preferred side.
    """
    array = np.asarray(values, dtype=np.float64)
    equal = int((np.abs(array - printed) <= rounding + SLACK).sum())
    below = int((array < printed - rounding - SLACK).sum())
    return (below + equal / 2 + 0.5) / (len(array) + 1)


def ks(positions: Sequence[float]) -> float | None:
    """Kolmogorov-Smirnov distance from the uniform distribution on 0 to 1, times the root of the sample's size."""
    if not positions:
        return None
    u = np.sort(np.asarray(positions, dtype=np.float64))
    n = len(u)
    steps = np.arange(n, dtype=np.float64)
    distance = max(float(np.max((steps + 1) / n - u)), float(np.max(u - steps / n)))
    return distance * math.sqrt(n)
