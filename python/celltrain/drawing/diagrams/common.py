"""What the diagrams have in common: colours, axes of time, and a legend below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import LONGEST_TITLE, brief, new_axes
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Marks beyond which a figure that could be enlarged without end holds a picture of them instead.
MOST_MARKS = 4000


def nothing(window: str | None) -> InputError:
    """What to say where a diagram would be empty."""
    return InputError([Fault.of_option("window", window or "", "has nothing to draw: no such event was kept in it")])


def axes(ax: Axes | None, size: tuple[float, float], title: str, *more: str, tcp: str | None = None) -> Axes:
    """Axes with a title: what is drawn, of which run, and with which TCP."""
    ax = new_axes(figsize=size) if ax is None else ax
    lines = [brief(line, LONGEST_TITLE) for line in (", ".join(more), title, f"TCP: {tcp}" if tcp else "") if line]
    ax.set_title("\n".join(lines), fontsize="medium", parse_math=False)
    return ax


def time_unit(end: float) -> tuple[float, str]:
    """The unit in which instants up to one are written, and how many of it a second has."""
    return (1e3, "ms") if end < 0.1 else (1.0, "s")


def spanned(ax: Axes, span: tuple[float, float] | None, scale: float, last: float) -> None:
    """Makes the axis of time as long as the window. An open end is the last event."""
    if span is not None:
        ax.set_xlim(span[0] * scale, (span[1] if span[1] < float("inf") else last) * scale)


def finish(ax: Axes, columns: int = 2, below: float = 0.19) -> Axes:
    """With a legend below, and plain numbers on the axes: no offsets and no powers."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        plain = axis.get_major_formatter()
        if isinstance(plain, ScalarFormatter):
            axis.set_major_locator(MaxNLocator(5))
            plain.set_useOffset(False)
            plain.set_scientific(False)
    handles, labels = ax.get_legend_handles_labels()
    legend = ax.legend(
        *(handles, labels),
        loc="upper center",
        bbox_to_anchor=(0.45, -below),
        ncols=columns,
        fontsize="small",
        frameon=False,
        handlelength=1.4,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        # A dollar in a name is a dollar.
        text.set_parse_math(False)
    return ax


def flow_index(flows: Sequence[str], facts: Mapping[str, Any]) -> dict[str, int]:
    """The index of each flow in its scenario, for its colour; in the order of the names if the events lack the list."""
    known = facts.get("flows") or sorted(flows, key=lambda name: (name.rstrip("0123456789"), len(name), name))
    index = {name: place for place, name in enumerate(known)}
    return {name: index.get(name, len(index)) for name in flows}
