"""A reproduction as tables for other programs: the numbers, and every seed's values, as CSV and as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.papers.report import rows
from celltrain.running.tables import Column, table, write_csv, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.papers.run import Reproduction

#: Columns of `numbers` after the keys: name, type, unit and meaning.
NUMBERS = (
    ("network", "string", "", "the base scenario's network"),
    ("quantity", "string", "", "what is measured"),
    ("unit", "string", "", "unit of published, mean, sd, interval, low, high and tolerance"),
    ("published", "float64", "see column unit", "what the paper prints; null in an experiment"),
    ("mean", "float64", "see column unit", "mean over the seeds"),
    ("sd", "float64", "see column unit", "standard deviation over the seeds"),
    ("interval", "float64", "see column unit", "half the width of the 95 % interval of the mean"),
    ("low", "float64", "see column unit", "smallest value of any seed"),
    ("high", "float64", "see column unit", "largest value of any seed"),
    ("tolerance", "float64", "see column unit", "how far outside low to high still counts as inside"),
    (
        "inside",
        "bool",
        "",
        "whether the printed value lies in the range of the seeds, or as near as the paper's file allows",
    ),
    ("inside_range", "bool", "", "whether it lies in the range of the seeds, give or take a unit of its last digit"),
    ("inside_tolerance", "bool", "", "whether the mean is within the stated tolerance; null where none is"),
    ("pit", "float64", "1", "where it stands among the seeds: (below + equal / 2 + 1/2) / (seeds + 1)"),
    ("scored", "bool", "", "whether the number counts in the summary"),
    ("seeds", "int64", "1", "number of seeds"),
    ("note", "string", "", "what to know about the number"),
)
TABLE = ("table", "string", "", "the paper's table, or the name of an experiment")
SEEDS = (("network", "string", "", "the base scenario's network"), ("seed", "int64", "1", "seed of the run"))
FINGERPRINT = ("fingerprint", "string", "", "16 hex digits that change when anything in the run changes")


def write(reproduction: Reproduction, folder: Path) -> list[Path]:
    """Writes `numbers` and `seeds` into a folder, each as CSV and as Parquet; returns the files."""
    written = []
    for name, content in (("numbers", numbers_table(reproduction)), ("seeds", seeds_table(reproduction))):
        write_csv(content, folder / f"{name}.csv")
        write_parquet(content, folder / f"{name}.parquet")
        written += [folder / f"{name}.csv", folder / f"{name}.parquet"]
    return written


def numbers_table(reproduction: Reproduction) -> pa.Table:
    """Returns a row for each number: its row in the paper's table, the printed value, and the values of the seeds.

    The unit of the values is in the column `unit`.
    """
    content = [{**entry, **entry["row"]} for entry in (scored.to_dict() for scored in reproduction.scored)]
    return _table(reproduction, content, NUMBERS)


def seeds_table(reproduction: Reproduction) -> pa.Table:
    """Returns a row for each row of a table and each seed, with every quantity of that row and the run's fingerprint."""
    content = []
    for one in reproduction.paper.tables:
        for group in rows([scored for scored in reproduction.scored if scored.number.table == one.number]):
            number = group[0].number
            values = {
                scored.number.quantity.name: dict(zip(scored.seeds, scored.values, strict=True)) for scored in group
            }
            for seed in sorted(set().union(*values.values())):
                content.append(
                    {"table": number.table, "network": number.network, **number.row, "seed": seed}
                    | {name: of_seed.get(seed) for name, of_seed in values.items()}
                    | {"fingerprint": reproduction.fingerprints.get((number.configuration, seed))}
                )
    quantities = [(q.name, "float64", q.unit, q.meaning) for q in reproduction.paper.quantities.values()]
    return _table(reproduction, content, [*SEEDS, *quantities, FINGERPRINT])


def _table(
    reproduction: Reproduction, content: list[dict[str, Any]], columns: Iterable[tuple[str, str, str, str]]
) -> pa.Table:
    """Returns a table with a column for each key. A key and a column of the same name, such as the network, are one."""
    used = {key for scored in reproduction.scored for key in scored.number.row}
    keys = [
        (name, _type(row[name] for row in content if name in row), key.unit, key.meaning)
        for name, key in reproduction.paper.keys.items()
        if name in used
    ]
    unique = {
        name: Column(name=name, kind=kind, unit=unit, meaning=meaning)
        for name, kind, unit, meaning in [TABLE, *keys, *columns]
    }
    return table([_with_texts(row, unique) for row in content], list(unique.values()))


def _type(values: Iterable[object]) -> str:
    """Returns the type of a key's column: words if some value is a word, such as a total among VCs."""
    types = set(map(type, values))
    return "int64" if types == {int} else "float64" if types <= {int, float} else "string"


def _with_texts(row: Mapping[str, Any], columns: Mapping[str, Column]) -> dict[str, Any]:
    words = {name for name, column in columns.items() if column.kind == "string"}
    return {name: str(value) if name in words and value is not None else value for name, value in row.items()}
