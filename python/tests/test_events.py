"""Event files of a run.

The tests cover their contents, that recording does not affect the run, and refused requests.
"""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, SMALL, Command

import celltrain as ct
from celltrain.model.measures import EVENTS

KINDS = ("segments", "timers", "frames", "cells", "rates")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def everything(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ct.RunResult, dict[str, pa.Table]]:
    folder = tmp_path_factory.mktemp("everything") / "events"
    result = ct.run(small, events=folder)
    return result, {kind: pq.read_table(folder / f"{kind}.parquet") for kind in KINDS}


def rows(table: pa.Table, **wanted: Any) -> pa.Table:
    for column, value in wanted.items():
        table = table.filter(pa.compute.equal(table[column].cast(pa.string()), value))
    return table


def test_an_event_folder_describes_every_kind_of_event_with_units_and_meanings(
    everything: tuple[ct.RunResult, dict[str, pa.Table]],
) -> None:
    _, tables = everything
    for kind, table in tables.items():
        assert table.schema.metadata[b"kind"] == kind.encode()
        assert table.column_names == [column.name for column in EVENTS[kind].columns]
        for field, column in zip(table.schema, EVENTS[kind].columns, strict=True):
            assert field.metadata == {b"unit": column.unit.encode(), b"meaning": column.meaning.encode()}
        assert len(table) > 0 or kind == "rates"
    for column in ("time_s", "flow", "event", "sequence", "length", "reason", "cwnd", "ssthresh"):
        assert column in tables["segments"].column_names
    for column in ("time_s", "vc", "event", "port", "frame", "occupancy", "vc_cells", "active_vcs", "reason"):
        assert column in tables["frames"].column_names
    for column in ("time_s", "vc", "event", "port", "frame", "index"):
        assert column in tables["cells"].column_names


def test_recording_events_does_not_change_the_run(
    small: Path, everything: tuple[ct.RunResult, dict[str, pa.Table]]
) -> None:
    result, _ = everything
    assert result.engine == "reference"
    assert result.fingerprint == ct.run(small).fingerprint


def test_the_counts_of_events_add_up_to_the_results_of_the_run(
    everything: tuple[ct.RunResult, dict[str, pa.Table]],
) -> None:
    result, tables = everything
    for flow in result.flows.to_pylist():
        counts = Counter(rows(tables["segments"], flow=flow["name"])["event"].to_pylist())
        assert counts["sent"] + counts["retransmitted"] == flow["segments_sent"]
        assert counts["retransmitted"] == flow["retransmitted_segments"]
        arrived = rows(tables["segments"], flow=flow["name"], event="arrived", reason="repeated")
        assert len(arrived) == flow["repeated_segments"]
        expired = rows(tables["timers"], flow=flow["name"], timer="retransmission", event="expired")
        assert len(expired) == flow["timeouts"]
    [port] = [port for port in result.ports.to_pylist() if port["name"] == "sw1->sw2"]
    counts = Counter(tables["cells"]["event"].to_pylist())
    assert counts["arrived"] == port["offered_cells"]
    assert counts["departed"] == port["forwarded_cells"]
    assert counts["lost"] == port["lost_overflow_cells"] + port["discarded_cells"]
    frames = rows(tables["frames"], port="sw1->sw2", event="refused")
    assert len(frames) == port["discarded_frames"] > 0
    assert set(frames["reason"].to_pylist()) == {"X is above R"}
    assert min(frames["occupancy"].to_pylist()) > 60 == frames["threshold_cells"][0].as_py()


def test_cell_events_number_the_cells_within_each_frame(everything: tuple[ct.RunResult, dict[str, pa.Table]]) -> None:
    _, tables = everything
    cells = rows(tables["cells"], vc="tcp1", frame="0")
    by_event = {event: rows(cells, event=event)["index"].to_pylist() for event in ("arrived", "admitted", "departed")}
    assert all(numbers == list(range(12)) for numbers in by_event.values()), by_event
    assert rows(cells, event="arrived")["last"].to_pylist() == [False] * 11 + [True]


def test_the_events_of_a_run_that_ends_early_are_the_first_events_of_the_complete_run(
    small: Path, everything: tuple[ct.RunResult, dict[str, pa.Table]], tmp_path: Path
) -> None:
    whole, tables = everything
    window = ct.Events(tmp_path / "window", window="300us:900us")
    result = ct.run(small, events=window, trace="queue", step="1ms")
    assert (result.engine, result.fingerprint) == ("fast", whole.fingerprint)
    assert len(result.series["queue"]) == 21
    for kind, table in tables.items():
        times = table["time_s"]
        within = pa.compute.and_(pa.compute.greater_equal(times, 0.0003), pa.compute.less(times, 0.0009))
        assert kind in ("timers", "rates") or len(table.filter(within)) > 0
        assert pq.read_table(tmp_path / "window" / f"{kind}.parquet").to_pylist() == table.filter(within).to_pylist(), (
            kind
        )
    # A capture of cells also ends with the window. Packets are written once their outcome is known.
    for kind, engine in {"cells": "fast", "ip": "reference"}.items():
        pcap = ct.Capture(tmp_path / f"{kind}.pcapng", kind=kind, window="300us:900us")
        assert ct.run(small, pcap=pcap).engine == engine
        assert pcap.path.stat().st_size > 1000
    asked = ct.run(small, events=ct.Events(tmp_path / "asked", window="300us:900us"), engine="reference")
    assert asked.engine == "reference"


def test_segment_events_of_the_fast_engine_equal_those_of_the_reference_engine(
    small: Path, everything: tuple[ct.RunResult, dict[str, pa.Table]], tmp_path: Path
) -> None:
    result = ct.run(small, events=ct.Events(tmp_path, kinds=["segments", "timers"]))
    assert result.engine == "fast"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["segments.parquet", "timers.parquet"]
    for kind in ("segments", "timers"):
        assert pq.read_table(tmp_path / f"{kind}.parquet").equals(everything[1][kind])


def test_events_can_be_selected_by_kind_flow_and_time_window_on_the_command_line(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "events"
    answer = celltrain(
        "run", small, "--events", out, "--kinds", "segments,frames", "--flow", "tcp2", "--window", "0ms:1ms"
    )
    assert (answer.code, answer.err) == (0, "")
    assert f"wrote {out / 'segments.parquet'}" in answer.out
    assert "Events come from the reference engine, which stopped at the end of the window." in answer.out
    for kind in ("segments", "frames"):
        table = pq.read_table(out / f"{kind}.parquet")
        assert set(table["flow"].to_pylist()) == {"tcp2"}
        times = table["time_s"].to_pylist()
        assert 0 <= min(times) <= max(times) < 0.001


def test_a_rate_change_event_names_the_rule_that_caused_the_change(tmp_path: Path) -> None:
    result = ct.run(
        abr(tmp_path),
        events=ct.Events(tmp_path / "out", kinds=["rates", "cells"]),
    )
    rates = pq.read_table(tmp_path / "out" / "rates.parquet")
    assert any(reason.startswith("rule 9") for reason in rates["reason"].to_pylist())
    for row in result.abr.to_pylist():
        own = rows(rates, vc=row["vc"])["acr_mbps"].to_pylist()
        assert not own or own[-1] == row["acr_mbps"]
    cells = pq.read_table(tmp_path / "out" / "cells.parquet")
    assert {"forward", "backward"} & set(cells["rm"].to_pylist())


def abr(folder: Path) -> Path:
    path = folder / "abr.toml"
    path.write_text(
        'duration = "20ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n[port.bottleneck]\nbuffer = 500\n'
        "[port.bottleneck.policy.tail_drop]\n[port.bottleneck.allocator.erica]\n[port.default]\nbuffer = 500\n"
        "[port.default.policy.tail_drop]\n[port.default.allocator.erica]\n[vc.tcp1.abr]\n[vc.tcp2.abr]\n"
    )
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kinds", ""], "is not a kind of event (choose from segments"),
        (["--window", "5ms:5ms"], "is empty: its start and its end are equal"),
        (
            ["--kinds", "segment"],
            "is not a kind of event; did you mean segments? (choose from segments, timers, frames",
        ),
        (["--window", "1ms:90ms"], "lies outside the run, which lasts 20ms"),
        (["--window", "5ms:1ms"], "ends before it begins"),
        (["--window", "soon"], "is not a time window such as 1.2s:1.3s"),
        (["--port", "sw1->sw3"], "is not a port of this network; did you mean sw1->sw2?"),
        (["--flow", "tcp9"], "is not a flow of this network; did you mean tcp1? (choose from tcp1, tcp2, tcp3)"),
        (["--vc", "tcp9"], "is not a VC of this network; did you mean tcp1?"),
        (["--engine", "fast"], "does not report frames, cells, rates"),
    ],
)
def test_impossible_event_options_are_refused_and_no_file_is_written(
    celltrain: Command, small: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    out = tmp_path / "events"
    answer = celltrain("run", small, "--events", out, *options)
    assert answer.code == 2
    assert words in " ".join(answer.err.split())
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--window", "1ms:90ms"], ["--port", "sw1->sw3"], ["--vc", "tcp1", "--flow", "tcp2"]]
)
def test_refused_event_options_create_no_folder(
    celltrain: Command, small: Path, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "there").mkdir()
    for out in (tmp_path / "a" / "b", tmp_path / "there"):
        assert celltrain("run", small, "--events", out, *options).code == 2
    assert celltrain("run", small, "--trace", "queue", "--step", "1ps", "--out", tmp_path / "out").code == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]


def test_selecting_a_flow_together_with_a_vc_that_does_not_carry_the_flow_is_refused(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    for file in (["--events", tmp_path / "events"], ["--pcap", tmp_path / "run.pcapng"]):
        answer = celltrain("run", small, *file, "--flow", "tcp1", "--vc", "tcp2")
        assert answer.code == 2
        problem = 'vcs = "tcp2" excludes every VC that the option flows selects: tcp1, tcp1-acks'
        assert problem in " ".join(answer.err.split())


def test_a_note_lists_event_files_that_have_no_rows(celltrain: Command, small: Path, tmp_path: Path) -> None:
    answer = celltrain("run", small, "--events", tmp_path / "out", "--window", "0s:1ns", "--kinds", "timers,frames")
    assert answer.code == 0
    assert f"wrote {tmp_path / 'out' / 'timers.parquet'}: no timers in the window" in answer.out
    answer = celltrain("run", small, "--events", tmp_path / "more", "--kinds", "segments,rates")
    assert f"wrote {tmp_path / 'more' / 'rates.parquet'}: no rates in the run" in answer.out
    assert "no segments" not in answer.out


def test_the_events_of_a_run_cannot_be_written_into_the_event_folder_of_another_run(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "events"
    assert celltrain("run", small, "--events", out, "--kinds", "segments").code == 0
    answer = celltrain("run", small, "--events", out, "--kinds", "frames", "--seed", "9")
    assert answer.code == 2
    assert "segments.parquet: already exists; name another folder" in answer.err
    assert sorted(path.name for path in out.iterdir()) == ["segments.parquet"]


@pytest.mark.slow
def test_events_behind_a_merge_point_count_the_cells_of_the_merged_vc(tmp_path: Path) -> None:
    path = tmp_path / "merge.toml"
    path.write_text(MERGE)
    kept = ct.Events(tmp_path / "out", kinds=["frames", "cells"], ports=["local1->sw1", "sw1->sw2"])
    log = ct.run(path, events=kept).events
    cells, frames = log["cells"].to_pylist(), log["frames"].to_pylist()
    assert {(row["vc"], row["port_vc"]) for row in cells if row["port"] == "sw1->sw2"} == {
        *(("tcp1", "vc1"), ("tcp2", "vc1"), ("tcp3", "vc2"), ("tcp4", "vc2")),
    }
    assert all(row["port_vc"] == row["vc"] for row in cells if row["port"] == "local1->sw1")
    assert all((row["port_vc"] is None) == (row["port"] is None) for row in frames)
    # Frames are numbered within the VC that sent the frames.
    assert max(row["frame"] for row in [*cells, *frames]) < 1000
    waiting: dict[str, int] = {}
    judged = 0
    events = [(row["time_s"], 0, row) for row in frames if row["port"] == "sw1->sw2" and row["event"] == "refused"]
    events += [(row["time_s"], 1, row) for row in cells if row["port"] == "sw1->sw2"]
    for _, is_cell, row in sorted(events, key=lambda event: event[:2]):
        vc, event = row["port_vc"], row["event"]
        if not is_cell:
            judged += 1
            assert row["vc_cells"] == waiting.get(vc, 0)
            assert row["active_vcs"] == sum(count > 0 for count in waiting.values())
        elif event in ("admitted", "departed"):
            waiting[vc] = waiting.get(vc, 0) + (1 if event == "admitted" else -1)
    assert judged > 10


MERGE = """
duration = "100ms"
[topology.vc_merge]
vcs = 2
sources_per_vc = 2
link_delay = "100us"
[tcp.tahoe]
mss = "1024B"
[port.bottleneck]
buffer = 2000
[port.bottleneck.policy.single_drop.thresholds]
vc1 = 100
vc2 = 150
[port.default]
buffer = "infinite"
[port.default.policy.tail_drop]
"""


@pytest.mark.slow
def test_a_packet_dropped_by_an_edge_device_after_a_rate_decrease_appears_in_all_event_tables(tmp_path: Path) -> None:
    path = tmp_path / "edge.toml"
    text = (ROOT / "scenarios" / "abr-shared-edge.toml").read_text()
    path.write_text(re.sub(r"^duration = .*$", 'duration = "200ms"', text, flags=re.M))
    kept = ct.Events(tmp_path / "out", kinds=["frames", "cells"], ports=["edge->sw1"])
    result = ct.run(path, seed=3, events=kept)
    frames = [row for row in result.events["frames"].to_pylist() if row["event"] == "dropped"]
    cells = [row for row in result.events["cells"].to_pylist() if row["event"] == "dropped"]
    assert {row["reason"] for row in [*frames, *cells]} == {"the rate fell"}
    assert {(row["vc"], row["frame"]) for row in frames} == {(row["vc"], row["frame"]) for row in cells}
    [port] = [port for port in result.ports.to_pylist() if port["name"] == "edge->sw1"]
    assert (port["discarded_frames"], port["discarded_frame_cells"]) == (len(frames), len(cells))
    cut = [row["event"] for row in result.events["frames"].to_pylist() if row["port"] == "edge->sw1"].count("cut")
    assert port["cut_frames"] == cut > 0
    pytest.importorskip("matplotlib")
    labels = result.plot.anatomy("edge->sw1").get_legend_handles_labels()[1]
    assert f"cell dropped: the rate fell ({len(cells)})" in labels
    first = frames[0]
    labels = result.plot.ladder(first["vc"], first["frame"]).get_legend_handles_labels()[1]
    own = sum(row["frame"] == first["frame"] and row["vc"] == first["vc"] for row in cells)
    assert {f"lost: the rate fell ({own} of {own})", "waits"} <= set(labels)


def test_a_sampling_step_shorter_than_the_time_unit_is_refused_and_the_message_states_the_unit() -> None:
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="100us")
    with pytest.raises(
        ct.ScenarioError, match=r"shorter than a tick of the run's clock, so the smallest step is (.*)s"
    ):
        ct.run(lan, trace="queue", step="1ns")
    times = ct.run(lan, trace="queue").series["queue"]["time_s"].to_pylist()
    assert len(set(times)) == len(times) == 1001


def test_recording_events_does_not_overwrite_an_existing_file(celltrain: Command, small: Path, tmp_path: Path) -> None:
    there = tmp_path / "timers.parquet"
    there.write_text("mine")
    answer = celltrain("run", small, "--events", tmp_path)
    assert (answer.code, there.read_text()) == (2, "mine")
    assert "timers.parquet: already exists" in answer.err
    assert list(tmp_path.iterdir()) == [there]


def test_an_event_option_without_an_output_folder_is_refused(celltrain: Command, small: Path) -> None:
    answer = celltrain("run", small, "--window", "1ms:2ms")
    assert answer.code == 2
    assert "name a folder for the events with --events DIR" in answer.err


def test_an_interrupted_run_keeps_its_incomplete_event_files(tmp_path: Path) -> None:
    lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800), duration="60s")
    cancel = ct.Cancel()

    def progress(share: float) -> None:
        if share > 0.01:
            cancel.cancel()

    with pytest.raises(ct.CancelledError) as raised:
        ct.run(lan, events=ct.Events(tmp_path, kinds=["segments"]), progress=progress, cancel=cancel)
    assert [path.name for path in tmp_path.iterdir()] == ["segments.parquet"]
    times = pq.read_table(tmp_path / "segments.parquet")["time_s"].to_pylist()
    assert 0.5 < max(times) < 59
    [note] = raised.value.__notes__
    assert note.startswith(f"kept until {max(times):.9g} s, the last event that was written: {tmp_path}")
    assert (
        pq.read_metadata(tmp_path / "segments.parquet").metadata[b"interrupted_at_s"] == f"{max(times):.12g}".encode()
    )
    assert b"interrupted_at_s" in ct.read_events(tmp_path)["segments"].schema.metadata


def test_writing_events_is_not_interrupted_by_the_time_limit_for_user_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Regression: after 50 ms, the writer's Python code was interrupted as if it were the user's policy.
    lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800), duration="60s")
    cancel = ct.Cancel()
    write = pq.ParquetWriter.write_table

    def write_slowly(*arguments: Any) -> None:
        cancel.cancel()
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        write(*arguments)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", write_slowly)
    with pytest.raises(ct.CancelledError):
        ct.run(lan, events=ct.Events(tmp_path, kinds=["segments"]), cancel=cancel)
    assert pq.read_table(tmp_path / "segments.parquet").num_rows > 0


@pytest.mark.nightly
@pytest.mark.slow
def test_after_ctrl_c_a_message_states_how_many_events_were_kept_and_up_to_which_time(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(SMALL.replace('duration = "20ms"', 'duration = "1000s"'))
    out = tmp_path / "events"
    command = [sys.executable, "-m", "celltrain", "run", scenario, "--events", out, "--kinds", "segments"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (out.is_dir() and any(path.stat().st_size > 100_000 for path in out.iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert re.search(
        r"^interrupted\nkept until [\d.]+ s, the last event that was written: .*segments.parquet$", said, re.M
    )


@pytest.mark.slow
def test_a_full_disk_leaves_no_incomplete_event_file(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    out = tmp_path / "events"
    ended = subprocess.run(
        [sys.executable, "-m", "celltrain", "run", scenario, "--events", out],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert ended.returncode == 2, ended.stderr
    assert "cannot be written (File too large)" in " ".join(ended.stderr.split())
    assert not out.exists()


def test_python_code_can_be_profiled_after_a_run_with_events(tmp_path: Path) -> None:
    """Regression: in Python 3.11, no function that was called under a profiler ever began."""
    program = (
        "import cProfile, celltrain as ct\n"
        "scenario = ct.n_source(sources=2, link_delay='5us', buffer_cells=100, duration='1ms', policy=ct.TailDrop())\n"
        f"ct.run(scenario, events={str(tmp_path / 'events')!r})\n"
        "def called(): return 7\n"
        "for _ in range(20): called()\n"
        "print(cProfile.Profile().runcall(called))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7\n"
