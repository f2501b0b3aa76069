"""Generations of switch chips: how each divides its packet memory. `generations/` has a file for each."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from celltrain.errors import InputError
from celltrain.mmu.reading import Table, read_toml, table_of
from celltrain.text import among, shown

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
    """Rounding of the pool's bytes, divided by the cell's bytes and the number of memories."""
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
    """Parts of the names of switches and chips that belong to this generation."""
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
