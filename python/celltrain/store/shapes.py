"""The rows of a store as tables: long, wide, and one row a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import statistics
from celltrain.errors import Fault, StoreError
from celltrain.store import parts
from celltrain.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as a part has it."""

    run_key: str
    point: int
    seed: int
    failed: bool
    value: float | None
    """Of the measure asked for."""


def runs_of(table: pa.Table, measure: str | None) -> Iterator[Run]:
    """The runs of a part."""
    import pyarrow as pa

    names = ["run_key", "point", "seed", "measure", "value"]
    keys, points, seeds, measures, values = (
        table.column(name).cast(pa.string()).to_pylist()
        if name in ("run_key", "measure")
        else table.column(name).to_pylist()
        for name in names
    )
    found: dict[str, Run] = {}
    for key, point, seed, name, value in zip(keys, points, seeds, measures, values, strict=True):
        if key not in found or (name is not None and name == measure):
            own = value if name == measure else None
            found[key] = Run(run_key=key, point=point, seed=seed, failed=name is None, value=own)
    yield from found.values()


def long(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """All rows by point, seed and measure; equal for equal rows, however they were cut into parts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = _wanted(store, measures)
    tables = []
    for path in store.parts():
        table = parts.read(path)
        if measures is not None:
            table = table.filter(pc.is_in(table["measure"].cast(pa.string()), pa.array(wanted, pa.string())))
        try:
            tables.append(table.cast(store.schema))
        except (*parts.DAMAGE, pa.ArrowException) as error:
            raise StoreError([parts.damaged(path, error)]) from None
    if not tables:
        return store.schema.empty_table()
    table = pa.concat_tables(tables).unify_dictionaries()
    order = np.lexsort(
        (_measure_codes(table, store), table["seed"].to_numpy().astype(np.uint64), table["point"].to_numpy())
    )
    table = table.take(order)
    columns = [_in_order(c) if pa.types.is_dictionary(c.type) else c.combine_chunks() for c in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _in_order(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column whose dictionary has only the texts in use, sorted, so that it does not depend on the parts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.unify_dictionaries()
    texts = column.chunk(0).dictionary if column.num_chunks else pa.array([], pa.string())
    chunks = [chunk.indices for chunk in column.chunks]
    codes = pa.chunked_array(chunks, pa.int32()).fill_null(len(texts)).to_numpy()
    used = np.unique(codes[codes < len(texts)])
    used = used[pc.sort_indices(texts.take(pa.array(used, pa.int32()))).to_numpy()]
    place = np.zeros(len(texts) + 1, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    indices = pa.array(place[codes], mask=codes == len(texts))
    return pa.DictionaryArray.from_arrays(indices, texts.take(pa.array(used, pa.int32())))


def failures(store: Store) -> pa.Table:
    """The rows of runs that failed."""
    import pyarrow.compute as pc

    table = long(store, None)
    return table.filter(pc.is_null(table["measure"]))


def wide(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """One row a run."""
    import pyarrow as pa

    wanted = _wanted(store, measures)
    table = long(store, None)
    first, run_of_row = _runs(table)
    codes = _measure_codes(table, store)
    numbers = table["value"].to_numpy(zero_copy_only=False)
    names = [name for name in table.column_names if name not in ("measure", "value", "error")]
    base = table.select(names).take(first)
    units = {one.name: one for one in store.measures}
    for name in wanted:
        rows = np.flatnonzero(codes == store.plan.measures.index(name))
        column = np.full(len(first), np.nan)
        column[run_of_row[rows]] = numbers[rows]
        about = Column(name=name, kind="float64", unit=units[name].unit, meaning=units[name].meaning)
        base = base.append_column(about.field(), pa.array(column, mask=np.isnan(column)))
    errors = table["error"].cast(pa.string()).to_numpy(zero_copy_only=False)
    own = np.full(len(first), None, dtype=object)
    told = np.array([error is not None for error in errors], dtype=bool)
    # Of several the first is as good as any.
    own[run_of_row[told][::-1]] = errors[told][::-1]
    return base.append_column(store.schema.field("error"), pa.array(own, pa.string()).dictionary_encode())


def summary(store: Store, measures: Sequence[str] | None) -> pa.Table:
    """One row a point and measure."""
    import pyarrow as pa

    wanted = _wanted(store, measures)
    table = wide(store, wanted)
    points = table["point"].to_numpy()
    starts = np.flatnonzero(np.diff(points, prepend=-1)) if len(points) else np.array([], dtype=np.int64)
    counts = np.diff(starts, append=len(points))
    axes = [axis.name for axis in store.axes]
    rows = np.repeat(starts, len(wanted))
    fields = [store.schema.field(name) for name in ("point", *axes, "measure")]
    columns: list[Any] = [table[name].take(rows) for name in ("point", *axes)]
    codes = pa.array(np.tile(np.arange(len(wanted), dtype=np.int32), len(starts)))
    columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(wanted, pa.string())))
    figures = [_figures(table[name].to_numpy(zero_copy_only=False), starts, counts) for name in wanted]
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


def _figures(values: NDArray[Any], starts: NDArray[Any], counts: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Number, mean, standard deviation and interval of each point."""
    numbers = values.astype(np.float64)
    has = ~np.isnan(numbers)
    group = np.repeat(np.arange(len(starts)), counts)
    found = statistics.means(group[has], numbers[has], len(starts))
    return [found.n.astype(np.float64), found.mean, found.sd, found.low, found.high]


def _wanted(store: Store, measures: Sequence[str] | None) -> list[str]:
    known = store.plan.measures
    for name in measures or ():
        if name not in known:
            raise StoreError(
                [Fault.of_option("measures", repr(name), f"was not measured; there are {', '.join(known)}")]
            )
    return list(known if measures is None else dict.fromkeys(measures))


def _measure_codes(table: pa.Table, store: Store) -> NDArray[np.int64]:
    """The place of each row's measure among the plan's; -1 where there is none."""
    places = {name: place for place, name in enumerate(store.plan.measures)}
    column = table["measure"].combine_chunks()
    if hasattr(column, "chunks"):
        column = column.chunk(0) if column.num_chunks else column
    if len(table) == 0:
        return np.array([], dtype=np.int64)
    by_code = np.array([places[name] for name in column.dictionary.to_pylist()] + [-1], dtype=np.int64)
    codes = column.indices.fill_null(len(by_code) - 1).to_numpy(zero_copy_only=False)
    result: NDArray[np.int64] = by_code[codes]
    return result


def _runs(table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each run, and the run of each row, of rows in order."""
    if len(table) == 0:
        return np.array([], dtype=np.int64), np.array([], dtype=np.int64)
    points, seeds = table["point"].to_numpy(), table["seed"].to_numpy()
    new = np.concatenate(([True], (np.diff(points) != 0) | (seeds[1:] != seeds[:-1])))
    return np.flatnonzero(new), np.cumsum(new) - 1
