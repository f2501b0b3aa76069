"""Packets of hosted QUIC connections, read from a capture at the sender's host. The packets are not encrypted.

Source: RFC 9000, sections 16 (variable-length integers), 17 (packets) and 19 (frames), and the pcapng draft. A frame of
an unknown type ends the list of a packet's frames.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

#: A record of a log: its time in seconds, its name and its data.
Record = tuple[float, str, dict[str, Any]]

#: Lengths of the headers of IP and UDP, of a connection's own identifiers, and of the tag at the end of a packet.
HEADERS, OWN_ID, TAG = 28, 8, 16
#: Names of the types of long headers.
LONG = ("initial", "0RTT", "handshake", "retry")
#: Block types of an interface and of a packet in a pcapng file, a packet's option with flags, and their value for packets
#: that arrive. Interfaces of the type of Ethernet have its header before the packet.
_INTERFACE, _PACKET, _FLAGS, _ARRIVES = 1, 6, 2, 1
_ETHERNET, _ETHERNET_HEADER = 1, 14


def captured(content: bytes) -> Iterator[tuple[float, bool, bytes]]:
    """Yields the packets of a capture: the time in seconds, whether the packet leaves the host, and its bytes."""
    at, skipped = 0, list[int]()
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == _INTERFACE:
            [link_type] = struct.unpack_from("<H", content, at + 8)
            skipped.append(_ETHERNET_HEADER if link_type == _ETHERNET else 0)
        elif kind == _PACKET:
            interface, high, low, size, _ = struct.unpack_from("<IIIII", content, at + 8)
            begin, end = at + 28, at + length - 4
            flags, option = 0, begin + (size + 3) // 4 * 4
            while option + 4 <= end:
                code, long = struct.unpack_from("<HH", content, option)
                if code == _FLAGS:
                    [flags] = struct.unpack_from("<I", content, option + 4)
                option += 4 + (long + 3) // 4 * 4 if code else end
            yield ((high << 32) + low) / 1e9, flags & 3 != _ARRIVES, content[begin + skipped[interface] : begin + size]
        at += length


def of_capture(content: bytes, windows: Mapping[float, int]) -> Iterator[Record]:
    """Yields the records of a connection at its sender.

    Args:
        content: The capture of the connection.
        windows: Samples of the congestion window in bytes, by their times in seconds.
    """
    sent: dict[int, float] = {}
    least, last = float("inf"), -1
    largest: dict[bool, dict[str, int]] = {}
    changes = iter(sorted(windows.items()))
    window = next(changes, None)
    for time, leaves, packet in captured(content):
        while window is not None and window[0] <= time:
            if window[1] != last:
                yield window[0], "recovery_metrics_updated", {"congestion_window": window[1]}
            last, window = window[1], next(changes, None)
        for kind, number, frames, length in _packets(packet[HEADERS:], largest.setdefault(leaves, {})):
            header = {"packet_type": kind, "packet_number": number}
            data = {"header": header, "frames": frames, "raw": {"length": length}}
            yield time, "packet_sent" if leaves else "packet_received", data
            if kind != "1RTT":
                continue
            if leaves:
                sent[number] = time
                continue
            for ranges in (frame["acked_ranges"] for frame in frames if frame["frame_type"] == "ack"):
                newest = ranges[-1][-1]
                if (begun := sent.get(newest)) is not None:
                    rtt = round(1e3 * (time - begun), 6)
                    metrics = {"latest_rtt": rtt, **({"min_rtt": rtt} if rtt < least else {})}
                    least = min(least, rtt)
                    yield time, "recovery_metrics_updated", metrics
                for number in [one for one in sent if any(low[0] <= one <= low[-1] for low in ranges)]:
                    del sent[number]


def _packets(payload: bytes, largest: dict[str, int]) -> Iterator[tuple[str, int, list[dict[str, Any]], int]]:
    """Yields the packets in a datagram: type, number, frames and length. `largest` has the largest number by type."""
    at = 0
    while at < len(payload):
        first, begin = payload[at], at
        digits = (first & 3) + 1
        if first & 0x80:
            kind = LONG[first >> 4 & 3]
            at += 5
            for _ in range(2):
                at += 1 + payload[at]
            if kind == "initial":
                token, at = _integer(payload, at)
                at += token
            rest, at = _integer(payload, at)
            end = at + rest
        else:
            kind, at, end = "1RTT", at + 1 + OWN_ID, len(payload)
        number = _whole(int.from_bytes(payload[at : at + digits], "big"), 8 * digits, largest.get(kind, -1) + 1)
        largest[kind] = max(largest.get(kind, -1), number)
        yield kind, number, list(_frames(payload[at + digits : end - TAG])), end - begin
        at = end


def _whole(number: int, bits: int, expected: int) -> int:
    """Returns the packet number nearest to the expected one with these last bits (RFC 9000, appendix A.3).

    >>> _whole(0x9B32, 16, 0xA82F30EA + 1) == 0xA82F9B32
    True
    """
    near = expected - (expected & ((1 << bits) - 1)) + number
    return min(
        (one for one in (near - (1 << bits), near, near + (1 << bits)) if one >= 0), key=lambda one: abs(one - expected)
    )


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Reads an integer of variable length; returns it and the place behind it."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def _frames(data: bytes) -> Iterator[dict[str, Any]]:
    at = 0
    while at < len(data):
        kind, at = _integer(data, at)
        if kind in (0x00, 0x01):
            if kind:
                yield {"frame_type": "ping"}
        elif kind in (0x02, 0x03):
            (largest, at), (_, at), (count, at), (first, at) = _integers(data, at, 4)
            numbers = [[largest - first, largest]]
            for _ in range(count):
                (gap, at), (length, at) = _integers(data, at, 2)
                top = numbers[-1][0] - gap - 2
                numbers.append([top - length, top])
            if kind == 0x03:
                *_, (_, at) = _integers(data, at, 3)
            ranges = [one if one[0] < one[1] else one[:1] for one in reversed(numbers)]
            yield {"frame_type": "ack", "acked_ranges": ranges}
        elif kind == 0x06:
            (offset, at), (length, at) = _integers(data, at, 2)
            at += length
            yield {"frame_type": "crypto", "offset": offset, "raw": {"payload_length": length}}
        elif kind & 0xF8 == 0x08:
            stream, at = _integer(data, at)
            offset, at = _integer(data, at) if kind & 4 else (0, at)
            length, at = _integer(data, at) if kind & 2 else (len(data) - at, at)
            at += length
            frame = {"frame_type": "stream", "stream_id": stream, "offset": offset}
            yield {**frame, "fin": bool(kind & 1), "raw": {"payload_length": length}}
        elif kind in (0x10, 0x11, 0x12, 0x13):
            *_, (_, at) = _integers(data, at, 2 if kind == 0x11 else 1)
        elif kind == 0x18:
            # NEW_CONNECTION_ID has a number, a limit, an identifier with its length, and a token.
            *_, (_, at) = _integers(data, at, 2)
            at += 1 + data[at] + 16
        elif kind != 0x1E:
            return


def _integers(data: bytes, at: int, count: int) -> list[tuple[int, int]]:
    """Reads several integers; each with the place behind it."""
    found = []
    for _ in range(count):
        number, at = _integer(data, at)
        found.append((number, at))
    return found
