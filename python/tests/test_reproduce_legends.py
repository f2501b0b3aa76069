"""A reproduction's figures have the requested width and style, and their legends fit and explain every mark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reproductions import filled

from celltrain.drawing.figure import COLOURS, FigureStyle
from celltrain.papers import figures, load
from celltrain.papers.figures import KINDS, Source

pytest.importorskip("matplotlib")
PAPER = load("af-96-1269")


@pytest.mark.parametrize("spec", [s for s in PAPER.figures if s["kind"] == "ranges"], ids=lambda spec: spec["id"])
def test_the_legend_of_a_reproduced_figure_fits_and_explains_every_mark(spec):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    all_numbers = filled(PAPER, {"LAN": 2, "WAN": 2}, lambda number: {1: 0.4, 2: 0.6}).scored
    with FigureStyle().applied():
        figure = KINDS["ranges"](Source(paper=PAPER, scored=all_numbers, spec=spec))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        [legend] = figure.legends
        box = legend.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    shown = [text.get_text() for text in legend.get_texts()]
    drawn = {label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]}
    assert len(shown) == len(set(shown))
    assert set(shown) == drawn


def test_reproduced_figures_have_three_formats_and_the_requested_width_and_style(tmp_path: Path, monkeypatch) -> None:
    runs = filled(PAPER, {"LAN": 1, "WAN": 1}, lambda number: {1: number.published or 0.5}).scored
    few = PAPER.model_copy(update={"figures": [spec for spec in PAPER.figures if spec["id"] == "figure4"]})
    assert [path.suffix for path in figures.write(few, runs, tmp_path)] == [".png", ".svg", ".pdf"]
    monkeypatch.setattr(figures, "ENDINGS", ("svg",))
    for width, inches in (("column", 3.5), ("page", 7.2)):
        [file] = figures.write(few, runs, tmp_path, width=width, style="grayscale")
        found = re.search(r'<svg [^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"', text := file.read_text())
        assert found is not None
        wide, tall = (float(points) / 72 for points in found.groups())
        assert wide == pytest.approx(inches, rel=1e-3)
        assert (tall > wide) == (width == "column"), "panels of a narrow figure are below each other"
        assert COLOURS[1].lower() not in text, "a style's colours replace ours"
    # The colours of this style are tuples.
    assert figures.write(few, runs, tmp_path, style="default")


def test_style_options_of_reproduced_figures_are_checked_before_any_run(celltrain, tmp_path: Path) -> None:
    for command in (("reproduce", "af-96-1269"), ("study", "different-rtts")):
        wrong = celltrain(*command, "--width", "column")
        assert (wrong.code, wrong.err) == (2, "--width = column changes the figures; write them with --out DIR\n")
        wrong = celltrain(*command, "--out", tmp_path / "new", "--width", "column", "--style", "greyscale")
        assert (wrong.code, "did you mean grayscale?" in wrong.err) == (2, True)
    assert not (tmp_path / "new").exists()
