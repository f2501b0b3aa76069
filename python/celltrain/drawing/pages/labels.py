"""Labels beside points: none lies on another, none is cut; one that stands away from its point has a line to it.

Each label takes the first place around its point that is free, near places first. So the same figure has the same labels
everywhere, which an optimiser that pushes labels apart step by step does not promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points (of 72 an inch) between a label's point and its near edge; beyond the last there is no place.
AWAY = (5.5, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0)
#: From which of them on a line leads to the point.
LED = 9.0
#: Degrees: up to the right first, where a reader looks.
AROUND = (45, 135, -45, -135, 90, 0, 180, -90, 20, 70, 110, 160, -20, -70, -110, -160)
#: Points that stay free around a label, and around what it should not hide.
APART, DOT = 1.0, 5.0


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    x0: float
    y0: float
    x1: float
    y1: float

    def meets(self, other: Box) -> bool:
        """Whether they share a place."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def within(self, other: Box) -> bool:
        """Whether it lies inside."""
        return self.x0 >= other.x0 and self.y0 >= other.y0 and self.x1 <= other.x1 and self.y1 <= other.y1


def put(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    hidden: NDArray[np.float64] | None = None,
    size: str = "small",
) -> int:
    """Writes a text beside each point; returns how many found no place and were left out.

    Args:
        axes: Of a figure whose layout stands: `figure.draw_without_rendering()` was called.
        points: In the units of the axes.
        texts: One for each point.
        hidden: More points, one a row, that labels should not hide; they do where there is no other place.
        size: Of the letters, as matplotlib has it.
    """
    pixels = axes.figure.dpi / 72
    at = _pixels(axes, np.asarray(points, dtype=np.float64).reshape(-1, 2))
    others = _pixels(axes, np.zeros((0, 2)) if hidden is None else hidden)
    edge = axes.get_window_extent()
    room = Box(edge.x0, edge.y0, edge.x1, edge.y1)
    dots = [(x, y, _around(x, y, DOT * pixels)) for x, y in np.concatenate([at, others]).tolist()]
    taken: list[Box] = []
    left_out = 0
    for (x, y), point, text in zip(at.tolist(), points, texts, strict=True):
        note = axes.annotate(text, point, (0, 0), textcoords="offset points", fontsize=size, color=INK, zorder=6)
        # The layout has no room for it to ask for: it lies inside.
        note.set_in_layout(False)
        box = note.get_window_extent()
        elsewhere = [dot for across, up, dot in dots if (across, up) != (x, y)]
        place = _free(x, y, (box.width, box.height), pixels, room, taken, elsewhere)
        note.remove()
        if place is None:
            left_out += 1
            continue
        found, away = place
        taken.append(found)
        lead = {"arrowstyle": "-", "linewidth": 0.5, "color": "#8A929B", "shrinkA": 0, "shrinkB": 3}
        written = axes.annotate(
            text,
            point,
            ((found.x0 + found.x1 - 2 * x) / 2 / pixels, (found.y0 + found.y1 - 2 * y) / 2 / pixels),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=INK,
            zorder=6,
            arrowprops=lead if away >= LED else None,
        )
        written.set_in_layout(False)
    return left_out


def thinned(figure: Figure) -> None:
    """Leaves out what stands too close below the panels: every second tick, every third, until none touches another.

    Ticks are those that were set one by one; turned ones stay.
    """
    figure.draw_without_rendering()
    for axes in figure.axes:
        ticks, texts = axes.get_xticks().tolist(), axes.get_xticklabels()
        if not texts or any(text.get_rotation() or not text.get_text() for text in texts):
            continue
        boxes = [text.get_window_extent() for text in texts]
        apart = APART * figure.dpi / 72
        step = next(
            step
            for step in range(1, len(boxes) + 1)
            if all(one.x1 + apart < other.x0 for one, other in itertools.pairwise(boxes[::step]))
        )
        if step > 1:
            axes.set_xticks(ticks[::step], [text.get_text() for text in texts[::step]])


def _free(
    x: float,
    y: float,
    size: tuple[float, float],
    pixels: float,
    room: Box,
    taken: Sequence[Box],
    dots: Sequence[Box],
) -> tuple[Box, float] | None:
    """The nearest free place, and how far away it is: one that hides no point, or else no label."""
    for avoided in ([*taken, *dots], taken):
        for box, away in _places(x, y, size, pixels):
            if box.within(room) and not any(box.meets(other) for other in avoided):
                return box, away
    return None


def _places(x: float, y: float, size: tuple[float, float], pixels: float) -> Iterator[tuple[Box, float]]:
    """Where a label may stand, near places first."""
    wide, tall = (side / 2 + APART * pixels for side in size)
    for away in AWAY:
        for degrees in AROUND:
            across, up = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            # So that the nearest side or corner is as far away as that.
            shift = (max(-1.0, min(1.0, math.sqrt(2) * part)) for part in (across, up))
            middle = [
                at + part * away * pixels + side * half
                for at, part, side, half in zip((x, y), (across, up), shift, (wide, tall), strict=True)
            ]
            yield Box(middle[0] - wide, middle[1] - tall, middle[0] + wide, middle[1] + tall), away


def _around(x: float, y: float, reach: float) -> Box:
    return Box(x - reach, y - reach, x + reach, y + reach)


def _pixels(axes: Axes, points: NDArray[np.float64]) -> NDArray[np.float64]:
    placed: NDArray[np.float64] = axes.transData.transform(points)
    return placed
