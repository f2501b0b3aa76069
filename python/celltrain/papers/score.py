"""Agreement of printed numbers with an ensemble of seeds: per number, and per table, network and quantity.

None means "not defined", never zero. Every number of every paper has three verdicts: whether it lies in the range of the
seeds, whether it lies within a stated tolerance of their mean, and its probability-integral value, which is its rank
among the seeds. `inside` is the verdict that the paper's file selects from the first two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celltrain.papers.paper import Number, PaperError, Row, Table, Value, grouped
from celltrain.running.statistics import half_width, ks, ks_probability, spearman

#: Sums such as 0.49 + 0.01 are inexact in binary, but comparisons must not depend on this.
SLACK = 1e-9
#: The middle nine tenths of the range of probability-integral values.
MIDDLE = (0.05, 0.95)
#: Minimum number of seeds for a p-value from the seeds themselves.
FEWEST_SEEDS = 10
#: Number of finished seeds that is enough for a verdict although more were requested, for example after an interrupt.
ENOUGH_SEEDS = 5


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A number and its values in the runs.

    Attributes:
        values: One value for each finished seed, in the order of `seeds`.
        requested: Requested number of seeds.
    """

    number: Number
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    requested: int

    @property
    def printed(self) -> float:
        """The printed value; None for an experiment."""
        assert self.number.published is not None, "an experiment has no printed value"
        return self.number.published

    @property
    def enough(self) -> bool:
        """True if a verdict can rest on the finished seeds: all that were requested, or five; one for a theoretical value."""
        return len(self.values) >= (1 if self.number.point else min(ENOUGH_SEEDS, self.requested))

    @property
    def by_seed(self) -> dict[int, float]:
        """Value of each finished seed."""
        return dict(zip(self.seeds, self.values, strict=True))

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float | None:
        """Standard deviation over the seeds (n - 1 in the denominator)."""
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
    def inside_range(self) -> bool | None:
        """True if the printed value lies between the lowest and the highest seed, within a unit of its last digit.

        A number that is judged by the range, or has one theoretical value, uses its tolerance in place of that unit.
        None without a printed value, or with too few finished seeds.
        """
        number, printed = self.number, self.number.published
        if printed is None or not self.enough:
            return None
        room = SLACK + (number.tolerance if number.point or number.judged_by == "range" else 2 * number.rounding)
        return self.low - room <= printed <= self.high + room

    @property
    def inside_tolerance(self) -> bool | None:
        """True if the seeds' mean is within the tolerance that the paper's file states; None if it states none.

        Also None with too few finished seeds.
        """
        return self._near_mean if self.number.tolerance_stated else None

    @property
    def _near_mean(self) -> bool | None:
        printed = self.number.published
        return (
            abs(self.mean - printed) <= self.number.tolerance + SLACK if printed is not None and self.enough else None
        )

    @property
    def inside(self) -> bool | None:
        """True if the printed value agrees with the seeds, by the number's own rule; None if that is undecided."""
        rules = {"range": self.inside_range, "mean": self._near_mean, "either": self._near_mean or self.inside_range}
        return rules[self.number.judged_by]

    @property
    def pit(self) -> float | None:
        """Probability-integral value: the rank of the printed value among the seeds, 0 to 1; see `rank_among_seeds`."""
        number, printed = self.number, self.number.published
        return rank_among_seeds(printed, self.values, number.rounding) if printed is not None and self.enough else None

    def to_dict(self) -> dict[str, Any]:
        """Returns the number in the form in which `celltrain reproduce --json` prints it."""
        number = self.number
        quantity = {"quantity": number.quantity.name, "unit": number.quantity.unit}
        return {
            **{"table": number.table, "row": number.row, **quantity, "published": number.published},
            **{name: getattr(self, name) for name in ("mean", "sd", "interval", "low", "high", "inside")},
            **{name: getattr(number, name) for name in ("scored", "note", "network", "tolerance", "judged_by")},
            **{"seeds": len(self.seeds), "requested_seeds": self.requested},
            **{name: getattr(self, name) for name in ("inside_range", "inside_tolerance", "pit")},
            "point": number.point,
        }


def summary(scored: Sequence[Scored], unfinished: Sequence[Number] = ()) -> dict[str, Any]:
    """Returns the summary for `celltrain reproduce --json`: in total, and by table, network and quantity.

    `undecided` counts the scored numbers without a verdict, for lack of finished seeds. `once` counts a number that the
    paper prints in several tables once.

    Args:
        scored: Numbers with at least one finished seed.
        unfinished: Numbers without any.
    """
    published = [s for s in scored if s.number.published is not None]
    counted = decided(published)
    inside = sum(bool(s.inside) for s in counted)
    once = grouped(counted, lambda s: (s.number.configuration, s.number.result, s.number.published))
    requested = sum(s.number.scored for s in published) + sum(number.scored for number in unfinished)

    def by(key: Callable[[Number], dict[str, Any]], scores: Callable[[list[Scored]], dict[str, Any]]) -> list[Any]:
        groups = grouped(published, lambda one: tuple(key(one.number).items()))
        return [{**dict(names), **scores(members)} for names, members in groups.items()]

    return {
        "scored": len(counted),
        "inside": inside,
        "share_inside": inside / len(counted) if counted else None,
        "undecided": requested - len(counted),
        "once": {"scored": len(once), "inside": sum(all(s.inside for s in same) for same in once.values())},
        "by": by(lambda n: {"table": n.table, "network": n.network, "quantity": n.quantity.name}, group_scores),
        "by_quantity": by(lambda n: {"quantity": n.quantity.name}, group_scores),
        "by_table": by(lambda n: {"table": n.table}, table_scores),
        "verdicts": verdicts(counted),
    }


def group_scores(group: Sequence[Scored]) -> dict[str, Any]:
    """Returns the summary of the numbers of one quantity. Only scored numbers with a verdict are counted."""
    counted = decided(group)
    errors = [abs(s.printed - s.mean) for s in counted]
    relative = [error / abs(s.printed) for s, error in zip(counted, errors, strict=True) if s.printed]
    return {
        **table_scores(group),
        "mean_abs_error": float(np.mean(errors)) if errors else None,
        "mean_relative_error": float(np.mean(relative)) if relative else None,
        "self_error": self_error([s.values for s in counted]),
        "rank_correlation": spearman([s.printed for s in counted], [s.mean for s in counted]),
    }


def table_scores(group: Sequence[Scored]) -> dict[str, Any]:
    """Returns the summary of numbers with different units."""
    counted = decided(group)
    return {"scored": len(counted), "inside": sum(bool(s.inside) for s in counted), **verdicts(counted)}


def decided(group: Sequence[Scored]) -> list[Scored]:
    """Returns the numbers that are counted: scored numbers with enough finished seeds."""
    return [s for s in group if s.number.scored and s.enough]


def verdicts(counted: Sequence[Scored]) -> dict[str, Any]:
    """Counts the scored numbers that agree, by each of the three verdicts, and how many would if they were draws.

    Points are not draws, so only the first two verdicts count them. `within_tenth` skips numbers printed as zero.
    """
    judged = [s for s in counted if s.inside_tolerance is not None]
    tenths = [abs(s.mean - s.printed) <= abs(s.printed) / 10 + SLACK for s in counted if s.printed]
    draws = [s for s in counted if not s.number.point]
    distance = ks([pit for s in draws if (pit := s.pit) is not None])
    return {
        "inside_range": sum(bool(s.inside_range) for s in counted),
        "draws": len(draws),
        "range_draws": sum(bool(s.inside_range) for s in draws),
        "range_expected": sum((len(s.values) - 1) / (len(s.values) + 1) for s in draws),
        "with_tolerance": len(judged),
        "inside_tolerance": sum(bool(s.inside_tolerance) for s in judged),
        "within_tenth": sum(tenths),
        "pit_middle": sum(in_the_middle(s.pit) for s in draws if s.pit is not None),
        "pit_middle_expected": sum(share_in_the_middle(len(s.values)) for s in draws),
        "ks": distance,
        "ks_p": None if distance is None else ks_probability(distance, len(draws)),
        "ks_p_seeds": None if distance is None else share_of_seeds(draws, distance),
    }


def in_the_middle(pit: float) -> bool:
    """Returns whether a probability-integral value lies in the middle nine tenths."""
    return MIDDLE[0] <= pit <= MIDDLE[1]


def share_in_the_middle(seeds: int) -> float:
    """Returns the probability that a draw is in the middle part. Its `seeds` + 1 possible ranks are equally likely."""
    values = (np.arange(seeds + 1) + 0.5) / (seeds + 1)
    return float(np.mean((values >= MIDDLE[0]) & (values <= MIDDLE[1])))


def share_of_seeds(draws: Sequence[Scored], distance: float) -> float | None:
    """Returns the p-value of a KS distance, from the seeds themselves; None with fewer than ten common seeds.

    Each seed in turn takes the place of the paper: its values, rounded like printed ones, are ranked among the values
    of the other seeds. The result is the fraction of seeds, including the paper, whose distance is at least that of the
    paper. Numbers of a run stay together, so the result is also valid for dependent numbers.
    """
    common = set.intersection(*(set(s.seeds) for s in draws))
    if len(common) < FEWEST_SEEDS:
        return None
    values = [np.array([v for seed, v in zip(s.seeds, s.values, strict=True) if seed in common]) for s in draws]
    as_far = 0
    for played in range(len(common)):
        positions = [
            rank_among_seeds(
                round(float(of[played]), s.number.quantity.decimals), np.delete(of, played), s.number.rounding
            )
            for s, of in zip(draws, values, strict=True)
        ]
        as_far += (ks(positions) or 0.0) >= distance - SLACK
    return (1 + as_far) / (len(common) + 1)


def self_error(numbers: Sequence[Sequence[float]]) -> float | None:
    """Returns the mean distance of a seed from the mean of all other seeds, over all numbers and seeds."""
    misses = []
    for values in numbers:
        array = np.asarray(values, dtype=np.float64)
        if len(array) > 1:
            others = (array.sum() - array) / (len(array) - 1)
            misses.append(np.abs(array - others))
    return float(np.mean(np.concatenate(misses))) if misses else None


def rank_among_seeds(printed: float, values: Sequence[float] | NDArray[np.float64], rounding: float) -> float:
    """Returns the rank of a published value among n seeds, 0 to 1: (seeds below + half of the equal seeds + 1/2) / (n + 1).

    Seeds count as equal if they would be printed the same (within `rounding`), so coarse printing causes no bias. A
    draw from the seeds' distribution has each of n + 1 ranks with equal probability. The result is the midpoint of its
    rank's interval, so it is never 0 or 1.
    """
    array = np.asarray(values, dtype=np.float64)
    equal = int((np.abs(array - printed) <= rounding + SLACK).sum())
    below = int((array < printed - rounding - SLACK).sum())
    return (below + equal / 2 + 0.5) / (len(array) + 1)


# Ratios of measured values, paired by seed.


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios, with its 95 % interval.

    Attributes:
        seeds: Number of seeds. With one seed, `low` and `high` are the ratio itself.
    """

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(a: Sequence[Mapping[int, float]], b: Sequence[Mapping[int, float]]) -> Ratio:
    """Returns the ratio of `a` to `b` over the seeds that all rows have; the rows of a side are averaged geometrically.

    The interval is Student's for the mean of the logarithms.

    Args:
        a: Value by seed of each row.
        b: Value by seed of each row to compare with.

    Raises:
        PaperError: If the rows have no seed in common, or a value is not positive.
    """
    common = sorted(set.intersection(*(set(row) for row in (*a, *b))))
    if not common:
        raise PaperError("the rows of a ratio share no seed")
    if min(row[seed] for row in (*a, *b) for seed in common) <= 0:
        raise PaperError("a ratio needs positive values")
    logs = [np.mean([[math.log(row[seed]) for seed in common] for row in side], axis=0) for side in (a, b)]
    differences = logs[0] - logs[1]
    mean = float(np.mean(differences))
    half = half_width(len(common), float(np.std(differences, ddof=1))) if len(common) > 1 else 0.0
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(common))


@dataclass(frozen=True, kw_only=True)
class PairedRatio:
    """A ratio between a row of an experiment and the row that its `against` selects.

    Attributes:
        row: Values of the keys, without that of `across` if the ratio is for all its values together.
    """

    table: str
    row: Row
    quantity: str
    ratio: Ratio

    def to_dict(self) -> dict[str, Any]:
        """Returns the ratio as `celltrain study --json` prints it."""
        return {"table": self.table, "row": self.row, "quantity": self.quantity, **asdict(self.ratio)}


def against(table: Table, scored: Sequence[Scored]) -> list[PairedRatio]:
    """Returns the ratios of an experiment to the row that its `against` selects, row by row and for all columns.

    The row itself is left out, and so are quantities with values that are not positive.
    """
    members = [one for one in scored if one.number.table == table.number] if table.against else []
    without = {one.number.quantity.name for one in members if min(one.values) <= 0}
    members = [one for one in members if one.number.quantity.name not in without]
    rows = {(one.number.quantity.name, _key(one.number.row)): one.by_seed for one in members}
    pairs = []
    for one in members:
        name, row = one.number.quantity.name, one.number.row
        base = rows.get((name, _key({**row, **table.against})))
        if base is not None and base is not rows[name, _key(row)] and {*one.by_seed} & {*base}:
            pairs.append((name, row, one.by_seed, base))
    found = [
        PairedRatio(table=table.number, row=row, quantity=name, ratio=ratio([a], [b])) for name, row, a, b in pairs
    ]
    if table.across is None or table.across in table.against:
        return found
    together = grouped(pairs, lambda pair: (pair[0], _key({k: v for k, v in pair[1].items() if k != table.across})))
    for (name, key), some in together.items():
        if set.intersection(*({*a} & {*b} for _, _, a, b in some)):
            pooled = ratio([a for _, _, a, _ in some], [b for _, _, _, b in some])
            found.append(PairedRatio(table=table.number, row=dict(key), quantity=name, ratio=pooled))
    return found


def _key(row: Row) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(row.items()))
