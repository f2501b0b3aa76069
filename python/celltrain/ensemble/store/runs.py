"""The runs of a store as arrays, each compared with its checksum, and as tables: long, wide, and summarised."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.columns import measured, summary_columns
from celltrain.ensemble.store.database import Database, axes_of, check_texts, checksums, wrapped
from celltrain.ensemble.table import RunTable, means
from celltrain.errors import Fault, StoreError
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
        points: The number of the point of each case.
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
        """The number of each run's point."""
        return self.points[self.case]

    @cached_property
    def keys(self) -> list[str]:
        """Keys as 24 hexadecimal digits."""
        text = self.key.tobytes().hex()
        return [text[place : place + 24] for place in range(0, len(text), 24)]

    def long(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run and measure, by point, seed and measure, and one row for each failed run."""
        import pyarrow as pa

        names = self.manifest["measures"]
        wanted = np.array(sorted(map(names.index, self._wanted(measures))), np.int64)
        lengths = np.where(self.failed, int(measures is None), len(wanted))
        run = np.repeat(np.arange(len(self)), lengths)
        first = np.cumsum(lengths) - lengths
        failed = self.failed[run]
        places = np.arange(len(run)) - first[run]
        measure = np.full(len(run), -1)
        measure[~failed] = wanted[places[~failed]]
        value = np.full(len(run), np.nan)
        value[~failed] = self.values[run[~failed], measure[~failed]]
        errors = {int(first[at]): text for at, text in self.errors.items()} if measures is None else {}
        place_of = {int(at): place for place, at in enumerate(wanted)}
        errors |= {int(first[at]) + place_of[gap]: text for (at, gap), text in self.gaps.items() if gap in place_of}
        texts = list(dict.fromkeys(errors.values()))
        codes = np.full(len(run), -1)
        codes[list(errors)] = [texts.index(text) for text in errors.values()]
        more = {
            "measure": _texts(measure, names),
            "value": pa.array(value, mask=np.isnan(value)),
            "error": _texts(codes, texts),
        }
        columns = schema(self.manifest)
        arrays = [more[name] if name in more else self._array(name, run) for name in columns.names]
        return pa.Table.from_arrays(arrays, schema=columns)

    def wide(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run, with a column per measure."""
        import pyarrow as pa

        wanted, names = self._wanted(measures), self.manifest["measures"]
        every, columns = np.arange(len(self)), schema(self.manifest)
        fields = [field for field in columns if field.name not in ("measure", "value", "error")]
        arrays = [self._array(field.name, every) for field in fields]
        for name in wanted:
            fields.append(Column(name=name, kind="float64", **self.manifest["units"][name]).field())
            values = self.values[:, names.index(name)]
            arrays.append(pa.array(values, mask=np.isnan(values)))
        # The first of several errors stands for all.
        told = {run: text for (run, _), text in sorted(self.gaps.items(), reverse=True)} | dict(self.errors)
        fields.append(columns.field("error"))
        arrays.append(pa.array([told.get(run) for run in range(len(self))], pa.string()).dictionary_encode())
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=columns.metadata))

    def summary(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per point and measure."""
        import pyarrow as pa

        wanted, names = self._wanted(measures), self.manifest["measures"]
        starts = np.flatnonzero(np.diff(self.point, prepend=-1))
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(self)))
        rows, columns = np.repeat(starts, len(wanted)), schema(self.manifest)
        fixed = ["point", *(axis["name"] for axis in axes_of(self.manifest))]
        fields = [columns.field(name) for name in (*fixed, "measure")]
        arrays = [self._array(name, rows) for name in fixed]
        codes = pa.array(np.tile(np.arange(len(wanted), dtype=np.int32), len(starts)))
        arrays.append(pa.DictionaryArray.from_arrays(codes, pa.array(wanted, pa.string())))
        found = [means(group, self.values[:, names.index(name)], len(starts)) for name in wanted]
        for about in summary_columns():
            fields.append(about.field())
            column = np.array([getattr(one, about.name) for one in found], np.float64).T.reshape(-1)
            values = pa.array(column, mask=np.isnan(column))
            arrays.append(values.cast(pa.int64()) if about.kind == "int64" else values)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _wanted(self, measures: Sequence[str] | None) -> list[str]:
        known = self.manifest["measures"]
        for name in measures or ():
            if name not in known:
                problem = f"was not measured; there are {', '.join(known)}"
                raise StoreError([Fault.of_option("measures", repr(name), problem)])
        return list(known if measures is None else dict.fromkeys(measures))

    def _array(self, name: str, rows: NDArray[np.int64]) -> pa.Array:
        """Returns a column of the table, with the runs at `rows`."""
        import pyarrow as pa

        axes = {axis["name"]: place for place, axis in enumerate(axes_of(self.manifest))}
        if name in axes:
            own = [settings[axes[name]] for settings in self.settings]
            is_number = axes_of(self.manifest)[axes[name]]["kind"] == "float64"
            case = self.case[rows]
            return pa.array(np.array(own, np.float64)[case]) if is_number else _texts(case, own)
        if name == "point":
            return pa.array(self.point[rows].astype(np.int32))
        if name == "seed":
            return pa.array(self.seed[rows])
        if name == "run_key":
            return _texts(rows, self.keys)
        if name == "fingerprint":
            different, code = np.unique(self.fingerprint, return_inverse=True)
            codes = np.where(self.printed, code.reshape(-1), -1)
            return _texts(codes[rows], [f"{number:016x}" for number in different.tolist()])
        if name == "configuration":
            return _texts(self.case[rows], self.configurations)
        return _texts(np.zeros(len(rows), np.int64), [self.manifest[name]])


def read(database: Database, manifest: Mapping[str, Any]) -> StoredRuns:
    """Reads all runs; raises `StoreError` if one is not as it was written."""
    axes = "".join(f", a{place + 1}" for place in range(len(axes_of(manifest))))
    with database.snapshot() as query:
        totals = database.totals()
        [count] = query("SELECT count(*) FROM runs").fetchone()
        if count != totals.runs:
            raise ValueError(f"it has {count:,} runs, and {totals.runs:,} were written")

        def column(expression: str, kind: Any) -> NDArray[Any]:
            return np.array([value for (value,) in query(f"SELECT {expression} FROM runs ORDER BY run")], kind)

        measures = [column(f"m{place + 1}", np.float64) for place in range(len(manifest["measures"]))]
        keys = b"".join(key for (key,) in query("SELECT run_key FROM runs ORDER BY run"))
        run, point, seed = column("run", np.int64), column("point", np.int64), column("seed", np.uint64)
        columns = {
            "point": point,
            "seed": seed,
            "run_key": np.frombuffer(keys, np.uint32).reshape(count, 3),
            "fingerprint": column("coalesce(fingerprint, 0)", np.int64).view(np.uint64),
            "seconds": column("seconds", np.float64),
            "values": np.array(measures).reshape(-1, count).T,
        }
        printed, checked = column("fingerprint IS NOT NULL", np.bool_), column("checked", np.int64)
        failed = query("SELECT run, error FROM runs WHERE error IS NOT NULL").fetchall()
        errors = {int(np.searchsorted(run, number)): error for number, error in failed}
        lacking = query("SELECT run, measure, gaps.error FROM gaps JOIN runs USING (run)").fetchall()
        gaps = {(int(np.searchsorted(run, number)), measure - 1): error for number, measure, error in lacking}
        cases = query(f"SELECT point, configuration, checked{axes} FROM cases ORDER BY point").fetchall()
        for number, configuration, check, *settings in cases:
            if check != check_texts(number, configuration, *settings):
                raise ValueError(f"point {number} is not what was written")
        own = checksums(columns, errors, gaps)
        if not np.array_equal(own, checked):
            wrong = int(np.flatnonzero(own != checked)[0])
            raise ValueError(f"run {columns['run_key'][wrong].tobytes().hex()} is not what was written")
        if wrapped(int(own.sum())) != totals.checks or len(errors) != totals.failed:
            raise ValueError("runs are missing or there twice")
        points = np.array([case[0] for case in cases], np.int64)
        if not np.isin(point, points).all():
            raise ValueError("a run's case is missing")
    order = np.lexsort((seed, point))
    new = np.argsort(order)
    return StoredRuns(
        measures=tuple(map(measured, manifest["measures"])),
        manifest=manifest,
        case=np.searchsorted(points, point)[order],
        seed=seed[order],
        key=columns["run_key"][order],
        fingerprint=columns["fingerprint"][order],
        printed=printed[order],
        values=columns["values"][order],
        errors={int(new[place]): error for place, error in errors.items()},
        gaps={(int(new[place]), measure): error for (place, measure), error in gaps.items()},
        points=points,
        configurations=[case[1] for case in cases],
        settings=[tuple(case[3:]) for case in cases],
    )


def _texts(codes: NDArray[Any], texts: Sequence[Any]) -> pa.DictionaryArray:
    """Returns a column of texts; its dictionary has the used texts alone, sorted. The code -1 is null."""
    import pyarrow as pa

    used = np.unique(codes[codes >= 0])
    sorted_texts = sorted({texts[code] for code in used.tolist()})
    places = {text: place for place, text in enumerate(sorted_texts)}
    new = np.full(len(texts) + 1, -1, dtype=np.int32)
    new[used] = [places[texts[code]] for code in used.tolist()]
    indices = new[codes]
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), pa.array(sorted_texts, pa.string()))
