"""The buffer configuration of a switch: pools, profiles, and the profile of every priority group and queue.

The configuration is read from a TOML file, which `celltrain import sonic` writes, or from a folder with files of SONiC.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import Field

from celltrain.errors import Fault, InputError, warn
from celltrain.mmu import generations as chips
from celltrain.mmu import sonic
from celltrain.mmu.sonic import MOST_GROUP, MOST_PORTS, MOST_QUEUE, numbers
from celltrain.model.arguments import checked
from celltrain.model.scenario import toml_key, toml_value
from celltrain.text import among, nearest, shown

_SERIES = re.compile(r"(?P<stem>\D*)(?P<first>\d{1,6}) to (?P=stem)(?P<last>\d{1,6}) by (?P<step>\d{1,4})")

#: Speed and cable in the name of a profile, such as pg_lossless_100000_5m_profile.
_PROFILE = re.compile(r"(?:^|_)(?P<speed>\d{2,7})_(?P<cable>\d{1,7}(?:\.\d{1,3})?k?m)(?=_|$)")


class Pool(chips.Table):
    """A share of the packet memory. Sizes are totals over all memories of the switch."""

    type: Literal["ingress", "egress"]
    size: chips.Positive
    """Size in bytes."""
    xoff: chips.Count = 0
    """Bytes of headroom that all lossless groups share; 0 if each group has its own headroom."""
    mode: Literal["dynamic", "static"] = "dynamic"


class Profile(chips.Table):
    """Settings of priority groups or queues."""

    pool: str
    size: chips.Count = 0
    """Bytes that each group or queue has reserved."""
    xoff: chips.Count | None = None
    """Bytes of headroom; None for lossy groups, and for queues."""
    xon: chips.Count | None = None
    """Number of bytes below which a paused group resumes."""
    xon_offset: chips.Count | None = None
    """Distance below the threshold, in bytes, at which a paused group resumes."""
    dynamic_th: Annotated[int, Ge(-10), Le(10)] | None = None
    """Binary logarithm of alpha."""
    static_th: chips.Count | None = None
    """Threshold in bytes."""

    @property
    def alpha(self) -> Fraction | None:
        """The multiple of the free cells that a group or queue may use; None with a static threshold."""
        return None if self.dynamic_th is None else Fraction(2) ** self.dynamic_th


class Wred(chips.Table):
    """Marks of a queue (ECN) or early drops, of green packets."""

    ecn: bool
    """True if packets are marked, false if they are dropped."""
    minimum: chips.Count
    """Bytes in the queue up to which no packet is marked."""
    maximum: chips.Positive
    """Bytes above which every packet is marked."""
    probability: Annotated[int, Ge(0), Le(100)] = 100
    """Percentage of packets marked just below `maximum`."""


class Ports(chips.Table):
    """Ports with the same settings."""

    names: tuple[str, ...]
    """Names of ports; `Ethernet0 to Ethernet504 by 8` is a series of names."""
    speed: chips.Positive | None = None
    """Speed in Mb/s."""
    cable: str | None = None
    """Length of the cable, such as 5m."""
    pause: tuple[Annotated[int, Ge(0), Le(MOST_GROUP)], ...] | None = None
    """Priorities that may pause the sender. If None, the priorities whose profile has headroom."""
    groups: dict[str, str] = Field(default_factory=dict)
    """Profile of each priority group, such as `3-4`."""
    queues: dict[str, str] = Field(default_factory=dict)
    """Profile of each queue."""
    wred: dict[str, str] = Field(default_factory=dict)
    """Profile of WRED of each queue that has one."""


class Headroom(chips.Table):
    """A row of `pg_profile_lookup.ini`: the settings of lossless groups for a port speed and a cable length."""

    size: chips.Count
    xoff: chips.Count
    xon: chips.Count = 0
    xon_offset: chips.Count | None = None
    dynamic_th: Annotated[int, Ge(-10), Le(10)]


class Switch(chips.Table):
    """The buffer configuration of a switch."""

    name: str = ""
    generation: str | None = None
    """Name of the chip's generation."""
    pool: dict[str, Pool]
    profile: dict[str, Profile]
    port: tuple[Ports, ...]
    headroom: dict[str, Headroom] = Field(default_factory=dict)
    """Settings of lossless groups by port speed and cable length, such as `800000_5m`."""
    wred: dict[str, Wred] = Field(default_factory=dict)
    """Profiles of WRED."""

    @property
    def port_count(self) -> int:
        """Number of ports."""
        return sum(len(list(names_of(ports))) for ports in self.port)

    def to_dict(self) -> dict[str, Any]:
        """Returns the configuration as plain tables and lists, omitting keys without a value."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_toml(self, *, head: str = "") -> str:
        """Writes the configuration as text, in the form that `load` reads."""
        return "".join(_toml(self, head))


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A configuration, and the places of its values in its files, for messages."""

    switch: Switch
    source: chips.Source

    def generation(self, name: str | chips.Generation | None = None) -> chips.Generation:
        """Returns the generation with this name, or the generation named in the configuration; raises `InputError`."""
        if name is not None:
            return name if isinstance(name, chips.Generation) else chips.generation(name)
        if self.switch.generation is not None:
            try:
                return chips.generation(self.switch.generation)
            except InputError as error:
                problem = error.faults[0].problem
                raise InputError([self.source.fault("generation", problem, self.switch.generation)]) from None
        found = chips.of_switch(self.switch.name)
        if found is None:
            raise InputError([sonic.no_chip(self.source.file)])
        return found


@checked()
def load(path: str | os.PathLike[str] | Loaded, *, cable: str | None = None) -> Loaded:
    """Reads the buffer configuration of a switch: a TOML file, or a folder with files of SONiC.

    Args:
        path: The file or folder; a configuration that was read before is returned as it is.
        cable: Length of the cables, such as `5m`, if a folder does not give it.

    Raises:
        InputError: If the configuration cannot be used; lists every fault.
    """
    return _loaded(path, cable=cable, needs_chip=False)


def load_with_chip(
    path: str | os.PathLike[str] | Loaded, *, generation: str | chips.Generation | None, cable: str | None
) -> tuple[Loaded, chips.Generation]:
    """Reads a configuration, and returns it with the chip's generation; one `InputError` lists all missing options."""
    loaded = _loaded(path, cable=cable, needs_chip=generation is None)
    return loaded, loaded.generation(generation)


def _loaded(path: str | os.PathLike[str] | Loaded, *, cable: str | None, needs_chip: bool) -> Loaded:
    if isinstance(path, Loaded):
        return path
    place = Path(path)
    if place.is_dir():
        return of_table(*sonic.read_folder(place, cable, needs_chip=needs_chip))
    table, source = chips.read_toml(place, what="configuration")
    if "topology" in table:
        problem = f"is a scenario, not a buffer configuration: celltrain run {shown(place)}"
        raise InputError.of_file(source.file, problem)
    return of_table(table, source)


def read_sonic(folder: Path, name: str | None = None, cable: str | None = None) -> Switch:
    """Reads a folder with files of SONiC, with the generation of this name; raises `InputError`."""
    table, source = sonic.read_folder(folder, cable)
    if name is not None:
        table["generation"] = chips.generation(name).short
    return of_table(table, source).switch


def of_table(table: Mapping[str, Any], source: chips.Source) -> Loaded:
    """Checks the tables of a configuration; raises `InputError`."""
    switch = chips.table_of(Switch, table, source)
    chips.refuse([*_of_pools(switch, source), *_of_ports(switch, source)])
    loaded = Loaded(switch=switch, source=source)
    warn(_mismatches(loaded))
    return loaded


def names_of(ports: Ports) -> Iterator[str]:
    """Yields the names of ports, with series written out.

    >>> list(names_of(Ports(names=("Ethernet0 to Ethernet16 by 8", "Ethernet512"))))
    ['Ethernet0', 'Ethernet8', 'Ethernet16', 'Ethernet512']
    """
    for name in ports.names:
        if series := _SERIES.fullmatch(name):
            first, last, step = (int(series[part]) for part in ("first", "last", "step"))
            for number in range(first, last + 1, max(step, 1)):
                yield f"{series['stem']}{number}"
        else:
            yield name


def _of_pools(switch: Switch, source: chips.Source) -> Iterator[Fault]:
    for name, pool in switch.pool.items():
        if pool.xoff >= pool.size:
            problem = f"is not less than the pool's size, {pool.size}; the headroom is a part of the memory"
            yield source.fault(f"pool.{name}.xoff", problem, pool.xoff)
        if pool.xoff and pool.type == "egress":
            yield source.fault(
                f"pool.{name}.xoff", "sets headroom for an egress pool, but only ingress pools have headroom", pool.xoff
            )
    for name, wred in switch.wred.items():
        if wred.minimum > wred.maximum:
            yield source.fault(f"wred.{name}.minimum", f"is above maximum, {wred.maximum}", wred.minimum)
    for name, profile in switch.profile.items():
        path = f"profile.{name}"
        if profile.pool not in switch.pool:
            yield source.fault(f"{path}.pool", f"is not a pool; {among(profile.pool, switch.pool)}", profile.pool)
        elif switch.pool[profile.pool].type == "egress" and profile.xoff is not None:
            problem = "sets headroom for queues, but only priority groups of an ingress pool have headroom: remove it"
            yield source.fault(f"{path}.xoff", problem, profile.xoff)
        if profile.dynamic_th is None and profile.static_th is None:
            yield source.fault(path, "has no threshold; add dynamic_th or static_th")
        if profile.dynamic_th is not None and profile.static_th is not None:
            problem = "cannot be combined with dynamic_th; give one of them"
            yield source.fault(f"{path}.static_th", problem, profile.static_th)
        if profile.xon and not profile.xoff:
            problem = "ends a pause, but the profile has no headroom; add xoff, or remove xon"
            yield source.fault(f"{path}.xon", problem, profile.xon)


def _of_ports(switch: Switch, source: chips.Source) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, ports in enumerate(switch.port):
        for name in names_of(ports):
            if name in seen:
                yield source.fault(
                    f"port.{index}.names", "appears in two places; a port has only one set of profiles", name
                )
            seen.add(name)
            if len(seen) > MOST_PORTS:
                yield source.fault(f"port.{index}.names", f"are more than {MOST_PORTS} ports, which no switch has")
                return
        yield from _of_priorities(switch, source, f"port.{index}.groups", ports.groups, "ingress", MOST_GROUP)
        yield from _of_priorities(switch, source, f"port.{index}.queues", ports.queues, "egress", MOST_QUEUE)
        for key, name in ports.wred.items():
            if numbers(key, MOST_QUEUE) is None:
                problem = f"is not a number, or a range such as 3-4, from 0 to {MOST_QUEUE}"
                yield source.fault(f"port.{index}.wred.{key}", problem)
            if name not in switch.wred:
                yield source.fault(f"port.{index}.wred.{key}", f"is not a profile; {among(name, switch.wred)}", name)
        for key, name in ports.groups.items():
            profile = switch.profile.get(name)
            if ports.pause is None or profile is None:
                continue
            paused = [group for group in numbers(key, MOST_GROUP) or () if group in ports.pause]
            if profile.xoff and not paused:
                listed = ", ".join(map(str, ports.pause)) or "none"
                problem = f"has headroom, but the group is lossy: the priorities with pause are {listed}"
                yield source.fault(f"port.{index}.groups.{key}", problem, name)
            if paused and not profile.xoff:
                problem = f"has no headroom, but priority {paused[0]} pauses its sender; use a profile with xoff"
                yield source.fault(f"port.{index}.groups.{key}", problem, name)


def _of_priorities(
    switch: Switch, source: chips.Source, path: str, profiles: Mapping[str, str], side: str, most: int
) -> Iterator[Fault]:
    """Yields the faults of the groups or queues of ports."""
    seen: set[int] = set()
    for key, name in profiles.items():
        found = numbers(key, most)
        if found is None:
            yield source.fault(f"{path}.{key}", f"is not a number, or a range such as 3-4, from 0 to {most}")
        elif seen & set(found):
            yield source.fault(
                f"{path}.{key}", f"has {min(seen & set(found))} a second time; each number can have only one profile"
            )
        seen |= set(found or ())
        if name not in switch.profile:
            hint = f"; did you mean {near}?" if (near := nearest(name, switch.profile)) else ""
            yield source.fault(f"{path}.{key}", f"is not a profile{hint}", name)
        elif (pool := switch.pool.get(switch.profile[name].pool)) is not None and pool.type != side:
            problem = f"is a profile of an {pool.type} pool; use one of an {side} pool"
            yield source.fault(f"{path}.{key}", problem, name)


def _toml(switch: Switch, head: str) -> Iterator[str]:
    """Yields the lines of a configuration: a table for each pool and profile, and for ports with the same settings."""
    table = switch.to_dict()
    yield "".join(f"# {shown(line)}".rstrip() + "\n" for line in head.splitlines())
    yield from (f"{key} = {toml_value(table[key])}\n" for key in ("name", "generation") if table.get(key))
    for kind in ("pool", "profile", "wred"):
        for name, one in table[kind].items():
            yield f"\n[{kind}.{toml_key(name)}]\n"
            yield from (f"{key} = {toml_value(value)}\n" for key, value in one.items() if (key, value) != ("xoff", 0))
    for one in table["port"]:
        yield "\n[[port]]\n"
        yield from (f"{key} = {toml_value(value)}\n" for key, value in one.items() if value != {})
    if table["headroom"]:
        yield "\n[headroom]\n"
        yield from (f"{toml_key(key)} = {toml_value(one)}\n" for key, one in table["headroom"].items())


def _mismatches(loaded: Loaded) -> Iterator[str]:
    """Yields a warning for each profile whose name has another speed or cable length than its ports."""
    for index, ports in enumerate(loaded.switch.port):
        for key, name in ports.groups.items():
            made = _PROFILE.search(name)
            if made is None or loaded.switch.profile[name].xoff is None:
                continue
            if not (differs := list(_differences(made["speed"], made["cable"], ports))):
                continue
            speed, cable = ports.speed or made["speed"], ports.cable or made["cable"]
            others = len(list(names_of(ports))) - 1
            who = f"{next(names_of(ports))}{f' and {others} more' if others else ''}"
            problem = (
                f"is a profile for {' and '.join(of for of, _ in differs)}, but {who} {'have' if others else 'has'}"
                f" {' and '.join(own for _, own in differs)}; use the headroom of {speed}_{cable}"
            )
            yield loaded.source.fault(f"port.{index}.groups.{key}", problem, name).message


def _differences(speed: str, cable: str, ports: Ports) -> Iterator[tuple[str, str]]:
    """Yields what a profile's name and its ports say differently."""
    if ports.speed is not None and int(speed) != ports.speed:
        yield f"{speed} Mb/s", f"{ports.speed} Mb/s"
    if ports.cable is not None and chips.metres_of(cable) != chips.metres_of(ports.cable):
        yield f"cables of {cable}", f"cables of {ports.cable}"
