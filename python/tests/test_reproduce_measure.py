"""Measures: paths into an answer, members combined, products, traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from celltrain.reproduce.measure import climb, mean_window, measure, needs_series
from celltrain.reproduce.paper import PaperError

ANSWER: dict[str, Any] = {
    "efficiency": 0.5,
    "flows": [{"name": f"tcp{number}", "goodput_mbps": float(number)} for number in range(1, 5)],
    "scenario": {"port": {"thresholds": {"tcp1-2": 10, "tcp3-4": 30}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("efficiency", 0.5),
        ("3", 3.0),
        ("flows.tcp2.goodput_mbps", 2.0),
        ("flows.mean(tcp1-3).goodput_mbps", 2.0),
        ("flows.sum(*).goodput_mbps", 10.0),
        ("flows.least(tcp2-4).goodput_mbps", 2.0),
        ("flows.largest(*).goodput_mbps", 4.0),
        ("flows.variation(tcp3).goodput_mbps", 0.0),
        ("flows.variation(tcp1-3).goodput_mbps", 0.5),
        ("scenario.port.thresholds.tcp1-2", 10.0),
        ("scenario.port.thresholds.sum(*)", 40.0),
        ("flows.sum(tcp3-4).goodput_mbps / flows.sum(*).goodput_mbps / 30 * 40", 7 / 10 / 30 * 40),
        ("8e-6 * 91232 / 0.03", 24.3285333),
    ],
)
def test_a_measure_is_a_product_of_paths(text: str, value: float) -> None:
    assert measure(text, ANSWER) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "efficiency *",
        "efficiency % 1",
        "efficiency - ",
        "nothing",
        "flows.tcp9.goodput_mbps",
        "flows.median(*).goodput_mbps",
    ],
)
def test_what_leads_nowhere_is_refused_by_name(text: str) -> None:
    with pytest.raises(PaperError):
        measure(text, ANSWER)


def saw_teeth() -> dict[str, Any]:
    """Two flows: one climbs from 10 to 20 in a second, over and over; the other starts slowly and then never climbs."""
    time = np.arange(0, 4, 0.01)
    tooth = 10 + 10 * (time % 1)
    cwnd = np.stack([tooth, np.full_like(time, 5.0)], axis=1)
    ssthresh = np.stack([np.full_like(time, 10.0), np.full_like(time, 100.0)], axis=1)
    return {"time_s": time, "flows": ["tcp1", "tcp2"], "cwnd_segments": cwnd, "ssthresh_segments": ssthresh}


def test_the_slope_of_a_climb_is_that_of_the_tooth() -> None:
    assert climb(saw_teeth(), "tcp1") == pytest.approx(10.0)
    assert climb(saw_teeth(), "tcp2") == 0.0


def test_the_mean_window_is_that_of_the_linear_increase() -> None:
    assert mean_window(saw_teeth(), "tcp1") == pytest.approx(15.0, abs=0.1)
    assert mean_window(saw_teeth(), "tcp2") == 0.0


def test_a_trace_is_read_only_where_it_is_asked_for() -> None:
    assert needs_series("series.climb.mean(*)")
    assert not needs_series("flows.mean(*).goodput_mbps")
    assert measure("series.climb.largest(*) / 2", {}, saw_teeth()) == pytest.approx(5.0)
