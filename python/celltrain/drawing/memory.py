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


def of(
    answer: Mapping[str, Any], recorded: Sequence[str], held: Any, name: str | None, side: str | None = None
) -> Block:
    """Finds a memory in the answer of a run.

    Args:
        answer: The answer of the run.
        recorded: Names of the recorded queues.
        held: Cells in each recorded queue, by instant.
        name: The memory; the one that was fullest when None.
        side: The side whose queues are drawn; when None, ingress if links paused, otherwise egress if it counts cells.
    """
    names = [row["name"] for row in answer["memories"]]
    if name is not None:
        one_of("name", "a memory of this network", name, names)
    blocks = [
        _block(row, _queues_of(row["name"], names, answer["queues"]), recorded, side)
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
    row: Mapping[str, Any], queues: Sequence[Mapping[str, Any]], recorded: Sequence[str], side: str | None
) -> Block:
    sides = sorted({queue["side"] for queue in queues})
    if side is not None:
        one_of("side", f"a side of the memory {shown(row['name'])}", side, sides)
    else:
        # The priority groups of the ingress side decide about pauses.
        side = "ingress" if any(queue["pauses"] for queue in queues) else sides[0]
    chosen = [queue for queue in queues if queue["side"] == side]
    names = [queue["name"] for queue in chosen]
    parts = [name.removeprefix(f"{row['name']}/").rpartition("/") for name in names]
    has_priorities = len({priority for _, _, priority in parts}) > 1
    labels = [f"{link}, priority {priority}" if has_priorities else link for link, _, priority in parts]
    pauses = [counted(queue["pauses"], "pause") if queue["pauses"] else "" for queue in chosen]
    places = {name: place for place, name in enumerate(recorded)}
    queues_of_side = [places[name] for name in names]
    return Block(name=row["name"], cells=row["cells"], side=side, queues=queues_of_side, labels=labels, pauses=pauses)


def draw(ax: Axes, times: Any, block: Block, held: Any, thresholds: Any) -> None:
    """Draws the areas of a memory's queues, their thresholds, and its size."""
    import numpy as np

    peaks = held.max(axis=0)
    longest = [queue for queue in np.argsort(-peaks, kind="stable") if peaks[queue] >= _THIN * block.cells]
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
        labels.append(counted(len(others), "other queue"))
        colours.append(_REST)
    ax.stackplot(times, layers, labels=labels, colors=colours, step="post", linewidth=0)
    _thresholds(
        ax,
        times,
        block.cells,
        [(labels[place].partition(",")[0], thresholds[:, queue]) for place, queue in enumerate(drawn)],
    )
    top = max(int(held.sum(axis=1).max(initial=0)), 1)
    if block.cells <= _VISIBLE * top:
        top = block.cells
    ax.axhline(block.cells, color=INK, linestyle=":", linewidth=1, label=f"memory: {block.cells:,} cells")
    ax.set_ylim(0, 1.04 * top)
    ax.set(xlabel="time (s)", ylabel=f"cells in the memory{', by input' if block.side == 'ingress' else ''}")
    ax.margins(x=0)


def _thresholds(ax: Axes, times: Any, cells: int, of_queues: Sequence[tuple[str, Any]]) -> None:
    """Draws each different threshold once: in black if all queues have the same, or else in the colours of queues.

    A queue that may always hold all `cells` of the memory has no threshold line.
    """
    import numpy as np

    different: list[tuple[int, str, Any]] = []
    for place, (label, values) in enumerate(of_queues):
        known = any(np.allclose(values, other, equal_nan=True) for _, _, other in different)
        if not known and (values < cells).any():
            different.append((place, label, values))
    line: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "drawstyle": "steps-post"}
    for place, label, values in different[:_MOST_THRESHOLDS]:
        colour, text = (
            (INK, "threshold of a queue") if len(different) == 1 else (colour_of_flow(place), f"its threshold: {label}")
        )
        ax.plot(times, values, color=colour, label=text, **line)
