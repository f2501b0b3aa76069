"""A run as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from celltrain.model.writing import replace
from celltrain.running.tables import write_csv, write_parquet
from celltrain.text import as_json

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.running.results import RunResult


def write(result: RunResult, folder: Path, *, plots: bool) -> list[Path]:
    """Writes `result.json`, the tables (`abr` if it has rows) and series as Parquet and CSV; with `plots` series as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    tables = {"flows": result.flows, "ports": result.ports, **({"abr": result.abr} if len(result.abr) else {})}
    for name, table in {**tables, **result.series}.items():
        written += _tables(table, folder / name)
    if plots:
        for name in result.series:
            written += _plots(result, name, folder)
    # Last, so that a folder with an answer has everything.
    answer = folder / "result.json"
    replace(answer, as_json(result.to_dict()) + "\n")
    return [answer, *written]


def _tables(table: pa.Table, stem: Path) -> list[Path]:
    parquet, csv = stem.with_suffix(".parquet"), stem.with_suffix(".csv")
    write_parquet(table, parquet)
    write_csv(table, csv)
    return [parquet, csv]


def _plots(result: RunResult, name: str, folder: Path) -> list[Path]:
    # Without pyplot: nothing here may open a window or leave a figure behind.
    from matplotlib.figure import Figure

    from celltrain.drawing.axes import save, styled

    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with styled():
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        getattr(result.plot, name)(ax=figure.add_subplot())
        for path in (png, svg):
            save(figure, path)
    return [png, svg]
