"""How well a paper's printed numbers agree with an ensemble of seeds: per number, and per table, network and quantity.

What counts as agreement is decided here and nowhere else. None means "not defined", never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from celltrain.reproduction.paper import Number
from celltrain.statistics import half_width, ks, spearman

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
        return None if self.sd is None else half_width(len(self.values), self.sd)

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


def rank_among_seeds(printed: float, values: Sequence[float], rounding: float) -> float:
    """Where a printed value stands among the seeds, from 0 to 1.

    Seeds that would be printed the same (within `rounding`) count half, so coarse printing has no preferred side.
    """
    array = np.asarray(values, dtype=np.float64)
    equal = int((np.abs(array - printed) <= rounding + SLACK).sum())
    below = int((array < printed - rounding - SLACK).sum())
    return (below + equal / 2 + 0.5) / (len(array) + 1)
