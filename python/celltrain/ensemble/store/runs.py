"""The runs of a store as arrays, verified by checksums, and as tables: long, wide, and summarised."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.cases import CENSORED, SUMMARY, RunTable, arrow, by_measure, measured, texts
from celltrain.ensemble.store.database import Database, axes_of, check_texts, checksums, wrapped
from celltrain.errors import StoreError
from celltrain.model.expressions import is_lower_bound
from celltrain.running.statistics import means
from celltrain.running.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa


def schema(manifest: Mapping[str, Any]) -> pa.Schema:
    """Returns the columns of the long table, with units and meanings."""
    import pyarrow as pa

    about = {key: manifest[key] for key in ("format", "version", "profile", "name", "digest")}
    measures = [measured(name) for name in manifest["measures"]]
    units = {one.name: {"unit": one.unit, "meaning": one.meaning} for one in measures}
    fields = [Column(**column).field() for column in manifest["columns"]]
    return pa.schema(fields, metadata={"celltrain": json.dumps(about), "measures": json.dumps(units)})


@dataclass(frozen=True, kw_only=True)
class StoredRuns(RunTable):
    """The runs of a store by point and seed.

    Attributes:
        manifest: The manifest of the store.
        key: Keys of the runs, 12 bytes as three numbers.
        points: Point numbers by case.
        configurations: Scenarios by case.
        settings: Values of the axes by case.
    """

    manifest: Mapping[str, Any]
    key: NDArray[np.uint32]
    points: NDArray[np.int64]
    configurations: Sequence[str]
    settings: Sequence[tuple[float | str, ...]]

    @cached_property
    def point(self) -> NDArray[np.int64]:
        """Point number of each run."""
        return self.points[self.case]

    @cached_property
    def keys(self) -> list[str]:
        """Keys as 24 hexadecimal digits."""
        text = self.key.tobytes().hex()
        return [text[place : place + 24] for place in range(0, len(text), 24)]

    def long(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run and measure, ordered by point, seed and measure, and one row for each failed run."""
        wanted = np.sort(self.places(measures))
        lengths = np.where(self.failed, int(measures is None), len(wanted))
        run = np.repeat(np.arange(len(self)), lengths)
        first = np.cumsum(lengths) - lengths
        failed = self.failed[run]
        measure = np.full(len(run), -1)
        measure[~failed] = wanted[(np.arange(len(run)) - first[run])[~failed]]
        value = np.full(len(run), np.nan)
        value[~failed] = self.values[run[~failed], measure[~failed]]
        errors = {int(first[at]): text for at, text in self.errors.items()} if measures is None else {}
        place_of = {int(at): place for place, at in enumerate(wanted)}
        errors |= {int(first[at]) + place_of[gap]: text for (at, gap), text in self.gaps.items() if gap in place_of}
        more = {
            "measure": texts(measure, self.manifest["measures"]),
            "value": value,
            "error": _sparse(errors, len(run)),
        }
        return arrow(self._columns(run, more), schema(self.manifest).metadata)

    def wide(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run, with a column per measure."""
        names, places = self.manifest["measures"], self.places(measures)
        own = [self.measure(names[place]) for place in places]
        # If a run has several errors, only the first is shown. Notes about lower bounds come last.
        gaps = [one for one in self.gaps.items() if one[0][1] >= 0]
        gaps.sort(key=lambda one: (np.isnan(self.values[one[0]]), -one[0][1]))
        told = {run: text for (run, _), text in gaps} | dict(self.errors)
        columns = [*self._columns(np.arange(len(self)), {"error": _sparse(told, len(self))})]
        at = [column.name for column, _ in columns].index("error")
        values = list(zip(own, self.values[:, places].T, strict=True))
        error = columns.pop(at)
        return arrow([*columns, *values, error], schema(self.manifest).metadata)

    def summary(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per point and measure."""
        places = self.places(measures)
        starts = np.flatnonzero(np.diff(self.point, prepend=-1))
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(self)))
        wanted = {"point", "measure", *(axis["name"] for axis in axes_of(self.manifest))}
        measure = texts(np.tile(places, len(starts)), self.manifest["measures"])
        columns = self._columns(np.repeat(starts, len(places)), {"measure": measure}, wanted)
        found = [means(group, self.values[:, place], len(starts)) for place in places]
        cases = np.arange(len(starts))
        censored = np.add.reduceat(self.censored[:, places], starts, axis=0, dtype=np.int64)
        return arrow([*columns, *by_measure(SUMMARY, found, cases), (CENSORED, censored.reshape(-1))])

    def places(self, measures: Sequence[str] | None) -> NDArray[np.int64]:
        """Returns the indices of measures, in this order; of all measures when None."""
        known = self.manifest["measures"]
        for name in measures or ():
            if name not in known:
                raise StoreError.of_option("measures", repr(name), f"was not measured; choose from {', '.join(known)}")
        return np.array(
            [known.index(name) for name in dict.fromkeys(known if measures is None else measures)], np.int64
        )

    def measure(self, name: str) -> Column:
        """Returns the store's description of a measure."""
        return Column(name=name, kind="float64", **self.manifest["units"][name])

    def _columns(
        self, rows: NDArray[np.int64], more: Mapping[str, Any], wanted: Collection[str] | None = None
    ) -> Iterator[tuple[Column, Any]]:
        """Yields columns of the long table for the runs at `rows`; `more` contains those that depend on the measure."""
        axes = {axis["name"]: place for place, axis in enumerate(axes_of(self.manifest))}
        case = self.case[rows]
        for about in self.manifest["columns"]:
            column = Column(**about)
            if wanted is not None and column.name not in wanted:
                continue
            if column.name in more:
                yield column, more[column.name]
            elif column.name in axes:
                own = [settings[axes[column.name]] for settings in self.settings]
                yield column, np.array(own, np.float64)[case] if column.kind == "float64" else texts(case, own)
            elif column.name in ("point", "seed"):
                yield column, getattr(self, column.name)[rows]
            elif column.name == "run_key":
                yield column, texts(rows, self.keys)
            elif column.name == "configuration":
                yield column, texts(case, self.configurations)
            elif column.name == "fingerprint":
                different, code = np.unique(self.fingerprint, return_inverse=True)
                codes = np.where(self.printed, code.reshape(-1), -1)
                yield column, texts(codes[rows], [f"{number:016x}" for number in different.tolist()])
            elif column.name in ("version", "profile"):
                yield column, texts(np.zeros(len(rows), np.int64), [self.manifest[column.name]])


def _sparse(words: Mapping[int, str], count: int) -> pa.DictionaryArray:
    """Returns a column with these texts at their indices, and null elsewhere."""
    different = list(dict.fromkeys(words.values()))
    places = {word: place for place, word in enumerate(different)}
    codes = np.full(count, -1)
    codes[list(words)] = [places[word] for word in words.values()]
    return texts(codes, different)


def read(database: Database, manifest: Mapping[str, Any]) -> StoredRuns:
    """Reads all runs; raises `StoreError` if a run was changed."""
    axes = "".join(f", a{place + 1}" for place in range(len(axes_of(manifest))))
    with database.snapshot() as query:
        totals = database.totals()
        [count] = query("SELECT count(*) FROM runs").fetchone()
        if count != totals.runs:
            raise ValueError(f"it has {count:,} runs, but {totals.runs:,} were written")

        def column(expression: str, kind: Any) -> NDArray[Any]:
            return np.array([value for (value,) in query(f"SELECT {expression} FROM runs ORDER BY run")], kind)

        measures = [column(f"m{place + 1}", np.float64) for place in range(len(manifest["measures"]))]
        keys = b"".join([key for (key,) in query("SELECT run_key FROM runs ORDER BY run")])
        run, point, checked = (column(name, np.int64) for name in ("run", "point", "checked"))
        seconds, key = column("seconds", np.float64), np.frombuffer(keys, np.uint32).reshape(count, 3)
        cases = query(f"SELECT point, configuration, checked{axes} FROM cases ORDER BY point").fetchall()
        for number, configuration, check, *settings in cases:
            if check != check_texts(number, configuration, *settings):
                raise ValueError(f"point {number} has a wrong checksum")
        failed = query("SELECT run, error FROM runs WHERE error IS NOT NULL").fetchall()
        gaps = query("SELECT run, measure, gaps.error FROM gaps JOIN runs USING (run)").fetchall()
        points = np.array([case[0] for case in cases], np.int64)
        runs = StoredRuns(
            measures=tuple(map(measured, manifest["measures"])),
            manifest=manifest,
            case=np.searchsorted(points, point),
            seed=column("seed", np.uint64),
            key=key,
            fingerprint=column("coalesce(fingerprint, 0)", np.int64).view(np.uint64),
            printed=column("fingerprint IS NOT NULL", np.bool_),
            values=np.array(measures, np.float64).reshape(len(measures), count).T,
            errors={int(np.searchsorted(run, number)): error for number, error in failed},
            gaps={(int(np.searchsorted(run, number)), measure - 1): error for number, measure, error in gaps},
            points=points,
            configurations=[case[1] for case in cases],
            settings=[tuple(case[3:]) for case in cases],
        )
        own = checksums(runs, point, key, seconds)
        if not np.array_equal(own, checked):
            wrong = int(np.flatnonzero(own != checked)[0])
            raise ValueError(f"run {key[wrong].tobytes().hex()} has a wrong checksum")
        if wrapped(int(own.sum())) != totals.checks or len(failed) != totals.failed:
            raise ValueError("runs are missing or duplicated")
        if not np.isin(point, points).all():
            raise ValueError("a run's case is missing")
    order = np.lexsort((runs.seed, point))
    new = np.argsort(order)
    columns = ("case", "seed", "key", "fingerprint", "printed", "values")
    moved = {(int(new[place]), measure): error for (place, measure), error in runs.gaps.items()}
    return replace(
        runs,
        **{name: getattr(runs, name)[order] for name in columns},
        errors={int(new[place]): error for place, error in runs.errors.items()},
        gaps=moved,
        bounds=[
            (run, measure)
            for (run, measure), note in moved.items()
            if measure >= 0 and is_lower_bound(runs.measures[measure].name, note)
        ],
    )
