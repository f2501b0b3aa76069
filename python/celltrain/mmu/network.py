"""A scenario of a configured switch: a host at each port, and senders that send to one port at once.

Every value in the scenario has a comment that names the key of the configuration that it comes from.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from celltrain.errors import InputError, warn
from celltrain.mmu.arithmetic import Division, Limits
from celltrain.mmu.configuration import Loaded, Profile, names_of
from celltrain.mmu.generations import Generation
from celltrain.mmu.sonic import LOOKUP, MOST_GROUP, MOST_QUEUE, numbers
from celltrain.model.scenario import toml_key, toml_value
from celltrain.text import nearest, shown

#: Default number and size of the answers, and length of their packets.
SENDERS, BYTES, MTU = 32, 64_000, 1500
#: Largest answer in bytes.
MOST_BYTES = 1_000_000_000
#: Smallest and largest packet in bytes, with the IP and TCP headers.
LEAST_MTU, MOST_MTU, HEADERS = 128, 9216, 40
#: Initial window of RFC 6928, and the largest initial window, in segments.
WINDOW, MOST_WINDOW = 10, 2**30 - 1
#: A receive window is advertised without its last 14 bits or fewer (RFC 7323).
SCALED = 2**14
#: Length of the cable of a port whose configuration has none, in metres.
CABLE = 5
#: Propagation delay of a metre of cable in nanoseconds.
NS_PER_METRE = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """Senders that send to one port of a switch at the same time."""

    senders: int | None = SENDERS
    """Number of senders; None for `SENDERS`, or for all possible ones if these are fewer."""
    size: int = BYTES
    """Bytes of data of each sender."""
    is_lossless: bool = False
    """True if the data has a priority that pauses its sender, false for a lossy priority."""
    port: str | None = None
    """Port of the receiver; None for the first port that can be one."""
    priority: int | None = None
    """Priority group and queue of the data; None for the first one."""
    mtu: int = MTU
    window: int | None = None
    """Initial window in segments; None for `WINDOW`, or for all the data of a lossless priority."""

    @property
    def kind(self) -> str:
        """The priority in words."""
        return "lossless" if self.is_lossless else "lossy"

    @property
    def segments(self) -> int:
        """Number of segments that each sender sends."""
        return -(-self.size // (self.mtu - HEADERS))

    @property
    def first_window(self) -> int:
        """The initial window in segments."""
        # Senders in lossless networks start at the rate of their link.
        return self.window or (self.segments if self.is_lossless else WINDOW)

    def command(self, configuration: str, *, count: int, generation: str | None, cable: str | None) -> str:
        """Returns the command that answers the question for this number of senders."""
        options = {
            "--senders": count,
            "--bytes": f"{self.size}B",
            "--lossless": True if self.is_lossless else None,
            "--port": self.port,
            "--priority": self.priority,
            "--mtu": None if self.mtu == MTU else f"{self.mtu}B",
            "--window": self.window,
            "--generation": generation,
            "--cable": cable,
        }
        words = ["celltrain", "mmu", "incast", configuration]
        for option, value in options.items():
            if value is not None:
                words += [option] if value is True else [option, str(value)]
        return shlex.join(words)


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port with the limits of one priority."""

    name: str
    memory: int
    """Index of the memory that the port uses."""
    speed: int
    """Mb/s."""
    metres: int
    group: Limits | None
    queue: Limits | None
    place: str
    """Path of the port's table in the configuration."""
    wred: str | None
    """Name of the port's WRED profile; None without marking or early drops."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A scenario whose run answers a question about a switch, and the ports concerned."""

    text: str
    """The scenario as TOML, with comments."""
    question: Question
    priority: int
    receiver: Port
    senders: tuple[Port, ...]
    ports: int
    """Number of ports with a host."""


def written(
    loaded: Loaded,
    chip: Generation,
    question: Question,
    *,
    generation: str | os.PathLike[str] | None = None,
    cable: str | None = None,
) -> Written:
    """Writes the scenario of a question; raises `InputError` if the configuration cannot answer it.

    Args:
        loaded: The configuration.
        chip: The generation of its chip.
        question: The question.
        generation: The option with which the generation was selected, for the command in the first line.
        cable: The option for the length of cables, for the same command.
    """
    _check(question)
    division = Division(loaded, chip)
    priority = _priority(loaded, question)
    ports = _ports(division, question, priority)
    receiver = next(port for port in ports if question.port in (None, port.name))
    # All thresholds of a side must be of one kind, because each side of the scenario has one policy.
    alike = [port for port in ports if _form(port) == _form(receiver)]
    place = alike.index(receiver)
    others = alike[place + 1 :] + alike[:place]
    count = min(SENDERS, len(others)) if question.senders is None else question.senders
    if count > len(others) or not others:
        problem = (
            f"is more than the switch has: {len(alike)} of its ports have a {question.kind} priority {priority}, and one "
            f"of them receives; give at most {len(others)}"
        )
        raise InputError.of_option("--senders", count, problem)
    senders = tuple(others[:count])
    warn(_without_limits(loaded, question, priority, receiver))
    named = None if generation is None else os.fspath(generation)
    command = question.command(loaded.source.file, count=count, generation=named, cable=cable)
    text = f"# The verdict: {shown(command)}\n"
    text += "".join(_lines(division, question, priority, receiver, senders, alike))
    return Written(
        text=text, question=question, priority=priority, receiver=receiver, senders=senders, ports=len(alike)
    )


def _without_limits(loaded: Loaded, question: Question, priority: int, receiver: Port) -> Iterator[str]:
    """Yields a warning if the configuration has no queue, or no priority group, for the data."""
    for what, limits, side in (("queue", receiver.queue, "egress"), ("group", receiver.group, "ingress")):
        if limits is None:
            yield (
                f"{shown(loaded.source.file)} gives {shown(receiver.name)} no {what} {priority}: in the run, the {side}"
                f" side refuses no {question.kind} packet; add the profile of the {what}"
            )


def _check(question: Question) -> None:
    for option, value, least, most, unit in (
        ("--senders", question.senders, 1, 4095, ""),
        ("--bytes", question.size, 1, MOST_BYTES, " B"),
        ("--mtu", question.mtu, LEAST_MTU, MOST_MTU, " B"),
        ("--window", question.window, 1, MOST_WINDOW, " segments"),
    ):
        if value is not None and not least <= value <= most:
            raise InputError.of_option(option, f"{value}{unit}", f"is not from {least} to {most}{unit}")


def _priority(loaded: Loaded, question: Question) -> int:
    """Returns the priority of the data; raises `InputError` if no port has such a priority."""
    found: set[int] = set()
    every: set[int] = set()
    for ports in loaded.switch.port:
        if question.port not in (None, *names_of(ports)):
            continue
        pausing = _pausing(loaded, ports.groups)
        every |= {number for key in (*ports.groups, *ports.queues) for number in numbers(key, MOST_GROUP) or ()}
        found |= pausing if question.is_lossless else every - pausing
    known = [name for ports in loaded.switch.port for name in names_of(ports)]
    if question.port is not None and question.port not in known:
        near = nearest(question.port, known)
        hint = f"did you mean {near}?" if near else f"the first port is {known[0]}" if known else "it has none"
        raise InputError.of_option("--port", question.port, f"is not a port of {loaded.source.file}; {hint}")
    where = shown(question.port) if question.port is not None else "the switch"
    listed = ", ".join(map(str, sorted(found)))
    if not found:
        other = "for its lossless priorities, use --lossless" if every else "add groups or queues to its ports"
        if question.is_lossless:
            other = _why_lossy(loaded)
        raise InputError.of_file(loaded.source.file, f"has no {question.kind} priority at {where}; {other}")
    if question.priority is None:
        return min(found)
    if question.priority not in found:
        problem = f"is not a {question.kind} priority of {where}; choose from {listed}"
        raise InputError.of_option("--priority", question.priority, problem)
    return question.priority


def _why_lossy(loaded: Loaded) -> str:
    """Returns the reason for which no port has a lossless group, and what to do."""
    if not Path(loaded.source.file).is_dir():
        return "a lossless group needs a profile with xoff; without --lossless, the data uses a lossy priority"
    if loaded.switch.port and all(ports.pause == () for ports in loaded.switch.port):
        return "the ports pause no group; list its priority in pfc_enable of PORT_QOS_MAP"
    rows = ", ".join(loaded.switch.headroom)
    reason = f"has rows for {rows}" if rows else "is missing or has no rows"
    return f"{LOOKUP} {reason}, and each lossless group needs a row with its port's speed and cable"


def _pausing(loaded: Loaded, groups: dict[str, str]) -> set[int]:
    profiles = loaded.switch.profile
    lossless = (key for key, name in groups.items() if profiles[name].xoff)
    return {number for key in lossless for number in numbers(key, MOST_GROUP) or ()}


def _ports(division: Division, question: Question, priority: int) -> list[Port]:
    """Returns the ports at which the priority is lossless or lossy, as asked; raises `InputError` if one has no speed."""
    loaded, found, number = division.loaded, [], 0
    profiles = division.switch.profile

    def limits(of: dict[str, str], most: int, calculated: Callable[[str, Profile], Limits]) -> Limits | None:
        names = (name for key, name in of.items() if priority in (numbers(key, most) or ()))
        name = next(names, None)
        return None if name is None else calculated(name, profiles[name])

    for index, ports in enumerate(loaded.switch.port):
        group = limits(ports.groups, MOST_GROUP, division.of_group)
        queue = limits(ports.queues, MOST_QUEUE, division.of_queue)
        is_lossless = priority in _pausing(loaded, ports.groups)
        wred = next((name for key, name in ports.wred.items() if priority in (numbers(key, MOST_QUEUE) or ())), None)
        for name in names_of(ports):
            memory, number = number % division.chip.memory.count, number + 1
            if is_lossless is not question.is_lossless or (group is None and queue is None):
                continue
            if ports.speed is None:
                place = loaded.source.place(f"port.{index}.speed")
                problem = "is missing; the rate of a host's link is the speed of its port, in Mb/s"
                raise InputError.of(problem, file=place.file, line=place.line, key=place.key)
            about: dict[str, Any] = {
                "name": name,
                "memory": memory,
                "speed": ports.speed,
                "metres": _metres(ports.cable),
            }
            found.append(Port(**about, group=group, queue=queue, place=f"port.{index}", wred=wred))
    return found


def _metres(cable: str | None) -> int:
    match = re.fullmatch(r"(\d{1,6})m", cable or "")
    return int(match[1]) if match else CABLE


def _form(port: Port) -> tuple[object, ...]:
    """Returns the pool and the kind of threshold that a port uses on each side."""
    return tuple(
        None if limits is None else (limits.shared.pool, limits.alpha is None) for limits in (port.group, port.queue)
    )


def _lines(
    division: Division,
    question: Question,
    priority: int,
    receiver: Port,
    senders: Sequence[Port],
    ports: Sequence[Port],
) -> Iterator[str]:
    """Yields the lines of the scenario."""
    chip, source = division.chip, division.loaded.source
    count = len(senders)
    flows = "tcp1" if count == 1 else f"tcp1-{count}"

    def key(path: str) -> str:
        place = source.place(path)
        return shown(f"{LOOKUP}: {place.key}" if Path(place.file).name == LOOKUP else place.key)

    yield (
        f"# {count} {'host sends' if count == 1 else 'hosts send'} {question.size:,} bytes to {shown(receiver.name)} at"
        f" once, in the {question.kind} priority {priority}.\n"
    )
    yield f"# Made by celltrain from {shown(source.file)}. Comments name the keys there that values come from.\n"
    yield "#\n# A packet is in the memory of its output port. Its data uses priority 0 here, the only one in the run.\n\n"
    yield f"name = {toml_value(f'{count} senders to {receiver.name}, {question.kind}')}\n"
    # The run ends when all have finished. The bound is ten times the link's time, and a second for timeouts.
    seconds = 1 + 10 * Fraction(8 * question.size * count, receiver.speed * 1_000_000)
    yield _line("duration", f"{-(-seconds.numerator // seconds.denominator)}s", "at most")
    yield _line("until", "finished")
    yield _line("framing", "packets")
    yield "\n[cell]\n"
    yield _line("size", f"{chip.memory.cell_bytes}B", f"{chip.name}: memory.cell_bytes")
    yield "\n[topology.network]\n"
    yield _line("hosts", [port.name for port in ports])
    yield _line("switches", ["switch"])
    yield "links = [\n"
    for port in ports:
        link = {
            "between": [port.name, "switch"],
            "rate": f"{port.speed}Mbps",
            "delay": f"{port.metres * NS_PER_METRE}ns",
        }
        inner = ", ".join(f"{name} = {toml_value(value)}" for name, value in link.items())
        yield f"    {{ {inner} }},  # {key(f'{port.place}.speed')}, {port.metres} m\n"
    yield "]\nflows = [\n"
    for port in senders:
        yield f"    {{ from = {toml_value(port.name)}, to = {toml_value(receiver.name)} }},\n"
    yield f"]\n\n[flow.{flows}]\n"
    yield _line("traffic.file.bytes", f"{question.size}B")
    yield from _tcp(question, marks=division.switch.wred[receiver.wred].ecn if receiver.wred else False)
    yield from _port(division, receiver, key)
    for memory in sorted({port.memory for port in ports}):
        yield from _memory(division, question, memory, ports, key)


def _tcp(question: Question, *, marks: bool) -> Iterator[str]:
    """Yields the TCP of the senders: DCTCP if the queue marks packets."""
    yield "\n[tcp.newreno]\n"
    yield _line("mss", f"{question.mtu - HEADERS}B", f"packets of {question.mtu} bytes")
    yield _line("receive_window", f"{max(4_000_000, question.size + question.mtu + SCALED)}B")
    words = "all data at once" if question.first_window >= question.segments else "then slow start"
    yield _line("initial_window", question.first_window, f"segments; {words}")
    yield _line("timer_granularity", "1ms")
    if question.is_lossless:
        yield _line("minimum_rto", 10_000, "ticks: nothing is lost, so nothing is retransmitted")
        yield _line("timer.initial_rto", "10s")
    else:
        yield _line("minimum_rto", 10, "ticks")
        yield _line("timer.initial_rto", "10ms")
    if marks:
        yield _line("ecn", "on", "DCTCP, because the queue marks packets")
        yield _line("congestion", "dctcp")
        yield _line("windows.growth", "capped")


def _port(division: Division, receiver: Port, key: Callable[[str], str]) -> Iterator[str]:
    """Yields the table of the ports, and the marks of the receiver's port."""
    yield "\n[port.default]\n"
    yield _line("buffer", "shared")
    yield _line("policy.tail_drop", {}, "the memory decides about packets")
    if receiver.wred is None:
        return
    wred, cell = division.switch.wred[receiver.wred], division.chip.memory.cell_bytes
    yield f"\n[port.{toml_key(f'switch->{receiver.name}')}]\n"
    yield _line("buffer", "shared")
    yield _line("policy.tail_drop", {})
    path = f"wred.{receiver.wred}"
    words = "marks" if wred.ecn else "early drops, because the senders do not use ECN"
    yield f"\n[port.{toml_key(f'switch->{receiver.name}')}.marking]  # {words}\n"
    for name, value in (("k_min", wred.minimum), ("k_max", wred.maximum)):
        cells = value // cell
        source = "minimum" if name == "k_min" else "maximum"
        yield _line(name, f"{cells} {'cell' if cells == 1 else 'cells'}", f"{key(f'{path}.{source}')}: {value:,} bytes")
    yield _line("p_max", wred.probability / 100, key(f"{path}.probability"))


def _memory(
    division: Division, question: Question, memory: int, ports: Sequence[Port], key: Callable[[str], str]
) -> Iterator[str]:
    """Yields a memory with a pool for each side, and entries for ports with the same settings."""
    chip = division.chip
    table = "switch.switch.memory" if chip.memory.count == 1 else f"switch.switch.memories.m{memory + 1}"
    outputs = [port for port in ports if port.memory == memory]
    of_side = {
        "ingress": [(port, port.group, f"{port.name}->switch") for port in ports if port.group],
        "egress": [(port, port.queue, f"switch->{port.name}") for port in outputs if port.queue],
    }
    size = max(_cells(limits for _, limits, _ in entries) for entries in of_side.values() if entries)
    yield f"\n[{table}]\n"
    yield _line("cells", size, "the larger side: its pool, reserves and headroom")
    if chip.memory.count > 1:
        yield _line("ports", [f"switch->{port.name}" for port in outputs])
    if question.is_lossless:
        yield _line("pauses", "links")
    for side, entries in of_side.items():
        if not entries:
            continue
        first = entries[0][1]
        pool, name = f"pool.{first.shared.pool}", division.switch.profile[first.profile].pool
        yield f"\n[{table}.pool.{toml_key(name)}]\n"
        yield _line("side", side)
        if has_room := question.is_lossless and side == "egress":
            room = size - sum(limits.reserve for _, limits, _ in entries)
            yield _line("cells", room, "the memory: packets in headroom also wait in queues of the egress side")
        else:
            room = first.shared.cells
            yield _line("cells", room, f"{key(f'{pool}.size')}; celltrain mmu thresholds has the sum")
        if question.is_lossless and side == "ingress" and first.shared.headroom:
            yield _line("headroom", first.shared.headroom, key(f"{pool}.xoff"))
        if first.alpha is None:
            yield _line("policy.static_thresholds", {})
        else:
            counted = "counted" if first.counts_arriving_cell else "not_counted"
            yield _line("policy.dynamic_threshold", {"alpha": float(first.alpha), "arriving_cell": counted})
        alike: dict[Limits, list[str]] = {}
        for _, limits, link in entries:
            alike.setdefault(limits, []).append(link)
        for limits, links in alike.items():
            yield f"\n[[{table}.queue]]\n"
            yield _line("pool", name)
            if len(alike) > 1:
                yield _line("ports", links)
            if has_room and is_whole_pool(limits):
                limits = replace(limits, share=room)
            yield from _entry(division, question, limits, key)


def is_whole_pool(limits: Limits) -> bool:
    """Returns whether a threshold is the whole pool, as is usual for lossless queues. It refuses nothing."""
    return limits.alpha is None and limits.share >= limits.shared.cells


def _cells(of_queues: Iterable[Limits]) -> int:
    """Returns the number of cells of a side: its pool, and the reserves and headroom of its queues."""
    queues = list(of_queues)
    shared = queues[0].shared
    headroom = shared.headroom or sum(limits.headroom or 0 for limits in queues)
    return shared.cells + headroom + sum(limits.reserve for limits in queues)


def _entry(division: Division, question: Question, limits: Limits, key: Callable[[str], str]) -> Iterator[str]:
    """Yields the keys of a queue or priority group."""
    path, profile = f"profile.{limits.profile}", division.switch.profile[limits.profile]
    yield _line("reserve", limits.reserve, f"{key(f'{path}.size')}: {profile.size:,} bytes")
    if limits.alpha is None:
        yield _line("threshold", limits.share, f"{key(f'{path}.static_th')}: {profile.static_th or 0:,} bytes")
    else:
        yield _line("alpha", float(limits.alpha), f"2^{profile.dynamic_th}, {key(f'{path}.dynamic_th')}")
    if not question.is_lossless or limits.headroom is None:
        return
    yield _line("lossless", True)
    yield _line("headroom", max(limits.headroom, 1), f"{key(f'{path}.xoff')}: {profile.xoff or 0:,} bytes")
    yield _line("pause_at", "threshold")
    if profile.xon:
        cells = division.chip.cells(profile.xon, rounding="up")
        yield _line("xon", cells, f"{key(f'{path}.xon')}: {profile.xon:,} bytes")
    if limits.resume is not None:
        words = f"{key(f'{path}.xon_offset')}: {profile.xon_offset or 0:,} bytes"
        yield _line("xon_offset", limits.resume, words)


def _line(key: str, value: object, comment: str = "") -> str:
    text = f"{key} = {toml_value(value)}"
    return f"{text:<30}# {comment}\n" if comment and "\n" not in text else f"{text}\n"
