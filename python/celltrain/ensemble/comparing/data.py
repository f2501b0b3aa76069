"""A comparison as data: the runs of each case, their means and their paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.words import valued
from celltrain.ensemble.cases import SUMMARY, Measured, arrow, axis_columns, by_measure, differences, means
from celltrain.ensemble.plan import Axis
from celltrain.running.statistics import Means
from celltrain.running.tables import Column
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

#: Name used if scenarios are compared, and for the condition if policies are compared within each scenario.
SCENARIO = "scenario"

SEED = Column("seed", "uint64", "1", "seed of every random choice of the run")
PRINT = Column("fingerprint", "string", "", "16 hex digits that change with any segment's instant")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without a result; `name` is one of `Comparison.names`."""

    name: str
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """The data of a comparison; `celltrain.Compared` describes the attributes."""

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
        """For each measure, the means of all cases: for each name, one case per combination."""
        return tuple(self.means_of(self.values[..., i]) for i in range(len(self.measures)))

    def means_of(self, values: NDArray[np.float64]) -> Means:
        """Returns the means of all cases from values by name, combination and seed."""
        cases = len(self.names) * len(self.settings)
        return means(np.repeat(np.arange(cases), len(self.seeds)), values.reshape(-1), cases)

    @cached_property
    def differences(self) -> tuple[Means, ...]:
        """For each measure and case, the mean difference from the first name at that combination, seed by seed.

        Seeds for which either value is missing are left out. The first name's own differences are NaN.
        """
        return tuple(differences(self.values[..., i]) for i in range(len(self.measures)))

    @cached_property
    def table(self) -> pa.Table:
        """One row per name, combination and measure: mean, interval, and the paired difference from the first name.

        `low` and `high` are the ends of the mean's 95 % interval (Student's); `difference_low` and `difference_high`
        are the ends of the interval of the difference. Missing numbers are null.
        """
        cases = np.arange(len(self.names) * len(self.settings))
        more = f"mean of what it has more than {self.names[0]}, seed by seed"
        columns = {
            "mean": Column("difference", "float64", "", more),
            "low": Column("difference_low", "float64", "", "lower end of its 95 % interval"),
            "high": Column("difference_high", "float64", "", "its upper end"),
        }
        measures = [measure.name for measure in self.measures] * len(cases)
        return arrow(
            [
                *self._case_columns(np.repeat(cases, len(self.measures))),
                (Column("measure", "string", "", "what was measured"), measures),
                *by_measure({name: SUMMARY[name] for name in ("n", "mean", "sd", "low", "high")}, self.means, cases),
                *by_measure(columns, self.differences, cases),
            ]
        )

    @cached_property
    def runs(self) -> pa.Table:
        """One row per run: name, combination, seed, fingerprint, and a column for each measure."""
        prints = self.fingerprints.reshape(-1, len(self.seeds))
        case, seed = np.nonzero(prints != "")
        values = self.values.reshape(*prints.shape, -1)[case, seed]
        of_run = {SEED: np.array(self.seeds, np.uint64)[seed], PRINT: prints[case, seed].tolist()}
        return arrow([*self._case_columns(case), *of_run.items(), *zip(self.measures, values.T, strict=True)])

    @property
    def fixed_line(self) -> str:
        """The settings for all cases, in words."""
        texts = []
        for axis in self.fixed:
            only = f" (only where {self.only_where[axis.name]})" if axis.name in self.only_where else ""
            texts.append(f"{shown(axis.name)} = {valued(axis.column(0), axis.unit)}{only}")
        return f"set: {', '.join(texts)}" if texts else ""

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yields the index of the name and of the combination of each case."""
        yield from np.ndindex(len(self.names), len(self.settings))

    def _case_columns(self, cases: NDArray[np.int64]) -> Iterator[tuple[Column, list[Any]]]:
        names, places = (part.tolist() for part in np.divmod(cases, len(self.settings)))
        yield Column("name", "string", "", "what is compared"), [self.names[name] for name in names]
        for column in axis_columns(self.conditions, "string"):
            yield column, [self.settings[place][column.name] for place in places]
