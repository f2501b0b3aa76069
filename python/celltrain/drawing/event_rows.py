"""Selection of rows of events, and arrays of their columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, NotTracedError
from celltrain.model.quantities import seconds
from celltrain.text import shortened

if TYPE_CHECKING:
    import pyarrow as pa

#: Most names in an error.
_SHOWN = 12


def texts(table: pa.Table, column: str) -> Any:
    """Returns a column of texts as an array of Python strings, with None for null."""
    return table[column].cast("string").to_numpy(zero_copy_only=False)


def numbers(table: pa.Table, column: str) -> Any:
    """Returns a column of numbers as floats, with NaN for null."""
    return table[column].to_numpy(zero_copy_only=False).astype(float)


def names(table: pa.Table, column: str) -> list[str]:
    """Returns the different texts of a column, in the order of their first rows."""
    return [name for name in table[column].cast("string").unique().to_pylist() if name is not None]


def rows_of(table: pa.Table, **wanted: str) -> pa.Table:
    """Returns the rows whose columns, as texts, have these values."""
    import pyarrow.compute as pc

    for column, value in wanted.items():
        table = table.filter(pc.equal(table[column].cast("string"), value))
    return table


def within(table: pa.Table, span: tuple[float, float] | None) -> pa.Table:
    """Returns the rows of a span of time."""
    import pyarrow.compute as pc

    if span is None:
        return table
    times = table["time_s"]
    return table.filter(pc.and_(pc.greater_equal(times, span[0]), pc.less(times, span[1])))


def kept(log: Mapping[str, pa.Table], kind: str, span: tuple[float, float] | None) -> pa.Table | None:
    """Returns the rows of a kind in a span of time; None if the kind was not kept."""
    try:
        return within(log[kind], span)
    except NotTracedError:
        return None


def span_of(window: str | None) -> tuple[float, float] | None:
    """Parses a window such as `1.2s:1.3s`; either end may be left out.

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
        raise InputError([Fault.of_option("window", window, f"has an end that is not {error}")]) from None
    if not colon or start >= end:
        problem = "is not a window such as 1.2s:1.3s, from the first time to the second"
        raise InputError([Fault.of_option("window", window, problem)])
    return start, end


def one_of(option: str, what: str, wanted: str, known: Sequence[str]) -> str:
    """Returns a known name; raises `InputError` for any other, with the nearest one and the list."""
    known = list(dict.fromkeys(known))
    if wanted in known:
        return wanted
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
    guess = f"; did you mean {near[0]}?" if near else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    there = f" (there are {', '.join(known[:_SHOWN])}{more})" if known else " (there are none)"
    raise InputError([Fault.of_option(option, shortened(wanted), f"is not {what}{guess}{there}")])


def lost_frames(sent: Any, arrived: Any) -> Any:
    """Returns which of the frames that were sent will not arrive, as an array of booleans.

    A frame never overtakes another of its VC, so one that has not arrived before a later one is lost.

    >>> import numpy as np
    >>> lost_frames(np.array([0, 1, 2, 3]), np.array([0, 2]))
    array([False,  True, False, False])
    """
    import numpy as np

    last = arrived.max() if len(arrived) else -1
    return ~np.isin(sent, arrived) & (sent < last)
