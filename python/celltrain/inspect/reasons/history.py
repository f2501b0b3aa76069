"""The events of one flow, and the spans of time in which not all was well with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from celltrain.drawing.event_rows import lost_frames, numbers, rows_of, texts

if TYPE_CHECKING:
    import pyarrow as pa

#: After the last instant of any run.
NEVER = float("inf")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some of the events of a kind, by their places in a table: what a sentence follows from."""

    kind: str
    table: pa.Table
    places: tuple[int, ...]

    @classmethod
    def of(cls, kind: str, table: pa.Table, places: Any) -> Rows:
        """Of places as numpy has them."""
        return cls(kind=kind, table=table, places=tuple(int(place) for place in places))

    def to_list(self) -> list[dict[str, Any]]:
        """The rows, without what they lack."""
        rows = self.table.take(list(self.places)).to_pylist() if self.places else []
        return [
            {"kind": self.kind, **{name: value for name, value in row.items() if value is not None}} for row in rows
        ]


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A span of time in which not all was well: from when the first of what was lost, or sent again, was sent."""

    start: float
    end: float
    """When the last of it was acknowledged; `NEVER` where that is not among the events."""


class History:
    """The segments and timers of one flow, as arrays.

    Args:
        flow: Name of the flow.
        segments: Events of segments, of this flow and others.
        timers: Events of timers, of this flow and others.
        has_tcp: Whether the flow retransmits lost data.
        gone: VC and number of frames known to be lost although no later frame of their VC arrived.
        is_whole: Whether the tables cover the whole run.
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
        self._is_whole = is_whole
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

    @cached_property
    def is_sent(self) -> Any:
        """The rows that put a segment on its way."""
        return (self.event == "sent") | self.is_again

    @cached_property
    def is_again(self) -> Any:
        """Those that do it again."""
        return self.event == "retransmitted"

    @cached_property
    def lost(self) -> Any:
        """The places of segments that were sent and lost."""
        return self._lost(self.is_sent, self.event == "arrived")

    @cached_property
    def lost_acks(self) -> Any:
        """Likewise of ACKs."""
        return self._lost(self.event == "ack_sent", self.event == "acknowledged")

    def vc(self, place: int) -> str:
        """The VC of an event."""
        return str(self.segments["vc"][int(place)].as_py())

    def _lost(self, sent: Any, arrived: Any) -> Any:
        import numpy as np

        places = np.flatnonzero(sent)
        lost = lost_frames(self.frame[places], self.frame[arrived])
        if self._gone:
            known = [(self.vc(place), int(self.frame[place])) in self._gone for place in places.tolist()]
            lost |= np.array(known, dtype=np.bool_)
        return places[lost]

    @property
    def delivered_nothing(self) -> bool:
        """Whether the flow sent segments in the run and none of them arrived."""
        return self._is_whole and bool(self.is_sent.any()) and not (self.event == "arrived").any()

    def overdue(self, end: float) -> Any:
        """Returns the places of frames of unknown fate: sent longer before `end` than any other frame took to arrive."""
        import numpy as np

        found = [np.array([], dtype=int)]
        for sent, arrived in (
            (self.is_sent, self.event == "arrived"),
            (self.event == "ack_sent", self.event == "acknowledged"),
        ):
            places, came = np.flatnonzero(sent), np.flatnonzero(arrived)
            _, there, here = np.intersect1d(self.frame[places], self.frame[came], return_indices=True)
            longest = float((self.time[came[here]] - self.time[places[there]]).max()) if len(here) else 0.0
            last = self.frame[came].max() if len(came) else -1
            found.append(places[(self.frame[places] > last) & (self.time[places] < end - longest)])
        return np.concatenate(found)

    @cached_property
    def acknowledged(self) -> tuple[Any, Any, Any]:
        """Of each ACK at the sender its place, its instant, and the highest one until then."""
        import numpy as np

        places = np.flatnonzero(self.event == "acknowledged")
        highest = np.maximum.accumulate(self.ack[places]) if len(places) else self.ack[places]
        return places, self.time[places], highest

    def acknowledging(self, last: float) -> int | None:
        """The place of the ACK by which all bytes up to one are acknowledged."""
        import numpy as np

        places, _, highest = self.acknowledged
        at = int(np.searchsorted(highest, last))
        return int(places[at]) if at < len(places) else None

    @cached_property
    def episodes(self) -> list[Episode]:
        """The spans in which not all was well, one after the other."""
        spans = sorted([*self._of_data(), *self._of_acks()])
        merged: list[list[float]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return [Episode(start=start, end=end) for start, end in merged]

    def _of_data(self) -> list[tuple[float, float]]:
        import numpy as np

        if not self.has_tcp:
            # Nothing is sent again: all is well when the next one arrives.
            return self._until_next(self.lost, self.event == "arrived")
        places = np.union1d(self.lost, np.flatnonzero(self.is_again)).astype(int)
        _, times, highest = self.acknowledged
        at = np.searchsorted(highest, self.last[places])
        ends = np.append(times, NEVER)[at]
        starts = self.time[places]
        return list(zip(starts.tolist(), np.maximum(starts, ends).tolist(), strict=True))

    def _of_acks(self) -> list[tuple[float, float]]:
        return self._until_next(self.lost_acks, self.event == "acknowledged")

    def _until_next(self, places: Any, arriving: Any) -> list[tuple[float, float]]:
        """Spans from when something was sent until the next of its VC came: one with a higher number."""
        import numpy as np

        came = np.flatnonzero(arriving)
        at = np.searchsorted(self.frame[came], self.frame[places])
        ends = np.append(self.time[came], NEVER)[at]
        return list(zip(self.time[places].tolist(), ends.tolist(), strict=True))

    def within(self, places: Any, episode: Episode) -> Any:
        """Those of some places that are in a span."""
        times = self.time[places]
        return places[(times >= episode.start) & (times <= episode.end)]

    def rows(self, places: Any) -> Rows:
        """Segments that a sentence follows from."""
        return Rows.of("segments", self.segments, places)

    def expirations(self, places: Any) -> Rows:
        """Timeouts that a sentence follows from."""
        return Rows.of("timers", self.timers, places)


#: What ends a frame at a port or, with nothing of this kind before it, at its host.
_ENDS = ("refused", "cut", "joined", "dropped", "failed")


class Fates:
    """What became of frames: of the table of frames, around a span of time."""

    def __init__(self, frames: pa.Table) -> None:
        import numpy as np

        self.frames = frames
        self.event = texts(frames, "event")
        self.vc = texts(frames, "vc")
        self.port_vc = texts(frames, "port_vc")
        self.port = texts(frames, "port")
        self.time = numbers(frames, "time_s")
        self._frame = numbers(frames, "frame")
        self._by_frame: dict[tuple[str, int], int] = {}
        for place in np.flatnonzero(np.isin(self.event, _ENDS)):
            self._by_frame.setdefault((self.vc[place], int(self._frame[place])), int(place))

    def of(self, vc: str, frame: float) -> int | None:
        """The place of the event by which a frame was lost; None where it is not among the events."""
        return self._by_frame.get((vc, int(frame)))

    def gone(self) -> Collection[tuple[str, int]]:
        """VC and number of every frame that was lost."""
        return self._by_frame.keys()

    def row(self, place: int) -> Mapping[str, Any]:
        """The event itself."""
        row: Mapping[str, Any] = self.frames.slice(place, 1).to_pylist()[0]
        return row

    def rows(self, places: Sequence[int]) -> Rows:
        """Frames that a sentence follows from."""
        return Rows.of("frames", self.frames, places)

    def others(self, port: str, event: str, start: float, end: float) -> Any:
        """The places of frames to which the same happened at a port in a span of time."""
        import numpy as np

        return np.flatnonzero((self.event == event) & (self.port == port) & (self.time >= start) & (self.time <= end))
