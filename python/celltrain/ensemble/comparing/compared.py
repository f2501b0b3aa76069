"""What came of a comparison: means, paired differences, tables, a figure."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.drawing.pages.words import measure as worded
from celltrain.drawing.pages.words import valued
from celltrain.ensemble import cautions
from celltrain.ensemble.plan import Axis
from celltrain.ensemble.store.columns import Measured
from celltrain.model.arguments import Answer, checked
from celltrain.model.cards import Card, Carded
from celltrain.model.writing import inner, named, replace, writing
from celltrain.running import statistics
from celltrain.running.statistics import Differences, Means
from celltrain.running.tables import Column, csv_rows, csv_schema, table, write_csv
from celltrain.text import as_json, shown

if TYPE_CHECKING:
    import pyarrow as pa

#: Runs of each case that anybody waits for.
MOST_SEEDS = 1_000_000
#: With fewer seeds an interval may have impossible values, such as a share above 1.
FEWEST_SEEDS = 5
#: Measures that lie between 0 and 1.
SHARES = ("efficiency", "fairness", "fairness_max_min")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without a result."""

    name: str
    """What was run, as in `Compared.names`."""
    seed: int
    error: str


class Compared(Carded, Answer):
    """Scenarios beside each other under the same seeds; `celltrain.compare` makes it."""

    _call = "celltrain.compare"
    what: str
    """What is compared: `scenario`, or the name of the axis whose values are."""
    scenario: str
    """The scenario whose settings are compared; empty if several scenarios are compared."""
    names: tuple[str, ...]
    """What is compared; the first is what the others are compared with."""
    conditions: tuple[Axis, ...]
    """What else is varied: everything is compared at each combination."""
    settings: tuple[dict[str, float | str], ...]
    """The combinations: for each the values of `conditions`, numbers in the units of the axes (s, bit/s, B, cells)."""
    fixed: tuple[Axis, ...]
    """What was set for all: axes of one value."""
    only_where: dict[str, str]
    """By name those of `fixed` that take effect in some cases only, and these cases in words: `tcp is vanilla`."""
    configurations: tuple[tuple[str, ...], ...]
    """By name and combination: the scenario with all its settings, as JSON."""
    tcp: tuple[tuple[str, ...], ...]
    """By name and combination: the TCP in words, such as `vanilla (no fast retransmit, 100 ms ticks)`."""
    measures: tuple[Measured, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    """By name, combination, seed and measure, in the units of the measures; NaN where there is none."""
    fingerprints: NDArray[np.object_]
    """By name, combination and seed; an empty text where a run failed."""
    ties_only: NDArray[np.bool_]
    """By name and combination: whether seeds draw at most the order of simultaneous cells."""
    failures: tuple[Failure, ...]
    delivered: NDArray[np.float64]
    """By name, combination and seed: the bytes that all flows delivered; NaN where a run failed."""
    rivals: NDArray[np.int64]
    """By name and combination: a number that cases share which differ in nothing but policies."""
    of_check: tuple[str, ...]
    """Warnings of `celltrain check` for the scenarios as they were run."""

    @classmethod
    def _of(cls, *, said: Sequence[str], **parts: Any) -> Compared:
        made = cls.__new__(cls)
        vars(made).update(parts)
        made._said = tuple(said)
        return made

    _said: tuple[str, ...]

    @property
    def carried_nothing(self) -> NDArray[np.bool_]:
        """By name, combination and seed: whether no flow delivered anything in that run. False where a run failed."""
        return np.asarray(self.delivered == 0)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to look at before the differences are believed."""
        return (*self.doubts, *self.too_few)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """The warnings that more seeds would not remove."""
        return (*self._dead(), *self._little(), *self.of_check, *self._said, *self._idle(), *self._alike())

    @cached_property
    def too_few(self) -> tuple[str, ...]:
        """A warning if few seeds give an interval with impossible values: Student's interval has no bounds."""
        if not 1 < len(self.seeds) < FEWEST_SEEDS:
            return ()
        wide = []
        for place, (measure, means) in enumerate(zip(self.measures, self.means, strict=True)):
            values = self.values[..., place]
            below = bool((values >= 0).any() and not (values < 0).any() and (means.low < 0).any())
            if below or (measure.name in SHARES and bool((means.high > 1).any())):
                wide.append(worded(measure.name))
        if not wide:
            return ()
        return (f"{few(len(self.seeds))} ({', '.join(wide)}). Use {FEWEST_SEEDS} seeds or more",)

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """For each measure the means of all cases: a name at a combination, the combinations of a name together."""
        return tuple(statistics.means(*self._known(measure), self._cases) for measure in range(len(self.measures)))

    @cached_property
    def differences(self) -> tuple[Differences, ...]:
        """For each measure and case the mean of what it has more than the first name at that combination, seed by seed.

        Seeds that one of the two has no value for do not count. The first name's own differences are NaN.
        """
        found = []
        for measure in range(len(self.measures)):
            values = self.values[..., measure]
            more = values - values[:1]
            more[0] = np.nan
            good = ~np.isnan(more)
            case = np.broadcast_to(self._case[..., None], more.shape)
            first = np.broadcast_to(values[:1], values.shape)
            found.append(statistics.paired(case[good], first[good], values[good], self._cases))
        return tuple(found)

    @cached_property
    def table(self) -> pa.Table:
        """One row a name, combination and measure: mean, interval, and the paired difference from the first name.

        `low` and `high` are the ends of the mean's 95 % interval (Student's), `difference_low` and `difference_high` those
        of the difference's. What there is none of is null.
        """
        return table(list(self._rows()), self._columns())

    @cached_property
    def runs(self) -> pa.Table:
        """One row a run: name, combination, seed, fingerprint, and a column for each measure."""
        rows = []
        for name, condition, place in np.ndindex(*self.fingerprints.shape):
            if not self.fingerprints[name, condition, place]:
                continue
            values = self.values[name, condition, place].tolist()
            measured = {one.name: _number(value) for one, value in zip(self.measures, values, strict=True)}
            own = {"seed": self.seeds[place], "fingerprint": self.fingerprints[name, condition, place]}
            rows.append({"name": self.names[name], **self.settings[condition], **own, **measured})
        columns = [
            *self._first_columns(),
            _column("seed", "uint64", "1", "seed of every random choice of the run"),
            _column("fingerprint", "string", "", "16 hex digits that change with any segment's instant"),
            *(_column(one.name, "float64", one.unit, one.meaning) for one in self.measures),
        ]
        return table(rows, columns)

    @checked()
    def to_dict(self) -> dict[str, Any]:
        """As `celltrain compare --json` prints it; what is not known is None."""
        scenarios: list[dict[str, Any]] = []
        differences: list[dict[str, Any]] = []
        for case, (name, condition) in enumerate(self._places()):
            about = {"name": self.names[name], **({"settings": self.settings[condition]} if self.conditions else {})}
            means = {
                measure.name: {**ends(own.mean[case], own.half[case]), "n": int(own.n[case])}
                for measure, own in zip(self.measures, self.means, strict=True)
            }
            scenarios.append({**about, "tcp": self.tcp[name][condition], **means})
            if name:
                more = {
                    measure.name: ends(own.difference[case], own.half[case])
                    for measure, own in zip(self.measures, self.differences, strict=True)
                }
                differences.append({"name": about.pop("name"), "baseline": self.names[0], **about, **more})
        failures = [{"name": one.name, "seed": one.seed, "error": one.error} for one in self.failures]
        return {
            "version": _core.build()["version"],
            "scenario": self.scenario or None,
            "seeds": len(self.seeds),
            "first_seed": self.seeds[0],
            "set": {axis.name: axis.column(0) for axis in self.fixed},
            "set_only_where": self.only_where,
            "scenarios": scenarios,
            "differences": differences,
            "failures": failures,
            "warnings": list(self.warnings),
        }

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the table and the runs as CSV, `comparison.json`, and `scenarios.json` into a folder; returns the files.

        `scenarios.json` has the scenario of each case with all its settings.
        """
        with writing(folder):
            target = inner(Path(folder))
            written = [target / "comparison.csv", target / "runs.csv"]
            written += [target / "comparison.json", target / "scenarios.json"]
            write_csv(self.table, written[0])
            write_csv(self.runs, written[1])
            replace(written[2], as_json(self.to_dict()) + "\n")
            scenarios = [
                {"name": self.names[name], "settings": self.settings[condition], "scenario": json.loads(text)}
                for name, condition in self._places()
                for text in [self.configurations[name][condition]]
            ]
            replace(written[3], as_json(scenarios) + "\n")
        return written

    @checked()
    def write_csv(self, file: str | os.PathLike[str]) -> Path:
        """Writes `table` into a file as CSV; raises `OutputError` where that cannot be done."""
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
            file: Where it is written to: `.svg`, `.pdf` or `.png`. Not written when None.
            measures: What is drawn, a panel each; the first three that were measured when None.
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches) for a paper's column.
            style: A style of matplotlib: a name such as `"grayscale"`, or a file. Ours when None.

        Returns:
            The figure, of matplotlib.

        Raises:
            InputError: Where a measure, a width or a style is not there, or the file's ending is no picture's.
        """
        from celltrain.ensemble.comparing.figure import FigureData, draw
        from celltrain.ensemble.comparing.rows import fixed

        data = FigureData(
            scenario=self.scenario,
            names=self.names,
            conditions=self.conditions,
            settings=self.settings,
            fixed=fixed(self) if self.fixed else "",
            tcp=self.tcp,
            measures=self.measures,
            seeds=len(self.seeds),
            values=self.values,
            means=self.means,
        )
        return draw(data, file, measures=measures, width=width, style=style)

    @property
    def _cases(self) -> int:
        return len(self.names) * len(self.settings)

    @property
    def _case(self) -> NDArray[np.int64]:
        """The number of each name at each combination."""
        return np.arange(self._cases, dtype=np.int64).reshape(len(self.names), len(self.settings))

    def _places(self) -> Iterator[tuple[int, int]]:
        """Name and combination of each case."""
        yield from np.ndindex(len(self.names), len(self.settings))

    def _known(self, measure: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Case and value of each run that has one."""
        values = self.values[..., measure]
        good = ~np.isnan(values)
        return np.broadcast_to(self._case[..., None], values.shape)[good], values[good]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for case, (name, condition) in enumerate(self._places()):
            for measure, means, more in zip(self.measures, self.means, self.differences, strict=True):
                more_ends = ends(more.difference[case], more.half[case])
                yield {
                    "name": self.names[name],
                    **self.settings[condition],
                    "measure": measure.name,
                    "n": int(means.n[case]),
                    "sd": _number(means.sd[case]),
                    **ends(means.mean[case], means.half[case]),
                    "difference": more_ends["mean"],
                    "difference_low": more_ends["low"],
                    "difference_high": more_ends["high"],
                }

    def _first_columns(self) -> list[Column]:
        return [
            _column("name", "string", "", "what is compared"),
            *(
                _column(axis.name, "float64" if axis.is_number else "string", axis.unit, axis.meaning)
                for axis in self.conditions
            ),
        ]

    def _columns(self) -> list[Column]:
        against = f"mean of what it has more than {self.names[0]}, seed by seed"
        return [
            *self._first_columns(),
            _column("measure", "string", "", "what was measured"),
            _column("n", "int64", "1", "runs that have a value"),
            _column("mean", "float64", "", "their mean, in the unit of the measure"),
            _column("sd", "float64", "", "their standard deviation"),
            _column("low", "float64", "", "lower end of the mean's 95 % interval"),
            _column("high", "float64", "", "its upper end"),
            _column("difference", "float64", "", against),
            _column("difference_low", "float64", "", "lower end of its 95 % interval"),
            _column("difference_high", "float64", "", "its upper end"),
        ]

    def _dead(self) -> Iterator[str]:
        """Runs that carried nothing, by name."""
        for name, empty in zip(self.names, self.carried_nothing, strict=True):
            if count := int(empty.sum()):
                yield cautions.carried_nothing(shown(name), count, empty.size)

    def _little(self) -> Iterator[str]:
        """Names that carry little of what another one carries in the same network: for each the worst combination."""
        known = ~np.isnan(self.delivered)
        count = known.sum(axis=2)
        total = np.where(known, self.delivered, 0).sum(axis=2)
        carried = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        worst: dict[int, tuple[float, int, int]] = {}
        for case, (share, best) in cautions.little(carried.reshape(-1), self.rivals.reshape(-1)).items():
            name, condition = divmod(case, len(self.settings))
            worst[name] = min(worst.get(name, (1.0, 0, 0)), (share, best, condition))
        for name, (share, best, condition) in sorted(worst.items()):
            rival, elsewhere = divmod(best, len(self.settings))
            called = (
                shown(self.names[rival])
                if elsewhere == condition
                else f"{shown(self.names[rival])} at {self._at(elsewhere)}"
            )
            at = self._at(condition)
            own = f"{shown(self.names[name])} at {at}" if at else shown(self.names[name])
            yield cautions.carries_little(own, share, called)

    def _at(self, condition: int) -> str:
        """Returns a combination in words."""
        own = self.settings[condition]
        return ", ".join(f"{shown(axis.name)} = {valued(own[axis.name], axis.unit)}" for axis in self.conditions)

    def _idle(self) -> Iterator[str]:
        """What was varied and changed nothing: not a single instant in any run."""
        prints = self.fingerprints
        if not (prints != "").all():
            return
        dead = self.carried_nothing
        for place, name in enumerate(self.names[1:], 1):
            if (prints[place] == prints[0]).all() and not dead[place].all():
                yield (
                    f"{shown(name)} and {shown(self.names[0])} are the same runs under every seed: what differs between "
                    "them changes nothing here"
                )
        codes = np.unique(prints.astype(str), return_inverse=True)[1].reshape(prints.shape).astype(np.int64)
        for axis in self.conditions:
            # Settings that differ in this axis alone share a number.
            rest = [tuple(value for name, value in one.items() if name != axis.name) for one in self.settings]
            group = np.array([rest.index(one) for one in rest])[:, None] * len(self.seeds) + np.arange(len(self.seeds))
            pairs = [cautions.same(group[~empty], own[~empty]) for own, empty in zip(codes, dead, strict=True)]
            if all(pairs):
                yield cautions.idle_words(shown(axis.name), sum(pairs))
                continue
            for name, idle in zip(self.names, pairs, strict=True):
                if idle:
                    yield f"{shown(name)}: {cautions.idle_words(shown(axis.name), idle)}"

    def _alike(self) -> Iterator[str]:
        """Cases whose runs hardly differ from seed to seed, so that their intervals say little."""
        if len(self.seeds) < cautions.LEAST_ALIKE:
            return
        distinct = np.array([[len(set(runs) - {""}) for runs in row] for row in self.fingerprints])
        mean, sd = (np.array([getattr(means, name) for means in self.means]) for name in ("mean", "sd"))
        narrow = cautions.narrow([one.name for one in self.measures], mean, sd).reshape(distinct.shape)
        alike = ((distinct == 1) | (self.ties_only & narrow)) & ~self.carried_nothing.all(axis=2)
        if not alike.any():
            return
        name, condition = (int(one) for one in np.argwhere(alike)[0])
        own = self.settings[condition]
        first = shown(", ".join([self.names[name], *(valued(own[axis.name], axis.unit) for axis in self.conditions)]))
        tcps = [tcp for own in self.tcp for tcp in own]
        yield cautions.alike(len(self.seeds), int(alike.sum()), alike.size, first, tcps)

    def _card(self) -> Card:
        from celltrain.ensemble.comparing.rows import card

        return card(self)

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'' if len(self.seeds) == 1 else 's'}"
        at = f" at {len(self.settings)} settings" if self.conditions else ""
        return f"Compared({', '.join(self.names)}{at}: {seeds})"


def few(seeds: int) -> str:
    """The beginning of a warning about few seeds."""
    return f"{seeds} seeds are few: 95 % intervals extend beyond possible values"


def _column(name: str, kind: str, unit: str, meaning: str) -> Column:
    return Column(name=name, kind=kind, unit=unit, meaning=meaning)


def ends(mean: float, half: float) -> dict[str, float | None]:
    """A mean and the ends of its interval."""
    return {"mean": _number(mean), "low": _number(mean - half), "high": _number(mean + half)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
