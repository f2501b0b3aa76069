"""Generations of switch chips: how each divides its packet memory. `generations/` has a file for each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, ValidationError

from celltrain.errors import Fault, InputError
from celltrain.model import shipped
from celltrain.text import among, described, nearest, shown

T = TypeVar("T", bound="Table")

#: Maximum number of faults that are reported for a file.
MOST_FAULTS = 100


class Table(BaseModel):
    """A table of a file. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True)
class Place:
    """A value in a file."""

    file: str
    line: int | None = None
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The file from which a table was read, and the places of its values by their paths, such as `pool.egress.size`."""

    file: str
    places: Mapping[str, Place] = field(default_factory=dict)

    def place(self, path: str) -> Place:
        """Returns the place of a value. If it is unknown, returns the place of the nearest table around the value."""
        above = path
        while above and above not in self.places:
            above = above.rpartition(".")[0]
        found = self.places.get(above, Place(self.file))
        return Place(found.file, found.line, (found.key or above) + path[len(above) :] if above else path)

    def fault(self, path: str, problem: str, value: object = None) -> Fault:
        """Returns the fault of a value. The problem is a clause that follows `key = value`, or the key alone."""
        place = self.place(path)
        text = "" if value is None else value if isinstance(value, str) else described(value)
        return Fault.of(problem, file=place.file, line=place.line, key=place.key, value=text)


def read_toml(path: Path, *, what: str) -> tuple[dict[str, Any], Source]:
    """Reads a TOML file; raises `InputError`."""
    file = str(path)
    table, lines = shipped.toml(shipped.read_text(path, what=what), file)
    # The parser names entries of lists like `port[0]`.
    places = {re.sub(r"\[(\d+)\]", r".\1", key): Place(file, line, key) for key, line in lines.items()}
    return table, Source(file=file, places=places)


def table_of(kind: type[T], table: Mapping[str, Any], source: Source) -> T:
    """Returns the model of a table; raises `InputError` with every wrong key and value."""
    try:
        # In strict mode, pydantic accepts a list as a tuple only in JSON.
        return kind.model_validate_json(json.dumps(table))
    except ValidationError as error:
        raise InputError([_fault(one, kind, source) for one in error.errors()[:MOST_FAULTS]]) from None


def _fault(error: Mapping[str, Any], kind: type, source: Source) -> Fault:
    steps = [str(step) for step in error["loc"]]
    path, value = ".".join(steps), error["input"]
    written = value if isinstance(value, str) else json.dumps(value, default=described)
    if error["type"] == "missing":
        return source.fault(path, "is missing")
    if error["type"] == "extra_forbidden":
        return source.fault(path, f"is not a key here; {among(steps[-1], _keys(kind, steps[:-1]))}")
    wanted = {
        "int_type": "is not a whole number",
        "string_type": "is not a text",
        "bool_type": "is not true or false",
        "tuple_type": "is not a list",
        "dict_type": "is not a table",
        "model_type": "is not a table",
    }
    if isinstance(value, str) and error["type"] in ("int_type", "float_type", "bool_type"):
        plain = "true or false" if error["type"] == "bool_type" else "a number"
        return source.fault(path, f"is text; write {plain} without quotes", json.dumps(value))
    problem = wanted.get(error["type"], f"cannot be used: {error['msg'][:1].lower()}{error['msg'][1:]}")
    if error["type"] == "greater_than_equal":
        problem = f"is below {error['ctx']['ge']}"
    if error["type"] == "literal_error":
        near = nearest(written, re.findall(r"'([^']*)'", error["ctx"]["expected"]))
        problem = f"is none of {error['ctx']['expected']}" + (f"; did you mean {near}?" if near else "")
    return source.fault(path, problem, written)


def _keys(kind: Any, steps: list[str]) -> list[str]:
    """Returns the keys of the table at a path."""
    for step in steps:
        of_table = getattr(kind, "model_fields", {}).get(step)
        kind = get_args(kind)[-1 if get_args(kind)[-1] is not ... else 0] if of_table is None else of_table.annotation
        kind = get_args(kind)[0] if type(None) in get_args(kind) else kind
    return list(kind.model_fields)


def refuse(faults: list[Fault]) -> None:
    """Raises `InputError` if there are faults."""
    if faults:
        raise InputError(faults[:MOST_FAULTS])


# The headroom that a lossless group needs for its speed, its cable and its packets.


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
class HeadroomNeeded:
    """The bytes that arrive after a pause, by cause, and their cells."""

    delay_bytes: int
    """Bytes that the peer sends in twice the delay of the cable."""
    own_packet_bytes: int
    """Bytes that the peer sends while the switch finishes the packet before the pause frame."""
    pause_bytes: int
    """Bytes that the peer sends while the switch sends the pause frame."""
    response_bytes: int
    """Bytes that the peer sends before it obeys the pause frame."""
    peer_packet_bytes: int
    """Bytes of the packet that the peer has just begun to send."""
    cells: int
    """Cells of memory that these bytes take if they are packets of the worst size."""

    @property
    def bytes(self) -> int:
        """All bytes on the wire."""
        return int(sum(asdict(self).values())) - self.cells


def headroom_needed(
    speed: int, metres: Fraction, cell: int, *, mtu: int = MTU, response: int | None = None
) -> HeadroomNeeded:
    """Returns the headroom that a lossless group needs.

    Args:
        speed: Speed of the port in Mb/s.
        metres: Length of the cable.
        cell: Bytes of a cell of the memory.
        mtu: Bytes of the longest packet, with its Ethernet header and checksum.
        response: Response time of the sender, in quanta of 512 bit times; the standard's limit if None.

    >>> headroom_needed(100_000, Fraction(5), 208).cells, headroom_needed(100_000, Fraction(300), 208).cells
    (464, 903)
    """
    # Bytes that are sent in a picosecond are speed / 8,000,000.
    delay = _up(2 * PS_PER_METRE * metres * speed / 8_000_000)
    late = _up(limit(speed) * speed / 8_000_000) if response is None else response * QUANTUM // 8
    own, pause = mtu + OVERHEAD, SHORTEST + OVERHEAD
    cells = _up((delay + own + pause + late) * densest(cell, mtu)) + -(-mtu // cell)
    return HeadroomNeeded(
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


def metres_of(cable: str) -> Fraction | None:
    """Returns the metres of a length such as `300m` or `2km`; None if it is not one.

    >>> metres_of("300m"), metres_of("0.5km"), metres_of("short")
    (Fraction(300, 1), Fraction(500, 1), None)
    """
    match = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)(k?)m", cable.strip())
    return None if match is None else Fraction(match[1]) * (1000 if match[2] else 1)


def check_headroom(mtu: int, response: int | None) -> None:
    """Raises `InputError` if the length of a packet or a response time cannot be used."""
    if not SHORTEST <= mtu <= MOST_MTU:
        raise InputError.of_option("mtu", mtu, f"is not from {SHORTEST} to {MOST_MTU} bytes")
    if response is not None and not 0 <= response <= MOST_MTU:
        raise InputError.of_option("response", response, f"is not from 0 to {MOST_MTU} quanta of {QUANTUM} bit times")


def _up(number: Fraction | int) -> int:
    return -(-number.numerator // number.denominator)


FOLDER = Path(__file__).parent / "generations"

Positive = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
Rounding = Literal["down", "up"]


class Memory(Table):
    """The packet memory of a chip."""

    count: Positive
    """Number of equal memories; each serves an equal part of the ports and of every pool."""
    cell_bytes: Positive
    bytes: Positive
    """Size of all memories together. No pool may be larger."""


class PoolRule(Table):
    """The shared cells of a pool in one memory."""

    rounding: Rounding
    """How the number of cells of a pool in one memory is rounded to a whole number."""
    includes_headroom: bool
    """True if the size of a pool includes the headroom, which is not shared."""
    includes_reserves: bool
    """True if the size of a pool includes the reserves of the priority groups, which are not shared."""
    port_cells: Count
    """Number of cells that each port takes from the pool, whatever the configuration."""


class GroupRule(Table):
    """Reserve and headroom of a priority group, and the first cell that it loses."""

    reserve_rounding: Rounding
    headroom_rounding: Rounding
    reserve_includes_headroom: bool
    """True if the size of a lossless profile includes its headroom."""
    drop: Count
    """Number of the first cell lost, counted from the last cell of the headroom."""
    headroom_test: Literal["in turn", "together"]
    """Order in which the published test of the headroom pool fills groups: one after another, or all to the same
    level."""


class ThresholdRule(Table):
    """The dynamic threshold, which is alpha times the free cells."""

    counts_arriving_cell: bool
    """True if the free cells are counted as if the arriving cell had been admitted."""


class QueueRule(Table):
    """Lossy queues on the egress side."""

    pool: Literal["own", "ingress"]
    """The cells that lossy queues share: the cells of their own pool, or of the ingress pool if these are fewer."""
    reserve_rounding: Rounding
    drop: Count
    """Number of the first lost cell, counted from the last cell below the threshold."""


class Generation(Table):
    """A generation of chips.

    >>> generation("th5").memory.cell_bytes
    254
    """

    name: str
    short: str
    """Name of the generation in the test files of sonic-mgmt."""
    switches: tuple[str, ...]
    """Strings that occur in the names of switches and chips of this generation."""
    memory: Memory
    pool: PoolRule
    group: GroupRule
    threshold: ThresholdRule
    queue: QueueRule | None = None
    """None if the rule for lossy queues is not confirmed."""

    def cells(self, size: int, *, rounding: Rounding, of_all: bool = False) -> int:
        """Converts bytes to cells. If the bytes are of all memories (`of_all`), returns the cells of one memory."""
        unit = self.memory.cell_bytes * (self.memory.count if of_all else 1)
        return size // unit if rounding == "down" else -(-size // unit)


@cache
def known() -> dict[str, Generation]:
    """Returns all generations that come with celltrain, by the name of their file."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def generation(name: str | os.PathLike[str]) -> Generation:
    """Returns a generation by its name, its short name or the path of its file; raises `InputError`."""
    text = os.fspath(name)
    if text.endswith(".toml"):
        return _read(Path(text))
    wanted = _plain(text)
    for stem, one in known().items():
        if wanted in (_plain(stem), _plain(one.name), _plain(one.short)):
            return one
    names = [one.short for one in known().values()]
    raise InputError.of_option("generation", text, f"is not a known generation; {among(text, names)}")


def of_switch(name: str) -> Generation | None:
    """Returns the generation of a switch, given the name of its hardware; None if it is not known."""
    found = [one for one in known().values() if any(_plain(part) in _plain(name) for part in one.switches)]
    return found[0] if len(found) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _read(path: Path) -> Generation:
    return table_of(Generation, *read_toml(path, what="generation"))


def in_words(one: Generation) -> str:
    """Describes a generation in a line."""
    count = "one memory" if one.memory.count == 1 else f"{one.memory.count} memories"
    return f"{shown(one.name)} ({count}, cells of {one.memory.cell_bytes} bytes)"
