"""A reproduction as tables for other programs: the numbers, and every seed's values, as CSV and as Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.papers.report import rows
from celltrain.running.tables import Column, table, write_csv, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.papers.run import Reproduction


def write(reproduction: Reproduction, folder: Path) -> list[Path]:
    """Write `numbers` and `seeds` into a folder, each as CSV and as Parquet; returns the files."""
    written = []
    for name, content in (("numbers", numbers_table(reproduction)), ("seeds", seeds_table(reproduction))):
        write_csv(content, folder / f"{name}.csv")
        write_parquet(content, folder / f"{name}.parquet")
        written += [folder / f"{name}.csv", folder / f"{name}.parquet"]
    return written


def numbers_table(reproduction: Reproduction) -> pa.Table:
    """One row for each number: its row in the paper's table, what is printed, and what the seeds gave.

    The values' unit differs from row to row and stands in the column `unit`.
    """
    content = [{**entry, **entry["row"]} for entry in (scored.to_dict() for scored in reproduction.scored)]
    columns = [
        _column("table", "string", "", "the paper's table, or the name of an experiment"),
        *_key_columns(reproduction, (entry["row"] for entry in content)),
        _column("network", "string", "", "the base scenario's network"),
        _column("quantity", "string", "", "what is measured"),
        _column("unit", "string", "", "unit of published, mean, sd, interval, low, high and tolerance"),
        _column("published", "float64", "see column unit", "what the paper prints; null in an experiment"),
        _column("mean", "float64", "see column unit", "mean over the seeds"),
        _column("sd", "float64", "see column unit", "standard deviation over the seeds"),
        _column("interval", "float64", "see column unit", "half the width of the 95 % interval of the mean"),
        _column("low", "float64", "see column unit", "smallest value of any seed"),
        _column("high", "float64", "see column unit", "largest value of any seed"),
        _column("tolerance", "float64", "see column unit", "how far outside low to high still counts as inside"),
        _column(
            "inside",
            "bool",
            "",
            "whether the printed value lies in the range of the seeds, or as near as the paper's file allows",
        ),
        _column(
            "inside_range",
            "bool",
            "",
            "whether it lies in the range of the seeds, give or take a unit of its last digit",
        ),
        _column("inside_tolerance", "bool", "", "whether the mean is within the stated tolerance; null where none is"),
        _column("pit", "float64", "1", "where it stands among the seeds: (below + equal / 2 + 1/2) / (seeds + 1)"),
        _column("scored", "bool", "", "whether the number counts in the summary"),
        _column("seeds", "int64", "1", "number of seeds"),
        _column("note", "string", "", "what to know about the number"),
    ]
    return _table(content, columns)


def seeds_table(reproduction: Reproduction) -> pa.Table:
    """One row for each row of a table and each seed, with every quantity of that row and the run's fingerprint."""
    content = []
    for group in rows_of_tables(reproduction):
        number = group[0].number
        for seed in sorted({seed for scored in group for seed in scored.seeds}):
            entry: dict[str, Any] = {"table": number.table, "network": number.network, **number.row, "seed": seed}
            for scored in group:
                entry[scored.number.quantity.name] = dict(zip(scored.seeds, scored.values, strict=True)).get(seed)
            entry["fingerprint"] = reproduction.fingerprints.get((number.configuration, seed))
            content.append(entry)
    columns = [
        _column("table", "string", "", "the paper's table, or the name of an experiment"),
        *_key_columns(reproduction, (scored.number.row for scored in reproduction.scored)),
        _column("network", "string", "", "the base scenario's network"),
        _column("seed", "int64", "1", "seed of the run"),
        *(_column(q.name, "float64", q.unit, q.meaning) for q in reproduction.paper.quantities.values()),
        _column("fingerprint", "string", "", "16 hex digits that change when anything in the run changes"),
    ]
    return _table(content, columns)


def rows_of_tables(reproduction: Reproduction) -> list[list[Any]]:
    """The numbers of each row of each table together."""
    return [
        row
        for one in reproduction.paper.tables
        for row in rows([scored for scored in reproduction.scored if scored.number.table == one.number])
    ]


def _key_columns(reproduction: Reproduction, used: Iterable[dict[str, Any]]) -> list[Column]:
    values: dict[str, list[Any]] = {}
    for row in used:
        for key, value in row.items():
            values.setdefault(key, []).append(value)
    keys = reproduction.paper.keys
    return [_column(name, _kind(values[name]), keys[name].unit, keys[name].meaning) for name in keys if name in values]


def _kind(values: list[Any]) -> str:
    if all(isinstance(value, int) for value in values):
        return "int64"
    return "float64" if all(isinstance(value, int | float) for value in values) else "string"


def _table(content: list[dict[str, Any]], columns: list[Column]) -> pa.Table:
    """The rows as a table. A key whose values are numbers and words (a total among VCs) is a column of words."""
    # A key and a fixed column may share a name (the network): one column is enough.
    unique = {column.name: column for column in columns}
    words = [name for name, column in unique.items() if column.kind == "string"]
    for row in content:
        row |= {name: str(row[name]) for name in words if row.get(name) is not None}
    return table(content, list(unique.values()))


def _column(name: str, kind: str, unit: str, meaning: str) -> Column:
    return Column(name=name, kind=kind, unit=unit, meaning=meaning)
