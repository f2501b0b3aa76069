"""Lines with intervals, differences from a baseline within a store, and widths and styles of figures in a report."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from test_reports import made

import celltrain as ct

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

POLICIES = {
    "path": "port.bottleneck.policy",
    "values": {"tail": {"tail_drop": {}}, "fba": {"fba": {}}, "ppd": {"ppd": {}}},
}
AXES = {
    "network": {"path": "topology.n_source.link_delay", "values": {"LAN": "5us", "WAN": "1ms"}},
    "policy": POLICIES,
    "buffer": {"path": "port.bottleneck.buffer", "values": [80, 90, 100, 400]},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store whose effects are known by construction: 24 points, 4 seeds, efficiency and fairness."""
    rng = np.random.default_rng(20)
    network, policy, buffer, seed = np.ogrid[:2, :3, :4, :4]
    shared = rng.normal(0, 0.05, (1, 1, 1, 4))
    own = rng.normal(0, 0.002, (2, 3, 4, 4))
    efficiency = 0.3 + 0.2 * network + 0.05 * policy + 0.03 * buffer + shared + own + 0 * seed
    values = np.stack([efficiency, 1 - efficiency / 2], axis=-1).reshape(24, 4, 2)
    return made(tmp_path_factory.mktemp("groups") / "store", values.tolist(), axes=AXES), efficiency


def drawn(report, name, **options):
    drawing = next(one for one in report.drawings(**options) if one.name == name)
    drawing.figure.draw_without_rendering()
    return drawing


@pytest.mark.usefixtures("empty_figures")
def test_report_figures_use_a_numeric_plan_axis_for_x_and_other_plan_axes_for_colours_and_panels(store):
    """Networks become panels, and every mean and error bar is computed from its seeds."""
    report = ct.report(store[0])
    names = [axis.name for axis in (report.layout.over, report.layout.by, report.layout.panel)]
    assert names == ["buffer", "policy", "network"]
    lan, wan = drawn(report, "lines-efficiency").figure.axes
    assert (lan.get_title(), wan.get_title()) == ("LAN", "WAN")
    assert lan.get_ylabel() == "efficiency"
    efficiency = store[1]
    for axes, of_network in ((lan, efficiency[0]), (wan, efficiency[1])):
        for container, of_policy in zip(axes.containers, of_network, strict=True):
            line, _, (bars,) = container.lines
            assert line.get_ydata() == pytest.approx(of_policy.mean(axis=1))
            # The quantile of Student's t with 3 degrees of freedom.
            half = 3.182446 * of_policy.std(axis=1, ddof=1) / 2
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            assert ends[:, 1] - ends[:, 0] == pytest.approx(2 * half, rel=1e-4)
            low, high = axes.get_ylim()
            assert low < ends.min() and ends.max() < high


@pytest.mark.usefixtures("empty_figures")
def test_any_axis_can_be_the_x_axis_the_colours_or_the_panels_of_report_figures(store, tmp_path):
    report = ct.report(store[0], lines=["policy", "network"])
    [axes] = drawn(report, "lines-efficiency").figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["tail", "fba", "ppd"]
    line = axes.containers[1].lines[0]
    assert line.get_ydata() == pytest.approx(store[1][1].mean(axis=(1, 2)))
    assert "Averaged over buffer." in drawn(report, "lines-fairness").caption


@pytest.mark.nightly
@pytest.mark.usefixtures("empty_figures")
def test_a_report_pairs_runs_that_differ_only_in_the_compared_setting(store, tmp_path):
    """Differences cancel the spread that all policies share, so only a twentieth of it remains."""
    report = ct.report(store[0], baseline="policy=tail", out=tmp_path / "page")
    efficiency = store[1]
    rows = [row for row in report.differences.to_pylist() if row["measure"] == "efficiency"]
    assert len(rows) == 16
    by_place = {(row["network"], row["policy"], row["buffer"]): row for row in rows}
    for n, network in enumerate(("LAN", "WAN")):
        for p, policy in ((1, "fba"), (2, "ppd")):
            for b, buffer in enumerate((80.0, 90.0, 100.0, 400.0)):
                more = efficiency[n, p, b] - efficiency[n, 0, b]
                row = by_place[network, policy, buffer]
                assert row["difference"] == pytest.approx(more.mean())
                half = 3.182446 * more.std(ddof=1) / 2
                assert (row["low"], row["high"]) == pytest.approx((more.mean() - half, more.mean() + half), rel=1e-4)
                assert row["n"] == 4
    assert (0, 1, 8, 0, 8) in list(report.baseline.counts())
    whole = (efficiency[:, 2] - efficiency[:, 0]).mean(axis=(0, 1))
    assert report.baseline.of_levels[0].mean[2] == pytest.approx(whole.mean())
    assert report.baseline.of_levels[0].half[2] == pytest.approx(3.182446 * whole.std(ddof=1) / 2, rel=1e-4)
    page = (tmp_path / "page" / "report.html").read_text()
    assert "Differences from policy = tail" in page
    assert (tmp_path / "page" / "baseline.csv").read_text().count("\n") == 33
    lan = drawn(report, "differences-efficiency").figure.axes[0]
    assert [text.get_text() for text in lan.figure.legends[0].get_texts()] == ["fba", "ppd"]
    assert lan.get_ylabel() == "efficiency\nmore than tail"


def test_paired_differences_in_a_report_exclude_seeds_that_only_one_side_has(tmp_path):
    values = [[[0.1 * point + 0.01 * seed, 0.5] for seed in range(4)] for point in range(3)]
    gone = made(tmp_path / "store", values, axes={"policy": POLICIES}, errors={(0, 2): "gone"})
    report = ct.report(gone, baseline="policy=tail")
    assert {row["n"] for row in report.differences.to_pylist()} == {3}


@pytest.mark.usefixtures("empty_figures")
def test_a_report_names_an_axis_along_which_an_effect_changes_sign(celltrain, tmp_path):
    """`fba` is better in the LAN and worse in the WAN; `ppd` changes sign with the buffer and the network."""
    rng = np.random.default_rng(3)
    own = rng.normal(0, 0.002, (2, 3, 4, 4))
    own[0, 1] += 0.1
    own[1, 1] -= 0.1
    own[0, 2, :2] += 0.1
    own[0, 2, 2:] -= 0.1
    own[1, 2, :2] -= 0.1
    values = np.stack([0.5 + own, 0.5 + 0 * own], axis=-1).reshape(24, 4, 2)
    store = made(tmp_path / "store", values.tolist(), axes=AXES)
    answer = celltrain("report", store.path, "--baseline", "policy=tail", "--measures", "efficiency")
    assert "efficiency: fba is above tail at 4 of 8 points and below it at 4 (95 %" in answer.out
    assert "fba is above tail with network = LAN, and below it with network = WAN" in answer.err
    assert "ppd is above tail at 2 points, and below it at 4 points" in answer.err
    page = (store.path / "report" / "report.html").read_text()
    assert "points above" in page
    assert "points below" in page
    assert "fba is above tail with network = LAN" in page
    told = ct.report(store.path, baseline="policy=tail", measures=["efficiency"]).to_dict()["baseline"]
    assert told["counts"][0] == {"measure": "efficiency", "value": "fba", "above": 4, "below": 4, "points": 8}


@pytest.mark.usefixtures("empty_figures")
def test_the_report_table_of_points_can_be_printed_in_latex_and_markdown(celltrain, store, tmp_path):
    out = ("--out", tmp_path / "page")
    markdown = celltrain("report", store[0].path, "--measures", "efficiency", "--md", *out)
    assert markdown.code == 0
    rows = [line for line in markdown.out.splitlines() if line.startswith("| LAN") or line.startswith("| WAN")]
    assert len(rows) == 24
    mean = store[1][0, 1, 2].mean()
    [row] = [row for row in rows if row.startswith("| LAN | fba | 100 cells |")]
    assert float(row.split("|")[4].split()[0]) == pytest.approx(mean, abs=0.005)
    assert "| network | policy | buffer | efficiency |" in markdown.out
    assert "wrote" in markdown.err
    assert (tmp_path / "page" / "report.html").exists()
    latex = celltrain("report", store[0].path, "--measures", "efficiency", "--baseline", "policy=tail", "--tex", *out)
    rows = [line for line in latex.out.splitlines() if line.startswith(("LAN &", "WAN &"))]
    # All means come first, then the differences of the 16 points that are not the baseline.
    means, differences = rows[:24], rows[24:]
    assert len(differences) == 16
    assert not any("textasteriskcentered" in row for row in means)
    assert all(row.split(" & ")[3].startswith("$+$") and "textasteriskcentered" in row for row in differences)
    assert "The means come first, followed by the differences from policy = tail" in latex.out
    assert "excludes zero" in latex.out
    assert celltrain("report", store[0].path, "--tex", "--json").code == 2


@pytest.mark.usefixtures("empty_figures")
def test_a_long_table_in_a_report_is_shortened_with_a_note(celltrain, tmp_path):
    buffers = {"path": "port.bottleneck.buffer", "values": list(range(100, 301))}
    values = [[[0.5 + 0.01 * seed, 0.5] for seed in range(4)] for _ in range(201)]
    folder = made(tmp_path / "store", values, axes={"buffer": buffers}).path
    told = celltrain("report", folder, "--measures", "efficiency", "--md").out
    assert "| 299 cells |" in told
    assert "| 300 cells |" not in told
    assert "1 more point in summary.csv next to the page." in told


@pytest.mark.usefixtures("empty_figures")
def test_the_report_command_prints_the_number_of_points_that_differ_between_two_stores(celltrain, store, tmp_path):
    folder = store[0].path
    options = (
        "--baseline",
        "policy=tail",
        "--lines",
        "buffer,policy",
        "--style",
        "grayscale",
        "--measures",
        "efficiency",
    )
    answer = celltrain("report", folder, *options, "--out", tmp_path / "page")
    assert answer.code == 0
    told = "efficiency: fba is above tail at 8 of 8 points and below it at 0 (95 % intervals of paired differences)"
    assert told in answer.out
    svg = (tmp_path / "page" / "figures" / "lines-efficiency.svg").read_text()
    assert "#0072b2" not in svg.lower()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--baseline", "policy"], "is not AXIS=VALUE, such as policy=tail_drop"),
        (["--baseline", "polcy=tail"], "did you mean policy? Choose from network, policy, buffer"),
        (["--baseline", "policy=epd"], "is not a value of policy; choose from tail, fba, ppd"),
        (["--lines", "bufer"], "is not an axis of a grid; did you mean buffer?"),
        (["--lines", "buffer,buffer"], "appears twice, or is paired with another of these axes; leave it out"),
        (["--lines", "a,b,c,d"], "is not a list of one to three axes"),
        (["--style", "grayscal"], "is neither a matplotlib style nor a file; did you mean grayscale?"),
    ],
)
def test_an_invalid_axis_value_or_style_in_a_report_option_is_named_in_the_error(
    celltrain, store, tmp_path, options, expected
):
    answer = celltrain("report", store[0].path, *options, "--out", tmp_path / "page")
    assert answer.code == 2
    assert expected in answer.err


def test_the_error_for_an_invalid_figure_style_file_names_the_file(store, tmp_path):
    style = tmp_path / "mine.mplstyle"
    style.write_text("lines.linewidth: 3\n")
    report = ct.report(store[0], style=str(style), measures=["efficiency"])
    assert next(report.drawings()).figure is not None
    with pytest.raises(ct.InputError, match="is neither a matplotlib style nor a file"):
        ct.report(store[0], style=str(tmp_path / "nowhere.mplstyle"))


@pytest.mark.parametrize(("width", "inches"), [("column", 3.5), pytest.param("page", 7.2, marks=pytest.mark.nightly)])
def test_report_figures_fit_into_a_text_column_without_overlapping_labels(store, width, inches):
    """No text is shrunk: a narrow figure has the same font size as a wide one."""
    report = ct.report(store[0], measures=["efficiency"], baseline="policy=tail")
    drawings = list(report.drawings(width=width))
    assert {"lines-efficiency", "differences-efficiency"} <= {one.name for one in drawings}
    for drawing in drawings:
        figure = drawing.figure
        assert figure.get_size_inches()[0] == inches
        svg = drawing.save("svg").decode()
        assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) == pytest.approx(inches * 72)
        edge = figure.bbox.padded(1)
        for axes in figure.axes:
            low, high = sorted(axes.get_xlim())
            texts = [
                text for text in axes.get_xticklabels() if text.get_text() and low <= text.get_position()[0] <= high
            ]
            boxes = [text.get_window_extent() for text in texts]
            if not any(text.get_rotation() for text in axes.get_xticklabels()):
                assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes)), drawing.name
            for label in (axes.xaxis.label, axes.yaxis.label):
                box = label.get_window_extent()
                assert not label.get_text() or (box.x0 >= edge.x0 and box.y1 <= edge.y1), (drawing.name, inches)


@pytest.mark.usefixtures("empty_figures")
def test_a_report_draws_a_paired_axis_with_numeric_values_as_a_numeric_axis(tmp_path):
    """Buffer and threshold are paired; the lines use the buffer."""
    paired = [
        {
            "buffer": {"path": "port.bottleneck.buffer", "values": [80, 400]},
            "threshold": {"path": "port.bottleneck.policy.epd.threshold", "values": [60, 380]},
        }
    ]
    base = ct.n_source(sources=3, link_delay="5us", buffer_cells=80, policy=ct.Epd(threshold=60), duration="20ms")
    store = ct.sweep(
        base, over={"switch.tie_order": ["random", "fixed"]}, paired=paired, seeds=2, measures=["efficiency"]
    )
    report = ct.report(store)
    assert report.layout.over.name == "buffer, threshold"
    [axes] = drawn(report, "lines-efficiency").figure.axes
    assert axes.get_xlabel() == "buffer (cells)"
    assert axes.get_xticks().tolist() == [80, 400]
    assert report.data.factor("threshold", "lines") is report.layout.over
