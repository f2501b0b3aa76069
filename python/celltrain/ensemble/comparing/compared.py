"""The answer of a comparison: means, paired differences, tables, a figure."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.ensemble.columns import axis_columns
from celltrain.ensemble.comparing import comparability
from celltrain.ensemble.comparing.data import Comparison
from celltrain.model.arguments import Answer, checked
from celltrain.model.files import inner, named, replace, writing
from celltrain.model.grids import Card, Carded
from celltrain.running.tables import Column, csv_rows, csv_schema, table, write_csv
from celltrain.text import as_json

if TYPE_CHECKING:
    import pyarrow as pa


class Compared(Carded, Answer, Comparison):
    """Scenarios compared with the same seeds; `celltrain.compare` returns it.

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

    _call = "celltrain.compare"

    @classmethod
    def _of(cls, **parts: Any) -> Compared:
        made = cls.__new__(cls)
        Comparison.__init__(made, **parts)
        return made

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the differences."""
        return (*self.doubts, *self.too_few)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """The warnings that more seeds would not remove."""
        return tuple(comparability.doubts(self))

    @cached_property
    def too_few(self) -> tuple[str, ...]:
        """A warning if few seeds give an interval with impossible values."""
        return tuple(comparability.too_few(self))

    @cached_property
    def table(self) -> pa.Table:
        """One row per name, combination and measure: mean, interval, and the paired difference from the first name.

        `low` and `high` are the ends of the mean's 95 % interval (Student's), `difference_low` and `difference_high` those
        of the difference's. Missing numbers are null.
        """
        rows = []
        for case, (name, setting) in enumerate(self._places()):
            for measure, means, more in zip(self.measures, self.means, self.differences, strict=True):
                difference = ends(more.difference[case], more.half[case])
                rows.append(
                    {
                        "name": self.names[name],
                        **self.settings[setting],
                        "measure": measure.name,
                        "n": int(means.n[case]),
                        "sd": _number(means.sd[case]),
                        **ends(means.mean[case], means.half[case]),
                        "difference": difference["mean"],
                        "difference_low": difference["low"],
                        "difference_high": difference["high"],
                    }
                )
        against = f"mean of what it has more than {self.names[0]}, seed by seed"
        columns = [
            *self._first_columns(),
            _column("measure", "string", "what was measured"),
            _column("n", "int64", "runs that have a value", "1"),
            _column("mean", "float64", "their mean, in the unit of the measure"),
            _column("sd", "float64", "their standard deviation"),
            _column("low", "float64", "lower end of the mean's 95 % interval"),
            _column("high", "float64", "its upper end"),
            _column("difference", "float64", against),
            _column("difference_low", "float64", "lower end of its 95 % interval"),
            _column("difference_high", "float64", "its upper end"),
        ]
        return table(rows, columns)

    @cached_property
    def runs(self) -> pa.Table:
        """One row per run: name, combination, seed, fingerprint, and a column for each measure."""
        rows = []
        for name, setting, place in np.ndindex(*self.fingerprints.shape):
            if fingerprint := self.fingerprints[name, setting, place]:
                values = map(_number, self.values[name, setting, place].tolist())
                row = {"name": self.names[name], **self.settings[setting], "seed": self.seeds[place]}
                row |= {"fingerprint": fingerprint}
                rows.append(row | dict(zip((one.name for one in self.measures), values, strict=True)))
        columns = [
            *self._first_columns(),
            _column("seed", "uint64", "seed of every random choice of the run", "1"),
            _column("fingerprint", "string", "16 hex digits that change with any segment's instant"),
            *(_column(one.name, "float64", one.meaning, one.unit) for one in self.measures),
        ]
        return table(rows, columns)

    @checked()
    def to_dict(self) -> dict[str, Any]:
        """Returns the answer as `celltrain compare --json` prints it; unknown numbers are None."""
        scenarios: list[dict[str, Any]] = []
        differences: list[dict[str, Any]] = []
        for case, (name, setting) in enumerate(self._places()):
            at = {"settings": self.settings[setting]} if self.conditions else {}
            means = {
                measure.name: {**ends(own.mean[case], own.half[case]), "n": int(own.n[case])}
                for measure, own in zip(self.measures, self.means, strict=True)
            }
            scenarios.append({"name": self.names[name], **at, "tcp": self.tcp[name][setting], **means})
            if name:
                more = {
                    measure.name: ends(own.difference[case], own.half[case])
                    for measure, own in zip(self.measures, self.differences, strict=True)
                }
                differences.append({"name": self.names[name], "baseline": self.names[0], **at, **more})
        return {
            "version": _core.build()["version"],
            "scenario": self.scenario or None,
            "seeds": len(self.seeds),
            "first_seed": self.seeds[0],
            "set": {axis.name: axis.column(0) for axis in self.fixed},
            "set_only_where": self.only_where,
            "scenarios": scenarios,
            "differences": differences,
            "failures": [{"name": one.name, "seed": one.seed, "error": one.error} for one in self.failures],
            "warnings": list(self.warnings),
        }

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the table and the runs as CSV, `comparison.json`, and `scenarios.json` into a folder; returns the files.

        `scenarios.json` has the scenario of each case with all its settings.
        """
        scenarios = [
            {
                "name": self.names[name],
                "settings": self.settings[setting],
                "scenario": json.loads(self.configurations[name][setting]),
            }
            for name, setting in self._places()
        ]
        with writing(folder):
            target = inner(Path(folder))
            names = ("comparison.csv", "runs.csv", "comparison.json", "scenarios.json")
            written = [target / name for name in names]
            write_csv(self.table, written[0])
            write_csv(self.runs, written[1])
            replace(written[2], as_json(self.to_dict()) + "\n")
            replace(written[3], as_json(scenarios) + "\n")
        return written

    @checked()
    def write_csv(self, file: str | os.PathLike[str]) -> Path:
        """Writes `table` into a file as CSV; raises `OutputError` if that fails."""
        import pyarrow.csv

        content = io.BytesIO()
        with pyarrow.csv.CSVWriter(content, csv_schema(self.table.schema)) as writer:
            for rows in csv_rows(self.table):
                writer.write_table(rows)
        with named(file) as target:
            target.write(content.getvalue())
        return Path(file)

    @checked()
    def plot(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        measures: Sequence[str] | None = None,
        width: str = "page",
        style: str | None = None,
    ) -> Any:
        """Draws means with their 95 % intervals; needs `pip install celltrain[plot]`.

        Args:
            file: File to write: `.svg`, `.pdf` or `.png`; none when None.
            measures: Measures to draw, a panel each; the first three when None.
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches) for a paper's column.
            style: A style of matplotlib: a name such as `"grayscale"`, or a file. Celltrain's own when None.

        Returns:
            The figure of matplotlib.

        Raises:
            InputError: If a measure, a width or a style is unknown, or the file's ending is not that of a picture.
        """
        from celltrain.ensemble.comparing.figure import draw

        return draw(self, file, measures=measures, width=width, style=style)

    def _places(self) -> Iterator[tuple[int, ...]]:
        """Yields name and combination of each case."""
        yield from np.ndindex(len(self.names), len(self.settings))

    def _first_columns(self) -> list[Column]:
        return [_column("name", "string", "what is compared"), *axis_columns(self.conditions, "string")]

    def _card(self) -> Card:
        from celltrain.ensemble.comparing.rows import card

        return card(self, self.warnings)

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'' if len(self.seeds) == 1 else 's'}"
        at = f" at {len(self.settings)} settings" if self.conditions else ""
        return f"Compared({', '.join(self.names)}{at}: {seeds})"


def ends(mean: float, half: float) -> dict[str, float | None]:
    """Returns a mean and the ends of its interval."""
    return {"mean": _number(mean), "low": _number(mean - half), "high": _number(mean + half)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _column(name: str, kind: str, meaning: str, unit: str = "") -> Column:
    return Column(name=name, kind=kind, unit=unit, meaning=meaning)
