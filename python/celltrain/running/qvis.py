"""Logs in version 0.3 of qlog, one JSON text with all events, because the viewer qvis reads no newer version.

Source: draft-ietf-quic-qlog-main-schema-02, draft-ietf-quic-qlog-quic-events-01.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

#: Names of the events in qlog 0.3, by their names in the newest version.
NAMES = {
    "packet_sent": "transport:packet_sent",
    "packet_received": "transport:packet_received",
    "packet_lost": "recovery:packet_lost",
    "recovery_metrics_updated": "recovery:metrics_updated",
    "congestion_state_updated": "recovery:congestion_state_updated",
    "timer_updated": "recovery:loss_timer_updated",
}


def write(
    file: IO[str], trace: Mapping[str, Any], records: Iterable[tuple[float, str, dict[str, Any]]], about: str
) -> None:
    """Writes the records of one connection; `trace` has its `title`, `group_id` and `vantage_point`."""
    common = {"group_id": trace["group_id"], "protocol_type": ["QUIC"], "time_format": "relative", "reference_time": 0}
    head = {"qlog_version": "0.3", "qlog_format": "JSON", "title": trace["title"], "description": about}
    start = {"title": trace["title"], "vantage_point": trace["vantage_point"], "common_fields": common}
    file.write(f'{_text(head)[:-1]},"traces":[{_text(start)[:-1]},"events":[')
    for number, (time, name, data) in enumerate(records):
        if "frames" in data:
            data["frames"] = [_frame(frame) for frame in data["frames"]]
        event = {"time": round(1e3 * time, 9), "name": NAMES[name], "data": data}
        file.write(f"{',' if number else ''}\n{_text(event)}")
    file.write("\n]}]}\n")


def _frame(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a frame with the key for its length, and with ranges of two numbers."""
    found = {key: value for key, value in frame.items() if key != "raw"}
    if "raw" in frame:
        found["length"] = frame["raw"]["payload_length"]
    if "acked_ranges" in found:
        found["acked_ranges"] = [[numbers[0], numbers[-1]] for numbers in found["acked_ranges"]]
    return found


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
