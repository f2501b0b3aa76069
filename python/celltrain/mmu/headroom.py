"""The headroom that a lossless group needs for its speed, its cable and its packets.

After a group has paused its sender, this many bytes still arrive (IEEE 802.3 annex 31B): what the link sends in twice its
delay; a packet of the switch's own in front of the pause frame; the pause frame; what the link sends in the response time;
and a packet that the sender has just begun. They take the most cells if they are the worst packets: those with the most
cells for their time on the wire.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from celltrain.errors import InputError

#: Delay of a metre of cable, in picoseconds.
PS_PER_METRE = 5_000
#: Bits that are sent in a pause quantum.
QUANTUM = 512
#: Limits of the response time in quanta, by speed in Mb/s (IEEE 802.3 annex 31B.3.7; docs/design/shared-memory.md).
RESPONSE = {
    100: 1,
    1_000: 2,
    10_000: 60,
    25_000: 80,
    40_000: 118,
    50_000: 147,
    100_000: 394,
    200_000: 453,
    400_000: 905,
}
#: Bytes of a packet's preamble and of the gap behind it.
OVERHEAD = 20
#: Bytes of the shortest packet, and of a pause frame.
SHORTEST = 64
#: Bytes of the longest packet if nothing else is set: that of SONiC's lossless traffic, with its Ethernet header.
MTU = 9216
#: Maximum length of a packet in bytes.
MOST_MTU = 65_535


@dataclass(frozen=True, kw_only=True)
class Needed:
    """The bytes that arrive after a pause, by cause, and their cells."""

    delay_bytes: int
    """Sent in twice the delay of the cable."""
    own_packet_bytes: int
    """Sent by the peer while the switch finishes a packet in front of the pause frame."""
    pause_bytes: int
    """Sent by the peer during the pause frame."""
    response_bytes: int
    """Sent by the peer before it obeys."""
    peer_packet_bytes: int
    """The packet that the peer has just begun."""
    cells: int
    """Cells of the memory that they take if they are the worst packets."""

    @property
    def bytes(self) -> int:
        """All bytes on the wire."""
        return (
            self.delay_bytes + self.own_packet_bytes + self.pause_bytes + self.response_bytes + self.peer_packet_bytes
        )


def needed(speed: int, metres: Fraction, cell: int, *, mtu: int = MTU, response: int | None = None) -> Needed:
    """Returns the headroom that a lossless group needs.

    Args:
        speed: Speed of the port in Mb/s.
        metres: Length of the cable.
        cell: Bytes of a cell of the memory.
        mtu: Bytes of the longest packet, with its Ethernet header and checksum.
        response: Response time of the sender, in quanta of 512 bit times; the standard's limit if None.

    >>> needed(100_000, Fraction(5), 208).cells, needed(100_000, Fraction(300), 208).cells
    (464, 903)
    """
    # Bytes that are sent in a picosecond are speed / 8,000,000.
    delay = _up(2 * PS_PER_METRE * metres * speed / 8_000_000)
    late = _up(limit(speed) * speed / 8_000_000) if response is None else response * QUANTUM // 8
    own, pause = mtu + OVERHEAD, SHORTEST + OVERHEAD
    cells = _up((delay + own + pause + late) * densest(cell, mtu)) + -(-mtu // cell)
    return Needed(
        delay_bytes=delay,
        own_packet_bytes=own,
        pause_bytes=pause,
        response_bytes=late,
        peer_packet_bytes=mtu,
        cells=cells,
    )


def limit(speed: int) -> Fraction:
    """Returns the longest response time that the standard allows at a speed in Mb/s, in picoseconds.

    Other speeds have the quanta of the next higher one; those above 400 Gb/s have its time.

    >>> float(limit(100_000)), limit(800_000) == limit(400_000)
    (2017280.0, True)
    """
    listed = next((known for known in RESPONSE if speed <= known), None)
    quanta, at = (RESPONSE[listed], speed) if listed is not None else (RESPONSE[max(RESPONSE)], max(RESPONSE))
    return Fraction(quanta * QUANTUM * 1_000_000, at)


def densest(cell: int, mtu: int) -> Fraction:
    """Returns the most cells that packets take for each byte of their time on the wire.

    >>> densest(208, 9216)
    Fraction(1, 84)
    """
    lengths = (min(max(SHORTEST, full * cell + 1), mtu) for full in range(-(-SHORTEST // cell) + 1))
    return max(Fraction(-(-length // cell), length + OVERHEAD) for length in lengths)


def of_ports(speed: int | None, cable: str | None, cell: int, mtu: int, response: int | None) -> Needed | None:
    """Returns the headroom that ports need; None if their speed or their cable is not known."""
    length = None if cable is None else metres_of(cable)
    return None if speed is None or length is None else needed(speed, length, cell, mtu=mtu, response=response)


def metres_of(cable: str) -> Fraction | None:
    """Returns the metres of a length such as `300m` or `2km`; None if it is not one.

    >>> metres_of("300m"), metres_of("0.5km"), metres_of("short")
    (Fraction(300, 1), Fraction(500, 1), None)
    """
    match = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)(k?)m", cable.strip())
    return None if match is None else Fraction(match[1]) * (1000 if match[2] else 1)


def check(mtu: int, response: int | None) -> None:
    """Raises `InputError` if the length of a packet or a response time cannot be used."""
    if not SHORTEST <= mtu <= MOST_MTU:
        raise InputError.of_option("mtu", mtu, f"is not from {SHORTEST} to {MOST_MTU} bytes")
    if response is not None and not 0 <= response <= MOST_MTU:
        raise InputError.of_option("response", response, f"is not from 0 to {MOST_MTU} quanta of {QUANTUM} bit times")


def _up(number: Fraction | int) -> int:
    return -(-number.numerator // number.denominator)
