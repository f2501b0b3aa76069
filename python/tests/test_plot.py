from __future__ import annotations

import builtins
import struct
import sys

import pytest
from conftest import ROOT

import celltrain as ct
from celltrain.drawing import figure as canvas

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result():
    lan = ct.n_source(
        sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="20ms", name="three"
    )
    return ct.run(lan, trace=["queue", "occupancy", "cwnd"], step="100us")


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, unit, lines", [("queue", "cells", 2), ("occupancy", "cells", 3), ("cwnd", "segments", 3)]
)
def test_the_plot_of_a_run_has_units_on_its_axes_and_a_line_for_each_series(result, name, unit, lines):
    axes = getattr(result.plot, name)()
    assert axes.get_xlabel() == "time (s)"
    assert unit in axes.get_ylabel()
    assert "three" in axes.get_title()
    assert len(axes.get_lines()) == lines
    assert axes.get_ylim()[0] == 0


@pytest.fixture(scope="module")
def controlled():
    """A run with adaptive discard behind two edge devices whose buffers fill quickly."""
    scenario = ct.load(ROOT / "scenarios" / "internetwork-abr-ada.toml").replace(duration="400ms")
    return ct.run(scenario, trace=["queue", "acr", "edge"], step="1ms")


def test_the_rates_of_abr_connections_are_plotted_in_mbit_s(controlled):
    axes = controlled.plot.acr()
    assert axes.get_ylabel() == "ACR (Mb/s)"
    assert [line.get_label() for line in axes.get_lines()] == [f"tcp{i}" for i in range(1, 6)]
    assert axes.get_ylim()[1] >= 155


def test_dots_in_edge_device_plots_mark_packets_in_phase_1_of_adaptive_discard(controlled):
    axes = controlled.plot.edge()
    assert "packets" in axes.get_ylabel()
    lines, dots, [key] = axes.get_lines()[:5], axes.get_lines()[5:10], axes.get_lines()[10:]
    table = controlled.series["edge"].to_pydict()
    assert sum(len(dot.get_xdata()) for dot in dots) == sum(phase == 1 for phase in table["edge_phase"]) > 0
    assert [dot.get_color() for dot in dots] == [line.get_color() for line in lines]
    assert key.get_label() == "dots: phase 1"
    again = controlled.plot.edge(ax=axes)
    assert len(again.get_lines()) == 22


@pytest.mark.slow
def test_the_series_and_the_result_table_of_a_rate_controlled_run_are_written_to_files(controlled, tmp_path):
    names = {file.name for file in [*controlled.write(tmp_path), controlled.plot.write(tmp_path / "all.svg")]}
    assert {"all.svg", "acr.csv", "edge.parquet", "abr.csv", "abr.parquet"} <= names
    assert (tmp_path / "abr.csv").read_text().count("\n") == 11


def test_a_plot_can_be_drawn_into_existing_matplotlib_axes(result):
    from matplotlib.figure import Figure

    mine = Figure().add_subplot()
    assert result.plot.cwnd(ax=mine, ssthresh=True) is mine
    assert len(mine.get_lines()) == 6


def test_a_plot_of_a_queue_shows_the_size_of_the_buffer(result):
    axes = result.plot.queue()
    assert axes.get_ylim()[1] >= 100


def test_plotting_a_series_that_was_not_recorded_is_an_error_that_explains_how_to_record_it():
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="1ms")
    with pytest.raises(ct.NotTracedError, match=r'trace=\["queue"\]'):
        ct.run(lan).plot.queue()


def test_if_matplotlib_is_missing_the_error_names_the_extra_to_install(result, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ct.MissingExtraError, match=r"pip install .*\[plot\]"):
        result.plot.queue()


@pytest.mark.slow
@pytest.mark.nightly
def test_plotting_the_same_run_again_gives_identical_files(result, tmp_path):
    for kind in ("png", "svg"):
        one, other = (result.plot.write(tmp_path / f"{name}.{kind}") for name in ("a", "b"))
        assert one.read_bytes() == other.read_bytes()


@pytest.fixture(scope="module")
def shared():
    """A run of two incasts whose ports share a memory of 1,000 cells under Dynamic Threshold."""
    scenario = ct.load(ROOT / "scenarios" / "memory-dynamic-threshold.toml").replace(duration="50ms")
    return ct.run(scenario, trace=["memory"], step="100us")


def test_the_shared_memory_plot_stacks_the_queues_and_shows_the_threshold(shared):
    from matplotlib.collections import PolyCollection

    axes = shared.plot.memory()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (s)", "cells in the memory")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    # Queues of ACKs are too thin to be visible.
    names = ["sw->left", "sw->right", "7 other queues"]
    assert labels == [*names, "threshold of a queue", "memory: 1,000 cells"]
    assert 1000 <= axes.get_ylim()[1] < 1100
    _, _, [held, cells, thresholds] = shared.series.raw("memory")
    assert (held == cells).all()
    assert (thresholds == 1000 - held.sum(axis=1)[:, None]).all()
    areas = [one for one in axes.collections if isinstance(one, PolyCollection)]
    tops = [max(y for path in area.get_paths() for _, y in path.vertices) for area in areas]
    assert len(areas) == 3
    assert tops[-1] == held.sum(axis=1).max()
    [line, _] = axes.get_lines()
    assert (line.get_ydata() == thresholds[:, 0]).all()


def test_the_shared_memory_to_plot_is_selected_by_name_and_its_series_are_written_to_files(shared, tmp_path):
    assert shared.plot.memory("sw").get_title().startswith("Memory of sw\n")
    with pytest.raises(ct.InputError, match="is not a packet memory of a switch in this network"):
        shared.plot.memory("other")
    with pytest.raises(ct.InputError, match="is not a side of the memory sw; "):
        shared.plot.memory("sw", side="ingress")
    names = {file.name for file in [*shared.write(tmp_path), shared.plot.write(tmp_path / "all.svg")]}
    assert {"all.svg", "memory.csv", "memory.parquet"} <= names
    assert shared.series["memory"].column_names[:2] == ["time_s", "queue"]


def test_a_shared_memory_can_be_plotted_by_queue_or_by_priority_group():
    lossless = ct.load(ROOT / "scenarios" / "memory-lossless.toml").replace(duration="20ms")
    run = ct.run(lossless, trace=["memory"], step="100us")
    labels = {
        side: [text.get_text() for text in run.plot.memory(side=side).get_legend().get_texts()]
        for side in (None, "egress", "ingress")
    }
    # Priority groups decide when links pause. The legend states how often links paused.
    assert labels[None] == labels["ingress"]
    assert labels[None][0] == "host2->sw, 147 pauses"
    # In this memory, a queue may hold everything, so only groups have a threshold.
    assert not any("threshold" in label for label in labels["egress"])
    assert any("threshold" in label for label in labels["ingress"])
    assert all("->sw" not in label for label in labels["egress"])
    assert sum("->sw" in label for label in labels["ingress"]) >= 2


def test_a_plot_axis_for_window_sizes_may_be_logarithmic_with_plain_numbers_at_powers_of_two(result, tmp_path):
    """The axis becomes logarithmic because of `log`, or because the caller sets the scale of axes that began at
    zero."""
    axes = result.plot.cwnd(log=True)
    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    ticks = [int(one.get_text()) for one in axes.get_yticklabels() if low <= one.get_position()[1] <= high]
    assert ticks == [2**place for place in range(len(ticks))] and len(ticks) > 2
    assert 0.5 <= low <= 1
    later = result.plot.cwnd()
    assert later.get_ylim()[0] == 0
    later.set_yscale("log", base=2)
    assert later.get_ylim() == pytest.approx((low, high))


def size(picture):
    """Returns the width and the height of a PNG in pixels."""
    return struct.unpack(">II", picture.read_bytes()[16:24])


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("width", "inches"), [("column", 3.5), ("page", 7.2), ("5in", 5.0), ("8.5cm", 3.3465), ("120 mm", 4.7244)]
)
def test_figures_of_runs_and_comparisons_have_the_requested_width_at_300_dots_per_inch(
    celltrain, tmp_path, width, inches
):
    picture = tmp_path / "a.png"
    short = ("--set", "duration=5ms", "--plot", picture, "--width", width)
    for command in (["run", "lan-epd", "--labels", "queue=Cells"], ["compare", "lan-epd", "--seeds", 1]):
        told = celltrain(*command, *short)
        assert told.code == 0, told.err
        assert size(picture)[0] == pytest.approx(300 * inches, abs=2)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_legend_of_a_narrow_figure_does_not_cover_its_axis(result, tmp_path):
    from matplotlib import pyplot

    figures = []
    original = canvas.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "save", lambda figure, path: (figures.append(figure), original(figure, path)))
        result.plot.write(tmp_path / "a.svg", width="column", labels={"queue": "Cells in the queue"})
    assert pyplot.get_fignums() == []
    figures[0].draw_without_rendering()
    for axes in figures[0].axes:
        legend = axes.get_legend().get_window_extent()
        assert legend.y1 <= axes.xaxis.label.get_window_extent().y0
    assert "Cells in the queue" in (tmp_path / "a.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", ["poster", "8.5", "cm", "8.5 km", "1in", "99in", "-5in", "1e1in"])
def test_figure_widths_out_of_range_are_refused_before_the_run(celltrain, width):
    told = celltrain("run", "lan-epd", "--plot", "a.svg", f"--width={width}")
    assert told.code == 2
    assert "is not a figure width; choose column, page, or a length from 2in to 40in, such as 8.5cm" in told.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--log"], "changes the figure; draw the figure with --plot PICTURE"),
        (["--style", "grayscale"], "changes the figure; draw the figure with --plot PICTURE"),
        (["--labels", "queue=Q"], "changes the figure; draw the figure with --plot PICTURE"),
        (["--log", "--trace", "queue", "--plot", "a.svg"], "add cwnd to --trace"),
        (["--labels", "cwdn=W", "--plot", "a.svg"], "did you mean cwnd?"),
        (["--log", "--seeds", "2"], "--log applies to a single run"),
    ],
)
def test_figure_options_that_would_have_no_effect_are_refused(celltrain, options, problem):
    told = celltrain("run", "lan-epd", *options)
    assert (told.code, problem in told.err) == (2, True), told.err


def test_the_plot_of_a_lossless_memory_shows_when_priority_groups_reach_their_thresholds():
    lossless = ct.load(ROOT / "scenarios" / "memory-lossless.toml").replace(duration="3ms")
    run = ct.run(lossless, trace=["memory"], step="10us")
    axes = run.plot.memory()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sum("pauses" in label for label in labels) == 3
    assert {"threshold of a group", "1 other group", "bars: groups at their thresholds"} <= set(labels)
    # Three bars above the size of the memory.
    bars = [area for area in axes.collections if area.get_paths() and area.get_paths()[0].vertices[:, 1].min() > 400]
    assert len(bars) == 3
    assert axes.get_ylim()[1] > 400


def test_a_limit_far_above_the_occupancy_is_only_in_the_legend_of_a_plot():
    wide = ct.load(
        ROOT / "scenarios" / "memory-lossless.toml",
        settings={"duration": "1ms", "switch.sw.memory.cells": 100_000},
    )
    axes = ct.run(wide, trace=["memory"], step="10us").plot.memory()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "memory: 100,000 cells (above)" in labels
    assert any(label.startswith("threshold of a group ≥ ") for label in labels)
    assert axes.get_ylabel().endswith("by input")
