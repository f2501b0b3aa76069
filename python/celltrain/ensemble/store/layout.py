"""The tables of a store's database, as `docs/sweeps.md` describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celltrain.ensemble.store.manifest import Kind
from celltrain.errors import StoreError

#: Version of the folder and its database. Celltrain 0.2 wrote format 1: Parquet parts and a ledger.
FORMAT = 2
DATABASE, LOCK = "store.sqlite", "lock"
#: The file that marks a store of format 1.
OLD_MANIFEST = "manifest.json"
KIND = Kind(
    "store",
    DATABASE,
    FORMAT,
    StoreError,
    unseen="in its measures or its sample",
    needs={"measures": list, "columns": list, "units": dict},
)

_TABLES = {
    "about": "(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "totals": "(runs INTEGER NOT NULL, failed INTEGER NOT NULL, repeats INTEGER NOT NULL, checks INTEGER NOT NULL)",
    "measures": "(measure INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, meaning TEXT NOT NULL)",
    "cases": "(point INTEGER PRIMARY KEY, configuration TEXT NOT NULL, checked INTEGER NOT NULL{axes})",
    "runs": (
        "(run INTEGER PRIMARY KEY, point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL UNIQUE, "
        "fingerprint INTEGER, seconds REAL, error TEXT, checked INTEGER NOT NULL{measures}, UNIQUE (point, seed))"
    ),
    "gaps": "(run INTEGER, measure INTEGER, error TEXT NOT NULL, PRIMARY KEY (run, measure)) WITHOUT ROWID",
    "repeats": (
        "(point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL, PRIMARY KEY (point, seed)) WITHOUT ROWID"
    ),
    "series": "(run INTEGER PRIMARY KEY, parquet BLOB NOT NULL)",
}
_VIEWS = {
    "rows": (
        "SELECT runs.point AS point{named}, seed, measures.name AS measure, CASE measures.measure{values} END AS value, "
        "lower(hex(run_key)) AS run_key, printf('%016x', fingerprint) AS fingerprint "
        "FROM runs JOIN cases USING (point) CROSS JOIN measures WHERE error IS NULL"
    ),
    "failures": (
        "SELECT point, seed, NULL AS measure, error FROM runs WHERE error IS NOT NULL UNION ALL "
        "SELECT point, seed, name, gaps.error FROM gaps JOIN runs USING (run) JOIN measures USING (measure)"
    ),
}


def axes_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns of the axes, as in the manifest."""
    names = [column["name"] for column in manifest["columns"]]
    axes: list[dict[str, Any]] = manifest["columns"][names.index("point") + 1 : names.index("seed")]
    return axes


def statements(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The statements that create the tables and views, by name."""
    axes = [(f"a{place + 1}", axis) for place, axis in enumerate(axes_of(manifest))]
    places = range(1, len(manifest["measures"]) + 1)
    fields = {
        "axes": "".join(f", {column} {'REAL' if axis['kind'] == 'float64' else 'TEXT'}" for column, axis in axes),
        "named": "".join(f", {column} AS {_quoted(axis['name'])}" for column, axis in axes),
        "measures": "".join(f", m{place} REAL" for place in places),
        "values": "".join(f" WHEN {place} THEN m{place}" for place in places),
    }
    tables = {name: f"CREATE TABLE {name} {text.format(**fields)}" for name, text in _TABLES.items()}
    return {**tables, **{name: f"CREATE VIEW {name} AS {text.format(**fields)}" for name, text in _VIEWS.items()}}


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
