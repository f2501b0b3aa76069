"""The events of one flow, and its episodes: spans of time in which something was lost or retransmitted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.event_rows import lost_frames, numbers, rows_of, texts

if TYPE_CHECKING:
    import pyarrow as pa

#: After the last instant of any run.
NEVER = float("inf")


@dataclass(frozen=True)
class Rows:
    """Some events of one kind, by their places in a table."""

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
    """A span of time, from sending the first segment that was lost or retransmitted until all were acknowledged.

    Attributes:
        end: `NEVER` if the last acknowledgement is not among the events.
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
        gone: VC and number of frames known to be lost although no later frame of their VC arrived.
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
        """Returns the places of segments with one of these events."""
        return np.flatnonzero(np.isin(self.event, events))

    @cached_property
    def duplicates(self) -> Any:
        """Places of duplicate ACKs at the sender."""
        return self.acknowledged[self.reason[self.acknowledged] == "duplicate"]

    @cached_property
    def lost(self) -> Any:
        """Places of segments that were sent and lost."""
        return self._lost(self.sent, self.arrived)

    @cached_property
    def lost_acks(self) -> Any:
        """Places of ACKs that were sent and lost."""
        return self._lost(self.acks_sent, self.acknowledged)

    def _lost(self, sent: Any, arrived: Any) -> Any:
        lost = lost_frames(self.frame[sent], self.frame[arrived])
        if self._gone:
            lost |= np.array([self.frame_of(place) in self._gone for place in sent], dtype=np.bool_)
        return sent[lost]

    def frame_of(self, place: int) -> tuple[str, int]:
        """Returns the VC and the number of the frame of an event."""
        return str(self.segments["vc"][int(place)].as_py()), int(self.frame[place])

    def overdue(self, end: float) -> Any:
        """Returns the places of frames of unknown fate: sent longer before `end` than any other frame took to arrive."""
        overdue = [np.array([], dtype=int)]
        for sent, arrived in ((self.sent, self.arrived), (self.acks_sent, self.acknowledged)):
            _, starts, ends = np.intersect1d(self.frame[sent], self.frame[arrived], return_indices=True)
            delays = self.time[arrived[ends]] - self.time[sent[starts]]
            last = self.frame[arrived].max() if len(arrived) else -1
            overdue.append(sent[(self.frame[sent] > last) & (self.time[sent] < end - delays.max(initial=0.0))])
        return np.concatenate(overdue)

    @cached_property
    def highest(self) -> Any:
        """Highest acknowledgement until each ACK at the sender."""
        return np.maximum.accumulate(self.ack[self.acknowledged])

    def acknowledging(self, last: float) -> int | None:
        """Returns the place of the ACK that acknowledges all bytes up to `last`."""
        at = int(np.searchsorted(self.highest, last))
        return int(self.acknowledged[at]) if at < len(self.acknowledged) else None

    @cached_property
    def episodes(self) -> list[Episode]:
        """The episodes, in order."""
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
        """Returns the spans from sending each frame until the next frame of its VC arrived."""
        at = np.searchsorted(self.frame[arrived], self.frame[places])
        ends = np.append(self.time[arrived], NEVER)[at]
        return list(zip(self.time[places].tolist(), ends.tolist(), strict=True))

    def within(self, places: Any, episode: Episode) -> Any:
        """Returns the places that lie in an episode."""
        times = self.time[places]
        return places[(times >= episode.start) & (times <= episode.end)]

    def rows(self, places: Any) -> Rows:
        """Returns events of segments."""
        return Rows("segments", self.segments, places)

    def expirations(self, places: Any) -> Rows:
        """Returns events of timers."""
        return Rows("timers", self.timers, places)


#: Events that end a frame at a port or, without such an event, at its host.
_ENDS = ("refused", "cut", "joined", "dropped", "failed")


class Fates:
    """The ends of frames, from the table of frames."""

    def __init__(self, frames: pa.Table) -> None:
        self.frames = frames
        self.event = texts(frames, "event")
        self.vc = texts(frames, "vc")
        self.port_vc = texts(frames, "port_vc")
        self.port = texts(frames, "port")
        self.time = numbers(frames, "time_s")
        frame = numbers(frames, "frame")
        #: Place of the event by which a frame was lost, by VC and number.
        self.by_frame: dict[tuple[str, int], int] = {}
        for place in np.flatnonzero(np.isin(self.event, _ENDS)):
            self.by_frame.setdefault((self.vc[place], int(frame[place])), int(place))

    def row(self, place: int) -> Mapping[str, Any]:
        """Returns an event."""
        row: Mapping[str, Any] = self.frames.slice(place, 1).to_pylist()[0]
        return row

    def rows(self, places: Sequence[int]) -> Rows:
        """Returns events of frames."""
        return Rows("frames", self.frames, places)

    def others(self, port: str, event: str, start: float, end: float) -> Any:
        """Returns the places of the same event at a port in a span of time."""
        return np.flatnonzero((self.event == event) & (self.port == port) & (self.time >= start) & (self.time <= end))
