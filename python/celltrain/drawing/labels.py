"""Labels next to points: no label covers another or is cut, and a line leads to a point from a distant label.

Each label takes the first free place around its point, near places first. The same figure therefore always has the same
labels, which an iterative optimiser would not guarantee.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.style import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Distances of a label from its point that are tried, in points (1/72 inch).
DISTANCES = (5.5, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0)
#: Distance from which a line leads to the point.
LED = 9.0
#: Directions that are tried, in degrees: up to the right first, where a reader looks.
ANGLES = (45, 135, -45, -135, 90, 0, 180, -90, 20, 70, 110, 160, -20, -70, -110, -160)
#: Margins around a label and around a point, in points.
MARGIN, DOT = 1.0, 5.0

_DISTANCE = np.repeat(DISTANCES, len(ANGLES))[:, None]
_RADIANS = np.radians(np.tile(ANGLES, len(DISTANCES)))
_DIRECTION = np.stack([np.cos(_RADIANS), np.sin(_RADIANS)], axis=1)
#: Shift of a label's centre, in half sizes, so that its nearest side or corner has the distance.
_SHIFT = np.clip(np.sqrt(2) * _DIRECTION, -1, 1)


def put(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    hidden: NDArray[np.float64] | None = None,
    size: str = "small",
) -> int:
    """Writes a text next to each point; returns how many texts found no place and were left out.

    Args:
        axes: Axes of a figure with a final layout, after `figure.draw_without_rendering()`.
        points: Positions, in the units of the axes.
        texts: One text for each point.
        hidden: More points, one a row, that labels only cover as a last resort.
        size: Font size, as in matplotlib.
    """
    pixels = axes.figure.dpi / 72
    at = axes.transData.transform(np.asarray(points, dtype=np.float64).reshape(-1, 2))
    others = axes.transData.transform(np.zeros((0, 2)) if hidden is None else hidden)
    room = axes.get_window_extent().extents
    dots = np.concatenate([at, others])
    taken: list[NDArray[np.float64]] = []
    left_out = 0
    for spot, point, text in zip(at, points, texts, strict=True):
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": size, "color": INK, "zorder": 6}
        note = axes.annotate(text, point, (0, 0), **style)
        box = note.get_window_extent()
        note.remove()
        half = np.array([box.width, box.height]) / 2 + MARGIN * pixels
        boxes = _boxes(spot + _DIRECTION * _DISTANCE * pixels + _SHIFT * half, half)
        free = (boxes[:, :2] >= room[:2]).all(axis=1) & (boxes[:, 2:] <= room[2:]).all(axis=1)
        free &= ~_overlap(boxes, np.array(taken).reshape(-1, 4))
        visible = free & ~_overlap(boxes, _boxes(dots[(dots != spot).any(axis=1)], np.full(2, DOT * pixels)))
        chosen = visible if visible.any() else free
        if not chosen.any():
            left_out += 1
            continue
        place = int(chosen.argmax())
        taken.append(boxes[place])
        lead = {"arrowstyle": "-", "linewidth": 0.5, "color": GREY, "shrinkA": 0, "shrinkB": 3}
        offset = tuple((boxes[place, :2] + boxes[place, 2:] - 2 * spot) / 2 / pixels)
        arrow = lead if _DISTANCE[place] >= LED else None
        written = axes.annotate(text, point, offset, ha="center", va="center", arrowprops=arrow, **style)
        # It is inside the axes, so the layout needs no room for it.
        written.set_in_layout(False)
    return left_out


def thinned(figure: Figure) -> None:
    """Removes every second tick below the panels, or two of three, until no labels touch.

    Only ticks with texts of their own are removed; rotated ones stay.
    """
    figure.draw_without_rendering()
    for axes in figure.axes:
        ticks, texts = axes.get_xticks().tolist(), axes.get_xticklabels()
        if not texts or any(text.get_rotation() or not text.get_text() for text in texts):
            continue
        boxes = [text.get_window_extent() for text in texts]
        margin = MARGIN * figure.dpi / 72
        step = next(
            step
            for step in range(1, len(boxes) + 1)
            if all(one.x1 + margin < other.x0 for one, other in itertools.pairwise(boxes[::step]))
        )
        if step > 1:
            axes.set_xticks(ticks[::step], [text.get_text() for text in texts[::step]])


def _boxes(centres: NDArray[np.float64], half: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([centres - half, centres + half])


def _overlap(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns for each box whether it overlaps any of the others."""
    below = boxes[:, None, :2] < others[None, :, 2:]
    above = others[None, :, :2] < boxes[:, None, 2:]
    return np.asarray(np.any(np.all(below & above, axis=2), axis=1))
