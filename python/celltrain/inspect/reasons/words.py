"""Numbers and instants as sentences have them, and what became of a frame in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celltrain.text import shown


def instant(seconds: float) -> str:
    """An instant, to a microsecond.

    >>> instant(0.0025377880658436214), instant(2.4)
    ('0.002538 s', '2.4 s')
    """
    text = f"{seconds:.6f}".rstrip("0").rstrip(".")
    return f"{text} s"


def span(seconds: float) -> str:
    """A span of time, to three digits.

    >>> span(0.2974), span(1.5), span(2.5e-05), span(0.0)
    ('297 ms', '1.5 s', '25 µs', '0 s')
    """
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs")):
        if seconds >= 0.9995 * limit:
            return f"{float(f'{seconds * factor:.3g}'):,g} {unit}"
    return "0 s" if seconds < 5e-13 else f"{seconds * 1e9:.3g} ns"


def counted(number: float, what: str, plural: str = "") -> str:
    """So many of something.

    >>> counted(1, "segment"), counted(1200, "byte"), counted(2, "ACK")
    ('1 segment', '1,200 bytes', '2 ACKs')
    """
    return f"{number:,.0f} {what if number == 1 else plural or f'{what}s'}"


def stretch(first: float, last: float) -> str:
    """Bytes of a stream, from the first to the last."""
    return f"bytes {first:,.0f} to {last - 1:,.0f}"


def window(segments: float) -> str:
    """A window in segments.

    >>> window(1.0), window(17.404)
    ('1', '17.4')
    """
    return f"{segments:,.1f}".removesuffix(".0")


def loss(row: Mapping[str, Any], what: str) -> str:
    """What became of a frame, in a sentence."""
    when, port, reason = instant(row["time_s"]), shown(row["port"] or ""), row["reason"] or ""
    if row["event"] == "refused":
        return f"At {when} the port {port} refused {what}."
    if row["event"] == "dropped":
        return f"At {when} the edge device dropped {what} at {port}, because the rate had fallen."
    if row["event"] == "joined":
        return f"At {when} {port} took {what} for a part of the frame before, whose last cell was lost, and lost a cell of it."
    if row["event"] == "cut":
        if reason == "the packet made room for another":
            return f"At {when} the edge device dropped {what} at {port}, to make room for another."
        waiting = f"{counted(row['occupancy'], 'cell')} were waiting"
        if reason == "no room for the packet":
            return f"At {when} the edge device had no room for {what} at {port}: {waiting}."
        if reason == "no room":
            return f"At {when} the buffer of {port} had no room for a cell of {what}: {waiting}."
        return f"At {when} {port} threw a waiting cell of {what} away to make room for another: {waiting}."
    if reason.startswith("joined"):
        return f"At {when} {what} reached its host, but was joined with the frame before, whose last cell was lost."
    if reason.startswith("a bit"):
        return f"At {when} {what} reached its host with a bit that was changed on purpose."
    return f"At {when} {what} reached its host with cells missing."


def grounds(row: Mapping[str, Any]) -> str | None:
    """By which rule a port refused a frame, and with which numbers."""
    if row["event"] != "refused":
        return None
    verb = "was" if row["occupancy"] == 1 else "were"
    parts = [f"X = {counted(row['occupancy'], 'cell')} {verb} queued"]
    if row["threshold_cells"] is not None:
        parts.append(f"the threshold was {row['threshold_cells']:,.6g}")
    merged = f" there, {shown(row['port_vc'])}" if row["port_vc"] != row["vc"] else ""
    parts.append(f"Y_i = {row['vc_cells']:,} of them were from its VC{merged}")
    parts.append(f"N_a = {counted(row['active_vcs'], 'VC')} had cells queued")
    if row["share_cells"] is not None:
        parts.append(f"its share was {row['share_cells']:,.4g} cells")
    if row["held_cells"] is not None:
        parts.append(f"its virtual queue held {row['held_cells']:,.4g} cells")
    if row["drop_probability"] is not None:
        parts.append(f"the probability of a refusal was {row['drop_probability']:.3g}")
    if row["tagged"]:
        parts.append("the frame was tagged")
    return f"The port refuses a frame if {row['reason']}: {', '.join(parts[:-1])}, and {parts[-1]}."


#: What is done with a frame, for many of them.
DONE = {
    "refused": "refused",
    "cut": "lost for want of room",
    "joined": "lost with the frame before",
    "dropped": "dropped by the edge device",
    "failed": "not whole at the host",
}
