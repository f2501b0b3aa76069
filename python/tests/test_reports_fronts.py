"""A front for each configuration, and figures in which no labels overlap and no error bar is cut off."""

from __future__ import annotations

import html
import itertools
import json
import math

import numpy as np
import pytest
from conftest import NIGHTLY
from test_reports import made

import celltrain as ct
from celltrain.drawing import points
from celltrain.drawing.figure import new_figure

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.slow

NETWORK = {"path": "topology.n_source.link_delay", "values": {"LAN": "5us", "WAN": "1ms"}}
SOURCES = {"path": "topology.n_source.sources", "values": [3, 5]}
BUFFER = {"path": "port.bottleneck.buffer", "values": [80, 90, 100, 110]}
#: In the LAN, one buffer beats all others. In the WAN, three buffers are on the front, but none beats a LAN point.
LAN = [(0.9, 0.9), (0.8, 0.8), (0.85, 0.7), (0.7, 0.6)]
WAN = [(0.5, 0.1), (0.4, 0.3), (0.2, 0.2), (0.1, 0.5)]


def store(folder, points, axes):
    values = [[(x + d, y - d) for d in (-0.001, 0.001)] for x, y in points]
    return made(folder, values, axes=axes, seeds=(1, 2))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return store(tmp_path_factory.mktemp("fronts") / "store", [*LAN, *WAN], {"network": NETWORK, "buffer": BUFFER})


def test_a_report_has_a_separate_pareto_front_for_each_network(two):
    report = ct.report(two)
    front = report.trade_off
    assert [part.tolist() for part in front.parts] == [[0], [4, 5, 7]]
    assert report.front["network"].to_pylist() == ["LAN", "WAN", "WAN", "WAN"]
    assert report.front["buffer"].to_pylist() == [80, 80, 90, 110]
    assert front.places.tolist() == [1, 1, 2, 3]
    assert report.to_dict()["front"]["by"] == ["network"]


@pytest.mark.usefixtures("empty_figures")
def test_a_report_has_a_separate_named_pareto_front_for_each_tcp(tmp_path):
    of_tcp = {"path": "tcp", "values": {"vanilla": {"vanilla": {}}, "sack": {"sack": {}}}}
    report = ct.report(store(tmp_path / "s", [*LAN, *WAN], {"tcp": of_tcp, "buffer": BUFFER}))
    assert report.to_dict()["front"]["by"] == ["tcp"]
    assert report.front["tcp"].to_pylist() == ["vanilla", "sack", "sack", "sack"]
    assert any(one.startswith("averaging over tcp mixes different TCPs: ") for one in report.warnings)
    page = html.unescape(report.html())
    line = "TCP: vanilla (no fast retransmit, 100 ms ticks); sack (selective acknowledgements, 100 ms ticks)"
    assert f"<p>{line}</p>" in page
    assert line in " ".join(str(report).split())
    for drawing in report.drawings():
        first, second = drawing.figure.get_suptitle().splitlines()[:2]
        assert first == "TCP: vanilla; sack" and second.startswith("means of 2 seeds")
        assert drawing.name.startswith("map-") or "95 % intervals" in second


@pytest.mark.usefixtures("empty_figures")
def test_a_report_can_draw_a_single_pareto_front_over_all_points(two):
    """The common front contains no point of the WAN."""
    report = ct.report(two, front_by=[])
    assert report.front["network"].to_pylist() == ["LAN"]
    assert report.to_dict()["front"]["by"] == []
    drawing = next(one for one in report.drawings() if one.name == "front")
    assert len(drawing.figure.axes) == 1


def test_pareto_fronts_of_a_report_can_be_separated_by_any_axis(two):
    report = ct.report(two, front_by=["buffer", "network"])
    # There are eight combinations with one point each, so all points are on their fronts.
    assert report.front.num_rows == 8
    assert [part.size for part in report.trade_off.parts] == [1] * 8
    assert ct.report(two, front_by=["buffer"]).front["network"].to_pylist() == ["LAN"] * 4


@pytest.mark.usefixtures("empty_figures")
def test_a_figure_of_pareto_fronts_has_a_panel_for_each_configuration_titled_with_its_name(two, tmp_path):
    report = ct.report(two, out=tmp_path)
    drawing = next(one for one in report.drawings() if one.name == "front")
    assert [axes.get_title() for axes in drawing.figure.axes] == ["LAN", "WAN"]
    numbers = [[text.get_text() for text in axes.texts] for axes in drawing.figure.axes]
    assert numbers == [["1"], ["1", "2", "3"]]
    assert "no other of its configuration beats in both" in drawing.caption
    page = (tmp_path / "report.html").read_text()
    assert "4 points of 8 on the fronts, one for each network" in page


def test_in_a_report_a_network_that_depends_on_two_axes_is_named_by_both_values(tmp_path):
    points = [*LAN, *WAN, *reversed(LAN), *reversed(WAN)]
    axes = {"sources": SOURCES, "network": NETWORK, "buffer": BUFFER}
    report = ct.report(store(tmp_path / "s", points, axes))
    front = report.trade_off
    assert front.by.values == ("sources 3, LAN", "sources 3, WAN", "sources 5, LAN", "sources 5, WAN")
    assert report.to_dict()["front"]["by"] == ["sources", "network"]
    assert [part.tolist() for part in front.parts] == [[0], [4, 5, 7], [11], [15, 14, 12]]


def test_if_every_point_has_a_different_network_a_report_has_a_single_pareto_front(tmp_path):
    report = ct.report(store(tmp_path / "s", LAN[:2], {"network": NETWORK}))
    assert report.trade_off.by is None
    assert report.front.num_rows == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("bufer", "did you mean buffer? Choose from network, buffer"),
        ("nothing", "is not an axis of a grid"),
    ],
)
def test_the_error_for_an_unknown_axis_in_a_report_option_names_the_axis(celltrain, two, tmp_path, said, expected):
    answer = celltrain("report", two.path, "--front-by", said, "--out", tmp_path / "page")
    assert answer.code == 2
    assert expected in answer.err


@pytest.mark.usefixtures("empty_figures")
def test_the_report_command_draws_one_pareto_front_per_axis_value_or_one_for_all_points(celltrain, two, tmp_path):
    options = ("--measures", "efficiency,fairness", "--json", "--out", tmp_path / "page")
    answer = celltrain("report", two.path, "--front-by", "buffer", *options)
    assert [row["buffer"] for row in answer.json["front"]["points"]] == [80, 90, 100, 110]
    assert len(celltrain("report", two.path, "--front-by", "none", *options).json["front"]["points"]) == 1


def texts_of(figure):
    """Returns every visible upright label with its bounding box in pixels."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    # Ticks beyond the ends of an axis exist, but matplotlib does not draw them.
    hidden = {id(tick.label1) for axes in figure.axes for tick in ticks_beyond(axes)}
    return [
        (text.get_text(), Text.get_window_extent(text))
        for text in figure.findobj(Text)
        if text.get_text().strip()
        and text.get_visible()
        and id(text) not in hidden
        and math.isclose(text.get_rotation() % 90, 0)
    ]


def ticks_beyond(axes):
    for axis, ends in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
        reach = 1e-9 * (ends[1] - ends[0])
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not ends[0] - reach <= tick.get_loc() <= ends[1] + reach:
                yield tick


def overlaps(figure):
    """Returns pairs of labels that overlap visibly."""
    for (one, first), (other, second) in itertools.combinations(texts_of(figure), 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        tall = min(first.y1, second.y1) - max(first.y0, second.y0)
        if wide > 1 and tall > 1:
            yield one, other


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Fronts with many points close together, intervals of all sizes, and long names."""
    rng = np.random.default_rng(20)
    axes = {
        "network": {"path": NETWORK["path"], "values": {"a local network of an office": "5us", "a satellite": "9ms"}},
        "a buffer at the bottleneck": {"path": BUFFER["path"], "values": [80 + i for i in range(12)]},
        "Z": {"path": "tcp.vanilla.mss", "values": ["512B", "1024B", "1460B"]},
    }
    angle = rng.uniform(0, np.pi / 2, (2, 12, 3))
    near = 1 - 0.02 * rng.random((2, 12, 3))
    x, y = 0.5 + 0.01 * near * np.sin(angle), 0.3 + 0.01 * near * np.cos(angle)
    noise = rng.normal(0, 0.0005, (2, 12, 3, 4, 2))
    values = (np.stack([x, y], axis=-1)[..., None, :] + noise).reshape(72, 4, 2)
    return made(tmp_path_factory.mktemp("crowded") / "store", values.tolist(), axes=axes)


def within(axes):
    """Returns whether every error bar and every label is inside the axes."""
    from matplotlib.collections import LineCollection
    from matplotlib.text import Text

    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    bars = [one for one in axes.collections if isinstance(one, LineCollection)]
    ends = np.concatenate([np.zeros((0, 2)), *(segment for one in bars for segment in one.get_segments())])
    edge = axes.get_window_extent().padded(1)
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    return (
        bool(((ends >= (left, low)) & (ends <= (right, high))).all())
        and all(edge.x0 <= box.x0 and box.x1 <= edge.x1 for box in boxes)
        and all(edge.y0 <= box.y0 and box.y1 <= edge.y1 for box in boxes)
    )


@pytest.mark.parametrize("width", ["page", pytest.param("column", marks=pytest.mark.nightly)])
def test_text_in_report_figures_does_not_overlap_and_error_bars_are_not_cut_off(crowded, width):
    report = ct.report(crowded, baseline="Z=512 B")
    names = []
    # A push tests only the first figures; the nightly job tests all figures.
    for drawing in itertools.islice(report.drawings(width=width), None if NIGHTLY else 2):
        assert not list(overlaps(drawing.figure)), drawing.name
        if drawing.name.startswith(("front", "lines", "effects", "differences")):
            assert all(map(within, drawing.figure.axes)), drawing.name
        names.append(drawing.name)
    wanted = {"front", "lines-efficiency", "differences-fairness", "effects-efficiency"}
    assert wanted <= set(names) or (not NIGHTLY and "front" in names)


def axes_with(points):
    figure = new_figure(figsize=(3, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(*zip(*points, strict=True))
    figure.draw_without_rendering()
    return axes


def test_a_label_is_above_and_to_the_right_of_its_point_if_there_is_room():
    axes = axes_with([(0, 0), (1, 1), (2, 0)])
    assert points.put(axes, [(1.0, 0.5)], ["1"], np.array([(0, 0), (1, 1), (2, 0)])) == 0
    [text] = axes.texts
    x, y = text.get_position()
    assert x > 0 and y > 0
    assert text.arrow_patch is None


def test_several_labels_of_a_point_surround_the_point_and_distant_labels_have_a_leader_line():
    axes = axes_with([(0, 0), (1, 1), (2, 2)])
    assert points.put(axes, [(1.0, 1.0)] * 12, [f"label {i}" for i in range(12)], np.ones((1, 2))) == 0
    assert not list(overlaps(axes.figure))
    assert any(text.arrow_patch is not None for text in axes.texts)
    assert axes.texts[0].arrow_patch is None


def test_a_figure_omits_labels_that_do_not_fit_and_states_their_number():
    axes = axes_with([(0, 0), (1, 1)])
    left_out = points.put(axes, [(0.5, 0.5)] * 60, ["a long label"] * 60, np.ones((1, 2)) / 2)
    assert left_out > 0
    assert len(axes.texts) == 60 - left_out
    assert not list(overlaps(axes.figure))


@pytest.mark.nightly
def test_drawing_the_same_figure_twice_places_all_labels_at_the_same_positions(crowded):
    positions = []
    for _ in range(2):
        front = next(one for one in ct.report(crowded).drawings() if one.name == "front")
        positions.append(json.dumps([text.get_position() for axes in front.figure.axes for text in axes.texts]))
    assert positions[0] == positions[1]
