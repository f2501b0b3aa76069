"""The runs of a store as tables: long, wide, and one row per point and measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.store.layout import axes_of
from celltrain.ensemble.store.runs import Runs
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.ensemble.store.store import Store


def long(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """One row per run and measure, by point, seed and measure; of a failed run one row without a measure."""
    import pyarrow as pa

    runs, names = store.runs(), store.manifest["measures"]
    wanted = np.array(sorted(map(names.index, _wanted(store, measures))), np.int64)
    lengths = np.where(runs.failed, int(measures is None), len(wanted))
    run = np.repeat(np.arange(len(runs)), lengths)
    first = np.cumsum(lengths) - lengths
    failed = runs.failed[run]
    places = np.arange(len(run)) - first[run]
    measure = np.full(len(run), -1)
    measure[~failed] = wanted[places[~failed]]
    value = np.full(len(run), np.nan)
    value[~failed] = runs.values[run[~failed], measure[~failed]]
    errors = {int(first[at]): text for at, text in runs.errors.items()} if measures is None else {}
    of_measure = {int(at): place for place, at in enumerate(wanted)}
    for (at, gap), text in runs.gaps.items():
        if gap in of_measure:
            errors[int(first[at]) + of_measure[gap]] = text
    columns = {
        "measure": _texts(measure, names),
        "value": pa.array(value, mask=np.isnan(value)),
        "error": _texts(*_coded(errors, len(run))),
    }
    return _table(store, runs, run, columns)


def failures(store: Store) -> pa.Table:
    """The rows of runs that failed."""
    import pyarrow.compute as pc

    table = long(store, None)
    return table.filter(pc.is_null(table["measure"]))


def wide(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """One row per run."""
    import pyarrow as pa

    wanted = _wanted(store, measures)
    runs, names = store.runs(), store.manifest["measures"]
    table = _table(store, runs, np.arange(len(runs)), {})
    for name in wanted:
        about = Column(name=name, kind="float64", **store.manifest["units"][name])
        values = runs.values[:, names.index(name)]
        table = table.append_column(about.field(), pa.array(values, mask=np.isnan(values)))
    # Of several errors the first is as good as any.
    told = {run: text for (run, _), text in sorted(runs.gaps.items(), reverse=True)} | dict(runs.errors)
    errors = pa.array([told.get(run) for run in range(len(runs))], pa.string()).dictionary_encode()
    return table.append_column(store.schema.field("error"), errors)


def summary(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """One row per point and measure."""
    import pyarrow as pa

    wanted = _wanted(store, measures)
    runs, names = store.runs(), store.manifest["measures"]
    starts = np.flatnonzero(np.diff(runs.point, prepend=-1))
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(runs)))
    axes = [axis["name"] for axis in axes_of(store.manifest)]
    table = _table(store, runs, np.repeat(starts, len(wanted)), {})
    fields = [store.schema.field(name) for name in ("point", *axes, "measure")]
    columns: list[Any] = [table[name] for name in ("point", *axes)]
    codes = pa.array(np.tile(np.arange(len(wanted), dtype=np.int32), len(starts)))
    columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(wanted, pa.string())))
    figures = [_figures(runs.values[:, names.index(name)], group, len(starts)) for name in wanted]
    about = (
        ("n", "int64", "1", "values"),
        ("mean", "float64", "", "their mean, in the unit of the measure"),
        ("sd", "float64", "", "their standard deviation; null below two"),
        ("low", "float64", "", "lower end of the mean's 95 % interval (Student's t); null below two"),
        ("high", "float64", "", "its upper end"),
    )
    for place, (name, kind, unit, meaning) in enumerate(about):
        column = np.array([one[place] for one in figures]).T.reshape(-1) if figures else np.array([])
        fields.append(Column(name=name, kind=kind, unit=unit, meaning=meaning).field())
        columns.append(pa.array(column.astype(np.int64) if name == "n" else column, mask=np.isnan(column)))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _figures(values: NDArray[np.float64], group: NDArray[Any], count: int) -> list[NDArray[np.float64]]:
    """Number, mean, standard deviation and interval of each point."""
    has = ~np.isnan(values)
    found = statistics.means(group[has], values[has], count)
    return [found.n.astype(np.float64), found.mean, found.sd, found.low, found.high]


def _table(store: Store, runs: Runs, rows: NDArray[np.int64], more: dict[str, Any]) -> pa.Table:
    """The columns of the runs, one row for each of `rows`, and `more` where the schema has them."""
    import pyarrow as pa

    names = [name for name in store.schema.names if name in more or name not in ("measure", "value", "error")]
    every = np.arange(len(runs))
    same = np.zeros(len(rows), np.int64)
    columns: dict[str, Any] = {
        "run_key": lambda: _texts(every[rows], runs.keys),
        "point": lambda: pa.array(runs.point[rows].astype(np.int32)),
        "seed": lambda: pa.array(runs.seed[rows]),
        "fingerprint": lambda: _texts(*_repeated(runs, rows)),
        "configuration": lambda: _texts(runs.case[rows], runs.configurations),
        "version": lambda: _texts(same, [store.version]),
        "profile": lambda: _texts(same, [store.manifest["profile"]]),
    }
    for place, axis in enumerate(axes_of(store.manifest)):
        own = [settings[place] for settings in runs.settings]
        if axis["kind"] == "float64":
            columns[axis["name"]] = lambda own=own: pa.array(np.array(own, np.float64)[runs.case[rows]])
        else:
            columns[axis["name"]] = lambda own=own: _texts(runs.case[rows], own)
    made = {name: columns[name] for name in names if name not in more}
    arrays = [more[name] if name in more else made[name]() for name in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema([store.schema.field(n) for n in names], store.schema.metadata))


def _repeated(runs: Runs, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    different, code = np.unique(runs.fingerprint, return_inverse=True)
    codes = np.where(runs.printed, code.reshape(-1), -1)
    return codes[rows], [f"{number:016x}" for number in different.tolist()]


def _coded(texts: dict[int, str], count: int) -> tuple[NDArray[np.int64], list[str]]:
    """Codes of some rows' texts; -1 in the others."""
    different = list(dict.fromkeys(texts.values()))
    places = {text: place for place, text in enumerate(different)}
    codes = np.full(count, -1)
    for row, text in texts.items():
        codes[row] = places[text]
    return codes, different


def _texts(codes: NDArray[Any], texts: Sequence[Any]) -> pa.DictionaryArray:
    """A column of texts whose dictionary has the texts in use alone, sorted; -1 is null."""
    import pyarrow as pa

    used = np.unique(codes[codes >= 0])
    sorted_texts = sorted({texts[code] for code in used.tolist()})
    places = {text: place for place, text in enumerate(sorted_texts)}
    new = np.full(len(texts) + 1, -1, dtype=np.int32)
    new[used] = [places[texts[code]] for code in used.tolist()]
    indices = new[codes]
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), pa.array(sorted_texts, pa.string()))


def _wanted(store: Store, measures: Sequence[str] | None) -> list[str]:
    known = store.manifest["measures"]
    for name in measures or ():
        if name not in known:
            raise StoreError(
                [Fault.of_option("measures", repr(name), f"was not measured; there are {', '.join(known)}")]
            )
    return list(known if measures is None else dict.fromkeys(measures))
