"""Draws a memory shared by ports over time, as one block divided by queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.drawing.event_rows import one_of
from celltrain.drawing.figure import COLOURS, INK, colour_of_flow, legible, tint_of_flow
from celltrain.drawing.words import counted
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of queues with an area of their own, and the colour of the area for the others.
_MOST_QUEUES = len(COLOURS)
_REST = "#DDDDDD"
#: A queue gets its own area if it once held this fraction of the memory. Thinner areas could not be seen.
_THIN = 0.01
#: Maximum number of thresholds with lines of their own.
_MOST_THRESHOLDS = 4
#: Maximum length of a queue's name in the legend.
_LONGEST = 24
#: A memory larger than this multiple of its largest content is not drawn completely.
_VISIBLE = 4
#: Height of the bar of a group that paused its link, as a share of the figure.
_BAR = 0.04
#: Words in the legend about a line that is not visible.
_ABOVE = " (above)"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A memory, and the positions of its queues among the recorded queues."""

    name: str
    cells: int
    queues: Sequence[int]
    """Positions of the memory's queues on this side."""
    labels: Sequence[str]
    pauses: Sequence[str]
    """For each queue, describes how often the link that feeds it was paused; empty if it never was."""
    side: str

    @property
    def kind(self) -> str:
        """Word for an area: a queue, or a priority group."""
        return "queue" if self.side == "egress" else "group"


def of(
    answer: Mapping[str, Any],
    recorded: Sequence[str],
    held: Any,
    thresholds: Any,
    name: str | None,
    side: str | None = None,
) -> Block:
    """Finds a memory in the answer of a run.

    Args:
        answer: The answer of the run.
        recorded: Names of the recorded queues.
        held: Cells in each recorded queue, by instant.
        thresholds: Thresholds of these queues, by instant.
        name: The memory; the one that was fullest when None.
        side: The side whose queues are drawn; when None, ingress if links paused, otherwise the side with the smallest
            threshold.
    """
    names = [row["name"] for row in answer["memories"]]
    if name is not None:
        one_of("name", "a packet memory of a switch in this network", name, names)
    blocks = [
        _block(row, _queues_of(row["name"], names, answer["queues"]), recorded, thresholds, side)
        for row in answer["memories"]
        if name in (None, row["name"])
    ]
    return max(blocks, key=lambda block: held[:, block.queues].sum(axis=1).max(initial=0) / block.cells)


def _queues_of(name: str, memories: Sequence[str], queues: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the queues of a memory. The name of one memory may be the beginning of another's.

    Schedulers' queues belong to no memory.
    """

    def memory_of(queue: Mapping[str, Any]) -> str:
        return max((one for one in memories if queue["name"].startswith(f"{one}/")), key=len, default="")

    return [queue for queue in queues if memory_of(queue) == name]


def _block(
    row: Mapping[str, Any],
    queues: Sequence[Mapping[str, Any]],
    recorded: Sequence[str],
    thresholds: Any,
    side: str | None,
) -> Block:
    places = {name: place for place, name in enumerate(recorded)}
    sides = sorted({queue["side"] for queue in queues})
    if side is not None:
        one_of("side", f"a side of the memory {shown(row['name'])}", side, sides)
    else:
        # The priority groups of the ingress side decide about pauses, and the smallest threshold about drops.
        smallest = {
            one: min(thresholds[:, places[queue["name"]]].min() for queue in queues if queue["side"] == one)
            for one in sides
        }
        side = "ingress" if any(queue["pauses"] for queue in queues) else min(sides, key=smallest.__getitem__)
    chosen = [queue for queue in queues if queue["side"] == side]
    names = [queue["name"] for queue in chosen]
    parts = [name.removeprefix(f"{row['name']}/").rpartition("/") for name in names]
    has_priorities = len({priority for _, _, priority in parts}) > 1
    labels = [f"{link}, priority {priority}" if has_priorities else link for link, _, priority in parts]
    pauses = [counted(queue["pauses"], "pause") if queue["pauses"] else "" for queue in chosen]
    queues_of_side = [places[name] for name in names]
    return Block(name=row["name"], cells=row["cells"], side=side, queues=queues_of_side, labels=labels, pauses=pauses)


def draw(ax: Axes, times: Any, block: Block, held: Any, shared: Any, thresholds: Any) -> None:
    """Draws the areas of a memory's queues, their thresholds and pauses, and its size."""
    import numpy as np

    top = max(int(held.sum(axis=1).max(initial=0)), 1)
    if block.cells <= _VISIBLE * top:
        top = block.cells
    peaks = held.max(axis=0)
    longest = [queue for queue in np.argsort(-peaks, kind="stable") if peaks[queue] >= _THIN * top]
    drawn = sorted(map(int, longest[:_MOST_QUEUES])) or [int(peaks.argmax())]
    others = [queue for queue in range(len(peaks)) if queue not in drawn]
    layers = [held[:, queue] for queue in drawn]
    labels = [
        ", ".join(text for text in (legible(block.labels[queue], _LONGEST), block.pauses[queue]) if text)
        for queue in drawn
    ]
    colours = [tint_of_flow(place) for place in range(len(drawn))]
    if others:
        layers.append(held[:, others].sum(axis=1))
        labels.append(counted(len(others), f"other {block.kind}"))
        colours.append(_REST)
    ax.stackplot(times, layers, labels=labels, colors=colours, step="post", linewidth=0)
    of_queues = [(labels[place].partition(",")[0], thresholds[:, queue]) for place, queue in enumerate(drawn)]
    _thresholds(ax, times, block, top, of_queues)
    is_above = "" if top == block.cells else _ABOVE
    label = f"memory: {block.cells:,} cells{is_above}"
    ax.axhline(block.cells, color=INK, linestyle=":", linewidth=1, label=label)
    paused = [(place, queue) for place, queue in enumerate(drawn) if block.pauses[queue]]
    for row, (place, queue) in enumerate(paused):
        bottom = top * (1.06 + _BAR * row)
        # Cells outside the shared part are in the reserve, which fills first, or in the headroom.
        outside, is_shared = held[:, queue] - shared[:, queue], shared[:, queue] > 0
        in_headroom = is_shared & (outside > outside.min(initial=block.cells, where=is_shared))
        at_threshold = in_headroom | (shared[:, queue] + 1 > thresholds[:, queue])
        ax.fill_between(
            times,
            bottom,
            bottom + 0.7 * _BAR * top,
            where=at_threshold,
            step="post",
            color=colour_of_flow(place),
            linewidth=0,
            label="" if row else "bars: groups at their thresholds",
        )
    ax.set_ylim(0, top * (1.06 + _BAR * len(paused) if paused else 1.04))
    ax.set(xlabel="time (s)", ylabel=f"cells in the memory{', by input' if block.side == 'ingress' else ''}")
    ax.margins(x=0)


def _thresholds(ax: Axes, times: Any, block: Block, top: int, of_queues: Sequence[tuple[str, Any]]) -> None:
    """Draws each different threshold once: in black if all queues have the same, or else in the colours of queues.

    A queue that may always hold all cells of the memory has no threshold line. The legend has the smallest value of a
    threshold that is always above the figure, which ends at `top`.
    """
    import numpy as np

    different: list[tuple[int, str, Any]] = []
    for place, (label, values) in enumerate(of_queues):
        known = any(np.allclose(values, other, equal_nan=True) for _, _, other in different)
        if not known and (values < block.cells).any():
            different.append((place, label, values))
    line: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "drawstyle": "steps-post"}
    for place, label, values in different[:_MOST_THRESHOLDS]:
        colour, text = (
            (INK, f"threshold of a {block.kind}")
            if len(different) == 1
            else (colour_of_flow(place), f"its threshold: {label}")
        )
        if values.min() > 1.04 * top:
            text += f" ≥ {values.min():,.0f}{_ABOVE}"
        ax.plot(times, values, color=colour, label=text, **line)
