"""Event tables and diagrams of a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import SMALL, Command

import celltrain as ct
from celltrain.model import types as models

pytest.importorskip("matplotlib")

PORTS = ["source1->sw1", "sw1->sw2", "sw2->destination1"]


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def scenario(**changes) -> ct.Scenario:
    settings = {"policy": ct.Epd(threshold=60), "tcp": ct.Sack(), "duration": "20ms", "name": "three"}
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=100, **{**settings, **changes})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ct.RunResult:
    folder = tmp_path_factory.mktemp("diagrams") / "events"
    return ct.run(scenario(), trace="queue", step="100us", events=ct.Events(folder=folder, ports=PORTS))


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> ct.RunResult:
    """A run with tail drop, in which frames lose single cells."""
    folder = tmp_path_factory.mktemp("cut") / "events"
    return ct.run(scenario(policy=ct.TailDrop()), events=ct.Events(folder=folder, ports=PORTS))


def labels(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_an_event_folder_reads_each_table_at_its_first_use(result: ct.RunResult) -> None:
    assert list(result.events) == ["segments", "timers", "frames", "cells", "rates", "memories"]
    folder = result.events.folder
    assert folder is not None
    for kind in result.events:
        assert result.events[kind].equals(pq.read_table(folder / f"{kind}.parquet"))
    assert result.events["segments"] is result.events["segments"]
    metadata = result.events["segments"].schema.metadata
    assert (metadata[b"scenario"], metadata[b"seed"]) == (b"three", b"1")


def test_the_error_for_an_event_plot_with_missing_events_names_those_events(
    result: ct.RunResult, tmp_path: Path
) -> None:
    with pytest.raises(ct.NotTracedError, match=r"the run recorded no events: run it with events=ct.Events"):
        ct.run(scenario(duration="1ms")).events["segments"]
    some = ct.run(scenario(duration="1ms"), events=ct.Events(folder=tmp_path, kinds=["timers"]))
    with pytest.raises(ct.NotTracedError, match="the run recorded no frames, only timers"):
        some.events["frames"]
    with pytest.raises(ct.NotTracedError, match="'packets' is not a kind of event; choose from segments, timers"):
        result.events["packets"]
    with pytest.raises(ct.NotTracedError, match="recorded no segments"):
        some.plot.sequence("tcp1")


def test_drawing_an_event_plot_from_a_folder_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ct.InputError, match="there is no such folder"):
        ct.read_events(tmp_path / "nowhere")
    with pytest.raises(ct.InputError, match="has no tables of events; write them with celltrain run FILE --events DIR"):
        ct.read_events(tmp_path)
    (tmp_path / "cells.parquet").write_text("no table")
    log = ct.read_events(tmp_path)
    with pytest.raises(ct.InputError, match="is not a table of cells that celltrain wrote"):
        log["cells"]


def test_the_time_sequence_plot_shows_segments_and_acknowledgements_and_where_each_segment_was_lost(
    result: ct.RunResult,
) -> None:
    axes = result.plot.sequence("tcp1")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (ms)", "place in the stream (kB)")
    assert axes.get_title().splitlines()[:2] == ["segments of tcp1", "three, seed 1"]
    frames = result.events["frames"].to_pylist()
    refused = [row for row in frames if row["vc"] == "tcp1" and row["event"] == "refused"]
    assert f"lost at sw1->sw2 (refused): {len(refused)}" in labels(axes)
    assert {"sent", "sent again: third duplicate ACK", "ACK", "duplicate ACK", "ACK + cwnd"} <= set(labels(axes))
    [ack] = [line for line in axes.get_lines() if line.get_label() == "ACK"]
    assert (np.diff(ack.get_ydata()) >= 0).all()


def test_the_time_sequence_plot_draws_only_the_chosen_ranges_of_times_and_sequence_numbers(
    result: ct.RunResult,
) -> None:
    axes = result.plot.sequence("tcp1", window="5ms:8ms")
    assert 4.8 < axes.get_xlim()[0] < axes.get_xlim()[1] < 8.2


def test_the_time_axis_of_an_event_plot_covers_the_requested_window(result: ct.RunResult) -> None:
    diagrams = result.plot
    for draw in (
        lambda window: diagrams.sequence("tcp1", window=window),
        lambda window: diagrams.anatomy("sw1->sw2", window=window),
    ):
        assert draw("5ms:8.5ms").get_xlim() == pytest.approx((5, 8.5))
        # A window without an end extends to the last event.
        low, high = draw("5ms:").get_xlim()
        assert low == pytest.approx(5) and 5 < high < 1e6
    axes = result.plot.anatomy("sw1->sw2", window="5ms:8.5ms")
    edges = [area.get_paths()[0].vertices[:, 0] for area in axes.collections]
    assert all((edge.min(), edge.max()) == pytest.approx((5, 8.5)) for edge in edges)


def test_the_cells_in_the_buffer_anatomy_plot_add_up_to_the_recorded_queue_length(result: ct.RunResult) -> None:
    from celltrain.drawing.diagrams import _waiting, rows_of

    vcs, times, waiting = _waiting(rows_of(result.events["cells"], port="sw1->sw2"))
    assert set(vcs) == {"tcp1", "tcp2", "tcp3"}
    queue = result.series["queue"].to_pydict()
    for time, cells in zip(queue["time_s"], queue["queue_cells"], strict=True):
        last = np.searchsorted(times, time, side="right") - 1
        assert (waiting[:, last].sum() if last >= 0 else 0) == cells


@pytest.mark.parametrize("policy", [ct.TailDrop(), ct.DropFromFront(), ct.Epd(threshold=60)])
def test_the_anatomy_plot_includes_cells_queued_at_the_start_of_the_window(
    policy: models.Policy, tmp_path: Path
) -> None:
    """Only cells in the window are read, so cells that were already waiting at its start leave without an arrival."""
    from celltrain.drawing.diagrams import _waiting

    whole = ct.run(
        scenario(policy=policy), trace="queue", step="50us", events=ct.Events(folder=tmp_path / "all", kinds=["cells"])
    )
    kept = ct.Events(folder=tmp_path / "some", kinds=["cells"], window="1.5ms:9ms")
    vcs, times, waiting = _waiting(ct.run(scenario(policy=policy), events=kept).events["cells"])
    assert waiting.min() >= 0
    queue = whole.series["queue"].to_pydict()
    for time, cells in zip(queue["time_s"], queue["queue_cells"], strict=True):
        if times[0] < time < 0.009:
            assert waiting[:, np.searchsorted(times, time, side="right") - 1].sum() == cells, (vcs, time)


def test_the_anatomy_plot_shows_when_the_port_was_paused() -> None:
    """Two bursts of thousands of cells with a long pause and an empty buffer between them, then a third burst."""
    from celltrain.drawing.diagrams import _COLUMNS, _drawn

    burst = np.concatenate([np.arange(1, 801), np.arange(799, -1, -1)])
    times = np.concatenate([start + np.arange(1600) * 3e-6 for start in (0.0, 0.3, 0.39)])
    total = np.tile(burst, 3)
    rows = _drawn(times, total)
    assert len(rows) <= 4 * _COLUMNS
    for time in (0.1, 0.29, 0.35, 0.389):
        before = np.searchsorted(times[rows], time, side="right") - 1
        assert total[rows][before] == 0
    assert total[rows].max() == 800


@pytest.mark.slow
def test_the_anatomy_plot_shows_the_threshold_the_buffer_size_and_congestion_marks(
    result: ct.RunResult, cut: ct.RunResult
) -> None:
    axes = result.plot.anatomy("sw1->sw2")
    refused = sum(row["event"] == "refused" for row in result.events["frames"].to_pylist())
    assert set(labels(axes)) == {
        *("tcp1", "tcp2", "tcp3", f"frame refused ({refused})", "threshold: 60 cells", "buffer: 100 cells"),
    }
    assert axes.get_ylabel() == "cells waiting"
    lost = [row for row in cut.events["cells"].to_pylist() if row["event"] == "lost" and row["port"] == "sw1->sw2"]
    assert f"cell lost: no room ({len(lost)})" in labels(cut.plot.anatomy("sw1->sw2"))


def test_the_ladder_plot_follows_a_frame_from_port_to_port(result: ct.RunResult) -> None:
    axes = result.plot.ladder("tcp1", 0)
    assert axes.get_title().endswith(f"\nTCP: {result.tcp}")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["source1", "sw1", "sw2", "destination1"]
    links = [line for line in axes.get_lines() if len(set(line.get_xdata())) == 2 and line.get_linewidth() == 0.8]
    assert {line.get_color() for line in links} == {"#0072B2"}
    assert len(links) == 3 * 12
    for line in links:
        first, last = line.get_ydata()
        # The delay is 5 us of propagation plus 2.7 us for a cell at 155.52 Mb/s.
        assert 7.6 < last - first < 7.9
    assert "delivered" in labels(axes)


def test_by_default_the_ladder_plot_shows_the_first_frame_that_lost_some_of_its_cells(cut: ct.RunResult) -> None:
    plot = cut.events.plot
    axes = plot.ladder("tcp1")
    first = next(r for r in cut.events["frames"].to_pylist() if r["vc"] == "tcp1" and r["event"] == "cut")
    assert f"frame {first['frame']} of tcp1" in axes.get_title()
    assert any(label.startswith("lost: no room") for label in labels(axes))
    assert plot.notes == []


def test_without_partly_lost_frames_the_ladder_plot_shows_the_frame_with_the_longest_delay(
    result: ct.RunResult,
) -> None:
    frames = result.events["frames"].to_pylist()
    assert any(r["vc"] == "tcp1" and r["event"] == "refused" for r in frames)
    assert not any(r["vc"] == "tcp1" and r["event"] == "cut" for r in frames)
    plot = result.events.plot
    axes = plot.ladder("tcp1")
    assert "waits" in labels(axes) and "delivered" in labels(axes)
    assert plot.notes == ["No frame of tcp1 lost only some of its cells at these ports: this is the slowest frame."]


@pytest.mark.slow
def test_by_default_event_plots_show_the_connection_with_the_longest_gap_between_segments(
    celltrain: Command, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert celltrain("run", "lan-epd", "--set", "duration=50ms", "--events", out).code == 0
    retransmitted = ct.read_events(out)["segments"].to_pylist()
    counts = Counter(row["flow"] for row in retransmitted if row["event"] == "retransmitted")
    told = celltrain("plot", "sequence", out)
    worst = told.out.partition(" ")[0]
    assert counts[worst] == max(counts.values(), default=0)
    assert told.out.startswith(
        f"{worst} retransmitted the most, so this flow is drawn; to draw another flow, add --flow NAME\n"
    )
    answer = json.loads(celltrain("plot", "ladder", out, "--json").out)
    assert answer["flow"] in ct.read_events(out)["cells"]["vc"].to_pylist()


def test_the_anatomy_plot_of_one_flow_shows_only_the_cells_of_this_flow(tmp_path: Path) -> None:
    kept = ct.Events(folder=tmp_path / "tcp2", flows=["tcp2"])
    ct.run(scenario(), events=kept)
    axes = ct.read_events(tmp_path / "tcp2").plot.anatomy()
    assert axes.get_title().startswith("cells waiting at sw1->sw2")
    assert "tcp2" in labels(axes) and "tcp1" not in labels(axes)


def test_an_event_folder_lists_its_flows_its_buffers_and_the_tcp_variant(result: ct.RunResult) -> None:
    folder = result.events.folder
    assert folder is not None
    axes = ct.read_events(folder).plot.anatomy("sw1->sw2")
    assert "buffer: 100 cells" in labels(axes)
    tcp = "TCP: sack (selective acknowledgements, 100 ms ticks)"
    assert axes.get_title().splitlines()[1:] == ["three, seed 1", tcp]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> ct.RunResult:
    """A run with PPD: a frame that loses a cell also loses all later cells."""
    return ct.run(scenario(policy=ct.Ppd()), events=tmp_path_factory.mktemp("rest") / "events")


def test_the_anatomy_plot_marks_every_cell_that_the_buffer_lost(rest: ct.RunResult) -> None:
    lost = [row["reason"] for row in rest.events["cells"].to_pylist() if row["event"] == "lost"]
    of_frames = lost.count("its frame had lost a cell")
    marks = labels(rest.plot.anatomy())
    assert f"cell lost: no room ({lost.count('no room'):,})" in marks
    assert f"cell lost: its frame had already lost a cell ({of_frames:,})" in marks
    assert of_frames > 100 and lost.count("no room") + of_frames == len(lost)


def test_the_ladder_plot_counts_losses_by_their_reason(rest: ct.RunResult) -> None:
    cells = [row for row in rest.events["cells"].to_pylist() if row["event"] == "lost" and row["vc"] == "tcp1"]
    frame = next(row["frame"] for row in cells if row["reason"] == "its frame had lost a cell")
    reasons = [row["reason"] for row in cells if row["frame"] == frame]
    marks = labels(rest.plot.ladder("tcp1", frame))
    for reason in set(reasons):
        assert any(label.startswith(f"lost: {reason} ({reasons.count(reason)} of ") for label in marks), marks


def test_the_anatomy_plot_shows_vcs_that_are_merged_as_one_vc(tmp_path: Path) -> None:
    path = tmp_path / "merge.toml"
    path.write_text(
        'duration = "20ms"\n[topology.vc_merge]\nvcs = 2\nsources_per_vc = 2\nlink_delay = "5us"\n[tcp.tahoe]\n'
        '[port.default]\nbuffer = "infinite"\n[port.default.policy.tail_drop]\n'
    )
    axes = ct.run(path, events=ct.Events(tmp_path / "out", kinds=["cells"])).plot.anatomy("sw1->sw2")
    assert labels(axes) == ["vc1", "vc2"]


@pytest.mark.nightly
@pytest.mark.slow
def test_drawing_event_plots_of_the_same_run_again_gives_identical_files(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    drawn: list[list[bytes]] = []
    for name in ("a", "b"):
        out = tmp_path / name
        assert celltrain("run", small, "--events", out).code == 0
        answer = celltrain("plot", "sequence", out, "--flow", "tcp1", "--json")
        assert (answer.code, answer.json["written"]) == (0, [str(out / "sequence.svg")])
        assert celltrain("plot", "anatomy", out, "--window", "0ms:10ms").out == f"wrote {out / 'anatomy.svg'}\n"
        ladder = out / "ladder.png"
        assert celltrain("plot", "ladder", out, "--flow", "tcp1", "--frame", "1", "--out", ladder).code == 0
        drawn.append([(out / file).read_bytes() for file in ("sequence.svg", "anatomy.svg", "ladder.png")])
    assert drawn[0] == drawn[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sequence", "--flow", "tcp9"], "is not a flow of these events; did you mean tcp3? (choose from tcp1, tcp2"),
        (["sequence", "--flow", "tcp1", "--window", "soon"], "window = soon has an end that is not a time such as"),
        (["sequence", "--flow", "tcp1", "--window", "1ms"], "is not a time window such as 1.2s:1.3s"),
        (["sequence", "--flow", "tcp1", "--window", "90ms:"], "has no recorded events to draw"),
        (["sequence", "--flow", "tcp1", "--out", "x.gif"], "Cannot draw x.gif: use .svg, .pdf or .png."),
        (["anatomy", "--port", "sw1"], "is not a port of these events; did you mean sw1->sw2?"),
        (["ladder", "--flow", "tcp1", "--frame", "100000"], "has no recorded cells"),
    ],
)
def test_the_error_for_an_event_plot_that_cannot_be_drawn_gives_the_reason(
    celltrain: Command, tmp_path_factory: pytest.TempPathFactory, arguments: list[str], words: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "refused"
    if not folder.exists():
        small = tmp_path_factory.getbasetemp() / "refused.toml"
        small.write_text(SMALL)
        ct.run(small, events=folder)
    answer = celltrain("plot", arguments[0], folder, *arguments[1:])
    assert answer.code == 2
    assert words in " ".join(answer.err.split())


def test_terminal_and_typesetting_commands_in_names_are_escaped_in_event_plots(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(SMALL.replace('name = "small"', 'name = "$x^2$ \\u001b[31m"'))
    axes = ct.run(path, events=tmp_path / "events").plot.sequence("tcp1")
    assert axes.title.get_text().splitlines()[1] == "$x^2$ \\x1b[31m, seed 1"
    assert not axes.title.get_parse_math()
