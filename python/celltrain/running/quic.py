"""Packets of hosted QUIC connections, read from a capture at the sender's host. The packets are not encrypted.

Source: RFC 9000, sections 16 (variable-length integers), 17 (packets) and 19 (frames), and the pcapng draft. A frame of
an unknown type ends the list of a packet's frames.

A capture does not show which packets the sender declares lost. They follow from the same rules: RFC 9002, sections 5
(round-trip times) and 6.1 (thresholds in packets and in time). Only packets of 1-RTT keys are examined, and as in
quinn-proto, those with acknowledgements alone, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
#: RFC 9002, 6.1: `kPacketThreshold`, `kTimeThreshold` and `kGranularity` in seconds.
_PACKET_THRESHOLD, _TIME_THRESHOLD, _GRANULARITY = 3, 9 / 8, 1e-3
#: RFC 9000, 18.2: the unit of delays in acknowledgements, in seconds.
_DELAY_UNIT = 8e-6


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
    losses = _Losses()
    last = -1
    largest: dict[bool, dict[str, int]] = {}
    changes = iter(sorted(windows.items()))
    window = next(changes, None)
    for time, leaves, packet in captured(content):
        while min(losses.due, changes_at := window[0] if window else float("inf")) <= time:
            if window is None or losses.due < changes_at:
                yield from _lost(losses, losses.due)
                continue
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
                losses.sent[number] = time
                continue
            for frame in (frame for frame in frames if frame["frame_type"] == "ack"):
                if metrics := losses.on_acknowledged(frame["acked_ranges"], frame["ack_delay"] / 1e3, time):
                    yield time, "recovery_metrics_updated", metrics
                yield from _lost(losses, time)


def _lost(losses: _Losses, now: float) -> Iterator[Record]:
    for number, trigger in losses.detect(now):
        yield now, "packet_lost", {"header": {"packet_type": "1RTT", "packet_number": number}, "trigger": trigger}


@dataclass
class _Losses:
    """Packets that a sender has in flight, and its rules to declare them lost. Times are seconds."""

    sent: dict[int, float] = field(default_factory=dict)
    """Times of packets that are neither acknowledged nor lost, by number."""
    largest: int = -1
    """The largest number acknowledged."""
    latest: float = 0.0
    smoothed: float | None = None
    least: float = float("inf")
    due: float = float("inf")
    """When the next packet is lost by time."""

    def on_acknowledged(self, ranges: list[list[int]], delay: float, now: float) -> dict[str, Any]:
        """Removes the packets in an acknowledgement. Returns the changed round-trip times in milliseconds."""
        newest = ranges[-1][-1]
        begun = self.sent.get(newest)
        for number in [one for one in self.sent if any(low[0] <= one <= low[-1] for low in ranges)]:
            del self.sent[number]
        if begun is None:
            return {}
        rtt = now - begun
        metrics = {"latest_rtt": round(1e3 * rtt, 6)}
        if rtt < self.least:
            metrics["min_rtt"] = metrics["latest_rtt"]
        if newest > self.largest:
            self.largest, self.latest = newest, rtt
            adjusted = rtt - delay if rtt >= min(self.least, rtt) + delay else rtt
            self.smoothed = rtt if self.smoothed is None else (7 * self.smoothed + adjusted) / 8
        self.least = min(self.least, rtt)
        return metrics

    def detect(self, now: float) -> Iterator[tuple[int, str]]:
        """Yields the numbers of lost packets, each with the reason."""
        wait = max(_TIME_THRESHOLD * max(self.latest, self.smoothed or 0.0), _GRANULARITY)
        self.due = float("inf")
        for number, time in list(self.sent.items()):
            if number >= self.largest:
                break
            by_number = self.largest >= number + _PACKET_THRESHOLD
            if not by_number and time + wait > now:
                self.due = min(self.due, time + wait)
                continue
            del self.sent[number]
            yield number, "reordering_threshold" if by_number else "time_threshold"


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
            (largest, at), (delay, at), (count, at), (first, at) = _integers(data, at, 4)
            numbers = [[largest - first, largest]]
            for _ in range(count):
                (gap, at), (length, at) = _integers(data, at, 2)
                top = numbers[-1][0] - gap - 2
                numbers.append([top - length, top])
            if kind == 0x03:
                *_, (_, at) = _integers(data, at, 3)
            ranges = [one if one[0] < one[1] else one[:1] for one in reversed(numbers)]
            yield {"frame_type": "ack", "ack_delay": round(1e3 * delay * _DELAY_UNIT, 3), "acked_ranges": ranges}
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
