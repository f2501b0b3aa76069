"""The statistics of a reproduction, compared with values computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celltrain.papers import score
from celltrain.papers.paper import Number, Quantity
from celltrain.papers.score import Scored
from celltrain.running.statistics import ks, ranks, spearman

QUANTITY = Quantity(name="efficiency", unit="1", meaning="", decimals=2, result="efficiency")


def scored(published: float | None, values: list[float], requested: int = 1, **changes: Any) -> Scored:
    number = {
        "table": "1",
        "row": {"sources": 5},
        "keys": {"sources": 5},
        "network": "LAN",
        "quantity": QUANTITY,
        "published": published,
        "rounding": 0.005,
        "tolerance": 0.01,
        "point": False,
        "scored": published is not None,
        "note": "",
        "configuration": 0,
    }
    seeds = tuple(range(1, 1 + len(values)))
    return Scored(number=Number(**{**number, **changes}), values=tuple(values), seeds=seeds, requested=requested)


def test_each_published_number_is_compared_with_the_mean_standard_deviation_and_extremes_of_the_seeds() -> None:
    one = scored(0.5, [0.1, 0.2, 0.6])
    assert one.mean == pytest.approx(0.3)
    assert one.sd == pytest.approx(math.sqrt((0.04 + 0.01 + 0.09) / 2))
    assert (one.low, one.high) == (0.1, 0.6)


def test_the_standard_deviation_is_undefined_for_one_seed() -> None:
    assert scored(0.5, [0.1]).sd is None


@pytest.mark.parametrize(
    ("published", "inside"),
    [(0.48, True), (0.47, True), (0.46, False), (0.54, True), (0.55, True), (0.56, False)],
)
def test_a_value_that_differs_by_exactly_the_tolerance_counts_as_inside(published: float, inside: bool) -> None:
    assert scored(published, [0.48, 0.54]).inside is inside


def test_a_tolerance_of_zero_requires_equal_values() -> None:
    assert scored(7591.0, [7591.0, 7591.0], tolerance=0.0).inside is True
    assert scored(7591.0, [7590.0, 7590.0], tolerance=0.0).inside is False


def test_a_missing_published_number_counts_neither_as_inside_nor_as_outside() -> None:
    assert scored(None, [0.5]).inside is None


def test_equal_values_get_the_mean_of_their_ranks() -> None:
    assert ranks([30.0, 10.0, 30.0, 20.0]).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_the_spearman_correlation_equals_a_value_calculated_by_hand() -> None:
    assert spearman([1, 2, 3], [1, 2, 3]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    # d = 0, 1, 1: 1 - 6 * 2 / (3 * 8).
    assert spearman([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)
    # Ranks 1, 2.5, 2.5, 4 against 1 to 4: 4.5 / sqrt(4.5 * 5).
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(22.5))


@pytest.mark.parametrize("pair", [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([], [])])
def test_the_spearman_correlation_is_undefined_for_too_few_pairs_or_constant_values(
    pair: tuple[list[float], Any],
) -> None:
    assert spearman(*pair) is None


def test_the_self_error_of_a_seed_is_its_deviation_from_the_mean_of_the_others() -> None:
    assert score.self_error([[0.0, 1.0]]) == pytest.approx(1.0)
    # The distances lie between 1 and 2.5, between 2 and 2, and between 3 and 1.5.
    assert score.self_error([[1.0, 2.0, 3.0]]) == pytest.approx(1.0)
    assert score.self_error([[0.0, 1.0], [5.0, 5.0]]) == pytest.approx(0.5)


def test_with_only_one_seed_the_self_error_is_undefined() -> None:
    assert score.self_error([[0.5], [0.7]]) is None


@pytest.mark.parametrize(
    ("printed", "rank"),
    [
        (0.05, 0.5 / 4),  # below all three seeds
        (0.35, 3.5 / 4),  # above all
        (0.25, 2.5 / 4),  # above two
        (0.20, 2.0 / 4),  # above one, printed like one
    ],
)
def test_the_rank_of_a_published_number_among_seeds_equals_a_hand_calculated_value(printed: float, rank: float) -> None:
    assert score.rank_among_seeds(printed, [0.1, 0.2, 0.3], 0.005) == pytest.approx(rank)


def test_a_seed_whose_result_rounds_to_the_published_number_counts_half_in_its_rank() -> None:
    assert score.rank_among_seeds(0.2, [0.195, 0.205], 0.005) == pytest.approx(1.5 / 3)
    assert score.rank_among_seeds(0.2, [0.194, 0.206], 0.005) == pytest.approx(1.5 / 3)
    assert score.rank_among_seeds(0.2, [0.194, 0.195], 0.005) == pytest.approx(2.0 / 3)


def test_the_kolmogorov_smirnov_statistic_equals_a_value_calculated_by_hand() -> None:
    assert ks([0.5]) == pytest.approx(0.5)
    assert ks([0.25, 0.75]) == pytest.approx(0.25 * math.sqrt(2))
    # All values are at one end, so the distance is 1 - 0.1.
    assert ks([0.9, 0.9, 0.9, 0.9]) == pytest.approx(0.9 * 2)
    assert ks([]) is None


def test_the_ks_distance_of_random_draws_exceeds_its_5_percent_limit_rarely() -> None:
    seed = 96_1269
    rng = np.random.default_rng(seed)
    below = 0
    trials = 300
    for _ in range(trials):
        draws = np.round(rng.beta(8, 4, size=(48, 31)), 2)
        below += ks([score.rank_among_seeds(row[0], row[1:], 0.005) for row in draws]) < 1.36
    assert 0.93 <= below / trials <= 1.0, f"seed {seed}"


def test_the_ks_test_uses_only_scored_numbers_and_excludes_those_with_a_single_exact_value() -> None:
    group = [
        scored(0.50, [0.4, 0.6]),
        scored(0.90, [0.4, 0.6]),
        scored(0.10, [0.4, 0.6], scored=False),
        scored(0.55, [0.5, 0.5], point=True),
    ]
    scores = score.group_scores(group)
    assert (scores["scored"], scores["inside"]) == (3, 1)
    assert scores["mean_abs_error"] == pytest.approx((0.0 + 0.4 + 0.05) / 3)
    assert scores["self_error"] == pytest.approx((0.2 * 4 + 0.0 * 2) / 6)
    # Ranks among two seeds: 1.5/3 and 2.5/3.
    assert scores["ks"] == pytest.approx(max(0.5, 2.5 / 3 - 0.5) * math.sqrt(2))


def test_the_summary_of_scores_is_grouped_by_table_network_and_quantity() -> None:
    summary = score.summary(
        [scored(0.5, [0.5]), scored(0.9, [0.5], network="WAN"), scored(None, [0.5], table="windows")],
    )
    assert (summary["scored"], summary["inside"], summary["share_inside"]) == (2, 1, 0.5)
    assert [(g["table"], g["network"], g["quantity"]) for g in summary["by"]] == [
        ("1", "LAN", "efficiency"),
        ("1", "WAN", "efficiency"),
    ]
    [everywhere] = summary["by_quantity"]
    assert (everywhere["quantity"], everywhere["scored"]) == ("efficiency", 2)
    assert everywhere["mean_relative_error"] == pytest.approx((0.0 + 0.4 / 0.9) / 2)


def test_the_share_of_numbers_inside_the_range_is_undefined_if_no_number_is_scored() -> None:
    assert score.summary([])["share_inside"] is None
    scores = score.group_scores([])
    nothing = "mean_abs_error mean_relative_error self_error rank_correlation ks ks_p ks_p_seeds"
    assert all(scores.pop(name) is None for name in nothing.split())
    assert set(scores.values()) == {0}


def test_the_verdict_on_the_range_of_seeds_does_not_depend_on_the_rule_chosen_for_agreement() -> None:
    # The paper's file uses the mean; the range is also computed, within a unit of the last digit.
    wide = scored(0.47, [0.48, 0.90], judged_by="mean", tolerance=0.2, tolerance_stated=True)
    assert (wide.inside, wide.inside_range, wide.inside_tolerance) == (False, True, False)
    narrow = scored(0.46, [0.48, 0.52], judged_by="mean", tolerance=0.05, tolerance_stated=True)
    assert (narrow.inside, narrow.inside_range, narrow.inside_tolerance) == (True, False, True)
    either = scored(0.46, [0.48, 0.52], judged_by="either", tolerance=0.05, tolerance_stated=True)
    assert (either.inside, either.inside_range, either.inside_tolerance) == (True, False, True)


def test_the_mean_of_the_seeds_gets_a_verdict_only_with_a_tolerance() -> None:
    assert scored(0.5, [0.5, 0.5]).inside_tolerance is None
    assert scored(0.5, [0.5, 0.5]).inside is True


def test_a_number_that_must_match_exactly_is_judged_by_its_tolerance() -> None:
    point = {"point": True, "tolerance": 28.0, "tolerance_stated": True}
    assert scored(59211.0, [59239.0, 59239.0], **point).inside_range is True
    assert scored(59210.0, [59239.0, 59239.0], **point).inside_range is False


def test_a_number_that_the_paper_does_not_print_has_no_verdict() -> None:
    nothing = scored(None, [0.5], tolerance_stated=True)
    assert (nothing.inside_range, nothing.inside_tolerance, nothing.pit) == (None, None, None)


def test_the_central_90_percent_of_ranks_excludes_equally_many_ranks_at_both_ends() -> None:
    # With 30 seeds there are 31 ranks; (k + 1/2) / 31 is outside for k = 0, 1, 29 and 30.
    assert score.share_in_the_middle(30) == pytest.approx(27 / 31)
    assert score.share_in_the_middle(5) == 1
    assert [score.in_the_middle(k) for k in (0.049, 0.05, 0.95, 0.951)] == [False, True, True, False]


def test_the_verdicts_on_a_group_of_numbers_equal_values_calculated_by_hand() -> None:
    seeds = [k / 10 for k in range(1, 11)]
    counted = [
        scored(0.55, seeds),  # the mean, in the middle of the seeds
        scored(1.00, seeds),  # equals the highest seed: rank 10 of 11
        scored(1.02, seeds, tolerance=0.5, tolerance_stated=True, judged_by="mean"),  # above all seeds: rank 10.5
        scored(2.0, [2.0] * 10, point=True, tolerance=0.0, tolerance_stated=True),
    ]
    verdicts = score.verdicts(counted)
    assert (verdicts["inside_range"], verdicts["range_draws"], verdicts["draws"]) == (3, 2, 3)
    assert verdicts["range_expected"] == pytest.approx(3 * 9 / 11)
    assert (verdicts["with_tolerance"], verdicts["inside_tolerance"]) == (2, 2)
    assert verdicts["within_tenth"] == 2
    # 10.5 / 11 is above .95, and 10 / 11 is not; two of the 11 ranks are outside.
    assert verdicts["pit_middle"] == 2
    assert verdicts["pit_middle_expected"] == pytest.approx(3 * 9 / 11)
    assert verdicts["ks"] == pytest.approx(ks([0.5, 10 / 11, 10.5 / 11]))


def test_the_seed_based_p_value_accounts_for_correlation_between_numbers_of_the_same_run() -> None:
    # Twenty identical quantities of a run count as one number. If they were independent, twenty printed values at the
    # edge would be almost impossible. However, for some of the seeds all twenty values are at an edge, too.
    seed = 18_3
    rng = np.random.default_rng(seed)
    values = [float(v) for v in rng.uniform(size=30)]
    printed = sorted(values)[1] + 1e-6
    copies = [
        scored(printed, values, rounding=1e-9, quantity=QUANTITY.model_copy(update={"decimals": 9})) for _ in range(20)
    ]
    verdicts = score.verdicts(copies)
    assert verdicts["ks_p"] < 1e-6, f"seed {seed}"
    assert verdicts["ks_p_seeds"] > 0.1, f"seed {seed}"


@pytest.mark.slow
def test_the_seed_based_p_value_is_uniform_if_the_published_values_are_draws_from_the_model() -> None:
    seed = 18_4
    rng = np.random.default_rng(seed)
    trials, small = 60, 0
    for _ in range(trials):
        # Pairs of nearly equal numbers from one run.
        runs = rng.normal(size=(8, 1, 20)) + 0.1 * rng.normal(size=(8, 2, 20))
        draws = [scored(round(float(of[0]), 2), [round(float(v), 4) for v in of[1:]]) for pair in runs for of in pair]
        small += score.verdicts(draws)["ks_p_seeds"] <= 0.25
    assert 0.1 <= small / trials <= 0.42, f"seed {seed}"


def test_the_seed_based_p_value_requires_enough_seeds_common_to_all_numbers() -> None:
    one = scored(0.5, [k / 10 for k in range(10)])
    late = replace(one, seeds=tuple(range(5, 15)))
    assert score.verdicts([one])["ks_p_seeds"] is not None
    assert score.verdicts([one, late])["ks_p_seeds"] is None
