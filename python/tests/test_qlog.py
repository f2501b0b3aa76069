"""Logs in qlog, read by a reader of their own that follows the drafts, and compared with the event log."""

import json
import re

import pytest
from conftest import NIGHTLY

import celltrain as ct

#: The events that are written, with the keys that the draft of QUIC's events requires and permits in their data.
EVENTS = {
    "packet_sent": ({"header"}, {"frames", "raw", "trigger"}),
    "packet_received": ({"header"}, {"frames", "raw"}),
    "packet_lost": (set(), {"header", "trigger"}),
    "recovery_metrics_updated": (
        set(),
        {"min_rtt", "latest_rtt", "congestion_window", "bytes_in_flight", "ssthresh"},
    ),
    "congestion_state_updated": ({"new"}, {"old"}),
    "timer_updated": ({"event_type"}, {"timer_type", "delta"}),
}
TRIGGERS = {
    "packet_sent": {"retransmit_reordered", "retransmit_timeout"},
    "packet_lost": {"reordering_threshold", "time_threshold", "pto_expired"},
}
FRAMES = {
    "stream": ({"stream_id"}, {"offset", "fin", "raw"}),
    "ack": (set(), {"acked_ranges", "ack_delay"}),
    "crypto": ({"offset"}, {"raw"}),
    "ping": (set(), set()),
}
WHOLE_NUMBERS = {"congestion_window", "bytes_in_flight", "ssthresh"}
PACKETS = {"initial", "handshake", "0RTT", "1RTT"}


def texts(path):
    """Returns the texts of a JSON text sequence (RFC 7464): a record separator before each, a line feed after it."""
    content = path.read_bytes()
    assert content[0] == 0x1E and content[-1] == 0x0A
    return [json.loads(part) for part in content[1:].split(b"\x1e") if part.endswith(b"\n")]


def check_trace(head):
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert head["serialization_format"] == "application/qlog+json-seq"
    assert set(head) <= {"file_schema", "serialization_format", "title", "description", "trace"}
    assert len(json.dumps({key: head[key] for key in ("file_schema", "serialization_format")})) < 256
    trace = head["trace"]
    assert trace["vantage_point"]["type"] in {"client", "server", "network", "unknown"}
    assert re.fullmatch(r"urn:ietf:params:qlog:events:quic-\d+", trace["event_schemas"][0])
    clock = trace["common_fields"]["reference_time"]
    assert clock["clock_type"] == "monotonic" and clock["epoch"] == "unknown"


def check_event(event):
    assert set(event) == {"time", "name", "data"} and isinstance(event["time"], float | int)
    namespace, _, name = event["name"].partition(":")
    assert namespace == "quic" and name in EVENTS
    required, permitted = EVENTS[name]
    data = event["data"]
    assert required <= set(data) <= required | permitted, event
    if "header" in data:
        assert set(data["header"]) == {"packet_type", "packet_number"} and data["header"]["packet_type"] in PACKETS
        assert data["header"]["packet_number"] >= 0
    if "trigger" in data:
        assert data["trigger"] in TRIGGERS[name]
    if name == "timer_updated":
        assert data["event_type"] in {"set", "expired", "cancelled"}
        assert ("delta" in data) <= (data["event_type"] == "set")
    if name == "recovery_metrics_updated":
        assert data and all(isinstance(data[key], int) for key in WHOLE_NUMBERS & set(data))
    for frame in data.get("frames", []):
        required, permitted = FRAMES[frame["frame_type"]]
        assert required <= set(frame) - {"frame_type"} <= required | permitted, frame
        for numbers in frame.get("acked_ranges", []):
            assert len(numbers) in (1, 2) and numbers[0] <= numbers[-1]


def read(path):
    """Returns the events of a log, after checking it against the rules of the drafts."""
    head, *events = texts(path)
    check_trace(head)
    for event in events:
        check_event(event)
    times = [event["time"] for event in events]
    assert times == sorted(times) and events
    return events


def of(events, name):
    return [event for event in events if event["name"] == f"quic:{name}"]


LAN = ct.n_source(
    sources=2,
    link_delay="1ms",
    buffer_cells=500,
    policy=ct.Epd(),
    duration="600ms",
    tcp=ct.Sack(mss="1460B", receive_window="1MB", congestion="cubic", timer_granularity="10ms"),
)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qlog")
    events = ct.Events(folder, kinds=["segments", "timers"], flows=["tcp1"])
    result = ct.run(LAN, events=events, qlog=folder / "run.sqlog")
    return result, read(folder / "run.sqlog")


def test_a_qlog_file_has_each_segment_and_acknowledgement_of_the_event_log(logged):
    result, events = logged
    rows = result.events["segments"].to_pylist()
    sent = [row for row in rows if row["event"] in ("sent", "retransmitted")]
    assert len(sent) > 1000
    found = [
        (event["time"], event["data"]["frames"][0]["offset"], event["data"]["raw"]["payload_length"])
        for event in of(events, "packet_sent")
    ]
    assert found == [(pytest.approx(1e3 * row["time_s"], abs=1e-9), row["sequence"], row["length"]) for row in sent]
    assert [event["data"]["header"]["packet_number"] for event in of(events, "packet_sent")] == list(range(len(sent)))
    received = [row for row in rows if row["event"] == "acknowledged"]
    assert len(of(events, "packet_received")) == len(received)


def test_a_qlog_file_for_qvis_has_the_same_events_under_the_names_of_qlog_0_3(logged, tmp_path):
    """Version 0.3: draft-ietf-quic-qlog-main-schema-02, 3.3, and draft-ietf-quic-qlog-quic-events-01, 5."""
    _, events = logged
    ct.run(LAN, qlog=tmp_path / "run.qlog")
    log = json.loads((tmp_path / "run-tcp1.qlog").read_text())
    assert (log["qlog_version"], log["qlog_format"]) == ("0.3", "JSON")
    [trace] = log["traces"]
    assert trace["common_fields"]["time_format"] == "relative" and trace["vantage_point"]["type"] == "client"
    names = {"metrics_updated": "recovery_metrics_updated", "loss_timer_updated": "timer_updated"}
    for old, new in zip(trace["events"], events, strict=True):
        category, _, name = old["name"].partition(":")
        assert category == ("transport" if name in ("packet_sent", "packet_received") else "recovery")
        assert new["name"] == f"quic:{names.get(name, name)}" and old["time"] == new["time"]
        changed = {key: value for key, value in new["data"].items() if key != "frames"}
        assert {key: value for key, value in old["data"].items() if key != "frames"} == changed
        for found, frame in zip(old["data"].get("frames", []), new["data"].get("frames", []), strict=True):
            if frame["frame_type"] == "stream":
                assert (found["offset"], found["length"]) == (frame["offset"], frame["raw"]["payload_length"])
            assert all(len(numbers) == 2 for numbers in found.get("acked_ranges", []))


def test_losses_in_a_qlog_file_are_the_retransmissions_of_the_event_log(logged):
    result, events = logged
    rows = [row for row in result.events["segments"].to_pylist() if row["event"] == "retransmitted"]
    assert rows
    lost = of(events, "packet_lost")
    assert len(lost) == len(rows)
    timeouts = sum(event["data"]["trigger"] == "pto_expired" for event in lost)
    assert timeouts == sum(row["reason"] == "timeout" for row in rows)
    resent = [event for event in of(events, "packet_sent") if "trigger" in event["data"]]
    assert [event["data"]["frames"][0]["offset"] for event in resent] == [row["sequence"] for row in rows]


def test_windows_and_round_trips_in_a_qlog_file_equal_those_of_the_event_log(logged):
    result, events = logged
    latest = {}
    known = {}
    for event in of(events, "recovery_metrics_updated"):
        latest |= event["data"]
        known[event["time"]] = dict(latest)
    begun, samples = {}, {}
    for row in result.events["segments"].to_pylist():
        time = round(1e3 * row["time_s"], 9)
        if row["event"] == "sent":
            begun[row["sequence"] + row["length"]] = time
        elif row["event"] == "retransmitted":
            begun = {end: start for end, start in begun.items() if end != row["sequence"] + row["length"]}
        elif row["event"] == "acknowledged" and row["reason"] == "new":
            covered = [end for end in begun if end <= row["acknowledgement"]]
            samples[time] = [time - begun[end] for end in covered][-1:]
            begun = {end: start for end, start in begun.items() if end > row["acknowledgement"]}
    # Several events may happen at one time; the last one counts.
    last = {
        round(1e3 * row["time_s"], 9): row
        for row in result.events["segments"].to_pylist()
        if row["event"] in ("sent", "retransmitted", "acknowledged")
    }
    for time, metrics in known.items():
        row = last.get(time)
        if row is not None:
            assert metrics["congestion_window"] == round(row["cwnd"] * 1460)
            assert metrics["ssthresh"] == round(row["ssthresh"] * 1460)
            assert metrics["bytes_in_flight"] == row["flight"]
    measured = [event for event in of(events, "recovery_metrics_updated") if "latest_rtt" in event["data"]]
    assert len(measured) > 300
    for event in measured:
        assert samples[event["time"]] == [pytest.approx(event["data"]["latest_rtt"], abs=1e-6)]
    assert min(event["data"]["latest_rtt"] for event in measured) == of(events, "recovery_metrics_updated")[-1][
        "data"
    ].get("min_rtt", latest["min_rtt"])


def test_congestion_states_in_a_qlog_file_follow_from_the_windows(logged):
    _, events = logged
    states = [event["data"]["new"] for event in of(events, "congestion_state_updated")]
    assert states[0] == "slow_start" and "recovery" in states and "congestion_avoidance" in states
    olds = [event["data"].get("old") for event in of(events, "congestion_state_updated")]
    assert olds == [None, *states[:-1]]


def test_each_flow_has_its_own_qlog_file_even_with_a_real_stack(tmp_path):
    mixed = ct.n_source(
        sources=3,
        link_delay="1ms",
        buffer_cells=300,
        policy=ct.Epd(),
        duration="400ms",
    ).replace(
        flow={
            "tcp2": ct.FlowOptions(stack={"smoltcp": {}}),
            "tcp3": ct.FlowOptions(stack={"quic": {}}),
        }
    )
    result = ct.run(mixed, qlog=tmp_path / "run.sqlog")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-tcp1.sqlog", "run-tcp2.sqlog", "run-tcp3.sqlog"]
    assert result.fingerprint == ct.run(mixed).fingerprint
    assert not len(result.events)
    flows = {flow["name"]: flow for flow in result.to_dict()["flows"]}
    for name in ("tcp1", "tcp2"):
        events = read(tmp_path / f"run-{name}.sqlog")
        assert len(of(events, "packet_sent")) == flows[name]["segments_sent"]
    # smoltcp does not report its window.
    assert not any("congestion_window" in event["data"] for event in of(events, "recovery_metrics_updated"))
    quic = read(tmp_path / "run-tcp3.sqlog")
    data = [event for event in of(quic, "packet_sent") if event["data"]["header"]["packet_type"] == "1RTT"]
    numbers = [event["data"]["header"]["packet_number"] for event in data]
    assert numbers == sorted(set(numbers)) and len(numbers) > 100
    acked = [
        frame["acked_ranges"][-1][-1]
        for event in of(quic, "packet_received")
        for frame in event["data"]["frames"]
        if frame["frame_type"] == "ack"
    ]
    assert max(acked) <= numbers[-1]
    rtts = [event["data"]["latest_rtt"] for event in of(quic, "recovery_metrics_updated")]
    assert min(rtts) >= 6.0


def test_a_qlog_file_of_a_quic_flow_has_the_recorded_windows(tmp_path):
    lan = ct.n_source(
        sources=1, link_delay="1ms", buffer_cells=300, policy=ct.Epd(), duration="200ms", stack={"quic": {}}
    )
    result = ct.run(lan, trace=["cwnd"], step="10ms", qlog=tmp_path / "run.sqlog")
    windows = [
        event["data"]["congestion_window"]
        for event in of(read(tmp_path / "run.sqlog"), "recovery_metrics_updated")
        if "congestion_window" in event["data"]
    ]
    recorded = [round(cwnd * 1460) for cwnd in result.series["cwnd"]["cwnd_segments"].to_pylist() if cwnd is not None]
    # The first is quinn-proto's initial window.
    assert set(windows) <= set(recorded) and len(windows) >= 3 and windows[0] == 12000


def test_a_quic_log_has_the_packets_that_quic_declares_lost(tmp_path):
    # Losses at a full buffer, and random ones, after which few later packets are acknowledged.
    for case, buffer, share in (("full", 200, 0), ("random", 2000, 0.05)):
        loss = [ct.Loss(flow="tcp1", probability={"packets": share})]
        lan = ct.n_source(
            sources=2,
            link_delay="2ms",
            buffer_cells=buffer,
            policy=ct.TailDrop(),
            duration="1s" if NIGHTLY else "400ms",
            stack={"quic": {"receive_window": "1MB"}},
        ).replace(link={"source1->sw1": ct.LinkOptions(lose=loss if share else [])})
        flows = ct.run(lan, qlog=tmp_path / f"{case}.sqlog").to_dict()["flows"]
        triggers = set()
        for flow in flows:
            lost = of(read(tmp_path / f"{case}-{flow['name']}.sqlog"), "packet_lost")
            # The stack itself counts its lost packets.
            assert len(lost) == flow["retransmitted_segments"] > 3, case
            numbers = [event["data"]["header"]["packet_number"] for event in lost]
            assert len(set(numbers)) == len(numbers)
            triggers |= {event["data"]["trigger"] for event in lost}
        assert "time_threshold" in triggers


def test_qlog_refuses_to_overwrite_a_file_and_needs_segment_events(tmp_path, celltrain):
    (tmp_path / "run-tcp1.sqlog").write_text("")
    with pytest.raises(ct.errors.OutputError, match=r"run-tcp1\.sqlog: already exists"):
        ct.run(LAN, qlog=tmp_path / "run.sqlog")
    events = ct.Events(tmp_path / "events", kinds=["timers"])
    with pytest.raises(ct.ScenarioError, match="needs the events of kind"):
        ct.run(LAN, events=events, qlog=tmp_path / "other.sqlog")
    told = celltrain("run", "lan-sack", "--set", "duration=20ms", "--seeds", "2", "--qlog", tmp_path / "a.sqlog")
    assert told.code == 2 and "applies to a single run" in told.err
    told = celltrain("run", "lan-sack", "--set", "duration=20ms", "--qlog", tmp_path / "b.sqlog")
    assert told.code == 0 and "wrote" in told.out and (tmp_path / "b-tcp1.sqlog").exists()
