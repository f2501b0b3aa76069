"""Words of sentences: times, windows, and the ends of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from celltrain.drawing.pages.words import counted
from celltrain.text import shown

#: Ends of frames, by the event in the table of frames.
DONE = {
    "refused": "refused",
    "cut": "lost for want of room",
    "joined": "lost with the frame before",
    "dropped": "dropped by the edge device",
    "failed": "not whole at the host",
}
#: Ends of frames in a sentence on one frame, by event and reason.
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
    """Returns a time, to a microsecond.

    >>> instant(0.0025377880658436214), instant(2.4)
    ('0.002538 s', '2.4 s')
    """
    text = f"{seconds:.6f}".rstrip("0").rstrip(".")
    return f"{text} s"


def span(seconds: float) -> str:
    """Returns a duration, to three digits.

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
    """Returns a sentence on the loss of a frame."""
    reason = row["reason"] or ""
    if reason.startswith("joined"):
        end = "{what} reached its host, but was joined with the frame before, whose last cell was lost."
    elif reason.startswith("a bit"):
        end = "{what} reached its host with a bit that was changed on purpose."
    elif row.get("pool_used_cells") is not None:
        end = "the shared memory had no place at {port} for a cell of {what}."
    else:
        end = _LOSSES.get(f"{row['event']}: {reason}", _LOSSES[row["event"]])
    waiting = f"{counted(row['occupancy'] or 0, 'cell')} were waiting"
    return f"At {instant(row['time_s'])} {end.format(what=what, port=shown(row['port'] or ''), waiting=waiting)}"


def pool(row: Mapping[str, Any]) -> str:
    """Returns a sentence on the pool, the queue and the threshold by which a shared memory had no place for a cell."""
    what = "priority group" if row["side"] == "ingress" else "queue"
    queue = f"the {what} of priority {row['priority']} at {shown(row['port'])}"
    threshold = row.get("threshold")
    parts = [
        f"q_i = {counted(row['shared'], 'cell')} of it were from {queue}",
        *([] if threshold is None else [f"its threshold was {threshold:,.6g}"]),
        *([f"it held {row['held']:,} with its reserve and headroom"] if row["held"] != row["shared"] else []),
    ]
    used = f"Q = {row['used']:,} of B = {counted(row['pool_cells'], 'cell')} were taken"
    listed = [used, *parts]
    text = f"{', '.join(listed[:-1])}, and {listed[-1]}"
    return f"The pool {shown(row['pool'])} refused the cell because {row['reason']}: {text}."


def deadlock(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence on the links of a deadlock, in the order in which each waits for the next."""
    cycle = [f"{shown(row['port'])} (priority {row['priority']})" for row in rows]
    ways = ", ".join(f"{one} waits for {other}" for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    return f"At {instant(rows[0]['time_s'])} links had paused each other for ever: {ways}. Nothing can leave them."


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
    """Returns the change of a window. A slow start threshold may be set to half of `cwnd`, the window before.

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
    """Returns a text with a capital first letter."""
    return text[:1].upper() + text[1:]
