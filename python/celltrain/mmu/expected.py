"""Compares thresholds with the numbers that a test file expects, in the form of sonic-mgmt's `tests/qos/files`.

A file has tables such as `xoff_1` in a profile such as `800000_5m`, in a section (a topology), in a chip:
`qos_params: {th5: {topo-ft2-64: {800000_5m: {xoff_1: {pg: 3, pkts_num_trig_pfc: 142285}}}}}`.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from celltrain.errors import CelltrainWarning, InputError, needed
from celltrain.mmu.arithmetic import Division, Limits, Row, Thresholds, thresholds
from celltrain.mmu.configuration import Loaded, Profile, load
from celltrain.mmu.generations import Generation
from celltrain.mmu.sonic import MOST_GROUP, MOST_QUEUE, numbers
from celltrain.model.arguments import checked
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.shipped import read_text
from celltrain.model.types import Scenario
from celltrain.running.events import Events
from celltrain.running.results import run
from celltrain.text import among, shortened, shown

#: Maximum number of values in a file, as aliases can repeat a table many times.
MOST_VALUES = 200_000
#: Maximum number of levels of tables and lists.
MOST_DEPTH = 20
_PROFILE = re.compile(r"\d+_\d+m")
_TEST = re.compile(r"(pcbb_)?xo(ff|n)_\d+|lossy_queue_\d+|hdrm_pool_size|wm_\w+")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A number in the test file, and the corresponding number from the configuration."""

    line: int
    key: str
    """Path of the number in the file."""
    expected: int
    calculated: int | None
    """None if the configuration has no such group, queue or headroom."""
    margin: int = 0
    """Difference that the test allows."""

    @property
    def follows(self) -> bool:
        """True if the configuration gives the expected number."""
        return self.expected == self.calculated


@dataclass(frozen=True, kw_only=True, repr=False)
class Checked(CardMixin):
    """Result of a comparison with a test file."""

    file: str
    section: str
    entries: tuple[Entry, ...]

    @property
    def wrong(self) -> tuple[Entry, ...]:
        """Entries that differ from the values computed from the configuration."""
        return tuple(entry for entry in self.entries if not entry.follows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain mmu thresholds --check FILE --json`."""
        entries = [{**asdict(entry), "follows": entry.follows} for entry in self.entries]
        return {"file": self.file, "section": self.section, "entries": entries, "wrong": len(self.wrong)}

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row for each entry; needs pandas."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_dict()["entries"]).to_pandas()

    def lines(self) -> list[str]:
        """Returns a line for each entry that differs from the computed value, and a last line with the counts."""
        found = []
        for entry in self.wrong:
            place = f"{self.file}:{entry.line}: {entry.key} = {entry.expected}"
            if entry.calculated is None:
                found.append(f"{place} does not agree: the configuration has no such group, queue or headroom")
                continue
            far = entry.expected - entry.calculated
            difference = f"{far:+}, within the margin of {entry.margin}" if abs(far) <= entry.margin else f"{far:+}"
            found.append(f"{place} does not agree: the configuration gives {entry.calculated} ({difference})")
        count = len(self.entries)
        found.append(f"{count - len(self.wrong)} of {count} entries of {self.section} agree with the configuration")
        return found

    def _card(self) -> Card:
        grid = Grid(heads=["entry", "expected", "calculated", "follows"], left=(0, 3))
        for entry in self.entries:
            calculated = "-" if entry.calculated is None else str(entry.calculated)
            grid.add_row(entry.key, str(entry.expected), calculated, "yes" if entry.follows else "NO")
        return Card(title=f"{self.file}, {self.section}", lines=self.lines()[-1:], grids=[grid])

    def __repr__(self) -> str:
        return f"Checked(file={self.file!r}, section={self.section!r}, {len(self.wrong)} of {len(self.entries)} wrong)"


@checked()
def check(
    configuration: str | os.PathLike[str] | Loaded,
    file: str | os.PathLike[str],
    *,
    generation: str | Generation | None = None,
    section: str | None = None,
) -> Checked:
    """Compares the thresholds of a configuration with the numbers of a test file.

    Args:
        configuration: TOML file, or folder with files of SONiC, or the result of `load`.
        file: Test file in the form of sonic-mgmt's `qos_params`, as YAML or JSON.
        generation: Name of the chip's generation. By default the one that the configuration names.
        section: Section of the file, such as `topo-ft2-64`. By default its only one.

    Raises:
        InputError: If the configuration or the test file cannot be used.
        MissingExtraError: If PyYAML is not installed.
    """
    loaded = load(configuration)
    path, chip = Path(file), loaded.generation(generation)
    name, table = _section(Document.read(path), chip, section)
    entries = tuple(_entries(table, Calculator(loaded, chip), name))
    if not entries:
        problem = "has no number to compare, such as pkts_num_trig_pfc in a table xoff_1"
        raise InputError.of(problem, file=shown(path), key=name)
    return Checked(file=shown(path), section=name, entries=entries)


@dataclass(frozen=True)
class Document:
    """A value of the file with its line; a table or list has documents inside."""

    file: str
    line: int
    value: Any

    @classmethod
    def read(cls, path: Path) -> Document:
        """Reads a file; raises `InputError`."""
        text = read_text(path, what="test")
        yaml = needed("yaml", "test files need PyYAML: pip install 'celltrain[mmu]'")
        try:
            # libyaml is ten times as fast.
            root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            left = [MOST_VALUES]
            return cls._of_node(root, shown(path), yaml, left, MOST_DEPTH)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = None if mark is None else mark.line + 1
            problem = f"is not YAML ({shortened(str(getattr(error, 'problem', None) or error))})"
            raise InputError.of(problem, file=shown(path), line=line) from None

    @classmethod
    def _of_node(cls, node: Any, file: str, yaml: Any, left: list[int], depth: int) -> Document:
        """Returns the document of a node of PyYAML."""
        left[0] -= 1
        if left[0] < 0 or depth < 0:
            problem = f"has more than {MOST_VALUES:,} values, or more than {MOST_DEPTH} levels"
            raise InputError.of_file(file, problem)
        if node is None:
            return cls(file, 1, None)
        line, value = node.start_mark.line + 1, node.value
        if isinstance(node, yaml.MappingNode):
            value = {
                key.value: cls._of_node(one, file, yaml, left, depth - 1)
                for key, one in value
                if isinstance(key.value, str)
            }
        elif isinstance(node, yaml.SequenceNode):
            value = [cls._of_node(one, file, yaml, left, depth - 1) for one in value]
        elif node.tag == "tag:yaml.org,2002:int" and re.fullmatch(r"[+-]?[0-9]{1,15}", value):
            value = int(value)
        return cls(file, line, value)

    @property
    def tables(self) -> dict[str, Document]:
        """The inner tables of a table."""
        inner = self.value if isinstance(self.value, dict) else {}
        return {key: one for key, one in inner.items() if isinstance(one.value, dict)}


def _section(root: Document, chip: Generation, wanted: str | None) -> tuple[str, Document]:
    """Returns the section to compare and its name. Raises `InputError` if the file has no such section."""
    chips = root.tables.get("qos_params", root).tables
    inner = chips[chip.short].tables if chip.short in chips else None
    if inner is None:
        # The file may be of one chip, with sections, or with the tests of a single section.
        sections = dict(_sections("", root))
    else:
        sections = {name: one for name, one in inner.items() if dict(_sections(name, one))}
    if not sections:
        problem = "has no table of tests such as xoff_1; it needs the form of sonic-mgmt's qos_params"
        raise InputError.of_file(root.file, problem)
    if wanted is not None:
        found = [
            name
            for name in sections
            if wanted in (name, name.rpartition(".")[2], name.rpartition(".")[2].removeprefix("topo-"))
        ]
        if not found:
            raise InputError.of_option("section", wanted, f"is not in {root.file}; {among(wanted, sections)}")
        return found[0], sections[found[0]]
    if len(sections) > 1:
        problem = f"has {len(sections)} sections; choose one with --section: {', '.join(sections)}"
        raise InputError.of_file(root.file, problem)
    return next(iter(sections.items()))


def _sections(name: str, table: Document) -> Iterator[tuple[str, Document]]:
    """Yields the tables that have profiles or tests."""
    if any(_PROFILE.fullmatch(key) or _TEST.fullmatch(key) for key in table.tables):
        yield name or "the file", table
        return
    for key, one in table.tables.items():
        yield from _sections(f"{name}.{key}" if name else key, one)


class Calculator:
    """The numbers computed from a configuration, for the tests of a profile."""

    def __init__(self, loaded: Loaded, chip: Generation) -> None:
        self.division, self.chip = Division(loaded, chip), chip
        self.rows = thresholds(loaded, generation=chip).rows

    def group(self, profile: str | None, priority: int) -> Limits | None:
        """Returns the thresholds of a lossless group for a port speed and cable length, such as `800000_5m`."""
        rows = [row for row in self.rows if row.limits.pause is not None]
        here = [row for row in rows if profile is None or f"{row.speed}_{row.cable}" == profile]
        of_group = [row for row in here if priority in (numbers(row.group or "", MOST_GROUP) or ())]
        if of_group or profile is None:
            return of_group[0].limits if of_group and _agree(of_group) else None
        # Profiles that no port uses at present.
        switch = self.division.switch
        for name in (f"pg_lossless_{profile}_profile", profile):
            if name in switch.profile and switch.profile[name].xoff:
                return self.division.of_group(name, switch.profile[name])
        if profile in switch.headroom and rows:
            made = Profile(pool=rows[0].limits.shared.pool, **switch.headroom[profile].model_dump())
            return self.division.of_group(profile, made)
        return None

    def queue(self, number: int, *, is_lossy: bool) -> Limits | None:
        """Returns the thresholds of a queue."""
        rows = [row for row in self.rows if row.queue is not None and number in (numbers(row.queue, MOST_QUEUE) or ())]
        rows = [row for row in rows if not is_lossy or row.limits.drop is not None]
        return rows[0].limits if rows and _agree(rows) else None


def _agree(rows: list[Row]) -> bool:
    """Returns whether rows have the same thresholds."""
    return len({(row.limits.pause, row.limits.drop, row.limits.reserve) for row in rows}) == 1


def _entries(section: Document, calculator: Calculator, name: str) -> Iterator[Entry]:
    """Yields the entries of a section: the tests of each profile, and the tests for all profiles."""
    for key, table in section.tables.items():
        if _PROFILE.fullmatch(key):
            for test, one in table.tables.items():
                if _TEST.fullmatch(test):
                    yield from _of_test(one, test, f"{name}.{key}.{test}", key, calculator)
        elif _TEST.fullmatch(key):
            profiles = [other for other in section.tables if _PROFILE.fullmatch(other)]
            yield from _of_test(table, key, f"{name}.{key}", profiles[0] if profiles else None, calculator)


def _of_test(table: Document, test: str, path: str, profile: str | None, calculator: Calculator) -> Iterator[Entry]:
    """Yields the entries of a test such as `xoff_1`."""
    values: Mapping[str, Document] = table.value
    margin = _number(values, "pkts_num_margin", _number(values, "margin", 0))
    if _number(values, "packet_size", 0) > calculator.chip.memory.cell_bytes:
        # The test counts packets of several cells.
        return
    group = calculator.group(profile, _number(values, "pg", _number(values, "queue", 3)))
    queue = calculator.queue(_number(values, "queue", 0), is_lossy="lossy" in test and "lossless" not in test)
    calculated = _calculated(test, group, queue, _number(values, "pgs_num", 1), calculator.chip)

    def entry(key: str, one: Document, calculated: int | None) -> Entry:
        return Entry(line=one.line, key=f"{path}.{key}", expected=one.value, calculated=calculated, margin=margin)

    for key, one in values.items():
        if key == "pkts_num_trig_pfc_multi" and isinstance(one.value, list):
            turns = [None] * len(one.value) if group is None else group.in_turn(len(one.value))
            for place, (number, turn) in enumerate(zip(one.value, turns, strict=True)):
                if isinstance(number.value, int):
                    yield entry(f"{key}[{place}]", number, turn)
        elif key in calculated:
            if not isinstance(one.value, int):
                value = one.value if isinstance(one.value, str) else type(one.value).__name__
                problem = "is not a whole number of cells"
                raise InputError.of(problem, file=one.file, line=one.line, key=f"{path}.{key}", value=value)
            yield entry(key, one, calculated[key])


def _calculated(
    test: str, group: Limits | None, queue: Limits | None, groups: int, chip: Generation
) -> dict[str, int | None]:
    """Returns the numbers of a test by their keys. `groups` are the groups that use up a shared headroom."""

    def of(limits: Limits | None, name: str) -> int | None:
        found: int | None = getattr(limits, name, None)
        return found

    numbers: dict[str, int | None] = {"cell_size": chip.memory.cell_bytes, "pkts_num_trig_pfc": of(group, "pause")}
    if test == "hdrm_pool_size":
        if group is not None and chip.group.headroom_test == "together":
            numbers["pkts_num_trig_pfc"] = group.together(groups)
        of_pool = {"pkts_num_hdrm_full": "headroom", "pkts_num_hdrm_partial": "partial", "pgs_num": "filling"}
        return numbers | {key: of(group, name) for key, name in of_pool.items()}
    numbers |= {"pkts_num_trig_ingr_drp": of(group, "drop"), "pkts_num_dismiss_pfc": of(group, "resume")}
    numbers["pkts_num_trig_egr_drp"] = of(queue, "drop")
    if test == "wm_pg_shared_lossless" or test.startswith("wm_q_shared"):
        numbers["pkts_num_fill_min"] = of(group if test.startswith("wm_pg") else queue, "reserve")
    return numbers


def _number(values: Mapping[str, Document], key: str, default: int) -> int:
    found = values[key].value if key in values else default
    return found if isinstance(found, int) else default


# Runs that fill priority groups and queues of a switch cell by cell. The results are compared with the arithmetic.


#: Rate of the sources: a cell each 10 ns.
SOURCE = "42.4Gbps"
#: Rate of the output port. Its first cell takes a second, which is longer than any run, and the other cells wait in the
#: memory.
SINK = "424bps"
#: Number of cells that a source sends after its group is full.
BEYOND = 100
#: Buffers of ports: the memory, or room for all cells.
BUFFERS = {"switch->sink": "shared", "default": BEYOND}
#: Priority of the groups.
PRIORITY = 3


@dataclass(frozen=True, kw_only=True)
class Fill:
    """A group or queue that a run filled, with the numbers of cells from the arithmetic and from the run."""

    port: str
    """The first of the ports with these settings."""
    group: str | None
    queue: str | None
    turn: int
    """Position of the group in the order of filling."""
    pause: int | None
    pause_simulated: int | None
    full: int
    """Number of cells in the group or queue when its first cell is lost."""
    full_simulated: int | None
    engines_agree: bool
    """True if both engines gave the same result."""

    @property
    def agrees(self) -> bool:
        """True if the runs and the arithmetic give the same numbers of cells."""
        return self.engines_agree and (self.pause, self.full) == (self.pause_simulated, self.full_simulated)


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulated(CardMixin):
    """The groups and queues of a switch, each filled in a run."""

    switch: str
    fills: tuple[Fill, ...]

    @property
    def agrees(self) -> bool:
        """True if the runs and the arithmetic give the same numbers of cells."""
        return all(fill.agrees for fill in self.fills)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain mmu thresholds --simulate --json`."""
        fills = [{**asdict(fill), "agrees": fill.agrees} for fill in self.fills]
        return {"switch": self.switch, "fills": fills, "agrees": self.agrees}

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row for each group and queue; needs pandas."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_dict()["fills"]).to_pandas()

    def grid(self) -> Grid:
        """Returns the table to print."""
        heads = ["port", "group or queue", "turn", "pause", "simulated", "full", "simulated", "agrees"]
        grid = Grid(heads=heads, left=(0, 1, 7), keys=3)
        for fill in self.fills:
            kind = f"group {fill.group}" if fill.group is not None else f"queue {fill.queue}"
            cells = (fill.turn, fill.pause, fill.pause_simulated, fill.full, fill.full_simulated)
            texts = ("-" if one is None else str(one) for one in cells)
            grid.add_row(fill.port, kind, *texts, "yes" if fill.agrees else "NO")
        return grid

    def _card(self) -> Card:
        return Card(title=f"{self.switch}, simulated", grids=[self.grid()])

    def __repr__(self) -> str:
        return f"Simulated(switch={self.switch!r}, {len(self.fills)} groups and queues, agrees={self.agrees})"


def simulate(found: Thresholds, *, progress: Callable[[float], object] | None = None) -> Simulated:
    """Fills each lossless group and lossy queue of an answer in a run.

    Fills groups one after another if the answer has `in_turn`.

    Groups and queues with the same profile are simulated once.
    """
    # Lossless groups, and queues that lose cells at their threshold.
    has_room = [row for row in found.rows if row.limits.pause is not None or (row.queue and row.limits.is_limited)]
    rows = {row.limits.profile: row for row in reversed(has_room)}
    fills: list[Fill] = []
    for number, row in enumerate(reversed(rows.values())):
        fills += filled(row)
        if progress is not None:
            progress((number + 1) / len(rows))
    return Simulated(switch=found.switch, fills=tuple(fills))


def filled(row: Row) -> Iterator[Fill]:
    """Runs the scenario that fills the groups or the queue of a row, and yields the result for each."""
    limits, groups = row.limits, max(len(row.in_turn), 1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The run delivers no data on purpose.
        warnings.simplefilter("ignore", CelltrainWarning)
        model = Scenario.model_validate(scenario(limits, groups=groups))
        # Events of memories come from the reference engine.
        reference = run(model, events=Events(folder, kinds=["memories"]))
        events = reference.events["memories"].to_pylist()
        is_same = run(model).fingerprint == reference.fingerprint
    headroom_left = limits.shared.headroom or groups * (limits.headroom or 0)
    for number, cells in enumerate(limits.in_turn(groups)):
        headroom = min(limits.headroom or 0, headroom_left)
        headroom_left -= headroom
        link = f"source{number + 1}->switch" if limits.pause is not None else "switch->sink"
        of_link = [event for event in events if event["port"] == link and event["priority"] == PRIORITY]
        first = {one["event"]: one["held"] for one in reversed(of_link)}
        yield Fill(
            port=row.ports[0] if row.ports else "",
            group=row.group,
            queue=row.queue,
            turn=number + 1,
            pause=None if limits.pause is None else cells,
            pause_simulated=first.get("paused"),
            full=cells + headroom,
            full_simulated=first.get("refused"),
            engines_agree=is_same,
        )


def scenario(limits: Limits, *, groups: int = 1) -> dict[str, Any]:
    """Returns the tables of a scenario in which sources fill groups, or queues, one after the other.

    The source of each group starts when the previous group has taken all the cells that it can. Pauses are counted, but
    do not stop the sources.

    Args:
        limits: The thresholds that the arithmetic gives.
        groups: Number of priority groups; 1 for a queue.
    """
    numbers = range(1, groups + 1)
    takes = [cells + (limits.headroom or 0) + BEYOND for cells in limits.in_turn(groups)]
    starts = [sum(takes[:number]) for number in range(groups)]
    links = [{"between": [f"source{number}", "switch"], "rate": SOURCE, "delay": "0s"} for number in numbers]
    links.append({"between": ["switch", "sink"], "rate": SINK, "delay": "0s"})
    network = {
        "hosts": [*(f"source{number}" for number in numbers), "sink"],
        "switches": ["switch"],
        "links": links,
        "flows": [{"from": f"source{number}", "to": "sink"} for number in numbers],
    }
    flows = {}
    for number, start, cells in zip(numbers, starts, takes, strict=True):
        burst = {"rate": SOURCE, "packet": "1B", "on": f"{10 * cells}ns", "off": "1s"}
        flows[f"tcp{number}"] = {"start": f"{10 * start}ns", "traffic": {"on_off": burst}}
    ports = {name: {"buffer": size, "policy": {"tail_drop": {}}} for name, size in BUFFERS.items()}
    return {
        "name": f"{limits.profile}, {groups} filled in turn",
        "duration": f"{10 * sum(takes)}ns",
        "topology": {"network": network},
        "flow": flows,
        "vc": {flow: {"priority": PRIORITY} for flow in flows},
        "port": ports,
        "switch": {"switch": {"memory": _memory(limits, groups, is_group=limits.pause is not None)}},
    }


def _memory(limits: Limits, groups: int, *, is_group: bool) -> dict[str, Any]:
    """Returns the table of the memory: a pool of B cells, and groups or queues of the priority."""
    shared, headroom, ports = limits.shared, limits.headroom or 0, ["switch->sink"]
    beyond = (shared.headroom or groups * headroom) + groups * limits.reserve
    queue: dict[str, Any] = {"ports": ports, "priorities": [PRIORITY], "reserve": limits.reserve}
    pool: dict[str, Any] = {"side": "ingress" if is_group else "egress", "cells": shared.cells}
    if is_group:
        queue |= {"lossless": True, "headroom": headroom, "pause_at": "threshold"}
        queue["ports"] = [f"source{number}->switch" for number in range(1, groups + 1)]
        pool |= {"headroom": shared.headroom} if shared.headroom else {}
    if limits.alpha is None:
        queue["threshold"] = limits.share
        pool["policy"] = {"static_thresholds": {}}
    else:
        counted = "counted" if limits.counts_arriving_cell else "not_counted"
        pool["policy"] = {"dynamic_threshold": {"alpha": float(limits.alpha), "arriving_cell": counted}}
    return {"cells": shared.cells + beyond, "ports": ports, "queue": [queue], "pool": {"shared": pool}}
