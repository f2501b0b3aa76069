"""Intervals in figures are clipped to the range of the measure."""

from __future__ import annotations

import numpy as np
import pytest

import celltrain as ct
from celltrain.drawing.figure import bars
from celltrain.ensemble.cases import bounds

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("measure", "limits"),
    [
        ("efficiency", (0, 1)),
        ("fairness_max_min", (0, 1)),
        ("ports.sw1->sw2.utilisation", (0, 1)),
        ("flows.fairness(*).goodput_mbps", (0, 1)),
        ("flows.variation(*).goodput_mbps", (0, np.inf)),
        ("ports.sum(*).utilisation", (0, np.inf)),
        ("goodput_mbps", (0, np.inf)),
        ("flows.tcp1.file_delay_ms.mean", (0, np.inf)),
        ("efficiency - fairness", (-np.inf, np.inf)),
    ],
)
def test_confidence_intervals_stay_within_the_bounds_of_their_measure(
    measure: str, limits: tuple[float, float]
) -> None:
    assert bounds(measure) == limits


def test_an_error_bar_is_truncated_at_the_bound_of_its_measure_and_always_includes_the_mean() -> None:
    mean, half = np.array([0.7, 0.1, 1.2, np.nan]), np.array([0.6, 0.4, 0.3, np.nan])
    below, above = bars(mean, half, (0, 1))
    assert below == pytest.approx([0.6, 0.1, 0.3, 0])
    assert above == pytest.approx([0.3, 0.4, 0, 0])


def test_error_bars_of_a_comparison_stay_within_the_bounds_of_the_measure() -> None:
    from matplotlib.collections import LineCollection

    with pytest.warns(ct.CelltrainWarning, match="3 seeds are few"):
        compared = ct.compare(
            "lan-tail-drop", seeds=3, vary={"port.bottleneck.buffer": [500, 1000], "duration": ["2s"]}
        )
    fairness = next(i for i, one in enumerate(compared.measures) if one.name == "fairness")
    goodput = next(i for i, one in enumerate(compared.measures) if one.name == "goodput_mbps")
    assert compared.means[fairness].high.max() > 1 or compared.means[goodput].low.min() < 0, "the intervals are wide"
    figure = compared.plot(measures=["fairness", "goodput_mbps"])
    assert figure.get_suptitle().splitlines() == [
        "TCP: vanilla (no fast retransmit, rules of the papers, 100 ms ticks)",
        "set: duration = 2 s",
        "lan-tail-drop: means of 3 seeds; bars: 95 % intervals, cut at impossible values",
    ]
    for axes, measure in zip(figure.axes, (fairness, goodput), strict=True):
        low, high = bounds(compared.measures[measure].name)
        lines = [one for one in axes.collections if isinstance(one, LineCollection)]
        ends = np.concatenate([segment[:, 0] for one in lines for segment in one.get_segments()])
        assert len(ends) and low - 1e-12 <= ends.min() and ends.max() <= high + 1e-12
