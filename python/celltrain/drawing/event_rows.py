"""Event tables for diagrams: selects rows, converts columns to arrays, and prepares the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.figure import LONGEST_TITLE, brief, by_rows, new_axes
from celltrain.errors import InputError, NotTracedError
from celltrain.model.paths import seconds
from celltrain.text import nearest, shortened

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


#: Maximum number of names in an error message.
_SHOWN = 12


def texts(table: pa.Table, column: str) -> Any:
    """Returns a text column as an array of Python strings, with None for null."""
    return table[column].cast("string").to_numpy(zero_copy_only=False)


def numbers(table: pa.Table, column: str) -> Any:
    """Returns a numeric column as floats, with NaN for null."""
    return table[column].to_numpy(zero_copy_only=False).astype(float)


def names(table: pa.Table, column: str) -> list[str]:
    """Returns the distinct texts of a column, in order of first appearance."""
    return [name for name in table[column].cast("string").unique().to_pylist() if name is not None]


def rows_of(table: pa.Table, **wanted: str) -> pa.Table:
    """Returns the rows whose columns, converted to text, have these values."""
    import pyarrow.compute as pc

    for column, value in wanted.items():
        table = table.filter(pc.equal(table[column].cast("string"), value))
    return table


def within(table: pa.Table, span: tuple[float, float] | None) -> pa.Table:
    """Returns the rows in a time span."""
    import pyarrow.compute as pc

    if span is None:
        return table
    times = table["time_s"]
    return table.filter(pc.and_(pc.greater_equal(times, span[0]), pc.less(times, span[1])))


def span_of(window: str | None) -> tuple[float, float] | None:
    """Parses a window such as `1.2s:1.3s`; either end may be omitted.

    >>> span_of("1.2s:1.3s"), span_of(":5ms")
    ((1.2, 1.3), (0.0, 0.005))
    """
    if window is None:
        return None
    first, colon, last = window.partition(":")
    try:
        start = seconds(first) if first.strip() else 0.0
        end = seconds(last) if last.strip() else float("inf")
    except ValueError as error:
        raise InputError.of_option("window", window, f"has an end that is not {error}") from None
    if not colon or start >= end:
        raise InputError.of_option("window", window, "is not a window such as 1.2s:1.3s, with the earlier time first")
    return start, end


def one_of(option: str, what: str, wanted: str, known: Sequence[str]) -> str:
    """Returns `wanted` if it is known; otherwise raises `InputError` with the nearest known name and the list."""
    known = list(dict.fromkeys(known))
    if wanted in known:
        return wanted
    guess = f"; did you mean {near}?" if (near := nearest(wanted, known, cutoff=0.4)) else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    there = f" (choose from {', '.join(known[:_SHOWN])}{more})" if known else " (there are none)"
    raise InputError.of_option(option, shortened(wanted), f"is not {what}{guess}{there}")


def lost_frames(sent: Any, arrived: Any) -> Any:
    """Returns, as an array of booleans, which of the sent frames will never arrive.

    Frames of a VC stay in order, so a frame is lost if a later one has arrived and it has not.

    >>> import numpy as np
    >>> lost_frames(np.array([0, 1, 2, 3]), np.array([0, 2]))
    array([False,  True, False, False])
    """
    last = arrived.max() if len(arrived) else -1
    return ~np.isin(sent, arrived) & (sent < last)


#: Size of a diagram in inches: readable in a column of 8 cm as well as on a screen.
SIZE = (4.8, 3.9)
#: Above this number, marks are drawn as an image within the figure.
MOST_MARKS = 4000


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of a run, with information about the run."""

    log: Mapping[str, pa.Table]
    title: str
    facts: Mapping[str, Any]

    def rows(self, kind: str, span: tuple[float, float] | None = None, **wanted: str) -> pa.Table | None:
        """Returns the rows of a kind that have these texts and lie in a time span.

        None if there are none, or none were recorded.
        """
        try:
            table = rows_of(within(self.log[kind], span), **wanted)
        except NotTracedError:
            return None
        return table if len(table) else None

    def axes(self, ax: Axes | None, *what: str, size: tuple[float, float] = SIZE) -> Axes:
        """Adds a title to the axes, or to new axes if None: the quantity drawn, the run, and its TCP.

        Returns the axes.
        """
        ax = new_axes(figsize=size) if ax is None else ax
        tcp = self.facts.get("tcp")
        lines = [", ".join(what), self.title, f"TCP: {tcp}" if tcp else ""]
        text = "\n".join(brief(line, LONGEST_TITLE) for line in lines if line)
        ax.set_title(text, fontsize="medium", parse_math=False)
        return ax

    def flow_index(self, flows: Sequence[str]) -> dict[str, int]:
        """Returns the index of each flow in its scenario, which determines its colour.

        Without a list of flows, flows are numbered in natural order of their names.
        """
        natural = sorted(flows, key=lambda name: (name.rstrip("0123456789"), len(name), name))
        index = {name: place for place, name in enumerate(self.facts.get("flows") or natural)}
        return {name: index.get(name, len(index)) for name in flows}


def marks(ax: Axes, x: Any, y: Any, marker: str, colour: str, label: str | None, **style: Any) -> None:
    """Draws marks without a line. If there are many, draws them as an image."""
    style = {"markersize": 4, "markeredgewidth": 0.8, "rasterized": len(x) > MOST_MARKS} | style
    ax.plot(x, y, marker, color=colour, label=label, **style)


def nothing(window: str | None) -> InputError:
    """Creates the error for a diagram that would be empty."""
    return InputError.of_option("window", window or "", "has no recorded events to draw; choose another window")


def time_unit(end: float) -> tuple[float, str]:
    """Returns the number of time units per second, and the unit's name, for times up to `end`."""
    return (1e3, "ms") if end < 0.1 else (1.0, "s")


def time_axis(ax: Axes, span: tuple[float, float] | None, last: float) -> None:
    """Labels the time axis, and limits it to the window. A window without an end extends to the last event."""
    scale, unit = time_unit(last)
    ax.set_xlabel(f"time ({unit})")
    if span is not None:
        ax.set_xlim(span[0] * scale, (span[1] if span[1] < float("inf") else last) * scale)


def finish(ax: Axes, columns: int = 2, below: float = 0.19) -> Axes:
    """Adds a legend below the plot, with each label once, and disables offsets and powers of ten on the axes."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        plain = axis.get_major_formatter()
        if isinstance(plain, ScalarFormatter):
            axis.set_major_locator(MaxNLocator(5))
            plain.set_useOffset(False)
            plain.set_scientific(False)
    entries: dict[str, Any] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        entries.setdefault(label, handle)
    layout: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -below), "ncols": columns}
    style: dict[str, Any] = {"fontsize": "small", "frameon": False, "handlelength": 1.4, "columnspacing": 1.2}
    legend = ax.legend(by_rows(list(entries.values()), columns), by_rows(list(entries), columns), **layout, **style)
    for text in legend.get_texts():
        # Escape dollar signs, so that a name does not start a formula.
        text.set_parse_math(False)
    return ax
