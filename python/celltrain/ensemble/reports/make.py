"""A report: made of a store, asked for its tables, written into a folder."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.axes import require_matplotlib
from celltrain.drawing.pages.drawing import Look
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.reports import groups
from celltrain.ensemble.reports.analysis import Analysis, Comparison, compare, label, named
from celltrain.ensemble.reports.data import Data, Measure, of_store
from celltrain.ensemble.store import Store
from celltrain.errors import Fault, StoreError
from celltrain.model.arguments import Answer, checked
from celltrain.model.cards import Card, Carded
from celltrain.model.writing import inner, replace, writing
from celltrain.running.tables import Column, write_csv
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.drawing.pages.drawing import Drawing
    from celltrain.ensemble.reports.groups import Baseline, Layout


class Report(Carded, Answer):
    """What a store's runs say: tables, the front of two measures, main effects, and what moved since another store."""

    _call = "celltrain.report"
    data: Data
    analysis: Analysis
    comparison: Comparison | None
    layout: Layout | None
    """Which axes the figures of lines have; None where there are no such figures."""
    baseline: Baseline | None
    """What everything is compared with, seed by seed."""
    layout_against: Layout | None
    """The axes of the figures of these differences."""
    style: str | None
    """Of the figures: a style of matplotlib; ours when None."""
    warnings: tuple[str, ...]
    """What to look at before the means are believed: axes that changed nothing, for example."""
    front_caution: str
    """A sentence if points of the front carry little of what others carry, else empty."""

    @classmethod
    def _of(
        cls,
        data: Data,
        *,
        front: Sequence[str] | None,
        front_by: Sequence[str] | None = None,
        comparison: Comparison | None,
        warnings: Sequence[str] = (),
        little: Collection[int] = (),
        style: str | None = None,
        lines: Sequence[str] | None = None,
        baseline: str | None = None,
    ) -> Report:
        made = cls.__new__(cls)
        made.data = data
        made.analysis = Analysis(data, front, front_by)
        made.comparison = comparison
        made.style = style
        made.baseline = None if baseline is None else groups.baseline(data, baseline)
        made.layout = groups.layout(made.analysis, lines)
        made.layout_against = None
        if made.baseline is not None:
            factor = made.baseline.factor
            made.layout_against = groups.layout(made.analysis, None, factor) or groups.Layout(
                over=factor, by=None, panel=None
            )
        made.warnings = (*warnings, *(() if made.baseline is None else made.baseline.warnings()))
        made.front_caution = made._front_caution(little)
        return made

    def _front_caution(self, little: Collection[int]) -> str:
        front = self.analysis.front
        count = 0 if front is None else int(np.isin(self.data.points[front.order], list(little)).sum())
        if not count:
            return ""
        carry = "carries" if count == 1 else "carry"
        return (
            f"{count:,} of them {carry} less than {plan_warnings.percent(plan_warnings.LITTLE)} of what the best policy carries: ignore "
            f"{'its' if count == 1 else 'their'} other measures."
        )

    @cached_property
    def summary(self) -> pa.Table:
        """One row a point and measure: mean, standard deviation, number of values, ends of the 95 % interval."""
        import pyarrow as pa

        data, count = self.data, len(self.data.measures)
        columns = {
            name: np.stack([getattr(means, name) for means in data.means], axis=1).reshape(-1)
            for name in ("n", "mean", "sd", "low", "high")
        }
        names = pa.array(np.tile(np.arange(count, dtype=np.int32), len(data.points)))
        return pa.Table.from_arrays(
            [
                *self._settings(np.repeat(np.arange(len(data.points)), count)),
                pa.DictionaryArray.from_arrays(names, pa.array([m.name for m in data.measures], pa.string())),
                *(_array(column) for column in columns.values()),
            ],
            schema=self._schema(
                _column("measure", "name", "", "what was measured"),
                _column("n", "int64", "1", "values"),
                *_mean("mean", "their mean, in the unit of the measure"),
            ),
        )

    @cached_property
    def front(self) -> pa.Table:
        """The points of each configuration's Pareto front, from the best in its first measure; no rows where there is none."""
        import pyarrow as pa

        data, front = self.data, self.analysis.front
        order = np.array([], dtype=np.int64) if front is None else front.order
        measures = [] if front is None else [front.x, front.y]
        columns = [
            _array(np.asarray(values)[order])
            for i in measures
            for values in (data.means[i].mean, data.means[i].low, data.means[i].high)
        ]
        fields = [
            _column(f"{data.measures[i].name}{suffix}", "float64", data.measures[i].unit, meaning)
            for i in measures
            for suffix, meaning in (
                ("", data.measures[i].meaning),
                (".low", "lower end of its 95 % interval"),
                (".high", "its upper end"),
            )
        ]
        return pa.Table.from_arrays([*self._settings(order), *columns], schema=self._schema(*fields))

    @cached_property
    def effects(self) -> pa.Table:
        """One row a measure, axis and value: the mean over everything else, and the ends of its 95 % interval."""
        from celltrain.drawing.pages.words import plain, valued

        rows = []
        for of_measure in self.analysis.effects:
            for effect in of_measure:
                axis, means = effect.factor.axis, effect.means
                for level, place in enumerate(effect.places.tolist()):
                    value = str(axis.values[level]) if axis.words else plain(place)
                    shown_value = value if axis.words else valued(place, axis.unit)
                    rows.append(
                        {
                            "measure": effect.measure.name,
                            "axis": axis.name,
                            "value": value,
                            "shown": shown_value,
                            "n": int(means.n[level]),
                            **{name: _number(getattr(means, name)[level]) for name in ("mean", "low", "high")},
                            "share": effect.share,
                        }
                    )
        from celltrain.running.tables import table

        return table(
            rows,
            [
                _column("measure", "string", "", "what was measured"),
                _column("axis", "string", "", "what was varied"),
                _column("value", "string", "see the axis", "its value; the middle of a range of a sampled axis"),
                _column("shown", "string", "", "the same with a unit, for people"),
                _column("n", "int64", "1", "independent values the interval rests on: seeds, or draws of a sample"),
                _column("mean", "float64", "", "mean over everything else, in the unit of the measure"),
                _column("low", "float64", "", "lower end of its 95 % interval"),
                _column("high", "float64", "", "its upper end"),
                _column("share", "float64", "1", "of the variance between points, what the axis makes up"),
            ],
        )

    @cached_property
    def moved(self) -> pa.Table:
        """One row a point and measure of both stores: means, difference, its interval; without rows where none is compared."""
        import pyarrow as pa

        compared = self.comparison
        measures = () if compared is None else compared.measures
        points = np.array([], dtype=np.int64) if compared is None else compared.points
        order = np.tile(points, len(measures))
        names = np.repeat(np.arange(len(measures), dtype=np.int32), len(points))
        columns: list[list[Any]] = [[] for _ in range(8)]
        for _, moved in measures:
            parts = (
                moved.first.n,
                moved.first.mean,
                moved.second.n,
                moved.second.mean,
                moved.differences.difference,
                moved.differences.half,
                moved.differences.beyond,
                np.where(moved.paired, "paired", "Welch"),
            )
            for column, part in zip(columns, parts, strict=True):
                column.append(part)
        kinds = ("int64", "float64", "int64", "float64", "float64", "float64", "bool", "string")
        arrays = [
            _array(np.concatenate(column)) if column else pa.array([], pa.type_for_alias(kind))
            for column, kind in zip(columns, kinds, strict=True)
        ]
        about = (
            ("n_first", "1", "values in the first store"),
            ("mean_first", "", "their mean"),
            ("n_second", "1", "values in the second store"),
            ("mean_second", "", "their mean"),
            ("difference", "", "second mean less first"),
            ("half", "", "half the width of its 95 % interval; null without one"),
            ("beyond", "1", "whether the interval leaves zero out"),
            ("interval", "", "paired by seed where both have the same seeds, else Welch's"),
        )
        return pa.Table.from_arrays(
            [
                *self._settings(order),
                pa.DictionaryArray.from_arrays(names, pa.array([m.name for m, _ in measures], pa.string())),
                *arrays,
            ],
            schema=self._schema(
                _column("measure", "name", "", "what was measured"),
                *(_column(name, kind, unit, text) for (name, unit, text), kind in zip(about, kinds, strict=True)),
            ),
        )

    @cached_property
    def differences(self) -> pa.Table:
        """One row a point and measure: what it has more than the baseline, seed by seed; without rows where there is none."""
        import pyarrow as pa

        against, count = self.baseline, len(self.data.measures)
        points = np.array([], np.int64)
        columns = dict.fromkeys(("n", "difference", "low", "high"), np.array([]))
        if against is not None:
            points = np.flatnonzero(against.factor.levels != against.level)
            means = [("n", "n"), ("difference", "mean"), ("low", "low"), ("high", "high")]
            columns = {
                name: np.stack([getattr(one, part)[points] for one in against.of_points], axis=1).reshape(-1)
                for name, part in means
            }
        names = pa.array(np.tile(np.arange(count, dtype=np.int32), len(points)))
        measured = pa.DictionaryArray.from_arrays(names, pa.array([m.name for m in self.data.measures], pa.string()))
        arrays = [_array(columns["n"].astype(np.int64)), *(_array(columns[name]) for name in list(columns)[1:])]
        return pa.Table.from_arrays(
            [*self._settings(np.repeat(points, count)), measured, *arrays],
            schema=self._schema(
                _column("measure", "name", "", "what was measured"),
                _column("n", "int64", "1", "pairs of runs of one seed"),
                _column("difference", "float64", "", "mean of what the point has more than the baseline"),
                _column("low", "float64", "", "lower end of its 95 % interval"),
                _column("high", "float64", "", "its upper end"),
            ),
        )

    @cached_property
    def failures(self) -> pa.Table:
        """The runs that have no values, each with its error."""
        import pyarrow as pa

        failures = self.data.failures
        return pa.Table.from_arrays(
            [
                *self._settings(np.array([failure.point for failure in failures], dtype=np.int64)),
                pa.array([failure.seed for failure in failures], pa.uint64()),
                pa.array([failure.error for failure in failures], pa.string()),
            ],
            schema=self._schema(
                _column("seed", "uint64", "1", "seed of the run"),
                _column("error", "string", "", "why it has no values"),
            ),
        )

    @checked()
    def drawings(self, *, width: str = "page") -> Iterator[Drawing]:
        """The figures, one after the other, on matplotlib figures, each with its title and caption.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
        """
        require_matplotlib()
        from celltrain.ensemble.reports import figures

        look = Look.of(width, self.style)
        if self.comparison is not None:
            # Two stores may differ in both.
            with look.applied():
                drawing: Drawing | None = figures.comparison(self.comparison, look)
            assert drawing is not None, "a comparison has a figure"
            yield drawing
        look = dataclasses.replace(look, tcp=self.data.tcp_line(short=True), seeds=self.data.seeds_line)
        makers: list[Callable[[], Drawing | None]] = [
            lambda: figures.front(self.analysis, look),
            lambda: figures.spread(self.analysis, look),
            *(
                lambda draw=draw, i=i: draw(self.analysis, i, look)
                for draw in (figures.effects, figures.heat_map, figures.sample, figures.pairs)
                for i in range(len(self.data.measures))
            ),
        ]
        makers[2:2] = list(self._grouped(look))
        for make in makers:
            with look.applied():
                drawing = make()
            if drawing is not None:
                yield drawing

    def _grouped(self, look: Look) -> Iterator[Callable[[], Drawing | None]]:
        """What makes the figures of lines: differences from the baseline, and means."""
        compared = self.baseline
        for against in (compared, None) if compared is not None else (None,):
            chosen = self.layout if against is None else self.layout_against
            if chosen is None:
                continue
            for i in range(len(self.data.measures)):
                yield partial(groups.draw, self.analysis, i, chosen, look, against)

    def html(self) -> str:
        """The report as one page that needs nothing else."""
        from celltrain.drawing.pages.html import Inlined
        from celltrain.ensemble.reports.page import page

        both = zip(self.drawings(), self.drawings(width="column"), strict=True)
        return page(self, [Inlined.of(*pair) for pair in both])

    @checked()
    def write(self, folder: str | os.PathLike[str], *, progress: Callable[[float], object] | None = None) -> list[Path]:
        """Writes the page, its tables as CSV and its figures as SVG and PDF into a folder; returns the files.

        Args:
            folder: Made where it is not there; files of an earlier report are replaced.
            progress: Told now and then what share is done, 0 to 1.
        """
        with writing(folder):
            return self._write(Path(folder), progress)

    def _write(self, folder: Path, progress: Callable[[float], object] | None) -> list[Path]:
        from celltrain.drawing.pages.html import Inlined
        from celltrain.ensemble.reports.page import page

        plots = inner(folder / "figures")
        written, inlined = [], []
        # Each figure is written and forgotten: together they would be hundreds of megabytes.
        expected = 1 + 4 * len(self.data.measures)
        both = zip(self.drawings(), self.drawings(width="column"), strict=True)
        for place, pair in enumerate(both):
            for drawing, suffix in zip(pair, ("", "-column"), strict=True):
                for kind in ("svg", "pdf"):
                    path = plots / f"{drawing.name}{suffix}.{kind}"
                    replace(path, drawing.save(kind))
                    written.append(path)
            inlined.append(Inlined.of(*pair))
            if progress is not None:
                progress(min((place + 1) / expected, 0.99))
        for name, table in self._tables().items():
            write_csv(table, folder / f"{name}.csv")
            written.append(folder / f"{name}.csv")
        # Last, so that a folder with a page has everything.
        answer = folder / "report.html"
        replace(answer, page(self, inlined))
        return [answer, *written]

    def _tables(self) -> dict[str, pa.Table]:
        tables = {"summary": self.summary, "effects": self.effects}
        if self.analysis.front is not None:
            tables["front"] = self.front
        if self.baseline is not None:
            tables["baseline"] = self.differences
        if self.comparison is not None:
            tables["comparison"] = self.moved
        if self.data.failures:
            tables["failures"] = self.failures
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The answer of `celltrain report --json`; the means of all points are in `summary` and in its CSV."""
        data, front, compared = self.data, self.analysis.front, self.comparison
        fewest, most = data.seeds
        return {
            "name": data.name,
            "version": data.version,
            "profile": data.profile,
            "points": len(data.points),
            "runs": data.runs,
            "missing": data.missing,
            "failures": len(data.failures),
            "warnings": list(self.warnings),
            "seeds": {"fewest": fewest, "most": most},
            "axes": [
                {"name": axis.name, "unit": axis.unit, "values": len(axis.values), "sampled": axis.sampled}
                for axis in data.axes
            ],
            "measures": [_about(measure) for measure in data.measures],
            "effects": self.effects.to_pylist(),
            "front": None
            if front is None
            else {
                "measures": [data.measures[i].name for i in (front.x, front.y)],
                "larger_is_better": [front.larger_x, front.larger_y],
                "by": [name for factor in front.axes for name in factor.axis.name.split(", ")],
                "points": self.front.to_pylist(),
                "doubtful": [int(data.points[point]) for point in front.doubtful],
            },
            "baseline": None if self.baseline is None else _against(self.baseline),
            "comparison": None if compared is None else _compared(compared),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    def _card(self) -> Card:
        from celltrain.ensemble.reports.page import card

        return card(self)

    def __repr__(self) -> str:
        data = self.data
        return f"Report({data.name!r}, {len(data.points):,} points, {len(data.measures)} measures)"

    def _settings(self, points: Any) -> list[Any]:
        """The columns that say which point: its number, and its value on each axis."""
        import pyarrow as pa

        data = self.data
        columns = [pa.array(data.points[points].astype(np.int32))]
        for i, axis in enumerate(data.axes):
            levels = data.levels[points, i].astype(np.int32)
            if axis.words:
                columns.append(pa.DictionaryArray.from_arrays(levels, pa.array(map(str, axis.values), pa.string())))
            else:
                columns.append(pa.array(np.array(axis.values, dtype=np.float64)[levels]))
        return columns

    def _schema(self, *columns: Column) -> pa.Schema:
        import pyarrow as pa

        axes = [
            _column(axis.name, "name" if axis.words else "float64", axis.unit, axis.meaning) for axis in self.data.axes
        ]
        first = _column("point", "int32", "1", "index of the point in the plan")
        return pa.schema([column.field() for column in (first, *axes, *columns)])


@checked(StoreError)
def report(
    store: Store | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    measures: Sequence[str] | None = None,
    front: Sequence[str] | None = None,
    front_by: Sequence[str] | None = None,
    compare_with: Store | str | os.PathLike[str] | None = None,
    style: str | None = None,
    lines: Sequence[str] | None = None,
    baseline: str | None = None,
) -> Report:
    """What the runs of a store say, as tables, figures and a page.

    Args:
        store: A store, or its folder; also one that another version made or a sweep still writes.
        out: Where to write the page, its tables and figures; nothing is written when None.
        measures: Those wanted, in their order; all when None.
        front: The two measures of the Pareto front, `-` before one of which smaller is better; efficiency and fairness
            when None.
        front_by: Axes whose combinations have a front each; when None those that make another network, and one front for
            all where this is empty.
        compare_with: Another store of the same axes and measures: what moved from the first to this one?
        style: Of the figures: a style of matplotlib, by its name or its file; ours when None.
        lines: Up to three axes: over which the measures are drawn, by which they are coloured, by which there are panels;
            chosen when None.
        baseline: A value of an axis, such as `"policy=tail_drop"`: what do the others have more, seed by seed?

    Raises:
        StoreError: When a store cannot be read or holds nothing, or a measure was not measured.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="20ms")
    >>> store = ct.sweep(lan, over={"z": {"path": "port.bottleneck.policy.selective_drop.z", "values": [0.5, 1.0]}}, seeds=4)
    >>> report = ct.report(store, measures=["efficiency", "fairness"])
    >>> report.summary.num_rows, report.front.column_names[:2]
    (4, ['point', 'z'])
    """
    if style is not None:
        require_matplotlib()
        Look.of("page", style)
    first = _opened(store)
    data = of_store(first, measures)
    comparison = None
    if compare_with is not None:
        second = _opened(compare_with)
        comparison = compare(data, of_store(second, measures), _names(first, second))
    made = Report._of(
        data,
        front=front,
        front_by=front_by,
        comparison=comparison,
        warnings=[*plan_warnings.of_store(first), *data.warnings],
        little=plan_warnings.little_points(first),
        style=style,
        lines=lines,
        baseline=baseline,
    )
    if out is not None:
        made.write(out)
    return made


def _opened(store: Store | str | os.PathLike[str]) -> Store:
    return store if isinstance(store, Store) else Store.open(store)


def _names(first: Store, second: Store) -> tuple[str, str]:
    """What to call two stores: by their folders, and by their versions where these differ."""
    one, other = shown(first.path.resolve().name), shown(second.path.resolve().name)
    if first.path.resolve() == second.path.resolve():
        raise StoreError([Fault.of_option("--compare", shown(second.path), "is the same store; name another")])
    if one == other:
        one, other = shown(first.path), shown(second.path)
    if first.version != second.version:
        return f"{one} (celltrain {first.version})", f"{other} (celltrain {second.version})"
    return one, other


def _against(baseline: Baseline) -> dict[str, Any]:
    """At how many points each value of the axis is above the baseline, and below it."""
    counts = [
        {
            "measure": measure.name,
            "value": label(baseline.factor, level),
            **dict(zip(("above", "below", "points"), baseline.beyond(i, level), strict=True)),
        }
        for i, measure in enumerate(baseline.data.measures)
        for level in range(len(baseline.factor.axis.values))
        if level != baseline.level
    ]
    return {"axis": baseline.factor.axis.name, "value": baseline.name, "counts": counts}


def _compared(compared: Comparison) -> dict[str, Any]:
    return {
        "first": compared.first,
        "second": compared.second,
        "points": len(compared.points),
        "only_first": list(compared.only_first),
        "only_second": list(compared.only_second),
        "measures": [
            {
                "name": measure.name,
                "beyond": int(moved.differences.beyond.sum()),
                "paired": int(moved.paired.sum()),
                "moved": [
                    {
                        "point": int(compared.data.points[compared.points[i]]),
                        "where": named(compared.data, int(compared.points[i])),
                        "first": _number(moved.first.mean[i]),
                        "second": _number(moved.second.mean[i]),
                        "difference": _number(moved.differences.difference[i]),
                        "half": _number(moved.differences.half[i]),
                        "interval": "paired" if moved.paired[i] else "Welch",
                    }
                    for i in np.flatnonzero(moved.differences.beyond).tolist()
                ],
            }
            for measure, moved in compared.measures
        ],
    }


def _about(measure: Measure) -> dict[str, str]:
    return {"name": measure.name, "unit": measure.unit, "meaning": measure.meaning}


def _column(name: str, kind: str, unit: str, meaning: str) -> Column:
    return Column(name=name, kind=kind, unit=unit, meaning=meaning)


def _mean(name: str, meaning: str) -> list[Column]:
    return [
        _column(name, "float64", "", meaning),
        _column("sd", "float64", "", "their standard deviation; null below two"),
        _column("low", "float64", "", "lower end of the mean's 95 % interval (Student's t); null below two"),
        _column("high", "float64", "", "its upper end"),
    ]


def _array(values: Any) -> pa.Array:
    """An Arrow array in which what is not defined is null."""
    import pyarrow as pa

    return pa.array(values, mask=np.isnan(values)) if values.dtype.kind == "f" else pa.array(values)


def _number(value: Any) -> float | None:
    number = float(value)
    return number if np.isfinite(number) else None
