"""Common parts of the diagrams: the events, axes of time, and a legend below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import LONGEST_TITLE, brief, new_axes
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Size of a diagram in inches: readable in a column of 8 cm as well as on a screen.
SIZE = (4.8, 3.9)
#: Marks from which they are drawn as an image within the figure.
MOST_MARKS = 4000


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of a run, and facts about it."""

    log: Mapping[str, pa.Table]
    title: str
    facts: Mapping[str, Any]

    def axes(self, ax: Axes | None, *what: str, size: tuple[float, float] = SIZE) -> Axes:
        """Adds a title to axes, or to new ones: what is drawn, the run, and its TCP."""
        ax = new_axes(figsize=size) if ax is None else ax
        tcp = self.facts.get("tcp")
        lines = [", ".join(what), self.title, f"TCP: {tcp}" if tcp else ""]
        text = "\n".join(brief(line, LONGEST_TITLE) for line in lines if line)
        ax.set_title(text, fontsize="medium", parse_math=False)
        return ax

    def flow_index(self, flows: Sequence[str]) -> dict[str, int]:
        """Returns the index of each flow in its scenario, for its colour; in natural order if the events lack the list."""
        natural = sorted(flows, key=lambda name: (name.rstrip("0123456789"), len(name), name))
        index = {name: place for place, name in enumerate(self.facts.get("flows") or natural)}
        return {name: index.get(name, len(index)) for name in flows}


def nothing(window: str | None) -> InputError:
    """Creates the error for a diagram that would be empty."""
    return InputError([Fault.of_option("window", window or "", "has nothing to draw: no such event was kept in it")])


def time_unit(end: float) -> tuple[float, str]:
    """Returns how many units a second has, and the unit, for times up to `end`."""
    return (1e3, "ms") if end < 0.1 else (1.0, "s")


def time_axis(ax: Axes, span: tuple[float, float] | None, last: float) -> None:
    """Labels the axis of time, which covers the window; an open end is the last event."""
    scale, unit = time_unit(last)
    ax.set_xlabel(f"time ({unit})")
    if span is not None:
        ax.set_xlim(span[0] * scale, (span[1] if span[1] < float("inf") else last) * scale)


def finish(ax: Axes, columns: int = 2, below: float = 0.19) -> Axes:
    """Adds a legend below, each label once, and removes offsets and powers from the axes."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        plain = axis.get_major_formatter()
        if isinstance(plain, ScalarFormatter):
            axis.set_major_locator(MaxNLocator(5))
            plain.set_useOffset(False)
            plain.set_scientific(False)
    handles, labels = ax.get_legend_handles_labels()
    entries = {label: handle for handle, label in zip(handles[::-1], labels[::-1], strict=True)}
    entries = {label: entries[label] for label in labels}
    layout: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -below), "ncols": columns}
    style: dict[str, Any] = {"fontsize": "small", "frameon": False, "handlelength": 1.4, "columnspacing": 1.2}
    legend = ax.legend(entries.values(), entries, **layout, **style)
    for text in legend.get_texts():
        # A dollar in a name is a dollar.
        text.set_parse_math(False)
    return ax
