from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celltrain.running import statistics


@pytest.fixture(scope="module")
def scipy_stats():
    """The package with which results are compared: importing it takes more than a second."""
    return pytest.importorskip("scipy.stats")


# Only a few distinct values, so that ties and duplicates are common.
COARSE = st.integers(-4, 4).map(float)
VALUES = st.floats(-1e6, 1e6)


def sample(*values: float) -> statistics.Means:
    return statistics.means(np.zeros(len(values), np.int64), np.array(values), 1)


@given(st.lists(st.tuples(COARSE | st.just(math.nan), COARSE), max_size=40))
def test_the_pareto_front_matches_a_comparison_of_all_pairs(pairs):
    def beats(q, p):
        return q[0] >= p[0] and q[1] >= p[1] and q != p

    naive = [not math.isnan(p[0]) and not any(beats(q, p) for q in pairs) for p in pairs]
    x, y = (np.array([pair[i] for pair in pairs], dtype=float) for i in (0, 1))
    assert statistics.pareto_front(x, y).tolist() == naive


@given(st.lists(st.tuples(COARSE, COARSE, st.sampled_from([0.0, 0.5, 1.5, math.nan])), min_size=1, max_size=30))
def test_a_point_is_dominated_only_if_the_whole_confidence_interval_of_another_point_is_better(rows):
    x, y, half = (np.array(column) for column in zip(*rows, strict=True))
    n, sd = np.full(len(x), 2), half
    of_x, of_y = (statistics.Means(n=n, mean=mean, sd=sd, half=half) for mean in (x, y))
    naive = [
        any(of_x.low[q] > of_x.high[p] and of_y.low[q] > of_y.high[p] for q in range(len(x))) for p in range(len(x))
    ]
    assert statistics.behind(of_x, of_y).tolist() == naive
    assert not (statistics.behind(of_x, of_y) & statistics.pareto_front(x, y)).any()


@pytest.mark.slow
@given(st.lists(VALUES, min_size=2, max_size=20))
def test_means_and_confidence_intervals_match_scipy(scipy_stats, values):
    ours = sample(*values)
    assert ours.mean[0] == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert ours.sd[0] == pytest.approx(np.std(values, ddof=1), rel=1e-9, abs=1e-9)
    if ours.sd[0] > 1e-6:
        low, high = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert ours.low[0] == pytest.approx(low, rel=1e-9, abs=1e-9)
        assert ours.high[0] == pytest.approx(high, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), VALUES), max_size=40))
def test_the_mean_of_a_group_equals_the_mean_of_the_values_in_it(rows):
    groups = np.array([group for group, _ in rows], dtype=np.int64)
    values = np.array([value for _, value in rows], dtype=float)
    together = statistics.means(groups, values, 5)
    for group in range(5):
        alone = [value for other, value in rows if other == group]
        assert together.n[group] == len(alone)
        if not alone:
            assert math.isnan(together.mean[group])
        else:
            assert together.mean[group] == pytest.approx(sample(*alone).mean[0], rel=1e-12, abs=1e-9)
        assert math.isnan(together.half[group]) == (len(alone) < 2)


def test_equal_values_have_a_standard_deviation_of_exactly_zero_despite_rounding():
    ours = sample(0.1, 0.1, 0.1)
    assert (ours.mean[0], ours.sd[0], ours.half[0]) == (0.1, 0.0, 0.0)


def test_the_standard_deviation_of_large_values_that_differ_little_is_accurate_despite_rounding():
    assert sample(1e9, 1e9 + 1, 1e9 + 2).sd[0] == pytest.approx(1.0)


@pytest.mark.parametrize("freedom", [1, 1.001, 1.5, 2, 3, 4.7, 10, 30, 31, 199, 999.9, 1000.1, 1e6, 1e12])
def test_quantiles_of_the_t_distribution_of_student_match_scipy(scipy_stats, freedom):
    assert statistics.student(freedom) == pytest.approx(scipy_stats.t.ppf(0.975, freedom), rel=1e-12)


def test_quantiles_of_students_t_distribution_need_at_least_one_degree_of_freedom():
    quantiles = statistics.student(np.array([[1, 2], [0, np.nan]]))
    assert quantiles.shape == (2, 2)
    assert np.isnan(quantiles).tolist() == [[False, False], [True, True]]


@pytest.mark.slow
@given(st.lists(VALUES, min_size=2, max_size=12), st.lists(VALUES, min_size=2, max_size=12))
def test_the_significance_test_for_independent_means_is_welchs_test(scipy_stats, first, second):
    ours = statistics.welch(sample(*first), sample(*second))
    assert ours.mean[0] == pytest.approx(np.mean(second) - np.mean(first), rel=1e-9, abs=1e-6)
    if np.std(first) > 1e-3 and np.std(second) > 1e-3:
        low, high = scipy_stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
        assert ours.half[0] == pytest.approx((high - low) / 2, rel=1e-6)


def test_any_difference_between_means_without_variance_is_significant():
    same, moved = sample(1, 1, 1), sample(2, 2)
    assert statistics.welch(same, moved).beyond[0]
    assert not statistics.welch(same, same).beyond[0]
    assert not statistics.welch(sample(1), sample(2)).beyond[0]


def test_paired_differences_remove_the_variation_common_to_both_sides(scipy_stats):
    rng = np.random.default_rng(7)
    shared = rng.normal(0, 100, 20)
    first, second = shared + rng.normal(0, 1, 20), shared + 3 + rng.normal(0, 1, 20)
    by_pair = statistics.mean(second - first)
    assert by_pair.beyond[0]
    assert not statistics.welch(sample(*first), sample(*second)).beyond[0]
    result = scipy_stats.ttest_rel(second, first).confidence_interval(0.95)
    assert by_pair.half[0] == pytest.approx((result.high - result.low) / 2)


def runs(points: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    point, seed = np.divmod(np.arange(points * seeds), seeds)
    return point, seed


def test_in_the_mean_effect_every_point_has_the_same_weight_whatever_its_number_of_seeds():
    point, seed = np.array([0, 0, 0, 1]), np.array([1, 2, 3, 1])
    effect = statistics.effects(np.zeros(4, np.int64), point, seed, np.array([1.0, 1, 1, 5]), 1)
    assert effect.mean[0] == 3
    assert math.isnan(effect.half[0])


def test_the_confidence_interval_of_an_effect_does_not_shrink_with_more_points_if_seeds_vary_together():
    rng = np.random.default_rng(3)
    point, seed = runs(50, 10)
    together = rng.normal(0, 1, 10)[seed]
    effect = statistics.effects(np.zeros(500, np.int64), point, seed, together, 1)
    assert (effect.n[0], effect.half[0]) == (10, pytest.approx(sample(*together[:10]).half[0]))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_confidence_interval_of_an_effect_has_the_stated_coverage_probability():
    rng = np.random.default_rng(5)
    point, seed = runs(4, 6)
    uneven = np.delete(np.arange(24), [3, 17])
    hits = {True: 0, False: 0}
    for _ in range(2000):
        values = np.array([0.0, 1, 2, 3])[point] + rng.normal(0, 1, 24)
        for whole, chosen in ((True, np.arange(24)), (False, uneven)):
            effect = statistics.effects(np.zeros(len(chosen), np.int64), point[chosen], seed[chosen], values[chosen], 1)
            hits[whole] += abs(effect.mean[0] - 1.5) <= effect.half[0]
    for whole in hits:
        assert 0.93 <= hits[whole] / 2000 <= 0.97, whole


def test_an_axis_that_is_the_only_one_with_an_effect_explains_all_of_the_variance():
    levels = np.array([0, 0, 1, 1, 2, 2])
    assert statistics.explained(levels, levels * 3.0, 3) == pytest.approx(1)
    assert statistics.explained(levels, np.array([0.0, 1, 0, 1, 0, 1]), 3) == pytest.approx(0)
    assert statistics.explained(levels, np.ones(6), 3) == 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 54])
def test_the_probability_of_a_kolmogorov_smirnov_distance_matches_scipy(scipy_stats, n):
    for scaled in np.linspace(0.05, math.sqrt(n), 200):
        exact = scipy_stats.kstwo.sf(scaled / math.sqrt(n), n)
        assert statistics.ks_probability(scaled, n) == pytest.approx(exact, abs=0.005 if exact < 0.2 else 0.04)


@pytest.mark.parametrize("n", [1, 2, 5, 54, 400])
def test_the_probability_of_a_large_kolmogorov_smirnov_distance_is_exact(scipy_stats, n):
    for distance in np.linspace(0.5, 1, 26):
        exact = scipy_stats.kstwo.sf(distance, n)
        assert statistics.ks_probability(distance * math.sqrt(n), n) == pytest.approx(exact, rel=1e-9, abs=1e-300)


def test_the_kolmogorov_smirnov_distance_of_a_single_draw_is_at_least_one_half():
    assert statistics.ks_probability(0.5, 1) == pytest.approx(1.0)
    assert statistics.ks_probability(0.95, 1) == pytest.approx(0.1)
