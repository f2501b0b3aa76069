"""Runs of a scenario that record events, and the history of each flow: its segments, and its episodes of losses."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.diagrams import lost_frames, numbers, one_of, rows_of, texts
from celltrain.errors import CancelledError, Fault, InputError, ScenarioError, warn
from celltrain.model.arguments import Cancel, check, current
from celltrain.model.network import Network
from celltrain.model.paths import QUANTITIES
from celltrain.model.scenario import read, table
from celltrain.running.events import block_of, schema_of
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain import _core
    from celltrain.model.types import Scenario

#: A time later than the end of any run.
NEVER = float("inf")
#: Number of seconds after the instant that the first attempt records. This is longer than most timeouts.
_REACH = Fraction(30)
#: Maximum duration of the losses, in seconds, for which frames of all VCs are recorded.
_ALL_VCS = 1.0
#: Maximum number of seconds from sending a frame to its loss. It allows for full buffers on the path.
_ON_WAY = Fraction(2)
#: The key of QUIC in a scenario.
_QUIC = "stack.quic"
#: Maximum number of flows named in a message.
_MOST_NAMED = 8
#: Resolution of windows of events.
_INSTANT = Fraction(1, 10**9)


@dataclass(frozen=True)
class Rows:
    """Some events of one kind, given by their row numbers in a table."""

    kind: str
    table: pa.Table
    places: Sequence[int]

    def to_list(self) -> list[dict[str, Any]]:
        """Returns the rows, without empty columns."""
        rows = self.table.take(list(map(int, self.places))).to_pylist() if len(self.places) else []
        return [
            {"kind": self.kind, **{name: value for name, value in row.items() if value is not None}} for row in rows
        ]


@dataclass(frozen=True, kw_only=True)
class Episode:
    """The time from sending the first segment that was lost or retransmitted until all such segments were acknowledged.

    Attributes:
        end: Time of the last acknowledgement; `NEVER` if it is not among the events.
    """

    start: float
    end: float


class History:
    """The segments and timers of one flow, as arrays.

    Args:
        flow: Name of the flow.
        segments: Events of segments, of this flow and others.
        timers: Events of timers, of this flow and others.
        has_tcp: True if the flow retransmits lost data.
        gone: VC and frame number of each frame known to be lost although no later frame of the VC arrived to show it.
        is_whole: True if the tables cover the whole run.
    """

    def __init__(
        self,
        flow: str,
        segments: pa.Table,
        timers: pa.Table,
        *,
        has_tcp: bool,
        gone: Collection[tuple[str, int]] = (),
        is_whole: bool = False,
    ) -> None:
        self.flow = flow
        self.has_tcp = has_tcp
        self._gone = gone
        self.segments = rows_of(segments, flow=flow)
        self.timers = rows_of(timers, flow=flow, timer="retransmission", event="expired")
        self.time = numbers(self.segments, "time_s")
        self.event = texts(self.segments, "event")
        self.reason = texts(self.segments, "reason")
        self.first = numbers(self.segments, "sequence")
        self.length = numbers(self.segments, "length")
        self.last = self.first + self.length
        self.ack = numbers(self.segments, "acknowledgement")
        self.cwnd = numbers(self.segments, "cwnd")
        self.ssthresh = numbers(self.segments, "ssthresh")
        self.rto = numbers(self.segments, "rto_s")
        self.frame = numbers(self.segments, "frame")
        self.expired = numbers(self.timers, "time_s")
        self.retransmitted = self.places("retransmitted")
        self.sent = self.places("sent", "retransmitted")
        self.arrived = self.places("arrived")
        self.acknowledged = self.places("acknowledged")
        self.acks_sent = self.places("ack_sent")
        self.delivered_nothing = is_whole and len(self.sent) > 0 and not len(self.arrived)

    def places(self, *events: str) -> Any:
        """Returns the indices of segments with one of the given events."""
        return np.flatnonzero(np.isin(self.event, events))

    @cached_property
    def duplicates(self) -> Any:
        """Indices of duplicate ACKs at the sender."""
        return self.acknowledged[self.reason[self.acknowledged] == "duplicate"]

    @cached_property
    def lost(self) -> Any:
        """Indices of segments that were sent and lost."""
        return self._lost(self.sent, self.arrived)

    @cached_property
    def lost_acks(self) -> Any:
        """Indices of ACKs that were sent and lost."""
        return self._lost(self.acks_sent, self.acknowledged)

    def _lost(self, sent: Any, arrived: Any) -> Any:
        lost = lost_frames(self.frame[sent], self.frame[arrived])
        if self._gone:
            lost |= np.array([self.frame_of(place) in self._gone for place in sent], dtype=np.bool_)
        return sent[lost]

    def frame_of(self, place: int) -> tuple[str, int]:
        """Returns the VC and the frame number of an event."""
        return str(self.segments["vc"][int(place)].as_py()), int(self.frame[place])

    def overdue(self, end: float) -> Any:
        """Returns the indices of overdue frames.

        These were sent so long before `end` that every other frame had arrived within a shorter time.
        """
        overdue = [np.array([], dtype=int)]
        for sent, arrived in ((self.sent, self.arrived), (self.acks_sent, self.acknowledged)):
            _, starts, ends = np.intersect1d(self.frame[sent], self.frame[arrived], return_indices=True)
            delays = self.time[arrived[ends]] - self.time[sent[starts]]
            last = self.frame[arrived].max() if len(arrived) else -1
            overdue.append(sent[(self.frame[sent] > last) & (self.time[sent] < end - delays.max(initial=0.0))])
        return np.concatenate(overdue)

    @cached_property
    def highest(self) -> Any:
        """Highest acknowledgement that the sender has received so far, at each ACK."""
        return np.maximum.accumulate(self.ack[self.acknowledged])

    def acknowledging(self, last: float) -> int | None:
        """Returns the index of the first ACK that acknowledges all bytes up to `last`."""
        at = int(np.searchsorted(self.highest, last))
        return int(self.acknowledged[at]) if at < len(self.acknowledged) else None

    @cached_property
    def episodes(self) -> list[Episode]:
        """The loss episodes of the run, in order."""
        spans = self._until_next(self.lost_acks, self.acknowledged)
        if self.has_tcp:
            places = np.union1d(self.lost, self.retransmitted).astype(int)
            ends = np.append(self.time[self.acknowledged], NEVER)[np.searchsorted(self.highest, self.last[places])]
            starts = self.time[places]
            spans += zip(starts.tolist(), np.maximum(starts, ends).tolist(), strict=True)
        else:
            spans += self._until_next(self.lost, self.arrived)
        merged: list[tuple[float, float]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            else:
                merged.append((start, end))
        return [Episode(start=start, end=end) for start, end in merged]

    def _until_next(self, places: Any, arrived: Any) -> list[tuple[float, float]]:
        """For each frame, returns the time from its transmission until the next frame of its VC arrived."""
        at = np.searchsorted(self.frame[arrived], self.frame[places])
        ends = np.append(self.time[arrived], NEVER)[at]
        return list(zip(self.time[places].tolist(), ends.tolist(), strict=True))

    def within(self, places: Any, episode: Episode) -> Any:
        """Returns the indices that are within an episode."""
        times = self.time[places]
        return places[(times >= episode.start) & (times <= episode.end)]

    def rows(self, places: Any) -> Rows:
        """Returns events of segments."""
        return Rows("segments", self.segments, places)

    def expirations(self, places: Any) -> Rows:
        """Returns events of timers."""
        return Rows("timers", self.timers, places)


#: The event of a frame that a shared memory refused, not the policy of its port.
BY_MEMORY = "refused by the memory"
#: The event of a frame that the policy of a port dropped at the head of the queue.
AT_HEAD = "dropped at the head"
#: Events that mean the loss of a frame, at a port, on a link or at its host.
_ENDS = ("refused", "cut", "joined", "dropped", AT_HEAD, "lost", "failed")


class Outcomes:
    """The outcomes of frames, from the table of frame events."""

    def __init__(self, frames: pa.Table, memories: pa.Table | None = None) -> None:
        self.frames = frames
        self.memories = memories
        #: Index of the event in which a shared memory first refused a cell of each frame, by VC and frame number.
        self.at_memory: dict[tuple[str, int], int] = {}
        refused_at: Any = ()
        if memories is not None:
            refused = np.flatnonzero(texts(memories, "event") == "refused")
            vc, number = texts(memories, "vc"), numbers(memories, "frame")
            refused_at = numbers(memories, "time_s")
            for place in refused:
                self.at_memory.setdefault((vc[place], int(number[place])), int(place))
        self.event = texts(frames, "event")
        if "waited_s" in frames.column_names:
            # Edge devices drop frames too, but no policy decides about them.
            self.event[(self.event == "dropped") & ~np.isnan(numbers(frames, "waited_s"))] = AT_HEAD
        self.vc = texts(frames, "vc")
        self.port_vc = texts(frames, "port_vc")
        self.port = texts(frames, "port")
        self.time = numbers(frames, "time_s")
        frame = numbers(frames, "frame")
        #: Index of the event at which each frame was lost, by VC and frame number.
        self.by_frame: dict[tuple[str, int], int] = {}
        for place in np.flatnonzero(np.isin(self.event, _ENDS)):
            self.by_frame.setdefault((self.vc[place], int(frame[place])), int(place))
        for of_frame, at in self.at_memory.items():
            lost = self.by_frame.get(of_frame)
            # The port's own policy may have refused the frame earlier or later.
            if lost is not None and self.event[lost] == "refused" and refused_at[at] == self.time[lost]:
                self.event[lost] = BY_MEMORY

    def row(self, place: int) -> Mapping[str, Any]:
        """Returns an event."""
        return {**self.frames.slice(place, 1).to_pylist()[0], "event": self.event[place]}

    def rows(self, places: Sequence[int]) -> Rows:
        """Returns events of frames."""
        return Rows("frames", self.frames, places)

    def refusal(self, place: int) -> Rows | None:
        """Returns the event of the shared memory that refused a cell of a lost frame.

        None if there is no such event.
        """
        row = self.row(place)
        at = self.at_memory.get((row["vc"], row["frame"]))
        if at is None or self.memories is None or row["event"] not in ("refused", BY_MEMORY, "cut"):
            return None
        # The port's own policy may have refused the frame earlier or later.
        is_same = self.memories["time_s"][at].as_py() == row["time_s"]
        return Rows("memories", self.memories, [at]) if is_same else None

    def others(self, port: str, event: str, start: float, end: float) -> Any:
        """Returns the indices of this kind of event at a port in a time span."""
        return np.flatnonzero((self.event == event) & (self.port == port) & (self.time >= start) & (self.time <= end))


@dataclass(frozen=True, kw_only=True)
class EventRuns:
    """A scenario, and runs of it that record events.

    Attributes:
        seed: Seed of the runs; the scenario's own when None.
        progress: Called with the completed fraction of the work, 0 to 1.
    """

    case: _core.Case
    name: str
    seed: int
    duration: Fraction
    written_duration: str
    network: Network
    groups: tuple[str, ...]
    """Names of the groups of requests."""
    pauses: bool
    """True if a memory of a switch pauses links."""
    rate_changes: Mapping[str, Mapping[str, Any]]
    """The table `rate_change` of each link that has one."""
    progress: Callable[[float], object] | None

    @classmethod
    def of(
        cls, scenario: Scenario | str | os.PathLike[str], seed: int | None, progress: Callable[[float], object] | None
    ) -> EventRuns:
        """Reads a scenario; raises `ScenarioError`."""
        case = read(scenario).accepted()
        warn(case.warnings)
        if seed is not None and not 0 <= seed < 1 << 64:
            raise ScenarioError.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")
        settings = table(case)
        return cls(
            case=case,
            name=settings["name"],
            seed=settings["seed"] if seed is None else seed,
            duration=QUANTITIES["time"].read(settings["duration"]),
            written_duration=settings["duration"],
            network=Network.of_core(case),
            groups=(*settings.get("requests", ()), *settings.get("incast", ())),
            pauses=any(memory.get("pauses") == "links" for memory in _memories(settings)),
            rate_changes={
                name: link["rate_change"] for name, link in settings.get("link", {}).items() if "rate_change" in link
            },
            progress=progress,
        )

    def deadlock(self, end: Fraction) -> Rows | None:
        """If paused links were in a deadlock before a given time, returns the events of the deadlock."""
        if not self.pauses:
            return None
        events = self._run("reference", ["memories"], Fraction(0), end, flows=None, share=(1.0, 1.0))["memories"]
        places = np.flatnonzero(texts(events, "event") == "deadlocked")
        return Rows("memories", events, places.tolist()) if len(places) else None

    @cached_property
    def stacks(self) -> dict[str, str]:
        """Stacks that may not use TCP, by flow: `stack.quic`, or the name of a class."""
        return {
            flow.name: _QUIC if flow.stack == "quic" else flow.stack
            for flow in self.network.flows
            if flow.stack not in ("", "smoltcp")
        }

    @property
    def flows(self) -> list[str]:
        """Names of all connections."""
        return [route.name for route in self.network.flows]

    def check_flow(self, flow: str) -> str:
        """Returns the name of a connection; raises `ScenarioError` if it does not exist."""
        if not self.flows:
            raise self._without_flows()
        try:
            return one_of("flow", "a flow of this network", flow, self.flows)
        except InputError as error:
            raise ScenarioError(error.faults) from None

    def explicable(self, histories: Collection[History], end: Fraction) -> list[History]:
        """Returns the histories until a time of flows whose packets have TCP's sequence numbers.

        Warns about other flows; raises `ScenarioError` if there are only such flows.
        """
        hidden = [one.flow for one in histories if self._is_hidden(one)]
        if len(hidden) == len(histories):
            raise self._refusal(hidden, end)
        if hidden:
            warn([f"not shown: {self._without_numbers(hidden, end)}"])
        return [one for one in histories if one.flow not in hidden]

    def _without_flows(self) -> ScenarioError:
        problem = (
            f"This network has no flows to explain, only requests ({', '.join(map(shown, self.groups))}). For a table of all requests: celltrain run "
            "FILE --out DIR; for their events: celltrain run FILE --events DIR"
        )
        return ScenarioError(Fault.saying(problem, key="flow"))

    def _is_hidden(self, history: History) -> bool:
        return history.flow in self.stacks and not len(history.time)

    def _refusal(self, hidden: Sequence[str], end: Fraction) -> ScenarioError:
        return ScenarioError(Fault.saying(self._without_numbers(hidden, end), key="flow", value=hidden[0]))

    def _without_numbers(self, hidden: Sequence[str], end: Fraction) -> str:
        """Returns a sentence about flows without events of segments until a time."""
        more = [f"{len(hidden) - _MOST_NAMED:,} more"] if len(hidden) > _MOST_NAMED else []
        flows = ", ".join([*map(shown, hidden[:_MOST_NAMED]), *more])
        stacks = " and ".join(dict.fromkeys(self.stacks[one] for one in hidden))
        return (
            f"{flows} {'uses' if len(hidden) == 1 else 'use'} {stacks}: no packet before {float(end):g} s has TCP sequence "
            "numbers, which the explanation of losses needs; look at frames instead: celltrain run FILE --events DIR --kinds frames"
        )

    def around(self, flows: Sequence[str], instant: float, exactness: float) -> tuple[History, Episode | None]:
        """Returns the history and the episode of the connection in the longest trouble around an instant.

        If no connection is in trouble, returns the first one. The history ends some time after the instant, or with the
        run if the outcome is not known by then. Omits flows that `explicable` omits.
        """
        for end in dict.fromkeys((min(Fraction(instant) + _REACH, self.duration), self.duration)):
            episodes = {
                one: nearest(one.episodes, instant, exactness) for one in self.histories(flows, end, share=(0.0, 0.5))
            }
            lengths = {
                one: min(own.end, float(end)) - own.start if own else -float(self._is_hidden(one))
                for one, own in episodes.items()
            }
            worst = max(lengths, key=lambda one: lengths[one])
            episode = episodes[worst]
            if episode.end < NEVER if episode else any(one.start > instant for one in worst.episodes):
                break
        self.explicable(episodes, end)
        return worst, episode

    def histories(self, flows: Sequence[str], end: Fraction, *, share: tuple[float, float]) -> list[History]:
        """Returns the histories of some connections until a time.

        If neither a frame nor a later frame has arrived, the frame may be in transit. If a frame is overdue, the
        reference engine determines its outcome. Raises `ScenarioError` if all connections use QUIC.
        """
        if not flows:
            raise self._without_flows()
        if all(self.stacks.get(flow) == _QUIC for flow in flows):
            raise self._refusal(flows, end)
        one = flows if len(flows) == 1 else None
        tables = self._run("fast", ["segments", "timers"], Fraction(0), end, flows=one, share=share)

        retransmits = {flow.name: flow.retransmits for flow in self.network.flows}

        def histories(outcomes: Outcomes | None = None) -> list[History]:
            segments, timers, gone = tables["segments"], tables["timers"], outcomes.by_frame.keys() if outcomes else ()
            is_whole = end == self.duration
            return [
                History(name, segments, timers, has_tcp=retransmits[name], gone=gone, is_whole=is_whole)
                for name in flows
            ]

        known = histories()
        overdue = {one.flow: one.time[places].min() for one in known if len(places := one.overdue(float(end)))}
        if not overdue:
            return known
        first = Fraction(min(overdue.values())) - _INSTANT
        tables |= self._run("reference", ["frames"], first, end, flows=list(overdue), share=(share[1], share[1]))
        return histories(Outcomes(tables["frames"]))

    def outcomes(self, history: History, episode: Episode) -> Outcomes:
        """Returns the outcomes of frames sent in an episode; of all VCs if the losses were within a short time."""
        places = [*history.within(history.lost, episode), *history.within(history.lost_acks, episode)]
        last = max([episode.start, *history.time[places].tolist()])
        end = min(Fraction(last) + _ON_WAY, self.duration)
        if last < episode.end < NEVER:
            end = min(end, Fraction(episode.end) + _INSTANT)
        flows = None if last - episode.start <= _ALL_VCS else [history.flow]
        # Ports crossed by the flow's data and its ACKs; a link and its reverse have adjacent numbers.
        route = next(route for route in self.network.flows if route.name == history.flow)
        links = dict.fromkeys(way for link in route.links for way in (link, link ^ 1))
        ports = [self.network.links[link].name for link in links]
        start = Fraction(episode.start) - _INSTANT
        kinds = ["frames", "memories"]
        tables = self._run("reference", kinds, start, end, flows=flows, ports=ports, share=(0.5, 1.0))
        return Outcomes(tables["frames"], tables["memories"])

    def _run(
        self,
        engine: str,
        kinds: Sequence[str],
        start: Fraction,
        end: Fraction,
        *,
        flows: Sequence[str] | None,
        ports: Sequence[str] | None = None,
        share: tuple[float, float],
    ) -> dict[str, pa.Table]:
        """Returns the events in a time span.

        Cancels the run after that, because a shorter duration would change the clock.
        """
        import pyarrow as pa

        outer, own = current(), Cancel()

        def on_progress(done: float) -> None:
            if done * float(self.duration) > float(end) or (outer is not None and outer.cancelled):
                own.cancel()
            if self.progress is not None:
                part = min(done * float(self.duration) / max(float(end), 1e-12), 1.0)
                self.progress(share[0] + (share[1] - share[0]) * part)

        time = QUANTITIES["time"]
        window = f"{time.write(max(start, Fraction(0)))}:{time.write(end)}"
        blocks: dict[str, list[pa.Table]] = {kind: [schema_of(kind).empty_table()] for kind in kinds}

        def take(kind: str, columns: Sequence[Any]) -> None:
            blocks[kind].append(block_of(kind, columns))

        chosen = (kinds, ports, None, flows, window)
        try:
            self.case.run(self.seed, (), None, None, engine, on_progress, own._handle, chosen, take)
        except CancelledError:
            check()
        return {kind: pa.concat_tables(tables).unify_dictionaries() for kind, tables in blocks.items()}


def _memories(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the tables of the memories shared by ports of switches."""
    switches = [own for own in settings.get("switch", {}).values() if isinstance(own, dict)]
    tables = [table for own in switches for table in (own.get("memory"), *(own.get("memories") or {}).values())]
    return [table for table in tables if table]


def nearest(episodes: Sequence[Episode], instant: float, exactness: float) -> Episode | None:
    """Returns the episode around an instant.

    If there is none, returns the nearest one within the instant's precision.
    """

    def distance(one: Episode) -> float:
        return max(one.start - instant, instant - one.end, 0.0)

    return min((one for one in episodes if distance(one) <= exactness), key=distance, default=None)
