"""The smallest and largest queue in each step of a series, and their band in the plot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from conftest import Command

import celltrain as ct


@pytest.fixture(autouse=True)
def closed():
    yield
    if pytest.importorskip("matplotlib"):
        from matplotlib import pyplot

        pyplot.close("all")


def scenario(policy: ct.Policy) -> ct.Scenario:
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=policy, duration="20ms")


def labels(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("policy", [ct.TailDrop(), ct.DropFromFront(), ct.Epd(threshold=60)])
def test_recorded_queue_ranges_match_those_computed_from_the_events_of_every_cell(
    policy: ct.Policy, engine: str, tmp_path: Path
) -> None:
    kept = ct.Events(folder=tmp_path, kinds=["cells"], ports="sw1->sw2")
    result = ct.run(scenario(policy), trace="queue", step="100us", engine=engine)
    events = ct.run(scenario(policy), events=kept).events["cells"].to_pydict()
    change = {"admitted": 1, "departed": -1, "pushed_out": -1}
    steps = np.array([change.get(event, 0) for event in events["event"]])
    after, times = np.cumsum(steps), np.array(events["time_s"])
    queue = result.series["queue"].to_pydict()
    before = 0
    for i, sampled in enumerate(queue["time_s"]):
        # A sample includes all events at the time of the sample.
        own = (times <= sampled + 1e-12) & (times > (queue["time_s"][i - 1] + 1e-12 if i else -1.0))
        lengths = [before, *after[own]]
        found = queue["queue_cells_least"][i], queue["queue_cells_largest"][i]
        assert found == (min(lengths), max(lengths)), sampled
        before = lengths[-1]
        assert queue["queue_cells"][i] == before
    largest = {port["name"]: port["max_queue_cells"] for port in result.ports.to_pylist()}["sw1->sw2"]
    assert max(queue["queue_cells_largest"]) == largest


def test_the_recorded_queue_range_of_a_port_whose_queue_is_always_empty_is_0_to_0() -> None:
    """The fast engine stores no queue for this port unless a range is recorded."""
    for engine in ("fast", "reference"):
        result = ct.run(scenario(ct.TailDrop()), trace="queue", step="1ms", ports="sw2->destination1", engine=engine)
        queue = result.series["queue"].to_pydict()
        assert set(queue["queue_cells"]) | set(queue["queue_cells_least"]) == {0}
        assert set(queue["queue_cells_largest"]) == {0, 1}


def test_recording_queue_ranges_does_not_change_the_fingerprint() -> None:
    plain = ct.run("lan-epd", seed=3)
    every = [port["name"] for port in plain.to_dict()["ports"]]
    assert ct.run("lan-epd", seed=3, trace="queue", step="777us", ports=every).fingerprint == plain.fingerprint


def test_the_csv_file_of_a_queue_range_and_its_description_have_the_same_columns(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    assert celltrain("run", small, "--trace", "queue", "--out", tmp_path / "out").code == 0
    columns = ["time_s", "port", "queue_cells", "queue_cells_least", "queue_cells_largest"]
    assert pyarrow.csv.read_csv(tmp_path / "out" / "queue.csv").column_names == columns
    answer = json.loads((tmp_path / "out" / "result.json").read_text())
    assert "threshold_cells" in answer["ports"][0]


def test_the_plot_of_a_queue_range_shows_the_range_the_threshold_and_the_buffer_size() -> None:
    pytest.importorskip("matplotlib")
    result = ct.run("lan-epd", trace="queue")
    axes = result.plot.queue()
    [band] = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    port = next(one for one in result.to_dict()["ports"] if one["name"] == "sw1->sw2")
    assert heights.max() == port["max_queue_cells"] > max(result.series["queue"].to_pydict()["queue_cells"])
    assert axes.get_ylim()[1] > port["max_queue_cells"]
    assert labels(axes) == [
        *("sw1->sw2", "smallest to largest value in each 10 ms", "threshold of epd: 800 cells", "buffer: 1,000 cells"),
    ]
    assert axes.get_title().splitlines()[2] == "TCP: vanilla (no fast retransmit, rules of the papers, 100 ms ticks)"
    late = [row for row in result.series["queue"].to_pylist() if row["time_s"] > 7]
    assert max(row["queue_cells_largest"] for row in late) > 800


def test_the_queue_range_plot_of_a_port_without_a_threshold_shows_only_the_buffer_size() -> None:
    pytest.importorskip("matplotlib")
    axes = ct.run(scenario(ct.TailDrop()), trace="queue", step="1ms").plot.queue()
    assert labels(axes) == ["sw1->sw2", "smallest to largest value in each 1 ms", "buffer: 100 cells"]
