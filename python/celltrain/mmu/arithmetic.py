"""The cells at which priority groups pause and queues drop, from a switch's buffer configuration.

The rules of a generation of chips are in `generations/`. B: cells of a pool that are shared in one memory. alpha: share of
the free cells that a group or queue may use. A lone group gets alpha B / (1 + alpha) cells (Choudhury and Hahne, 1998).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from celltrain.errors import InputError
from celltrain.mmu import generations
from celltrain.mmu.configuration import Loaded, Pool, Profile, load, names_of
from celltrain.mmu.generations import Generation, refuse
from celltrain.mmu.sonic import MOST_GROUP, MOST_QUEUE, numbers
from celltrain.model.arguments import checked
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.text import shown

#: Maximum number of groups that can be filled one after another.
MOST_IN_TURN = 10_000
#: Packet size in bytes. Thresholds are also printed in packets of this size.
PACKET = 1500


@dataclass(frozen=True, kw_only=True)
class Step:
    """A term of a sum, described in words."""

    cells: int
    words: str


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The shared cells of a pool in one memory."""

    pool: str
    cells: int
    """B."""
    headroom: int
    """Cells of headroom that the groups of this memory share; 0 if each group has its own headroom."""
    steps: tuple[Step, ...]
    """Terms of the sum that gives B, the shared cells of the pool."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The thresholds of a priority group or queue that is filled alone. All numbers are cells of its memory."""

    profile: str
    shared: Shared
    reserve: int
    alpha: Fraction | None
    """None if the threshold is static."""
    share: int
    """Number of cells of the pool that the group or queue can get."""
    counts_arriving_cell: bool
    pause: int | None = None
    """Last cell before the sender is paused; None without headroom."""
    resume: int | None = None
    """Distance below the threshold, in cells, at which the sender may resume."""
    headroom: int | None = None
    drop: int | None = None
    """First cell lost; None if no cell is lost, or if the rule is not known."""

    @property
    def is_limited(self) -> bool:
        """True if the threshold is reached before the pool is full."""
        return self.alpha is not None or self.share < self.shared.cells

    @property
    def partial(self) -> int | None:
        """Cells of the shared headroom left for the last group, after all other groups have a full headroom."""
        return self.shared.headroom % self.headroom if self.headroom and self.shared.headroom else None

    @property
    def filling(self) -> int | None:
        """Number of groups that together use up the shared headroom."""
        return -(-self.shared.headroom // self.headroom) if self.headroom and self.shared.headroom else None

    def in_turn(self, groups: int) -> list[int]:
        """Returns the threshold of each of several groups that are filled one after the other."""
        found, used = [], 0
        for _ in range(groups):
            share = self._share(used)
            found.append(share + self.reserve)
            used += share
        return found

    def together(self, groups: int) -> int:
        """Returns the threshold of each of several groups that are filled to the same level."""
        if self.alpha is None:
            return self.share + self.reserve
        return int(self.alpha * self.shared.cells / (1 + self.alpha * groups)) + self.reserve

    def _share(self, used: int) -> int:
        left = self.shared.cells - used
        if self.alpha is None:
            return max(min(self.share, left), 0)
        return share_of(left, self.alpha, counts_arriving_cell=self.counts_arriving_cell)


def share_of(free: int, alpha: Fraction, *, counts_arriving_cell: bool) -> int:
    """Returns how many of the free cells a group gets.

    A cell is admitted if the group, including the cell, then has at most alpha times the free cells. If
    `counts_arriving_cell`, the free cells are counted after the cell has taken its place, otherwise before.

    >>> share_of(13071, Fraction(1), counts_arriving_cell=False), share_of(216871, Fraction(1), counts_arriving_cell=True)
    (6536, 108435)
    """
    return int(alpha * (free if counts_arriving_cell else free + 1) / (1 + alpha))


@dataclass(frozen=True, kw_only=True)
class Row:
    """The thresholds of a priority group, or of a queue, of ports with the same settings."""

    ports: tuple[str, ...]
    speed: int | None
    cable: str | None
    group: str | None
    """Priorities of the group; None for a queue."""
    queue: str | None
    limits: Limits
    in_turn: tuple[int, ...] = ()
    needed: generations.HeadroomNeeded | None = None
    """Headroom that the group needs; None for queues, and without a speed or a cable length."""

    @property
    def kind(self) -> str:
        """The group or the queue."""
        return f"group {self.group}" if self.group is not None else f"queue {self.queue}"

    @property
    def port(self) -> str:
        """The first of the ports with the same settings, and the number of other ports."""
        count = len(self.ports)
        return f"{shown(self.ports[0]) if count else 'no port'}{f' and {count - 1} more' if count > 1 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the row of the JSON answer."""
        limits = self.limits
        return {
            "ports": list(self.ports),
            "speed_mbps": self.speed,
            "cable": self.cable,
            "group": self.group,
            "queue": self.queue,
            "profile": limits.profile,
            "pool": limits.shared.pool,
            "alpha": None if limits.alpha is None else float(limits.alpha),
            "reserve_cells": limits.reserve,
            "shared_cells": limits.shared.cells,
            "share_cells": limits.share,
            "pause_cells": limits.pause,
            "ingress_drop_cells": limits.drop if self.group is not None else None,
            "egress_drop_cells": limits.drop if self.queue is not None else None,
            "headroom_cells": limits.headroom,
            "headroom_partial_cells": limits.partial,
            "headroom_groups": limits.filling,
            "headroom_needed_cells": None if self.needed is None else self.needed.cells,
            "headroom_needed": None if self.needed is None else {**asdict(self.needed), "bytes": self.needed.bytes},
            "in_turn_cells": list(self.in_turn),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Thresholds(CardMixin):
    """The thresholds of a switch's priority groups and queues."""

    switch: str
    generation: Generation
    rows: tuple[Row, ...]

    @property
    def pools(self) -> list[Shared]:
        """The pools used by the groups and queues."""
        return list({row.limits.shared.pool: row.limits.shared for row in self.rows}.values())

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain mmu thresholds --json`."""
        return {
            "switch": self.switch,
            "generation": self.generation.name,
            "memories": self.generation.memory.count,
            "cell_bytes": self.generation.memory.cell_bytes,
            "pools": [asdict(shared) for shared in self.pools],
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row for each group and queue; needs pandas."""
        import pyarrow as pa

        return pa.Table.from_pylist([row.to_dict() for row in self.rows]).to_pandas()

    def grid(self) -> Grid:
        """Returns the table to print."""
        heads = ["ports", "group or queue", "pause", "ingress drop", "egress drop", "headroom", "needed", "partial"]
        grid = Grid(heads=heads, left=(0, 1), keys=2)
        for row in self.rows:
            made = row.to_dict()
            cells = ("pause", "ingress_drop", "egress_drop", "headroom", "headroom_needed", "headroom_partial")
            numbers = [made[f"{name}_cells"] for name in cells]
            grid.add_row(row.port, row.kind, *("-" if one is None else str(one) for one in numbers))
        return grid

    def bytes_grid(self) -> Grid:
        """Returns the table in bytes, and in packets of `PACKET` bytes that fit into these cells."""
        cell = self.generation.memory.cell_bytes
        packet = -(-PACKET // cell)
        table = self.grid()
        grid = Grid(heads=[*table.heads[:2], *(f"{head} (bytes)" for head in table.heads[2:])], left=(0, 1), keys=2)
        for row in table.rows:
            numbers = [one if one == "-" else f"{int(one) * cell:,} ({int(one) // packet:,})" for one in row[2:]]
            grid.add_row(*row[:2], *numbers)
        return grid

    def in_turn_grids(self) -> list[Grid]:
        """Returns the thresholds of groups that are filled one after the other, if the answer has them."""
        rows = [row for row in self.rows if row.in_turn]
        heads = ["group in turn", *(f"{row.port}, {row.kind}" for row in rows)]
        turns = enumerate(zip(*(row.in_turn for row in rows), strict=True), 1)
        return [Grid(heads=heads, rows=[[*map(str, (number, *cells))] for number, cells in turns])] if rows else []

    def words(self) -> list[str]:
        """Returns the arithmetic as text, with a line for each sum."""
        lines = []
        for shared in self.pools:
            lines.append(f"{shown(shared.pool)}, one memory of {self.generation.memory.count}:")
            lines += [f"  {step.cells:>9,}  {step.words}" for step in shared.steps]
            if len(shared.steps) > 1:
                lines.append(f"  {shared.cells:>9,}  shared")
        seen = set()
        for row in self.rows:
            text = list(self._row_in_words(row))
            if text and tuple(text) not in seen:
                lines += [f"{row.port}, {row.kind} ({shown(row.limits.profile)}):", *text]
                seen.add(tuple(text))
        return lines

    def _row_in_words(self, row: Row) -> Iterator[str]:
        limits, rule = row.limits, self.generation.threshold
        if limits.alpha is None:
            yield from self._static_in_words(row)
            return
        free = f"{limits.shared.cells:,}" if rule.counts_arriving_cell else f"({limits.shared.cells:,} + 1)"
        yield f"  {limits.share:>9,}  {limits.alpha / (1 + limits.alpha)} of {free}, rounded down (alpha {limits.alpha})"
        yield f"  {limits.reserve:>9,}  and the reserve"
        yield from self._drop_in_words(row)
        if limits.partial is not None and limits.filling is not None:
            yield (
                f"  {limits.partial:>9,}  headroom partial: {limits.shared.headroom:,} for {limits.filling - 1} groups of"
                f" {limits.headroom:,} plus one more"
            )
        if row.needed is not None:
            need = row.needed
            yield (
                f"  {need.cells:>9,}  headroom needed for {need.delay_bytes:,} bytes in twice the delay,"
                f" {need.own_packet_bytes:,} during a packet of the switch,"
            )
            yield (
                f"             {need.pause_bytes} while it sends the pause frame, {need.response_bytes:,} in the response time, and"
                f" a packet of {need.peer_packet_bytes:,}"
            )

    def _static_in_words(self, row: Row) -> Iterator[str]:
        limits = row.limits
        holds = f"  {limits.share + limits.reserve:>9,}  static threshold and reserve"
        if limits.is_limited:
            yield holds
            yield from self._drop_in_words(row)
        elif row.group is not None and limits.pause is None:
            yield f"{holds}, and the pool has room for all of them"
        elif row.queue is not None:
            yield f"{holds}, but the ingress side drops cells before this queue does"

    def _drop_in_words(self, row: Row) -> Iterator[str]:
        limits = row.limits
        if limits.pause is not None:
            yield f"  {limits.pause:>9,}  cells before the pause"
        if limits.headroom is not None:
            yield f"  {limits.headroom:>9,}  and the headroom"
        if limits.drop is not None:
            rule = self.generation.group if row.group is not None else self.generation.queue
            after = rule.drop if rule is not None and (row.queue is not None or limits.headroom is not None) else 1
            if after > 1:
                yield f"  {after:>9,}  and the cells up to the first loss"
            kind = "first cell lost at the ingress" if row.group is not None else "first cell lost at the egress"
            yield f"  {limits.drop:>9,}  {kind}"
        if row.queue is not None and limits.drop is None:
            yield f"             the egress drop of {shown(self.generation.name)} is not confirmed by public numbers"

    def _card(self) -> Card:
        lines = [generations.in_words(self.generation)]
        return Card(title=self.switch or "switch", lines=lines, grids=[self.grid()], notes=self.words())

    def __repr__(self) -> str:
        return f"Thresholds(switch={self.switch!r}, generation={self.generation.name!r}, {len(self.rows)} rows)"


@checked()
def thresholds(
    configuration: str | os.PathLike[str] | Loaded,
    *,
    generation: str | Generation | None = None,
    port: str | None = None,
    group: int | None = None,
    queue: int | None = None,
    in_turn: int = 0,
    mtu: int = generations.MTU,
    response: int | None = None,
) -> Thresholds:
    """Calculates the cell at which each priority group pauses its sender and drops, and each queue drops.

    Args:
        configuration: TOML file, or folder with files of SONiC, or the result of `load`.
        generation: Name of the chip's generation, such as `tomahawk5`, or a file with its rules. By default the one that
            the configuration names.
        port: Only this port.
        group: Only the priority group of this priority.
        queue: Only this queue.
        in_turn: Number of groups that are filled one after the other.
        mtu: Longest packet in bytes, with its Ethernet header, for the headroom that groups need.
        response: Response time of the senders to a pause frame, in quanta of 512 bit times, for the same. By default the
            limit of IEEE 802.3 for the speed.

    Raises:
        InputError: If the configuration cannot be used; lists every fault.
    """
    loaded = load(configuration)
    chip = loaded.generation(generation)
    if not 0 <= in_turn <= MOST_IN_TURN:
        raise InputError.of_option("in_turn", in_turn, f"is not from 0 to {MOST_IN_TURN}")
    generations.check_headroom(mtu, response)
    known = [name for ports in loaded.switch.port for name in names_of(ports)]
    if port is not None and port not in known:
        hint = f"the first port is {known[0]}" if known else "it has none"
        raise InputError.of_option("port", port, f"is not a port of {loaded.source.file}; {hint}")

    def is_wanted(row: Row) -> bool:
        of_group = group is not None and group in (numbers(row.group or "", MOST_GROUP) or ())
        of_queue = queue is not None and queue in (numbers(row.queue or "", MOST_QUEUE) or ())
        return (port is None or port in row.ports) and (of_group or of_queue or (group is None and queue is None))

    rows = tuple(filter(is_wanted, _rows(Division(loaded, chip), in_turn, mtu, response)))
    if not rows:
        problem = "has no such priority group or queue; leave out --group and --queue to see all"
        raise InputError.of_file(loaded.source.file, problem)
    return Thresholds(switch=loaded.switch.name, generation=chip, rows=rows)


class Division:
    """The division of a configured switch's memory; raises `InputError` if the memory is too small."""

    def __init__(self, loaded: Loaded, chip: Generation) -> None:
        self.loaded, self.switch, self.chip = loaded, loaded.switch, chip
        faults = []
        self.pools: dict[str, Shared] = {}
        for name, pool in self.switch.pool.items():
            if pool.size > chip.memory.bytes:
                problem = f"is larger than the memory of {chip.name}, {chip.memory.bytes} bytes"
                faults.append(loaded.source.fault(f"pool.{name}.size", problem, pool.size))
                continue
            shared = self._shared(name, pool)
            if shared.cells <= 0:
                taken = ", ".join(f"{-step.cells} {step.words}" for step in shared.steps[1:])
                problem = f"is {shared.steps[0].cells} cells of one memory, but all of them are already used: {taken}"
                faults.append(loaded.source.fault(f"pool.{name}.size", problem, pool.size))
            self.pools[name] = shared
        refuse(faults)

    def reserve(self, profile: Profile, *, is_queue: bool = False) -> int:
        """Returns the reserve of a group or queue in cells."""
        size, rule = profile.size, self.chip.group
        if is_queue and self.chip.queue is not None:
            return self.chip.cells(size, rounding=self.chip.queue.reserve_rounding)
        if rule.reserve_includes_headroom and profile.xoff:
            size = max(size - profile.xoff, 0)
        return self.chip.cells(size, rounding=rule.reserve_rounding)

    def headroom(self, profile: Profile) -> int:
        """Returns the headroom of a lossless group in cells."""
        return self.chip.cells(profile.xoff or 0, rounding=self.chip.group.headroom_rounding)

    def of_group(self, name: str, profile: Profile) -> Limits:
        """Returns the thresholds of a priority group."""
        limits, headroom = self._limits(name, profile, profile.pool, self.reserve(profile)), self.headroom(profile)
        shared, pause = limits.shared, limits.share + limits.reserve
        if not profile.xoff:
            return replace(limits, drop=pause + 1 if limits.is_limited else None)
        drop = pause + (min(headroom, shared.headroom) if shared.headroom else headroom) + self.chip.group.drop
        resume = None if profile.xon_offset is None else self.chip.cells(profile.xon_offset, rounding="up")
        return replace(limits, pause=pause, resume=resume, headroom=headroom, drop=drop)

    def of_queue(self, name: str, profile: Profile) -> Limits:
        """Returns the thresholds of a queue."""
        rule, pools = self.chip.queue, [profile.pool]
        if rule is not None and rule.pool == "ingress":
            inner = [one for one, settings in self.switch.pool.items() if settings.type == "ingress"]
            # Each cell needs a place on both the ingress and the egress side.
            pools = [*sorted(inner, key=lambda one: self.switch.pool[one].size, reverse=True)[:1], profile.pool]
        reserve = self.reserve(profile, is_queue=True)
        limits = min((self._limits(name, profile, pool, reserve) for pool in pools), key=lambda one: one.share)
        if rule is None or not limits.is_limited:
            return limits
        return replace(limits, drop=limits.share + reserve + rule.drop)

    def _limits(self, name: str, profile: Profile, pool: str, reserve: int) -> Limits:
        """Returns the share of a pool that a group or queue gets."""
        shared, alpha, counts = self.pools[pool], profile.alpha, self.chip.threshold.counts_arriving_cell
        if alpha is None:
            share = min(self.chip.cells(profile.static_th or 0, rounding="down"), shared.cells)
        else:
            share = share_of(shared.cells, alpha, counts_arriving_cell=counts)
        about: dict[str, Any] = {"profile": name, "shared": shared, "counts_arriving_cell": counts}
        return Limits(**about, reserve=reserve, alpha=alpha, share=share)

    def _shared(self, name: str, pool: Pool) -> Shared:
        """Returns the shared cells of a pool in one memory."""
        chip, rule = self.chip, self.chip.pool
        size = chip.cells(pool.size, rounding=rule.rounding, of_all=True)
        steps = [Step(cells=size, words=f"cells of one memory ({pool.size:,} bytes)")]
        headroom = chip.cells(pool.xoff, rounding=rule.rounding, of_all=True)
        if pool.type == "ingress":
            if rule.includes_headroom and headroom:
                steps.append(Step(cells=-headroom, words=f"less headroom ({pool.xoff:,} bytes)"))
            # If the ports cannot be divided evenly among the memories, describe the memory with the fewest shared
            # cells.
            memories = range(chip.memory.count)
            taken = (list(self._taken(name, number, has_headroom=bool(headroom))) for number in memories)
            steps += min(taken, key=lambda steps: sum(step.cells for step in steps))
        return Shared(pool=name, cells=sum(step.cells for step in steps), headroom=headroom, steps=tuple(steps))

    def _taken(self, name: str, memory: int, *, has_headroom: bool) -> Iterator[Step]:
        """Yields the cells that priority groups and ports take from an ingress pool in a memory."""
        rule = self.chip.pool
        counts: dict[str, int] = {}
        before, ports_in_memory = 0, 0
        for ports in self.switch.port:
            # Ports are assigned to the memories in turn: port n is in memory n modulo the number of memories.
            count = len(list(names_of(ports)))
            in_memory = len(range((memory - before) % self.chip.memory.count, count, self.chip.memory.count))
            before, ports_in_memory = before + count, ports_in_memory + in_memory
            for key, profile in ports.groups.items():
                if self.switch.profile[profile].pool == name:
                    counts[profile] = counts.get(profile, 0) + in_memory * len(numbers(key, MOST_GROUP) or ())
        for key, groups in counts.items():
            profile_of = self.switch.profile[key]
            reserve, headroom = self.reserve(profile_of), self.headroom(profile_of)
            if rule.includes_reserves and reserve:
                words = f"less the reserves of {groups} groups, {reserve} each ({key})"
                yield Step(cells=-groups * reserve, words=words)
            if rule.includes_headroom and headroom and not has_headroom:
                words = f"less the headroom of {groups} groups, {headroom:,} each ({key})"
                yield Step(cells=-groups * headroom, words=words)
        if rule.port_cells:
            words = f"less the queues of {ports_in_memory} ports, {rule.port_cells} each"
            yield Step(cells=-ports_in_memory * rule.port_cells, words=words)


def _rows(division: Division, in_turn: int, mtu: int, response: int | None) -> Iterator[Row]:
    """Yields the rows of all groups and queues."""
    profiles = division.switch.profile
    of_group = cache(lambda name: division.of_group(name, profiles[name]))
    of_queue = cache(lambda name: division.of_queue(name, profiles[name]))
    for ports in division.switch.port:
        about: dict[str, Any] = {"ports": tuple(names_of(ports)), "speed": ports.speed, "cable": ports.cable}
        for key, name in _in_order(ports.groups):
            limits = of_group(name)
            turns = tuple(limits.in_turn(in_turn)) if limits.pause is not None else ()
            need, metres, cell = None, generations.metres_of(ports.cable or ""), division.chip.memory.cell_bytes
            if limits.headroom is not None and ports.speed is not None and metres is not None:
                need = generations.headroom_needed(ports.speed, metres, cell, mtu=mtu, response=response)
            yield Row(**about, group=key, queue=None, limits=limits, in_turn=turns, needed=need)
        for key, name in _in_order(ports.queues):
            yield Row(**about, group=None, queue=key, limits=of_queue(name))


def _in_order(profiles: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(profiles.items(), key=lambda item: int(item[0].partition("-")[0]))
