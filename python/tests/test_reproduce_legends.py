"""Legends of a reproduction's figures fit into their figure and explain every mark."""

from __future__ import annotations

import pytest
from reproductions import filled

from celltrain.papers import figures, load
from celltrain.papers.figures import KINDS, Source

pytest.importorskip("matplotlib")
PAPER = load("af-96-1269")


@pytest.mark.parametrize("spec", [s for s in PAPER.figures if s["kind"] == "ranges"], ids=lambda spec: spec["id"])
def test_the_legend_of_a_reproduced_figure_fits_and_explains_every_mark(spec):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    all_numbers = filled(PAPER, {"LAN": 2, "WAN": 2}, lambda number: {1: 0.4, 2: 0.6}).scored
    with figures.styled():
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
