"""A comparison as data: the runs of each case, their means and their paired differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble import table
from celltrain.ensemble.columns import Measured
from celltrain.ensemble.plan import Axis
from celltrain.running.statistics import Differences, Means


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without a result; `name` is one of `Comparison.names`."""

    name: str
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """Scenarios compared with the same seeds.

    Attributes:
        what: `scenario`, or the name of the axis whose values are compared.
        scenario: The scenario whose settings are compared; empty if several scenarios are compared.
        names: Names of the scenarios or values; the others are compared with the first.
        conditions: The other axes: everything is compared at each combination of their values.
        settings: The combinations: for each the values of `conditions`, numbers in the units of the axes (s, bit/s, B, cells).
        fixed: Axes of one value, which are set for all.
        only_where: By name the axes of `fixed` that take effect in some cases only, and these cases in words, such as
            `tcp is vanilla`.
        configurations: By name and combination: the scenario with all its settings, as JSON.
        tcp: By name and combination: the TCP in words, such as `vanilla (no fast retransmit, 100 ms ticks)`.
        measures: The measures.
        seeds: The seeds.
        values: By name, combination, seed and measure, in the units of the measures; NaN for missing values.
        fingerprints: By name, combination and seed; an empty text if a run failed.
        ties_only: By name and combination: whether seeds draw at most the order of simultaneous cells.
        failures: The runs that failed.
        delivered: By name, combination and seed: the bytes that all flows delivered; NaN if a run failed.
        rivals: By name and combination: a number that cases share which differ in nothing but policies.
        of_check: Warnings of `celltrain check` for the scenarios as they were run.
        of_plan: Warnings about scenarios that are hard to compare.
    """

    what: str
    scenario: str
    names: tuple[str, ...]
    conditions: tuple[Axis, ...]
    settings: tuple[dict[str, float | str], ...]
    fixed: tuple[Axis, ...]
    only_where: dict[str, str]
    configurations: tuple[tuple[str, ...], ...]
    tcp: tuple[tuple[str, ...], ...]
    measures: tuple[Measured, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    fingerprints: NDArray[np.object_]
    ties_only: NDArray[np.bool_]
    failures: tuple[Failure, ...]
    delivered: NDArray[np.float64]
    rivals: NDArray[np.int64]
    of_check: tuple[str, ...]
    of_plan: tuple[str, ...]

    @property
    def carried_nothing(self) -> NDArray[np.bool_]:
        """By name, combination and seed: whether no flow delivered anything in that run. False if a run failed."""
        return np.asarray(self.delivered == 0)

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """For each measure the means of all cases: a name at a combination, the combinations of a name together."""
        cases = len(self.names) * len(self.settings)
        case = np.repeat(np.arange(cases), len(self.seeds))
        return tuple(table.means(case, self.values[..., i].reshape(-1), cases) for i in range(len(self.measures)))

    @cached_property
    def differences(self) -> tuple[Differences, ...]:
        """For each measure and case the mean difference from the first name at that combination, seed by seed.

        Seeds for which one of the two has no value do not count. The first name's own differences are NaN.
        """
        return tuple(table.differences(self.values[..., i]) for i in range(len(self.measures)))
