"""Phrases for sentences: times, windows, and the fates of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celltrain.drawing.words import counted
from celltrain.text import shown

#: Fates of frames in words, by the event in the table of frames.
DONE = {
    "refused": "refused",
    "cut": "lost for want of room",
    "joined": "lost with the frame before",
    "dropped": "dropped by the edge device",
    "failed": "not whole at the host",
}
#: Sentences on the loss of a single frame, by event and reason.
_LOSSES = {
    "refused": "the port {port} refused {what}.",
    "dropped": "the edge device dropped {what} at {port}, because the rate had fallen.",
    "joined": "{port} took {what} for a part of the frame before, whose last cell was lost, and lost a cell of it.",
    "cut": "{port} threw a waiting cell of {what} away to make room for another: {waiting}.",
    "cut: the packet made room for another": "the edge device dropped {what} at {port}, to make room for another.",
    "cut: no room for the packet": "the edge device had no room for {what} at {port}: {waiting}.",
    "cut: no room": "the buffer of {port} had no room for a cell of {what}: {waiting}.",
    "failed": "{what} reached its host with cells missing.",
}


def instant(seconds: float) -> str:
    """Formats a time to the microsecond.

    >>> instant(0.0025377880658436214), instant(2.4)
    ('0.002538 s', '2.4 s')
    """
    text = f"{seconds:.6f}".rstrip("0").rstrip(".")
    return f"{text} s"


def span(seconds: float) -> str:
    """Formats a duration to three significant digits.

    >>> span(0.2974), span(1.5), span(2.5e-05), span(0.0)
    ('297 ms', '1.5 s', '25 µs', '0 s')
    """
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs")):
        if seconds >= 0.9995 * limit:
            return f"{float(f'{seconds * factor:.3g}'):,g} {unit}"
    return "0 s" if seconds < 5e-13 else f"{seconds * 1e9:.3g} ns"


def window(segments: float) -> str:
    """Returns a window in segments.

    >>> window(1.0), window(17.404)
    ('1', '17.4')
    """
    return f"{segments:,.1f}".removesuffix(".0")


def loss(row: Mapping[str, Any], what: str) -> str:
    """Returns a sentence that explains how a frame was lost."""
    reason = row["reason"] or ""
    if reason.startswith("joined"):
        end = "{what} reached its host, but was joined with the frame before, whose last cell was lost."
    elif reason.startswith("a bit"):
        end = "{what} reached its host with a bit that was changed on purpose."
    else:
        end = _LOSSES.get(f"{row['event']}: {reason}", _LOSSES[row["event"]])
    waiting = f"{counted(row['occupancy'] or 0, 'cell')} were waiting"
    return f"At {instant(row['time_s'])} {end.format(what=what, port=shown(row['port'] or ''), waiting=waiting)}"


def rule(row: Mapping[str, Any]) -> str | None:
    """Returns a sentence on the rule by which a port refused a frame; None for other events."""
    if row["event"] != "refused":
        return None
    verb = "was" if row["occupancy"] == 1 else "were"
    merged = f" there, {shown(row['port_vc'])}" if row["port_vc"] != row["vc"] else ""
    optional = {
        "share_cells": "its share was {:,.4g} cells",
        "held_cells": "its virtual queue held {:,.4g} cells",
        "drop_probability": "the probability of a refusal was {:.3g}",
    }
    threshold = row["threshold_cells"]
    parts = [
        f"X = {counted(row['occupancy'], 'cell')} {verb} queued",
        *([] if threshold is None else [f"the threshold was {threshold:,.6g}"]),
        f"Y_i = {row['vc_cells']:,} of them were from its VC{merged}",
        f"N_a = {counted(row['active_vcs'], 'VC')} had cells queued",
        *(text.format(row[column]) for column, text in optional.items() if row[column] is not None),
        *(["the frame was tagged"] if row["tagged"] else []),
    ]
    return f"The port refuses a frame if {row['reason']}: {', '.join(parts[:-1])}, and {parts[-1]}."


def change(before: float, after: float, cwnd: float = 0.0) -> str:
    """Describes a change of a window; a slow start threshold of half of `cwnd`, the window before, is pointed out.

    >>> change(45.2, 12.0, 24.0), change(2.0, 2.0, 1.0)
    ('went from 45.2 to 12', 'stayed 2')
    >>> change(45.18483, 45.179296, 90.358592)
    'was set to 45.2 (half of cwnd 90.4)'
    """
    one, other = window(before), window(after)
    if one != other:
        return f"went from {one} to {other}"
    is_half = abs(after - cwnd / 2) < 1e-6
    if before == after and not is_half:
        return f"stayed {one}"
    return f"was set to {other}" + (f" (half of cwnd {window(cwnd)})" if is_half else "")


def capital(text: str) -> str:
    """Returns the text with its first letter capitalised."""
    return text[:1].upper() + text[1:]
