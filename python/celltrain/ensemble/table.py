"""The runs of an ensemble as one table: case, seed and the values of the measures. Statistics are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.columns import Measured, measured
from celltrain.running import RunRecord, statistics
from celltrain.running.statistics import Differences, Means


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """The runs by case and seed.

    Attributes:
        measures: The measures, with units.
        case: Number of the case of each run, from 0.
        seed: Seed of each run.
        values: Runs by measures; NaN for missing values.
        fingerprint: Fingerprint of each run as a number.
        printed: True for runs with a fingerprint.
        errors: Errors of failed runs, by place.
        gaps: Reasons why a measure has no value, by the places of run and measure.
    """

    measures: tuple[Measured, ...]
    case: NDArray[np.int64]
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    fingerprint: NDArray[np.uint64]
    printed: NDArray[np.bool_]
    errors: Mapping[int, str]
    gaps: Mapping[tuple[int, int], str]

    @classmethod
    def of_records(cls, records: Sequence[RunRecord], measures: Sequence[str]) -> RunTable:
        """Returns the table of runs in memory."""
        ordered = sorted(records, key=lambda record: (record.point, record.seed))
        empty = (None,) * len(measures)
        prints = [record.fingerprint for record in ordered]
        return cls(
            measures=tuple(map(measured, measures)),
            case=np.array([record.point for record in ordered], np.int64),
            seed=np.array([record.seed for record in ordered], np.uint64),
            values=np.array([record.values or empty for record in ordered], np.float64).reshape(-1, len(measures)),
            fingerprint=np.array([int(text or "0", 16) for text in prints], np.uint64),
            printed=np.array([text is not None for text in prints], np.bool_),
            errors={place: record.error for place, record in enumerate(ordered) if record.error is not None},
            gaps={
                (place, measure): problem
                for place, record in enumerate(ordered)
                for measure, problem in enumerate(record.problems or ())
                if problem is not None
            },
        )

    def __len__(self) -> int:
        return len(self.case)

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """True for runs that failed."""
        failed = np.zeros(len(self), np.bool_)
        failed[list(self.errors)] = True
        return failed

    @cached_property
    def fingerprints(self) -> list[str | None]:
        """Fingerprints as 16 hexadecimal digits."""
        both = zip(self.fingerprint.tolist(), self.printed.tolist(), strict=True)
        return [f"{number:016x}" if known else None for number, known in both]

    def means(self, measure: int, count: int) -> Means:
        """Returns the mean of a measure for each of `count` cases."""
        return means(self.case, self.values[:, measure], count)


def means(groups: NDArray[np.int64], values: NDArray[np.float64], count: int) -> Means:
    """Returns the means of the values that are known, for groups numbered from 0 to `count` - 1."""
    known = ~np.isnan(values)
    return statistics.means(groups[known], values[known], count)


def differences(values: NDArray[np.float64]) -> Differences:
    """Returns the mean difference of each case from the first name in the same setting, paired by seed.

    Pairs without one of the two values do not count. The first name's own differences are NaN.

    Args:
        values: By name, setting and seed.
    """
    names, settings, _ = values.shape
    more = values - values[:1]
    more[0] = np.nan
    known = ~np.isnan(more)
    case = np.broadcast_to(np.arange(names * settings).reshape(names, settings, 1), more.shape)
    first = np.broadcast_to(values[:1], values.shape)
    return statistics.paired(case[known], first[known], values[known], names * settings)
