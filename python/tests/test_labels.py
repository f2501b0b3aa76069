"""Labels of measures and axes are derived from paths in one place, and users can replace them."""

from __future__ import annotations

import re

import pytest

from celltrain.drawing import words
from celltrain.ensemble.cases import measured
from celltrain.model.measures import ROWS, RUN

#: A row of each list, and functions of rows, as in a plan.
PLACES = {
    "flows": ("tcp1", "sum(*)", "least(*)", "mean(tcp*)"),
    "ports": ("bottleneck", "sw1->sw2", "largest(*)"),
    "requests": ("web", "mean(*)"),
}


def every_path() -> list[str]:
    """Returns a path for each measure, in some rows."""
    rows = [
        f"{name}.{row}.{one.name}"
        for name, measures in ROWS.items()
        for row in PLACES.get(name, ("it",))
        for one in measures
        if one.kind in ("int64", "float64")
    ]
    return rows + [one.name for one in RUN if one.kind in ("int64", "float64")]


def test_every_measure_has_a_short_label_in_words_with_its_unit():
    labels = {path: words.called(measured(path)) for path in every_path()}
    for path, label in labels.items():
        own = re.sub(r"(tcp1|tcp\*|sw1->sw2|bottleneck|web)", "", label).replace("p99.9", "")
        assert not re.search(r"[_.]", own), (path, label)
        assert len(label) <= 64, (path, label)
        unit = measured(path).unit
        assert unit in ("", "1") or unit in re.split(r"[ (),]+", label) or "bytes" in label, (path, label)


def test_no_two_measures_in_the_same_table_have_the_same_label():
    labels: dict[str, str] = {}
    for path in every_path():
        # Rows of different lists have different names.
        other = labels.setdefault(path.partition(".")[0] + words.called(measured(path)), path)
        assert other == path, (path, other)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("requests.web.short.slowdown_p99", "p99 slowdown, short requests (web)"),
        ("requests.query.queries.completion_ms_mean", "mean completion time, queries (query, ms)"),
        ("requests.web.timeouts_per_request", "timeouts per request (web)"),
        ("requests.web.goodput_mbps", "goodput, requests (web, Mb/s)"),
        ("flows.mean(*).goodput_mbps", "mean goodput of all flows (Mb/s)"),
        ("flows.tcp1.cwnd_segments", "congestion window of tcp1 (segments)"),
        ("ports.bottleneck.lost_cells", "lost cells of bottleneck"),
        ("memories.sw1.used_cells_p99", "p99 occupancy of sw1 (cells)"),
        ("file_delay_ms.mean", "mean file delay (ms)"),
        ("timeouts_together", "flows that time out together"),
    ],
)
def test_measure_labels_capitalize_abbreviations_and_units_in_the_usual_way(path, label):
    assert words.called(measured(path)) == label


@pytest.mark.parametrize(
    ("label", "unit", "values", "drawn"),
    [
        ("Buffer (cells)", "cells", [500.0], ("Buffer (cells)", 1.0)),
        ("Buffer", "cells", [500.0], ("Buffer (cells)", 1.0)),
        ("Delay", "s", [0.005], ("Delay (ms)", 1e-3)),
        ("Delay (us)", "s", [0.005], ("Delay (us)", 1e-6)),
        ("Delay (one way)", "s", [0.005], ("Delay (one way) (ms)", 1e-3)),
        ("Z", "1", [0.5], ("Z", 1.0)),
    ],
)
def test_an_axis_label_states_the_unit_of_the_numbers_on_the_axis(label, unit, values, drawn):
    assert words.axis_label(label, unit, values) == drawn


BUFFER, POLICY = "port.bottleneck.buffer", "port.bottleneck.policy"


@pytest.mark.slow
def test_user_defined_labels_appear_in_tables_figures_and_reports(celltrain, tmp_path):
    """In a table whose values have units, the label has no unit."""
    labels = ["--labels", f"{BUFFER}=Room (cells)", "--labels", "efficiency=Link use"]
    varied = ["--vary", f"{POLICY}=tail_drop,ppd", "--vary", f"{BUFFER}=500,1000", "--set", "duration=20ms"]
    drawn, again, out = (tmp_path / name for name in ("a.svg", "b.svg", "out"))
    compare = ["compare", "lan-epd", "--seeds", 1, *varied, *labels, "--labels", f"{POLICY}=Scheme"]
    told = celltrain(*compare, "--plot", drawn, "--out", out)
    assert told.code == 0, told.err
    assert re.search(r"^  Scheme +Room +mean", told.out, re.MULTILINE), told.out
    assert "Room (cells)" in drawn.read_text()
    names = ["--names", "None, at all", "--names", "Partial"]
    assert celltrain("plot", "compare", out, "--labels", f"{BUFFER}=K (cells)", *names, "--out", again).code == 0
    assert all(text in again.read_text() for text in ("K (cells)", "None, at all", "Partial", "Link use"))
    (tmp_path / "plan.toml").write_text(
        f'scenario = "lan-tail-drop"\nmeasures = ["efficiency"]\n[axes]\n"{BUFFER}" = [500, 1000]\nduration = ["20ms"]\n'
        "[seeds]\nfirst = 1\ncount = 2\n"
    )
    assert celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "store").code == 0
    report = celltrain("report", tmp_path / "store", *labels)
    assert report.code == 0, report.err
    page = next((tmp_path / "store/report").glob("*.html")).read_text()
    assert "Room (cells)" in page and "Link use" in page


def test_a_label_for_an_unknown_measure_or_axis_is_refused_with_a_list(celltrain):
    told = celltrain("compare", "lan-epd", "--vary", f"{BUFFER}=500,1000", "--labels", "port.bottleneck.bufer=K")
    assert told.code == 2
    assert "is neither a measure nor an axis here; did you mean port.bottleneck.buffer?" in told.err


def test_the_names_option_can_be_repeated_so_that_names_may_contain_commas(celltrain, tmp_path):
    varied = ["compare", "lan-epd", "--vary", f"{POLICY}=epd,ppd", "--vary", "duration=20ms", "--seeds", 1]
    told = celltrain(*varied, "--names", "EPD (early, 80%)", "--names", "PPD")
    assert told.code == 0 and told.out.startswith("EPD (early, 80%), PPD in lan-epd")
    assert celltrain(*varied, "--out", tmp_path).code == 0
    for command in (varied, ["compare", "lan-epd", "lan-fba"], ["plot", "compare", tmp_path]):
        refused = celltrain(*command, "--names", "EPD (early, 80%),PPD")
        assert refused.code == 2
        assert "commas separate names; for a name with a comma, repeat --names for each" in refused.err
