"""Steady state of runs: MSER-5 on series with a known warm-up, and the coverage of batch-means intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import celltrain as ct
from celltrain.running import statistics as steady


def climbing(seed, warm=100, rest=900):
    """The values climb from 0 to 10, and then fluctuate around 10."""
    noise = np.random.default_rng(seed).normal(0, 0.5, warm + rest)
    return np.concatenate([np.linspace(0, 10, warm), np.full(rest, 10.0)]) + noise


@pytest.mark.parametrize("seed", range(5))
def test_the_initial_transient_of_a_series_is_omitted_and_all_later_values_are_kept(seed):
    assert 80 <= steady.mser(climbing(seed)) <= 150
    found = steady.steady(np.arange(1, 1001) / 100, climbing(seed))
    assert 0.8 <= found.from_s <= 1.5
    assert found.mean == pytest.approx(10, abs=0.1)


def test_the_detected_end_of_the_initial_transient_matches_a_direct_implementation_of_the_mser_rule():
    """Evaluates the source's formula term by term, for every possible number of omitted means."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        values = np.cumsum(rng.normal(0, 1, 200)) * 0.1 + rng.normal(0, 1, 200)
        means = values.reshape(40, 5).mean(axis=1)
        error = [np.sum((means[d:] - means[d:].mean()) ** 2) / (40 - d) ** 2 for d in range(36)]
        d = int(np.argmin(error))
        assert steady.mser(values) == (5 * d if d <= 20 else None)


def test_a_series_that_never_reaches_a_steady_state_is_reported():
    values = np.linspace(0, 1, 1000)
    assert steady.mser(values) is None
    found = steady.steady(np.arange(1, 1001) / 100, values)
    assert found.from_s is None
    assert "use a longer run" in str(found)


def test_no_values_of_a_constant_series_are_omitted_as_an_initial_transient():
    assert steady.mser(np.ones(500)) == 0
    mean, half, correlation = steady.batch_means(np.ones(500))
    assert (mean, half) == (1, 0)
    assert math.isnan(correlation)


def test_the_confidence_interval_of_the_steady_state_mean_has_the_stated_coverage_probability():
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(2000):
        mean, half, _ = steady.batch_means(rng.normal(3, 1, 400))
        hits += abs(mean - 3) <= half
    assert 0.935 <= hits / 2000 <= 0.965


def test_a_series_whose_batch_means_are_correlated_gives_a_warning():
    rng = np.random.default_rng(13)
    walk = np.cumsum(rng.normal(0, 1, 2000))
    times = np.arange(1, 2001) / 100
    assert steady.steady(times, 1000 + walk).doubtful or steady.mser(1000 + walk) is None
    assert "batches are correlated" in str(steady.Steady(from_s=0.0, mean=1.0, half=0.1, batches=20, correlation=0.9))
    assert not steady.steady(times, rng.normal(5, 1, 2000)).doubtful


def lan(duration="2s"):
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=300, duration=duration, policy=ct.SelectiveDrop())


def test_the_steady_state_means_of_all_flows_add_up_to_the_goodput_of_the_run():
    result = ct.run(lan(), trace=["delivered"], step="1ms")
    of_all = result.steady()
    if of_all.from_s == 0:
        assert of_all.mean == pytest.approx(result.goodput_mbps, rel=1e-6)
    flows = result.flows["name"].to_pylist()
    whole = [steady.batch_means(_rates(result, flow))[0] for flow in flows]
    assert sum(whole) == pytest.approx(result.goodput_mbps, rel=1e-6)
    assert result.steady(flows[0]).batches == 20


def _rates(result, flow):
    times, names, [delivered] = result.series.raw("delivered")
    return np.diff(delivered[:, names.index(flow)].astype(float)) * 8 / 1e6 / np.diff(times)


def test_impossible_steady_command_options_are_refused_with_an_alternative():
    with pytest.raises(ct.NotTracedError, match="delivered"):
        ct.run(lan("10ms")).steady()
    result = ct.run(lan("10ms"), trace=["delivered"], step="1ms")
    with pytest.raises(ct.InputError, match="use a shorter step"):
        result.steady()
    with pytest.raises(ct.InputError, match="is not a flow; choose from tcp1, tcp2, tcp3"):
        result.steady("tcp9")


def test_the_steady_command_suggests_when_the_measuring_window_should_begin(celltrain):
    answer = celltrain("run", "lan-epd", "--seed", 1, "--warm-up")
    assert answer.code == 0
    assert "goodput in Mb/s: settled after" in answer.out
    assert "measure = { from = " in answer.out
    found = celltrain("run", "lan-epd", "--seed", 1, "--warm-up", "--json").json["steady"]
    assert found["batches"] == 20
    assert found["half"] > 0
    refused = celltrain("run", "lan-epd", "--seeds", 2, "--warm-up")
    assert refused.code == 2
    assert "--warm-up" in refused.err
