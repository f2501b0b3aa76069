"""Labels of measures and axes: made of paths in one place, and replaced by the user's own."""

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


def test_every_measure_has_a_short_label_of_words_with_its_unit():
    labels = {path: words.called(measured(path)) for path in every_path()}
    for path, label in labels.items():
        own = re.sub(r"(tcp1|tcp\*|sw1->sw2|bottleneck|web)", "", label).replace("p99.9", "")
        assert not re.search(r"[_.]", own), (path, label)
        assert len(label) <= 64, (path, label)
        unit = measured(path).unit
        assert unit in ("", "1") or unit in re.split(r"[ (),]+", label) or "bytes" in label, (path, label)


def test_no_two_measures_of_one_row_have_the_same_label():
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
def test_labels_use_normal_capitals_and_units(path, label):
    assert words.called(measured(path)) == label
