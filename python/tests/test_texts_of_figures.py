"""No text of a figure leaves the figure or touches another text, whatever the width, the labels and the panels."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from celltrain.drawing import lines, points
from celltrain.drawing.figure import FigureStyle

LONG = "p99.9 completion time of requests that are neither short nor long (a group with a name, ms)"
PATH = "requests.a_group_with_a_very_long_name.medium.completion_ms_p999"
LABELS = {"short": "efficiency", "long": LONG, "path": PATH}
TCP = (
    "TCP: sack (minimum timeout 200 ms, ticks of 1 ms, delayed acknowledgements, DCTCP with g = 1/16, no fast recovery)"
)
NAMES = ["longest_queue_drop", "dynamic_threshold:alpha=0.5", "abm", "a policy of my own with a long name", "epd"]


def groups(count: int, values: int) -> list[lines.Group]:
    """Returns groups with the same number of means."""
    means = np.linspace(1.5e4, 9.87654321e5, values)
    return [
        lines.Group(
            name=NAMES[i % len(NAMES)] + ("" if i < len(NAMES) else str(i)), mean=means * (i + 1), half=means / 9
        )
        for i in range(count)
    ]


def dots(label: str, look: FigureStyle, panels: int, rows: int):
    own = [lines.Panel(label=f"{label}{'.' * i}", groups=groups(rows, 1)) for i in range(panels)]
    return lines.dots(own, look)


def over_numbers(label: str, look: FigureStyle, panels: int, rows: int):
    across = lines.Scale.of("buffer of the first bottleneck", "cells", [500.0, 1000.0, 2000.0, 3000.0])
    own = [lines.Panel(label=f"{label}{'.' * i}", groups=groups(rows, 4), title="rtt 30 ms") for i in range(panels)]
    return lines.lines(own, across, look, columns=min(panels, 3), marks="bars: 95 % intervals")


def over_words(label: str, look: FigureStyle, panels: int, rows: int):
    across = lines.Scale.of("policy of the memory pool", "", NAMES)
    own = [lines.Panel(label=f"{label}\nmore than lqd", groups=groups(rows, 5)) for _ in range(panels)]
    return lines.lines(own, across, look, columns=min(panels, 2), zero=True)


def effects(label: str, look: FigureStyle, panels: int, rows: int):
    across = lines.Scale.of("buffer", "cells", [1000.0 * (i + 1) for i in range(rows)])
    own = [
        lines.Effect(across=across, places=across.places, means=groups(1, rows)[0], behind=None) for _ in range(panels)
    ]
    return lines.effects(own, label, look, (0.0, np.inf), "bars: 95 % intervals")


def maps(label: str, look: FigureStyle, panels: int, rows: int):
    up = lines.Scale.of("threshold of the policy", "", [f"{i / 10:.1f}" for i in range(rows)])
    across = lines.Scale.of("buffer of the bottleneck", "cells", [1000.0, 2000.0, 3000.0])
    values = np.arange(3.0 * rows).reshape(rows, 3)
    own = [points.Map(across=across, up=up, values=values, title=f"policy {i}") for i in range(panels)]
    return points.heat_maps(own, label, look, height=2.9)


def agreement(label: str, look: FigureStyle, panels: int, rows: int):
    mean = np.arange(1.0, rows + 1)
    pair = [points.Coordinate(label=f"{label}\nstore {i}", mean=mean, half=mean / 10) for i in (1, 2)]
    return points.agreement([(*pair, mean > 1)] * panels, look, ("within the spread", "beyond it"))


KINDS = (dots, over_numbers, over_words, effects, maps, agreement)
#: A few combinations in every test run, and all combinations in nightly runs.
EVERY = [
    (kind, width, label, panels, rows)
    for kind in KINDS
    for width in ("page", "column")
    for label in LABELS
    for panels in (1, 2, 5)
    for rows in (2, 5)
]
SOME = [
    (dots, "column", "path", 2, 2),
    (over_numbers, "page", "long", 2, 5),
    (over_words, "column", "path", 1, 5),
    (effects, "column", "long", 1, 5),
]
CASES = EVERY if os.environ.get("CELLTRAIN_NIGHTLY") else SOME


def texts_of(figure):
    """Returns the visible texts and their bounding boxes in pixels."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    hidden = {id(text) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in out_of_view(axis)}
    found = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]
    return [(text, text.get_window_extent()) for text in found]


def out_of_view(axis):
    """Yields labels of ticks that are not drawn: ticks outside the view, and those of the other side."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        yield tick.label2
        if not low - room <= tick.get_loc() <= high + room:
            yield tick.label1


def problems(figure) -> list[str]:
    """Returns the texts that leave the figure, and the pairs that touch, at the resolution of files."""
    figure.set_dpi(150)
    found, whole = texts_of(figure), figure.bbox
    cut = [
        f"outside the figure: {text.get_text()!r}"
        for text, box in found
        if box.x0 < whole.x0 - 1 or box.y0 < whole.y0 - 1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1
    ]
    # The bounding boxes of slanted texts overlap, although the texts do not.
    straight = [(text, box) for text, box in found if text.get_rotation() % 90 == 0]
    over = [
        f"{one.get_text()!r} touches {other.get_text()!r}"
        for (one, box), (other, its) in combinations(straight, 2)
        if min(box.x1, its.x1) - max(box.x0, its.x0) > 0.5 and min(box.y1, its.y1) - max(box.y0, its.y0) > 0.5
    ]
    return cut + over


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "width", "label", "panels", "rows"),
    CASES,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_text_in_figures_is_not_cut_off_and_does_not_overlap(kind, width, label, panels, rows):
    look = FigureStyle.of(width, None)
    look = replace(look, tcp=TCP, seeds="means of 10 seeds")
    with look.applied():
        assert problems(kind(LABELS[label], look, panels, rows)) == []
