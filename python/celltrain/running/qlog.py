"""Logs of connections in qlog, for viewers of QUIC and TCP, made from the recorded events of a run.

Source: draft-ietf-quic-qlog-main-schema (QlogFileSeq), draft-ietf-quic-qlog-quic-events and RFC 7464, which frames the
records. qlog has no events for TCP, so segments are packets of QUIC's schema: each transmission has a new number, data
is a stream frame at its offset, and an acknowledgement is an ACK frame for the packets that it covers first.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import CelltrainWarning, OutputError, ScenarioError
from celltrain.model.files import making, writing
from celltrain.model.network import MSS, MTU, Network
from celltrain.model.paths import QUANTITIES
from celltrain.running import qvis
from celltrain.running.events import Capture, Events
from celltrain.running.quic import Record, of_capture
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

#: Identifiers of the schemas. The events use the number of the draft, as the draft requires until it is an RFC.
FILE_SCHEMA, EVENT_SCHEMA = "urn:ietf:params:qlog:file:sequential", "urn:ietf:params:qlog:events:quic-13"
FORMAT = "application/qlog+json-seq"
#: Length of the headers of IP and TCP, which the unit of QUIC's recorded windows leaves out, too.
HEADERS = 40
#: Largest number of connections of a run, among them requests, that have a file each.
MOST_FILES = 1000
#: The events of timers that are logged, with QUIC's words.
TIMERS = {"started": "set", "restarted": "set", "stopped": "cancelled", "expired": "expired"}
#: The reason for a retransmission after a timeout; all others follow from acknowledgements.
TIMEOUT = "timeout"


def file_of(path: Path, flow: str, *, is_only: bool) -> Path:
    """Returns the file for a flow: `run.sqlog` for the only flow of a run, or else `run-tcp1.sqlog`."""
    name = re.sub(r"[^\w.-]", "_", flow)
    return path if is_only else path.with_stem(f"{path.stem}-{name}")


@contextmanager
def recording(
    path: Path, network: Network, events: Events | None, capture: Capture | None
) -> Iterator[tuple[Events, Capture | None, Callable[[Any, Mapping[str, Any]], None]]]:
    """Records what the logs of a run need. Yields events, capture, and a function that writes the logs after the run.

    Raises `InputError` if a file exists, or if `events` lack segments.

    Args:
        path: The file, or the pattern of the files.
        network: The network of the run.
        events: The events that the user records; segments and timers are recorded in a temporary folder for None.
        capture: The capture that the user makes.
    """
    if events is not None and "segments" not in events.chosen:
        raise ScenarioError.of_option("qlog", shown(path), 'needs the events of kind "segments"; add it to the kinds')
    chosen = {
        flow.name for flow in network.flows if events is None or events.flows is None or flow.name in events.flows
    }
    quic = [flow.name for flow in network.flows if flow.stack == "quic" and flow.name in chosen]
    for name in (None, *chosen):
        if (file := path if name is None else file_of(path, name, is_only=False)).exists():
            raise OutputError.of_file(file, "already exists; name another file, or delete it")
    with making(path.parent), tempfile.TemporaryDirectory() as folder:
        recorded = events or Events(folder, kinds=["segments", "timers"])
        together = _Captures(capture, quic, recorded.window) if quic else None

        def write_all(result: Any, settings: Mapping[str, Any]) -> None:
            segments = result.events["segments"]
            [timers] = [result.events[kind] for kind in result.events if kind == "timers"] or [None]
            found = segments["flow"].unique().drop_null().to_pylist()
            names = list(dict.fromkeys([*found, *quic]))
            if len(names) > MOST_FILES:
                problem = f"would become {len(names):,} files, one for each connection; choose flows or a window"
                raise OutputError.of_file(path, problem)
            if not names:
                warnings.warn(
                    "--qlog: no flow sent TCP, UDP or QUIC, so there is no log", CelltrainWarning, stacklevel=2
                )
            for name in names:
                if name in quic:
                    assert together is not None
                    records = of_capture(together.contents(name), _windows(result, settings, name))
                else:
                    records = of_tcp(segments, timers, name, _mss(settings, name))
                title = f"{result.scenario or 'scenario'}, seed {result.seed}, {name}"
                write(file_of(path, name, is_only=len(names) == 1), name, records, title=title)

        yield recorded, together or capture, write_all


class _Captures(Capture):
    """The capture of the user, and captures of QUIC connections in memory."""

    def __init__(self, user: Capture | None, flows: Sequence[str], window: str | None) -> None:
        super().__init__("" if user is None else user.path)
        self._user = user
        self._own = [_InMemory(flow, window) for flow in flows]

    def contents(self, flow: str) -> bytes:
        """Returns the capture of a flow."""
        return next(one.buffer.getvalue() for one in self._own if one.flows == (flow,))

    def by_file(self) -> list[Capture]:
        return [*([] if self._user is None else self._user.by_file()), *self._own]

    def count(self, packets: list[int]) -> None:
        if self._user is not None:
            self._user.count(packets[: len(packets) - len(self._own)])

    @property
    def paths(self) -> list[Path]:
        return [] if self._user is None else self._user.paths

    def engine(self, requested: str | None) -> str:
        return requested or "fast" if self._user is None else self._user.engine(requested)


class _InMemory(Capture):
    def __init__(self, flow: str, window: str | None) -> None:
        super().__init__("", flows=[flow], window=window)
        self.buffer = io.BytesIO()

    @contextmanager
    def taking(self) -> Iterator[Callable[[bytes], object]]:
        yield self.buffer.write


def _mss(settings: Mapping[str, Any], flow: str) -> int:
    """Returns the bytes of a full segment of a simulated TCP; stacks do not report windows in segments."""
    own = settings.get("flow", {}).get(flow, {}).get("tcp") or settings.get("tcp") or {}
    tables = [*own.values(), {}]
    return int(QUANTITIES["size"].read(tables[0].get("mss", MSS)))


def _windows(result: Any, settings: Mapping[str, Any], flow: str) -> dict[float, int]:
    """Returns the recorded samples of a QUIC connection's congestion window in bytes, by time."""
    if "cwnd" not in result.series:
        return {}
    import pyarrow.compute as pc

    own = settings.get("flow", {}).get(flow, {}).get("stack") or settings.get("stack") or {}
    payload = int(QUANTITIES["size"].read(own.get("quic", {}).get("mtu", MTU))) - HEADERS
    rows = result.series["cwnd"]
    rows = rows.filter(pc.equal(rows["flow"].cast("string"), flow))
    times, windows = (rows[name].to_pylist() for name in ("time_s", "cwnd_segments"))
    return {time: round(cwnd * payload) for time, cwnd in zip(times, windows, strict=True) if cwnd is not None}


def write(path: Path, flow: str, records: Iterable[Record], *, title: str) -> None:
    """Writes the records of one flow: as a JSON text sequence, or for qvis to a file whose name ends in `.qlog`."""
    common = {"time_format": "relative_to_epoch", "reference_time": {"clock_type": "monotonic", "epoch": "unknown"}}
    place = {"name": f"sender of {flow}", "type": "client"}
    fields = {"group_id": flow, **common}
    trace = {"title": title, "common_fields": fields, "vantage_point": place, "event_schemas": [EVENT_SCHEMA]}
    head = {"file_schema": FILE_SCHEMA, "serialization_format": FORMAT, "title": title}
    about = f"simulated by celltrain {_core.build()['version']}; segments of TCP are shown as packets of QUIC"
    with writing(path), path.open("x", encoding="utf-8") as file:
        if path.suffix == ".qlog":
            qvis.write(file, {"title": title, "group_id": flow, "vantage_point": place}, records, about)
            return
        _write(file, {**head, "description": about, "trace": trace})
        for time, name, data in records:
            # Times in milliseconds keep the picoseconds of the simulation.
            _write(file, {"time": round(1e3 * time, 9), "name": f"quic:{name}", "data": data})


def _write(file: Any, record: Mapping[str, Any]) -> None:
    # RFC 7464: a record separator before each text, a line feed after it.
    file.write(f"\x1e{json.dumps(record, ensure_ascii=False, separators=(',', ':'))}\n")


@dataclass
class _Packet:
    number: int
    sent: float
    sequence: int
    end: int
    is_repeated: bool


def of_tcp(segments: pa.Table, timers: pa.Table | None, flow: str, mss: int) -> Iterator[Record]:
    """Yields the records of a flow at its sender, from the tables of its segments and timers in order of time.

    Args:
        segments: The events of segments.
        timers: The events of timers, if they were recorded.
        flow: The flow.
        mss: Bytes of a full segment, the unit of the windows.
    """
    rows = [(row["time_s"], 0, row) for row in _rows_of(segments, flow)]
    rows += [(row["time_s"], 1, row) for row in _rows_of(timers, flow)] if timers is not None else []
    sender = _Sender(mss)
    for time, kind, row in sorted(rows, key=lambda one: one[:2]):
        yield from ((time, *record) for record in (sender.on_timer if kind else sender.on_segment)(row))


def _rows_of(table: pa.Table, flow: str) -> list[dict[str, Any]]:
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = table.filter(pc.equal(table["flow"].cast("string"), flow)).to_pylist()
    return rows


class _Sender:
    """The state of a connection's sender, as far as its events show the state."""

    def __init__(self, mss: int) -> None:
        self.mss = mss
        self.sent = self.received = 0
        #: Offsets of the first data that is not acknowledged, and of the end of all data.
        self.least = self.highest = 0
        #: Packets that are not acknowledged, by the offset of their data: the latest transmission of each.
        self.outstanding: dict[int, _Packet] = {}
        self.metrics: dict[str, Any] = {}
        self.state = ""
        self.least_rtt = float("inf")
        #: Offset up to which data must be acknowledged to end a recovery.
        self.recovery = 0

    def on_segment(self, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the records of an event of a segment, without its time."""
        event = row["event"]
        if event in ("sent", "retransmitted"):
            yield from self._on_sent(row, is_repeated=event == "retransmitted")
        elif event == "acknowledged":
            yield from self._on_acknowledged(row)

    def _on_sent(self, row: Mapping[str, Any], *, is_repeated: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        sequence, length = row["sequence"], row["length"]
        before = self.outstanding.pop(sequence, None)
        by_timeout = row["reason"] == TIMEOUT
        if is_repeated:
            self.recovery = self.highest
            if before is not None:
                trigger = "pto_expired" if by_timeout else "reordering_threshold"
                yield "packet_lost", {"header": _header(before.number), "trigger": trigger}
            yield from self._changed(row, "timeout" if by_timeout else "recovery")
        data: dict[str, Any] = {
            "header": _header(self.sent),
            "frames": [{"frame_type": "stream", "stream_id": 0, "offset": sequence, "raw": {"payload_length": length}}],
            "raw": {"length": length + HEADERS, "payload_length": length},
        }
        if is_repeated:
            data["trigger"] = "retransmit_timeout" if by_timeout else "retransmit_reordered"
        yield "packet_sent", data
        packet = _Packet(self.sent, row["time_s"], sequence, sequence + length, is_repeated)
        self.outstanding[sequence] = packet
        self.sent, self.highest = self.sent + 1, max(self.highest, packet.end)
        if not is_repeated:
            yield from self._changed(row, "")

    def _on_acknowledged(self, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        up_to, time = row["acknowledgement"], row["time_s"]
        covered = list(self._covered(up_to))
        frame: dict[str, Any] = {"frame_type": "ack"}
        if covered:
            frame["acked_ranges"] = _ranges(sorted(one.number for one in covered))
        yield (
            "packet_received",
            {
                "header": _header(self.received),
                "frames": [frame],
                "raw": {"length": HEADERS, "payload_length": 0},
            },
        )
        self.received += 1
        # Karn: a segment that was sent again has no round-trip time.
        last = max(covered, key=lambda one: one.end, default=None)
        rtt = None if last is None or any(one.is_repeated for one in covered) else 1e3 * (time - last.sent)
        if up_to >= self.recovery:
            self.recovery = 0
        yield from self._changed(row, "recovery" if self.recovery and self.state == "recovery" else "", rtt)

    def _covered(self, up_to: int) -> Iterator[_Packet]:
        """Removes and yields the packets whose data is acknowledged up to an offset."""
        while self.least < up_to and (found := self.outstanding.get(self.least)) is not None and found.end <= up_to:
            yield self.outstanding.pop(self.least)
            self.least = found.end
        if self.least < up_to:
            # Retransmissions may divide the data into segments with other boundaries.
            for sequence in [one.sequence for one in self.outstanding.values() if one.end <= up_to]:
                yield self.outstanding.pop(sequence)
            self.least = up_to

    def on_timer(self, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the record of an event of the retransmission timer."""
        if row["timer"] != "retransmission":
            return
        data: dict[str, Any] = {"timer_type": "loss_timeout", "event_type": TIMERS[row["event"]]}
        if data["event_type"] == "set" and (delta := self.metrics.get("rto")) is not None:
            data["delta"] = delta
        yield "timer_updated", data

    def _changed(
        self, row: Mapping[str, Any], state: str, rtt: float | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the metrics that differ from those before, and the state of the control if it is new."""
        cwnd, ssthresh = row["cwnd"], row["ssthresh"]
        known: dict[str, Any] = {
            "congestion_window": None if cwnd is None else round(cwnd * self.mss),
            "ssthresh": None if ssthresh is None else round(ssthresh * self.mss),
            "bytes_in_flight": row["flight"],
            "rto": None if row["rto_s"] is None else round(1e3 * row["rto_s"], 9),
        }
        new = {key: value for key, value in known.items() if value is not None and self.metrics.get(key) != value}
        self.metrics |= new
        # The draft has no timeout among its metrics; `timer_updated` contains it.
        new.pop("rto", None)
        if rtt is not None:
            new["latest_rtt"] = round(rtt, 9)
            if rtt < self.least_rtt:
                self.least_rtt = rtt
                new["min_rtt"] = new["latest_rtt"]
        if new:
            yield "recovery_metrics_updated", new
        if cwnd is None or ssthresh is None:
            return
        state = state or ("slow_start" if cwnd < ssthresh else "congestion_avoidance")
        if state != self.state:
            yield "congestion_state_updated", {**({"old": self.state} if self.state else {}), "new": state}
            self.state = state


def _header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Returns sorted numbers as ranges.

    >>> _ranges([1, 2, 3, 7])
    [[1, 3], [7]]
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][-1] == number - 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return found
