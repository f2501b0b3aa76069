"""Answers whether an incast is dropped or paused by a configured switch: at which cell, and how long it takes."""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from celltrain.errors import CelltrainWarning, InputError
from celltrain.mmu.arithmetic import Limits
from celltrain.mmu.configuration import Loaded, load_with_chip
from celltrain.mmu.generations import Generation
from celltrain.mmu.network import BYTES, MTU, SENDERS, Question, Written, is_whole_pool, written
from celltrain.model import shipped
from celltrain.model.arguments import checked
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.network import short_tcp, tcp_summary
from celltrain.model.paths import QUANTITIES
from celltrain.model.types import Scenario
from celltrain.running.events import Events
from celltrain.running.results import run
from celltrain.text import shown

Outcome = Literal["dropped", "paused", "neither"]
#: Prefixes of sizes by their lower case.
_PREFIXES = {"": "", "k": "k", "m": "M"}


@dataclass(frozen=True, kw_only=True)
class First:
    """The first drop, or the first pause."""

    event: Literal["dropped", "paused"]
    time_ms: float
    place: str
    """The queue or group."""
    reason: str
    cells: int
    """Cells in the queue or group at that time."""
    threshold_cells: int | None
    """Its threshold at that time, with its reserve; None for an early drop."""
    pool_cells: int | None
    """Occupied cells of the pool's shared part at that time."""

    @property
    def word(self) -> str:
        """The event of the incast as a noun."""
        return "drop" if self.event == "dropped" else "pause"


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The largest occupancy of a queue or group in the run."""

    place: str
    side: Literal["egress", "ingress"]
    """`egress` for a queue, `ingress` for a group."""
    cells: int
    threshold_cells: int | None
    """The threshold that applies if the queue and others of its kind are filled to the same level; None if the
    threshold is the whole pool, which packets in headroom may exceed."""
    equal: int
    """Number of queues or groups filled to this level: 1 if the threshold does not depend on the others."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Incast(CardMixin):
    """The answer of `incast`: what a switch does with the data of many senders to one port, and the run behind it."""

    switch: str
    generation: Generation
    question: Question
    senders: tuple[str, ...]
    receiver: str
    priority: int
    outcome: Outcome
    first: First | None
    peaks: tuple[Peak, ...]
    memory_cells: int
    """Largest occupancy of the receiver's memory."""
    dropped_cells: int
    dropped_packets: int
    drops: Mapping[str, int]
    """Dropped cells by reason."""
    pauses: int
    paused_groups: int
    headroom_cells: int | None
    """Largest use of a group's headroom; None in a lossy priority."""
    configured_headroom_cells: int | None
    """Configured headroom of a sender's group; None in a lossy priority."""
    timeouts: int
    completion_ms: tuple[float, ...]
    """For each sender that finished, the time until all of its data was acknowledged, in ascending order."""
    sent_packets: int
    """Packets of all senders, including retransmissions."""
    link_ms: float
    """Time that the receiver's link needs for the packets of all data."""
    tcp: str
    fingerprint: str
    scenario: str
    """The scenario of the run as TOML, with comments."""

    @property
    def cells_per_packet(self) -> int:
        """Cells of a full packet."""
        return -(-self.question.mtu // self.generation.memory.cell_bytes)

    @property
    def data_packets(self) -> int:
        """Packets that all data needs. Every packet has the full length: each sender pads its last one."""
        return self.question.segments * len(self.senders)

    def _amount(self, cells: int | None, name: str = "", packets: int | None = None) -> dict[str, int | None]:
        """Returns a number of cells, and their bytes and whole packets."""
        names = [f"{name}_{unit}" if name else unit for unit in ("cells", "bytes", "packets")]
        if cells is None:
            return dict.fromkeys(names)
        held = cells // self.cells_per_packet if packets is None else packets
        return dict(zip(names, (cells, cells * self.generation.memory.cell_bytes, held), strict=True))

    def _of_packets(self, packets: int) -> dict[str, int | None]:
        return self._amount(packets * self.cells_per_packet, packets=packets)

    def to_row(self) -> dict[str, Any]:
        """Returns the answer as a row for `--csv`. It has the same columns for each outcome."""
        facts = self.to_dict()
        largest = {peak["side"]: peak for peak in facts.pop("largest")}
        none = {**self._amount(None), **self._amount(None, "threshold"), "equal": None}
        facts["senders"] = len(self.senders)
        facts["first"] = self._of_first()
        for name, side in (("queue", "egress"), ("group", "ingress")):
            facts[f"largest_{name}"] = {key: largest.get(side, none)[key] for key in none}
        del facts["dropped_cells_by_reason"]
        return facts

    def _of_first(self) -> dict[str, Any]:
        """Returns the first event with its amounts. Without an event, every value is None."""
        row = dict.fromkeys(field.name for field in fields(First)) if self.first is None else asdict(self.first)
        amounts = {**self._amount(row["cells"]), **self._amount(row["threshold_cells"], "threshold")}
        return {**row, **amounts, **self._amount(row["pool_cells"], "pool")}

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain mmu incast --json`."""
        done = self.completion_ms
        return {
            "switch": self.switch,
            "generation": self.generation.name,
            "cell_bytes": self.generation.memory.cell_bytes,
            "packet_bytes": self.question.mtu,
            "cells_per_packet": self.cells_per_packet,
            "receiver": self.receiver,
            "senders": list(self.senders),
            "bytes": self.question.size,
            "lossless": self.question.is_lossless,
            "priority": self.priority,
            "initial_window_segments": self.question.first_window,
            "outcome": self.outcome,
            "data": self._of_packets(self.data_packets),
            "sent": self._of_packets(self.sent_packets),
            "first": None if self.first is None else self._of_first(),
            "largest": [
                {**asdict(peak), **self._amount(peak.cells), **self._amount(peak.threshold_cells, "threshold")}
                for peak in self.peaks
            ],
            "memory": self._amount(self.memory_cells),
            "dropped": self._amount(self.dropped_cells, packets=self.dropped_packets),
            "dropped_cells_by_reason": dict(self.drops),
            "pauses": self.pauses,
            "paused_groups": self.paused_groups,
            "headroom_cells": self.headroom_cells,
            "configured_headroom_cells": self.configured_headroom_cells,
            "timeouts": self.timeouts,
            "completed_senders": len(done),
            "completion_ms": {
                "first": done[0] if done else None,
                "median": statistics.median(done) if done else None,
                "last": done[-1] if len(done) == len(self.senders) else None,
            },
            "link_ms": self.link_ms,
            "tcp": self.tcp,
            "fingerprint": self.fingerprint,
        }

    def grid(self) -> Grid:
        """Returns the table of occupancies in cells, bytes and packets."""
        held: list[tuple[str, int | None]] = []
        for peak in self.peaks:
            equal = f", {peak.equal} equal groups" if peak.equal > 1 else ""
            held += [(f"largest {peak.place}", peak.cells), (f"  its threshold{equal}", peak.threshold_cells)]
        held.append(("largest occupancy of the memory", self.memory_cells))
        if (first := self.first) is not None:
            held += [(f"at the first {first.word}: {first.place}", first.cells)]
            held += [
                ("  threshold at that time", first.threshold_cells),
                ("  occupied shared cells at that time", first.pool_cells),
            ]
        if self.headroom_cells:
            held.append(("largest use of a group's headroom", self.headroom_cells))
            held.append(("  configured headroom of the group", self.configured_headroom_cells or 0))
        rows = [("data of all senders", self._of_packets(self.data_packets))]
        if self.sent_packets > self.data_packets:
            rows.append(("  sent, with retransmissions", self._of_packets(self.sent_packets)))
        rows += [(words, self._amount(cells)) for words, cells in held if cells is not None]
        if self.dropped_cells:
            rows.append(("dropped", self._amount(self.dropped_cells, packets=self.dropped_packets)))
        grid = Grid(heads=["", "cells", "bytes", f"packets of {self.question.mtu} B"])
        for words, amount in rows:
            grid.add_row(words, *(f"{number:,}" for number in amount.values()))
        return grid

    def lines(self) -> list[str]:
        """Returns the answer in words."""
        return [self._headline(), *self._details()]

    def _headline(self) -> str:
        does = {
            "dropped": f"dropped: {self.dropped_packets:,} packets",
            "paused": f"paused: {self.pauses:,} pauses of {self.paused_groups:,} groups, nothing is dropped",
            "neither": "neither dropped nor paused",
        }
        return (
            f"{len(self.senders)} x {self.question.size:,} bytes to {shown(self.receiver)},"
            f" {self.question.kind} priority {self.priority}: {does[self.outcome]}"
        )

    def _details(self) -> list[str]:
        lines = []
        if self.first is not None:
            after = f"after {_ms(self.first.time_ms)}, at the {self.first.place}"
            lines.append(f"first {self.first.word}: {after}: {self.first.reason}")
            if self.cells_per_packet > 1 and self.first.threshold_cells is not None:
                lines.append(
                    f"The first cell of a packet decides for all {self.cells_per_packet}: each arriving packet may exceed"
                    f" a threshold, or lower it, by {self.cells_per_packet - 1} cells."
                )
        done = self.completion_ms
        if done:
            last = _ms(done[-1]) if len(done) == len(self.senders) else "open"
            lines.append(
                f"completed, with the last acknowledgement: first after {_ms(done[0])},"
                f" median {_ms(statistics.median(done))}, last {last}"
            )
            lines.append(
                f"the link alone: {_ms(self.link_ms)} for {self.data_packets:,} packets of"
                f" {self.cells_per_packet} cells; the last packet of each sender is padded to full size"
            )
        if len(done) < len(self.senders):
            lines.append(f"{len(self.senders) - len(done)} of {len(self.senders)} did not finish")
        if self.timeouts:
            lines.append(f"timeouts: {self.timeouts:,}")
        window, segments = self.question.first_window, self.question.segments
        words = ", all data at once" if window >= segments else f" of {segments:,}"
        if window < segments and not self.question.is_lossless:
            words += f"; --window {segments} sends all at once, as --lossless does"
        lines.append(f"TCP: {self.tcp}; initial window: {window:,} segments{words}")
        return lines

    def _card(self) -> Card:
        return Card(title=self._headline(), grids=[self.grid()], notes=self._details())

    def __repr__(self) -> str:
        return f"Incast({self.outcome!r}, {len(self.senders)} senders, {self.question.size} bytes)"


@checked()
def incast(
    configuration: str | os.PathLike[str] | Loaded,
    *,
    senders: int = SENDERS,
    bytes: str | int = BYTES,  # noqa: A002 (the name of the option)
    lossless: bool = False,
    port: str | None = None,
    priority: int | None = None,
    mtu: str | int = MTU,
    window: int | None = None,
    generation: str | Generation | None = None,
    cable: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> Incast:
    """Simulates that many hosts send to one port at once, and returns whether the switch drops or pauses them.

    Args:
        configuration: TOML file, or folder with files of SONiC, or the result of `load`.
        senders: Number of hosts that send.
        bytes: Size of the data of each sender, such as `"64kB"`.
        lossless: True if the data uses a priority that pauses its senders.
        port: The receiver's port; the first one by default.
        priority: Priority group and queue of the data; by default the first of that kind.
        mtu: Length of a full packet with its headers.
        window: Initial window in segments; 10 by default, and all the data in a lossless priority.
        generation: Name of the chip's generation; by default the one that the configuration names.
        cable: Length of cables that a folder does not say.
        progress: Function that receives the completed fraction of the run.

    Raises:
        InputError: If the configuration cannot answer the question.
    """
    loaded, chip = load_with_chip(configuration, generation=generation, cable=cable)
    question = Question(
        senders=senders,
        size=in_bytes("--bytes", bytes),
        is_lossless=lossless,
        port=port,
        priority=priority,
        mtu=in_bytes("--mtu", mtu),
        window=window,
    )
    named = None if isinstance(generation, Generation) else generation
    made = written(loaded, chip, question, generation=named, cable=cable)
    # Ports decide early drops, and events of ports are events of frames.
    kinds = ["memories", "frames"] if made.receiver.wred else ["memories"]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", CelltrainWarning)
        scenario = Scenario.model_validate(shipped.toml(made.text, "scenario")[0])
        result = run(scenario, events=Events(Path(folder) / "events", kinds=kinds), progress=progress)
        events = {kind: result.events[kind].to_pylist() for kind in kinds}
    answer = result.to_dict()
    flows, queues = answer["flows"], [queue for queue in answer["queues"] if queue["max_cells"]]
    groups = [queue for queue in queues if queue["pauses"]]
    dropped, pauses = answer["drops"]["dropped"], sum(queue["pauses"] for queue in groups)
    outcome: Outcome = "dropped" if dropped else "paused" if pauses else "neither"
    memory = next(one for one in answer["memories"] if one["name"] == _memory_of(made))
    packet = -(-question.mtu // chip.memory.cell_bytes) * chip.memory.cell_bytes
    return Incast(
        switch=loaded.switch.name,
        generation=chip,
        question=question,
        senders=tuple(port.name for port in made.senders),
        receiver=made.receiver.name,
        priority=made.priority,
        outcome=outcome,
        first=_first(made, outcome, events),
        peaks=tuple(_peaks(made, queues)),
        memory_cells=memory["max_used_cells"],
        dropped_cells=dropped,
        drops=answer["drops"],
        dropped_packets=sum(port["discarded_frames"] + port["cut_frames"] for port in answer["ports"]),
        pauses=pauses,
        paused_groups=len(groups),
        headroom_cells=max(queue["max_headroom_cells"] for queue in queues) if lossless else None,
        configured_headroom_cells=None if (group := made.senders[0].group) is None else group.headroom,
        timeouts=sum(flow["timeouts"] for flow in flows),
        completion_ms=tuple(sorted(1000 * flow["completion_s"] for flow in flows if flow["completion_s"] is not None)),
        sent_packets=sum(flow["segments_sent"] for flow in flows),
        link_ms=question.segments * packet * len(made.senders) * 8 / (made.receiver.speed * 1000),
        tcp=short_tcp(tcp_summary(scenario)),
        fingerprint=answer["fingerprint"],
        scenario=made.text,
    )


def in_bytes(option: str, value: str | int) -> int:
    """Reads a size such as `64kB`. A number counts bytes."""
    if isinstance(value, int):
        return value
    try:
        found = QUANTITIES["size"].read(value)
    except ValueError as error:
        raise InputError.of_option(option, value, f"is not {error}{_meant(value)}") from None
    if found.denominator != 1:
        raise InputError.of_option(option, value, "is not a whole number of bytes")
    return int(found)


def _meant(value: str) -> str:
    """Returns the size that a text without a known unit probably means, as the end of a message."""
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kKmMgG]?)(i?)[bB]?\s*", value)
    if match is None:
        return ""
    number, prefix, binary = match[1], match[2].lower(), bool(match[3])
    if not binary and prefix in _PREFIXES:
        return f"; did you mean {number}{_PREFIXES[prefix]}B?"
    size = Fraction(number) * (1024 if binary else 1000) ** " kmg".index(prefix or " ")
    return f"; write {round(size)}B"


def _memory_of(made: Written) -> str:
    """Returns the name of the receiver's memory in results."""
    return f"switch.m{made.receiver.memory + 1}" if "[switch.switch.memories." in made.text else "switch"


def _first(made: Written, outcome: Outcome, events: Mapping[str, Sequence[Mapping[str, Any]]]) -> First | None:
    """Returns the first event of the kind that decides about the outcome."""
    if outcome == "neither":
        return None
    wanted = "refused" if outcome == "dropped" else "paused"
    found = next((event for event in events["memories"] if event["event"] == wanted), None)
    early = next((event for event in events.get("frames", ()) if event["event"] == wanted), None)
    if early is not None and (found is None or early["time_s"] < found["time_s"]):
        time, place = 1000 * early["time_s"], f"queue of {made.receiver.name}"
        about = {"reason": early["reason"], "cells": early["occupancy"], "threshold_cells": None, "pool_cells": None}
        return First(event=outcome, time_ms=time, place=place, **about)
    if found is None:
        return None
    return First(
        event=outcome,
        time_ms=1000 * found["time_s"],
        place=_place(found["side"], found["port"]),
        reason=found["reason"] or "the next cell of the group would need headroom",
        cells=found["held"],
        threshold_cells=threshold
        if (threshold := found["threshold"]) is None
        else int(threshold) + found["held"] - found["shared"],
        pool_cells=found["used"],
    )


def _place(side: str, link: str) -> str:
    start, _, end = link.partition("->")
    return f"queue of {end}" if side == "egress" else f"group of {start}"


def _peaks(made: Written, queues: Sequence[Mapping[str, Any]]) -> list[Peak]:
    """Returns the largest occupancy of the receiver's queue, and of a sender's group."""
    found, memory = [], f"{_memory_of(made)}/"
    of_groups = {f"{port.name}->switch" for port in made.senders}
    sides: list[tuple[Literal["egress", "ingress"], Limits | None, set[str]]] = [
        ("egress", made.receiver.queue, {f"switch->{made.receiver.name}"}),
        ("ingress", made.senders[0].group, of_groups),
    ]
    for side, limits, links in sides:
        names = {f"{memory}{link}/0": link for link in links}
        own = [queue for queue in queues if queue["name"] in names]
        if limits is None or not own:
            continue
        most = max(own, key=lambda one: one["max_cells"])
        equal = 1 if limits.alpha is None else len(links)
        threshold: int | None = limits.together(equal) if equal > 1 else limits.share + limits.reserve
        if side == "egress" and made.question.is_lossless and is_whole_pool(limits):
            threshold = None
        place = _place(side, names[most["name"]])
        found.append(Peak(place=place, side=side, cells=most["max_cells"], threshold_cells=threshold, equal=equal))
    return found


def _ms(milliseconds: float) -> str:
    """Writes a time in the unit that keeps it readable.

    >>> _ms(0.0208), _ms(10.123456)
    ('20.8 us', '10.12 ms')
    """
    return f"{1000 * milliseconds:.4g} us" if milliseconds < 1 else f"{milliseconds:.4g} ms"
