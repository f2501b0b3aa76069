"""A reproduction's figures have the requested width and style, and their legends fit and explain every mark."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproductions import filled

from celltrain.drawing.figure import COLOURS, FigureStyle, by_rows
from celltrain.papers import PAPER, figures, load
from celltrain.papers.figures import KINDS, Source
from celltrain.papers.paper import describe

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

PAPERS = ("af-96-1269", "af-97-0831", "comcom-1998", "draft-jagan")
#: The papers, without their tables: reading the tables takes a second.
DESCRIBED = {paper_id: describe(paper_id, PAPER) for paper_id in PAPERS}
RANGES = [spec for spec in DESCRIBED["af-96-1269"].figures if spec["kind"] == "ranges"]
read = functools.cache(load)


@pytest.mark.slow
@pytest.mark.parametrize("spec", RANGES, ids=lambda spec: spec["id"])
def test_the_legend_of_a_reproduced_figure_fits_and_explains_every_mark(spec):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    paper = read("af-96-1269")
    all_numbers = filled(paper, {"LAN": 2, "WAN": 2}, lambda number: {1: 0.4, 2: 0.6}).scored
    with FigureStyle().applied():
        figure = KINDS["ranges"](Source(paper=paper, scored=all_numbers, spec=spec))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        [legend] = figure.legends
        box = legend.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    shown = [text.get_text() for text in legend.get_texts()]
    drawn = {label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]}
    assert len(shown) == len(set(shown))
    assert set(shown) == drawn


SPECS = [(paper_id, spec) for paper_id, paper in DESCRIBED.items() for spec in paper.figures]
#: The first figure of each kind. The nightly job draws all figures.
FIRST = {spec["kind"]: number for number, (_, spec) in reversed([*enumerate(SPECS)])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper_id", "spec"),
    [
        pytest.param(
            *(paper_id, spec),
            id=f"{paper_id}-{spec['id']}",
            marks=[] if number in FIRST.values() else [pytest.mark.nightly],
        )
        for number, (paper_id, spec) in enumerate(SPECS)
    ],
)
def test_lines_and_groups_in_figures_differ_even_without_colours_and_are_listed_in_table_order(
    paper_id, spec, monkeypatch
):
    def ran(scenario: Mapping[str, Any], *_: object) -> tuple[dict[str, Any], Any]:
        names = [f"{name}{number}" for name in ("tcp", "vc", "cross", "long") for number in range(1, 101)]
        flows = [{"name": name, "max_min_mbps": 1.0} for name in names]
        values = {"cwnd_segments": np.ones((3, len(names))), "delivered_bytes": np.ones((3, len(names)))}
        return {"flows": flows}, {"time_s": np.arange(3.0), "flows": names, "window_flows": names, **values}

    monkeypatch.setattr(Source, "run", lambda _, scenario, trace: ran(scenario, trace))
    paper = read(paper_id)
    networks = {number.network or "": 3 for number in paper.numbers()}
    values = {1: 0.4, 2: 0.6, 3: 0.5}
    numbers = filled(paper, networks, lambda number: values).scored
    with FigureStyle().applied():
        figure = KINDS[spec["kind"]](Source(paper=paper, scored=numbers, spec=spec))
    if not figure.legends:
        return
    [legend] = figure.legends
    handles = dict(zip([text.get_text() for text in legend.get_texts()], legend.legend_handles, strict=True))
    drawn = [text for axes in figure.axes for text in axes.get_legend_handles_labels()[1]]
    own = [text for text in dict.fromkeys(drawn) if not text.startswith("printed")]
    looks = {text: look_of(handles[text]) for text in own}
    assert len(set(looks.values())) == len(own), looks
    # Matplotlib fills columns; read row by row, the entries are in the order of the table, then printed values.
    columns = legend._ncols
    texts = list(handles)
    rows = [text for _, text in sorted(zip(by_rows(range(len(texts)), columns), texts, strict=True))]
    assert rows == [*own, *(text for text in dict.fromkeys(drawn) if text not in own)]


def look_of(handle: Any) -> tuple[Any, ...]:
    """Returns the properties of a line or marker that are visible on a photocopy."""
    if hasattr(handle, "get_linestyle") and hasattr(handle, "get_marker"):
        return handle.get_linestyle(), str(handle._dash_pattern), handle.get_marker()
    return tuple(map(tuple, handle.get_paths()[0].vertices.round(6).tolist()))


@pytest.mark.slow
def test_reproduced_figures_are_written_in_three_formats_with_the_requested_width_and_style(
    tmp_path: Path, monkeypatch
) -> None:
    paper = read("af-96-1269")
    runs = filled(paper, {"LAN": 1, "WAN": 1}, lambda number: {1: number.published or 0.5}).scored
    few = paper.model_copy(update={"figures": [spec for spec in paper.figures if spec["id"] == "figure4"]})
    assert [path.suffix for path in figures.write(few, runs, tmp_path)] == [".png", ".svg", ".pdf"]
    monkeypatch.setattr(figures, "ENDINGS", ("svg",))
    for width, inches in (("column", 3.5), ("page", 7.2)):
        [file] = figures.write(few, runs, tmp_path, width=width, style="grayscale")
        found = re.search(r'<svg [^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"', text := file.read_text())
        assert found is not None
        wide, tall = (float(points) / 72 for points in found.groups())
        assert wide == pytest.approx(inches, rel=1e-3)
        assert (tall > wide) == (width == "column"), "a narrow figure has its panels one below the other"
        assert COLOURS[1].lower() not in text, "the colours of a style replace the default colours"
    # In this style, colours are tuples.
    assert figures.write(few, runs, tmp_path, style="default")


def test_style_options_of_reproduced_figures_are_checked_before_any_run(celltrain, tmp_path: Path) -> None:
    for command in (("reproduce", "af-96-1269"), ("study", "different-rtts")):
        wrong = celltrain(*command, "--width", "column")
        assert (wrong.code, wrong.err) == (
            2,
            "--width = column changes the figures; write the figures with --out DIR\n",
        )
        wrong = celltrain(*command, "--out", tmp_path / "new", "--width", "column", "--style", "greyscale")
        assert (wrong.code, "did you mean grayscale?" in wrong.err) == (2, True)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_figure_that_needs_additional_runs_is_drawn_only_if_its_network_was_selected(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(figures, "ENDINGS", ("svg",))
    monkeypatch.setitem(figures.KINDS, "cwnd", lambda source: Figure())
    paper = read("af-96-1269")
    runs = filled(paper, {"LAN": 1, "WAN": 1}, lambda number: {1: number.published or 0.5}).scored
    own = paper.model_copy(update={"figures": [spec for spec in paper.figures if spec["id"] == "figure1"]})
    for network, drawn in (("LAN", 0), ("WAN", 1)):
        asked = [one for one in runs if one.number.network == network]
        assert len(figures.write(own, asked, tmp_path)) == drawn, network
    # Every figure that needs additional runs names its network.
    for paper in map(read, PAPERS):
        networks = {number.network for number in paper.numbers()}
        specs = [spec for spec in paper.figures if spec["id"] in paper.panels]
        assert all(spec.get("network") in networks for spec in specs), paper.id
