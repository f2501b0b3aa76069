"""Reports of real stores: sweeps of 10 ms runs, and stores with many rows or failed runs, written row by row."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import NIGHTLY, replace_pdf, skip_fitting
from sweeps import remade

import celltrain as ct
from celltrain.drawing import words
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.reports import Report
from celltrain.ensemble.reports.data import of_store
from celltrain.ensemble.store import RunRecord, Store
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

BASE = {
    "duration": "10ms",
    "topology": {"n_source": {"sources": 3, "link_delay": "5us"}},
    "port": {"bottleneck": {"buffer": 100, "policy": {"epd": {"threshold": 60}}}},
}
POLICY = {
    "path": "port.bottleneck.policy",
    "values": {
        "tail drop": {"tail_drop": {}},
        "<script>x('&')</script>": {"epd": {"threshold": 60}},
        "fba": {"fba": {}},
    },
}
DELAY = {"path": "topology.n_source.link_delay", "from": "5us", "to": "5ms", "count": 4, "scale": "log"}
BUFFER = {"path": "port.bottleneck.buffer", "values": [80, 100]}
MEASURES = ["efficiency", "fairness", "ports.bottleneck.max_queue_cells"]


def swept(folder, *, name="a sweep", **document):
    document = {"measures": MEASURES, "seeds": 4, **document, "name": name, "scenario": BASE}
    text = json.dumps(document)
    with warnings.catch_warnings():
        # These axes were chosen to test pages, and cause warnings; test_plan_warnings.py tests these warnings.
        warnings.simplefilter("ignore", ct.CelltrainWarning)
        return ct.sweep(Plan.of_document(json.loads(text)), store=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def grid(folder):
    return swept(
        folder / "grid", name="<b>policies</b> & delays", axes={"policy": POLICY, "delay": DELAY, "buffer": BUFFER}
    )


@pytest.fixture(scope="module")
def sampled(folder):
    axes = {
        "threshold": {"path": "port.bottleneck.policy.epd.threshold", "from": 30, "to": 80},
        "mss": {"path": "tcp.vanilla.mss", "from": "128B", "to": "2kB", "scale": "log"},
    }
    sample = {"method": "latin_hypercube", "points": 40, "seed": 1, "axes": axes}
    return swept(folder / "sampled", sample=sample, axes={"buffer": BUFFER})


@pytest.fixture(scope="module")
def figures(grid):
    """The figures of all measures of `grid`, by name: drawing them takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        skip_fitting(patch)
        return {drawing.name: drawing for drawing in ct.report(grid).drawings()}


@pytest.fixture(scope="module")
def written(grid, folder):
    """The folder of a report, and the report itself. The PDF files lack their content."""
    with pytest.MonkeyPatch.context() as patch:
        replace_pdf(patch)
        skip_fitting(patch)
        if not NIGHTLY:
            # Draws each figure once, not also in the width of a column.
            patch.setattr(Report, "_pairs", lambda self: ((drawing, drawing) for drawing in self.drawings()))
        report = ct.report(grid, measures=["efficiency", "fairness"], out=folder / "report")
    return folder / "report", report


def made(folder, values, *, seeds=range(1, 5), axes=None, errors=None, measures=("efficiency", "fairness")):
    """Creates a store with given values: points by seeds by measures."""
    axes = axes or {"buffer": {"path": "port.bottleneck.buffer", "values": [80 + i for i in range(len(values))]}}
    document = {"measures": list(measures), "axes": axes, "scenario": BASE, "seeds": len(values[0]), "name": "made"}
    plan = Plan.of_document(document)
    errors = errors or {}
    with Store.create(folder, plan) as store:
        rows = [
            RunRecord(
                point=point,
                seed=seed,
                run_key=f"{point:012x}{seed:012x}",
                configuration="{}",
                values=() if (point, seed) in errors else tuple(of_seed),
                error=errors.get((point, seed)),
            )
            for point, of_point in enumerate(values)
            for seed, of_seed in zip(seeds, of_point, strict=True)
        ]
        store.write(rows)
    return Store.open(folder)


class Page(HTMLParser):
    """The elements of a page, and the targets of its links."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.references = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                self.references.append(value)


def test_the_means_in_a_report_match_those_computed_from_the_results_in_the_store(grid):
    ours, theirs = ct.report(grid).summary, grid.summary()
    assert ours.column_names == theirs.column_names
    for name in ours.column_names:
        for one, other in zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True):
            # The store's quantile of Student's t has only three decimals.
            assert one == other if isinstance(other, str | None) else one == pytest.approx(other, abs=1e-3), name


@pytest.mark.usefixtures("empty_figures")
def test_a_report_states_which_part_of_the_plan_has_not_been_run(tmp_path):
    plan = Plan.of_toml(
        'scenario = "lan-selective-drop"\nmeasures = ["efficiency"]\nseeds = 2\n[axes]\nduration = ["1ms", "2ms", "3ms"]\nsame = '
        '{ path = "port.bottleneck.policy.selective_drop.z", values = [0.8, 0.9] }'
    )

    class Stops(Local):
        chunk_runs = 1

        def work(self, chunks, take):
            super().work(itertools.islice(chunks, 5), take)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "s", Stops(1))
    begun = ct.report(tmp_path / "s")
    assert (begun.to_dict()["runs"], begun.to_dict()["missing"]) == (5, 7)
    page = begun.write(tmp_path / "r")[0].read_text()
    assert "runs are missing" in page
    run_plan(plan, tmp_path / "s", Local(1), resume=True)
    assert ct.report(tmp_path / "s").to_dict()["missing"] == 0


def test_the_html_of_a_report_loads_no_other_files_and_escapes_names(written):
    folder, _ = written
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "b" not in page.tags[: page.tags.index("nav")]
    assert "&lt;b&gt;policies&lt;/b&gt; &amp; delays" in text
    assert all(reference.startswith(("#", "data:")) for reference in page.references)
    assert re.findall(r"url\((?!#)|@import", text) == []
    assert {address.split("/")[2] for address in re.findall(r"https?://[^\"'<> ]+", text)} <= {"www.w3.org"}
    assert len(page.ids) == len(set(page.ids))


def test_every_internal_link_in_a_report_has_a_target(written):
    folder, _ = written
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    wanted = {r[1:] for r in page.references if r.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert wanted
    assert wanted <= set(page.ids)


@pytest.mark.usefixtures("empty_figures")
def test_by_default_axes_and_measures_in_a_report_have_readable_labels(tmp_path):
    """Regression: lists, headings and captions were full of paths, and descriptions full of backticks."""
    axes = {
        "port.bottleneck.policy": {"epd": {"epd": {"threshold": "50%"}}, "as it is": "as-is"},
        "port.bottleneck.buffer": [100, 200],
    }
    document = {"axes": {name: {"path": name, "values": values} for name, values in axes.items()}}
    measures = ["efficiency", "fairness", "ports.bottleneck.max_queue_cells", "flows.sum(*).timeouts"]
    report = ct.report(swept(tmp_path / "s", **document, measures=measures, seeds=2))
    text = report.html()
    shown = re.sub(r"<details>.*?</details>|<[^>]+>|<!--.*?-->", " ", text, flags=re.DOTALL)
    assert "`" not in shown
    assert "the measure depends most on buffer" in shown and "largest queue of bottleneck: means from" in shown
    heads = re.findall(r'<button type="button">(.*?)</button>', text)
    assert {"policy", "buffer", "largest queue of bottleneck (cells)", "timeouts of all flows"} <= set(heads)
    assert not any("." in head for head in heads)
    captions = re.findall(r"<(?:figcaption|h3)>(.*?)</(?:figcaption|h3)>", text, flags=re.DOTALL)
    assert captions and not any("port." in caption for caption in captions)
    # The tables of axes and of measures list the original names.
    assert all(f"<strong>{name}</strong>" in text for name in (*axes, *measures))


@pytest.mark.nightly
def test_two_reports_on_the_same_store_are_identical_files(tmp_path):
    axes = {"delay": {**DELAY, "count": 2}, "buffer": BUFFER}
    store = swept(tmp_path / "s", axes=axes, measures=["efficiency", "fairness"], seeds=2)
    folder, other = tmp_path / "one", tmp_path / "other"
    ct.report(store, out=folder)
    again = ct.report(Store.open(store.path)).write(other)
    names = sorted(path.relative_to(other) for path in again)
    assert {"front.pdf", "effects-efficiency.svg", "map-efficiency.pdf"} <= {path.name for path in names}
    assert names == sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    for name in names:
        assert (other / name).read_bytes() == (folder / name).read_bytes(), name


def test_every_figure_of_a_report_is_written_as_svg_and_pdf(written, figures):
    folder, _ = written
    # The report contains two of the three measures.
    names = {name for name in figures if "max-queue-cells" not in name}
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == names | {f"{name}-column" for name in names}
    assert {path.stem for path in (folder / "figures").glob("*.pdf")} == names | {f"{name}-column" for name in names}
    assert figures["front"].save("pdf").startswith(b"%PDF-1.")
    assert {"front", "effects-efficiency", "map-efficiency"} <= names


def labels(drawing):
    """Returns the labels of a figure's axes and scales."""
    axes = drawing.figure.axes
    return {one.get_xlabel() for one in axes} - {""}, {one.get_ylabel() for one in axes} - {""}


def test_every_figure_of_a_grid_sweep_has_axis_labels_with_units(grid, figures):
    have_labels_with_units(figures.values(), ct.report(grid))


@pytest.mark.usefixtures("empty_figures")
def test_every_figure_of_a_sampled_sweep_has_axis_labels_with_units(sampled):
    report = ct.report(sampled)
    have_labels_with_units(report.drawings(), report)


def have_labels_with_units(drawings, report):
    # Categories and dimensionless numbers have no unit.
    plain = {"policy", "efficiency", "fairness", "efficiency, larger is better", "fairness, larger is better"}
    for drawing in drawings:
        across, up = labels(drawing)
        assert across, drawing.name
        assert up, drawing.name
        for label in across | up:
            assert label in plain or re.search(r"\((cells|µs|B|kB)\)|cells lost", label), (drawing.name, label)
        if drawing.name.startswith("effects"):
            assert len(across) == len(report.data.factors)


def test_a_logarithmic_axis_of_a_plan_is_drawn_logarithmically_in_a_readable_unit(figures):
    effects = figures["effects-efficiency"]
    [delay] = [axes for axes in effects.figure.axes if axes.get_xlabel() == "delay (µs)"]
    assert delay.get_xscale() == "log"
    assert [tick.get_text() for tick in delay.get_xticklabels()] == ["5", "50", "500", "5000"]
    [buffer] = [axes for axes in effects.figure.axes if axes.get_xlabel() == "buffer (cells)"]
    assert buffer.get_xscale() == "linear"


def test_a_heat_map_shows_means_in_one_panel_for_each_value_of_the_third_axis(grid, figures):
    report = ct.report(grid, measures=["efficiency"])
    heat = figures["map-efficiency"]
    panels = [axes for axes in heat.figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == list(POLICY["values"])
    summary = report.summary.to_pylist()
    for axes in panels:
        shown = axes.collections[0].get_array().reshape(2, 4)
        for row in (row for row in summary if row["policy"] == axes.get_title()):
            delays = sorted({one["delay"] for one in summary})
            assert shown[[80, 100].index(row["buffer"]), delays.index(row["delay"])] == pytest.approx(row["mean"])


@pytest.mark.usefixtures("empty_figures")
def test_a_heat_map_in_a_report_draws_the_points_of_sampled_axes_as_dots(sampled):
    report = ct.report(sampled, measures=["efficiency"])
    names = {drawing.name for drawing in report.drawings()}
    assert names == {"effects-efficiency", "sample-efficiency"}
    dots = next(d for d in report.drawings() if d.name == "sample-efficiency")
    assert len(dots.figure.axes[0].collections[0].get_offsets()) == 40
    assert "Averaged over buffer" in dots.caption
    effects = {row["axis"]: 0 for row in report.effects.to_pylist()}
    assert list(effects) == ["buffer", "threshold", "mss"]
    assert sum(row["axis"] == "threshold" for row in report.effects.to_pylist()) == 8


def test_a_report_shows_paired_axes_as_one_axis(tmp_path):
    paired = [
        {
            "sources": {"path": "topology.n_source.sources", "values": [2, 3]},
            "delay": {"path": "topology.n_source.link_delay", "values": ["5us", "50us"]},
        }
    ]
    store = swept(tmp_path / "s", paired=paired, axes={"buffer": BUFFER}, seeds=2)
    factors = of_store(store).factors
    assert {factor.name: factor.values for factor in factors} == {
        "buffer": (80.0, 100.0),
        "sources, delay": ("2, 5 µs", "3, 50 µs"),
    }


@pytest.mark.nightly
@pytest.mark.usefixtures("without_pdf")
def test_a_report_shows_names_with_unusual_characters_unchanged(tmp_path):
    names = ["$x_{$ and $", "_hidden", "a\x07b", "\u03b1 & <i>"]
    kinds = [{"epd": {"threshold": threshold}} for threshold in (50, 60, 70, 80)]
    policy = {"path": "port.bottleneck.policy", "values": dict(zip(names, kinds, strict=True))}
    values = [[(0.5 + i / 10 + s / 100, 0.5 - i / 10) for s in range(2)] for i in range(4)]
    store = made(tmp_path / "s", values, seeds=(1, 2), axes={"policy": policy})
    ct.report(store, out=tmp_path / "r")
    text = (tmp_path / "r" / "report.html").read_text()
    for name in ("$x_{$ and $", " _hidden", "a\\x07b", "\u03b1 &amp; &lt;i&gt;"):
        assert f">{name}</text>" in text, name


@pytest.mark.usefixtures("empty_figures")
def test_the_report_of_a_single_point_shows_the_value_of_each_seed(tmp_path):
    report = ct.report(swept(tmp_path / "s", seeds=6), out=tmp_path / "r")
    assert [drawing.name for drawing in report.drawings()] == ["spread"]
    assert "Only the seed varies" in (tmp_path / "r" / "report.html").read_text()
    assert report.to_dict()["front"] is None


@pytest.mark.usefixtures("empty_figures")
def test_a_report_on_a_sweep_with_one_seed_has_means_but_no_confidence_intervals(tmp_path):
    store = swept(tmp_path / "s", axes={"buffer": BUFFER}, seeds=1)
    report = ct.report(store, out=tmp_path / "r")
    assert set(report.summary["low"].to_pylist()) == {None}
    assert "±" not in (tmp_path / "r" / "report.html").read_text().split("<tbody>")[-1].split("</tbody>")[0]


def test_the_pareto_front_in_a_report_is_computed_from_the_means(tmp_path):
    means = [(0.9, 0.1), (0.5, 0.5), (0.4, 0.4), (0.1, 0.9), (0.9, 0.05)]
    values = [[(x - 0.01, y), (x + 0.01, y)] for x, y in means]
    store = made(tmp_path / "s", values, seeds=(1, 2))
    front = ct.report(store).front
    assert front["point"].to_pylist() == [0, 1, 3]
    assert front["efficiency"].to_pylist() == pytest.approx([0.9, 0.5, 0.1])
    turned = ct.report(store, front=["-efficiency", "fairness"])
    assert turned.front["point"].to_pylist() == [3]
    # With two seeds, (0.4, 0.4) is worse than (0.5, 0.5) by less than the interval. So is (0.9, 0.05) compared with
    # (0.9, 0.1).
    assert ct.report(store).to_dict()["front"]["doubtful"] == [2, 4]


@pytest.mark.usefixtures("empty_figures")
def test_a_report_names_failed_runs_and_excludes_them_from_the_means(tmp_path):
    errors = {(0, 2): "the run took longer than <1s>", (1, 1): "it panicked", (1, 3): "it panicked"}
    values = [[(0.5, 0.5)] * 3, [(0.7, 0.7)] * 3]
    store = made(tmp_path / "s", values, seeds=(1, 2, 3), errors=errors)
    report = ct.report(store, out=tmp_path / "r")
    assert [row["n"] for row in report.summary.to_pylist()] == [2, 2, 1, 1]
    assert report.failures.to_pylist()[0] == {
        "point": 0,
        "buffer": 80.0,
        "seed": 2,
        "error": "the run took longer than <1s>",
    }
    text = (tmp_path / "r" / "report.html").read_text()
    assert "3 of 6 runs failed" in text
    assert "longer than &lt;1s&gt;" in text
    assert text.index("it panicked") < text.index("longer than")
    assert (tmp_path / "r" / "failures.csv").read_text().count("\n") == 4


@pytest.mark.usefixtures("empty_figures")
def test_in_a_report_a_point_whose_runs_all_failed_has_no_values(tmp_path):
    errors = {(1, 1): "no", (1, 2): "no"}
    store = made(tmp_path / "s", [[(0.5, 0.5)] * 2, [(0.7, 0.7)] * 2, [(0.6, 0.6)] * 2], seeds=(1, 2), errors=errors)
    report = ct.report(store, out=tmp_path / "r")
    assert report.summary["mean"].to_pylist()[2:4] == [None, None]
    assert report.to_dict()["points"] == 3
    json.loads(report.to_json())


@pytest.mark.nightly
@pytest.mark.usefixtures("without_pdf")
def test_a_report_draws_very_many_points_as_an_image_and_shortens_their_table(tmp_path):
    rng = np.random.default_rng(1)
    values = [[tuple(pair)] for pair in rng.uniform(0, 1, (3000, 2)).tolist()]
    report = ct.report(
        made(tmp_path / "s", values, seeds=(1,)), measures=["efficiency", "fairness"], out=tmp_path / "r"
    )
    text = (tmp_path / "r" / "report.html").read_text()
    # Each figure is included twice, for wide and for narrow screens.
    assert len(text) < 1_000_000
    assert "2,800 more points in summary.csv" in text
    assert (tmp_path / "r" / "summary.csv").read_text().count("\n") == 6001
    assert report.front.num_rows < 100


def shifted(values, by, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return [[tuple(v + by + rng.normal(0, noise) for v in pair) for pair in of_point] for of_point in values]


def drawn(points=3, seeds=8, spread=0.1):
    rng = np.random.default_rng(11)
    return [[tuple(rng.normal(0.5, spread, 2)) for _ in range(seeds)] for _ in range(points)]


@pytest.mark.usefixtures("empty_figures")
def test_a_report_compares_two_stores_with_the_same_seeds_by_paired_differences(tmp_path):
    values = drawn()
    first = made(tmp_path / "a", values, seeds=range(8))
    second = made(tmp_path / "b", shifted(values, 0.02, 0.001), seeds=range(8))
    report = ct.report(first, compare_with=second, out=tmp_path / "r")
    moved = report.moved.to_pylist()
    assert {row["interval"] for row in moved} == {"paired"}
    assert all(row["beyond"] for row in moved)
    assert moved[0]["difference"] == pytest.approx(0.02, abs=0.002)
    text = (tmp_path / "r" / "report.html").read_text()
    assert "paired by seed" in text
    assert "3 points of 3 changed by more than the spread of the seeds" in text
    assert (tmp_path / "r" / "comparison.csv").exists()


def test_a_difference_between_stores_smaller_than_the_variation_between_seeds_is_not_reported_as_significant(tmp_path):
    values = drawn()
    first = made(tmp_path / "a", values, seeds=range(8))
    second = made(tmp_path / "b", shifted(values, 0.02, 0.001), seeds=range(100, 108))
    moved = ct.report(first, compare_with=second).moved.to_pylist()
    assert {row["interval"] for row in moved} == {"Welch"}
    assert not any(row["beyond"] for row in moved)


def test_comparing_two_stores_of_the_same_sweep_reports_no_difference(grid, folder, tmp_path):
    axes = {"policy": POLICY, "delay": DELAY, "buffer": BUFFER}
    twin = swept(tmp_path / "twin", axes=axes)
    moved = ct.report(grid, compare_with=twin).moved.to_pylist()
    # The difference is undefined if no data arrived in either sweep.
    assert {0.0} <= {row["difference"] for row in moved} <= {0.0, None}
    assert not any(row["beyond"] for row in moved)


def test_a_comparison_of_two_stores_lists_the_points_that_only_one_store_has(tmp_path):
    axes = [{"buffer": {**BUFFER, "values": values}} for values in ([80, 90], [90, 100, 110])]
    first, second = (swept(tmp_path / str(i), axes=one) for i, one in enumerate(axes))
    comparison = ct.report(first, compare_with=second).to_dict()["comparison"]
    assert comparison["points"] == 1
    assert comparison["only_first"] == ["buffer 80 cells"]
    assert comparison["only_second"] == ["buffer 100 cells", "buffer 110 cells"]


def test_stores_that_cannot_be_compared_are_refused_with_the_reason(grid, sampled, tmp_path):
    with pytest.raises(ct.StoreError, match=r"their axes differ \(grid alone has delay, policy; sampled alone has mss"):
        ct.report(grid, compare_with=sampled)
    with pytest.raises(ct.StoreError, match="is the same store"):
        ct.report(grid, compare_with=Store.open(grid.path))
    first = swept(tmp_path / "a", axes={"buffer": BUFFER}, measures=["efficiency", "fairness"])
    second = swept(tmp_path / "b", axes={"buffer": BUFFER}, measures=["efficiency"])
    with pytest.raises(ct.StoreError, match=r"their measures differ \(a alone has fairness\).*--measures"):
        ct.report(first, compare_with=second)
    assert ct.report(first, measures=["efficiency"], compare_with=second).moved.num_rows == 2
    elsewhere = swept(tmp_path / "c", axes={"buffer": {**BUFFER, "values": [120]}}, measures=["efficiency"])
    with pytest.raises(ct.StoreError, match="no point in common"):
        ct.report(second, compare_with=elsewhere)


@pytest.mark.usefixtures("empty_figures")
def test_a_report_on_a_store_of_another_version_gives_a_warning(tmp_path):
    first, second = (swept(tmp_path / name, axes={"buffer": BUFFER}) for name in "ab")
    plan = {**second.manifest["plan"], "scenario": {**second.manifest["plan"]["scenario"], "gone": True}}
    # A plan from another version may be invalid today.
    remade(second.path, version="0.0.9", plan=plan)
    report = ct.report(second.path, out=tmp_path / "r")
    assert report.to_dict()["version"] == "0.0.9"
    assert "by celltrain 0.0.9" in (tmp_path / "r" / "report.html").read_text()
    comparison = ct.report(first.path, compare_with=second.path).to_dict()["comparison"]
    assert comparison["second"] == "b (celltrain 0.0.9)"


def test_the_error_for_an_invalid_report_option_lists_the_valid_values(celltrain, grid, tmp_path):
    empty = tmp_path / "empty"
    Store.create(empty, Plan.of_document({"axes": {"buffer": BUFFER}, "scenario": BASE, "seeds": 2})).close()
    torn = swept(tmp_path / "torn", axes={"buffer": BUFFER})
    (torn.path / "store.sqlite").write_bytes((torn.path / "store.sqlite").read_bytes()[:-5000])
    file = tmp_path / "file"
    file.write_text("")
    for arguments, said in (
        ([tmp_path / "none"], "is not there"),
        ([tmp_path], "has no store.sqlite"),
        ([empty], "holds no runs yet"),
        ([torn.path], "restore it from a backup"),
        ([grid.path, "--measures", "eficiency"], "did you mean efficiency?"),
        ([grid.path, "--measures", ","], "name measures"),
        ([grid.path, "--front", "efficiency"], "must be two measures"),
        ([grid.path, "--front", "efficiency,-efficiency"], "must be two measures"),
        ([grid.path, "--front", "efficiency,loss"], "is not among the measures"),
        ([grid.path, "--out", file], "cannot be written"),
        ([grid.path, "--compare", tmp_path / "none"], "is not there"),
    ):
        answer = celltrain("report", *arguments)
        assert answer.code == 2, arguments
        assert said in answer.err, (arguments, answer.err)
        assert "Traceback" not in answer.err
        assert celltrain("report", *arguments, "--json").json["faults"]


@pytest.mark.usefixtures("empty_figures")
def test_the_report_command_writes_the_report_and_prints_json_with_the_documented_fields(celltrain, sampled, tmp_path):
    out = tmp_path / "out"
    arguments = ["--out", out, "--measures", "efficiency,fairness", "--front", "efficiency,-fairness"]
    answer = celltrain("report", sampled.path, *arguments, "--json")
    assert answer.code == 0
    assert answer.err == ""
    said = answer.json
    assert {
        "store",
        "name",
        "version",
        "profile",
        "points",
        "runs",
        "failures",
        "seeds",
        "axes",
        "measures",
    } <= said.keys()
    assert {"effects", "front", "comparison", "files"} <= said.keys()
    assert (said["points"], said["runs"], said["failures"]) == (80, 320, 0)
    assert [axis["sampled"] for axis in said["axes"]] == [False, True, True]
    assert said["front"]["larger_is_better"] == [True, False]
    assert sorted(said["files"]) == sorted(str(path) for path in out.rglob("*") if path.is_file())
    plain = celltrain("report", sampled.path, "--measures", "efficiency", "--out", tmp_path / "plain")
    assert f"wrote {tmp_path / 'plain' / 'report.html'}" in plain.out


@pytest.mark.usefixtures("empty_figures")
def test_by_default_a_report_is_written_into_the_folder_of_the_store(celltrain, tmp_path):
    store = swept(tmp_path / "s", axes={"buffer": BUFFER}, seeds=2)
    assert celltrain("report", store.path, "--measures", "efficiency").code == 0
    assert (store.path / "report" / "report.html").exists()
    assert store.verify() == []


@pytest.mark.parametrize(
    "mean, half, text",
    [(0.99, 0.004, "0.9900 ± 0.0040"), (1234.5, 56.0, "1,234 ± 56"), (-3.0, 1.25, "-3.0 ± 1.2"), (0.0, 0.0, "0 ± 0")],
)
def test_an_estimated_run_time_is_rounded_to_significant_digits(mean, half, text):
    assert words.estimated(mean, half) == text
