"""Claims: every form of test on constructed rows, and the claims of the paper on its printed numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from celltrain.papers import claims
from celltrain.papers.claims import FORMS, Point
from celltrain.papers.paper import Paper, PaperError, load
from celltrain.papers.score import Scored, ratio
from celltrain.running.statistics import half_width


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load("af-96-1269")


def points(rows: list[tuple[Any, ...]], *keys: str, quantity: str = "efficiency", table: str = "2") -> list[Point]:
    """Converts rows of key values, with the measured value last."""
    return [Point(table, dict(zip(keys, row[:-1], strict=True)), quantity, row[-1]) for row in rows]


POLICIES = points(
    [
        ("epd", 1000, 0.5),
        ("epd", 2000, 0.7),
        ("epd", 3000, 0.6),
        ("ubr", 1000, 0.4),
        ("ubr", 2000, 0.4),
        ("ubr", 3000, 0.7),
    ],
    "policy",
    "buffer_cells",
)
EPD = {"table": "2", "policy": "epd"}
UBR = {"table": "2", "policy": "ubr"}


def holds(test: dict[str, Any], rows: list[Point]) -> bool:
    verdict, evidence = claims.apply(test, rows)
    assert evidence, "every verdict has evidence"
    return verdict


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),  # means .6 and .5
        ({"share": 0.6}, True),  # two of three rows
        ({"share": 0.7}, False),
        ({"margin": 0.09}, True),
        ({"margin": 0.11}, False),
    ],
)
def test_the_greater_test_of_a_claim_compares_means_or_pairs_of_matched_rows(
    options: dict[str, float], expected: bool
) -> None:
    test = {"form": "greater", "quantity": "efficiency", "a": EPD, "b": UBR, **options}
    assert holds(test, POLICIES) is expected
    assert holds({**test, "a": UBR, "b": EPD}, POLICIES) is False


def test_the_rows_of_a_claim_are_matched_by_the_keys_named_in_the_claim() -> None:
    rows = points([(5, 1000, 0.4), (5, 2000, 0.5), (15, 1000, 0.3)], "sources", "buffer_cells")
    rows += points([(5, 9, 0.45), (15, 9, 0.2)], "sources", "buffer_cells", table="9")
    test = {"form": "greater", "quantity": "efficiency", "a": {"table": "2"}, "b": {"table": "9"}, "on": ["sources"]}
    # The means are .45 and .45 for 5 sources, and .3 and .2 for 15.
    assert holds({**test, "share": 0.5}, rows) is True
    assert holds({**test, "share": 1}, rows) is False


@pytest.mark.parametrize(("low", "high", "expected"), [(0.1, 0.1, True), (0.0, 0.09, False), (0.11, 1.0, False)])
def test_the_difference_test_of_a_claim_accepts_differences_equal_to_its_limits(
    low: float, high: float, expected: bool
) -> None:
    test = {"form": "difference", "quantity": "efficiency", "a": EPD, "b": UBR, "low": low, "high": high}
    assert holds(test, POLICIES) is expected


def test_a_claim_about_a_ratio_is_judged_by_the_quotient_of_the_means() -> None:
    test = {"form": "ratio", "quantity": "efficiency", "a": EPD, "b": UBR}
    assert holds({**test, "low": 1.2, "high": 1.2}, POLICIES) is True
    assert holds({**test, "low": 1.21}, POLICIES) is False


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"low": 0.5, "high": 0.7}, True),
        ({"low": 0.55}, False),
        ({"low": 0.55, "share": 0.66}, True),
        ({"high": 0.65}, False),
        ({"of": "mean", "low": 0.6, "high": 0.6}, True),
        ({"of": "mean", "low": 0.61}, False),
        ({"low": "0.0005 * buffer_cells - 0.9", "high": "buffer_cells"}, True),
        ({"low": "0.0005 * buffer_cells"}, False),
    ],
)
def test_the_bound_test_of_a_claim_checks_each_row_or_the_mean_of_all_rows(
    options: dict[str, Any], expected: bool
) -> None:
    assert holds({"form": "bound", "quantity": "efficiency", "over": EPD, **options}, POLICIES) is expected


def test_the_trend_test_of_a_claim_counts_groups_whose_values_have_the_stated_order() -> None:
    rows = points(
        [(5, 1, 0.1), (5, 2, 0.2), (5, 3, 0.3), (15, 1, 0.2), (15, 2, 0.2), (15, 3, 0.2)], "sources", "buffer_cells"
    )
    test = {
        "form": "trend",
        "quantity": "efficiency",
        "over": {"table": "2"},
        "key": "buffer_cells",
        "groups": ["sources"],
        "sign": "positive",
    }
    assert holds({**test, "share": 0.5}, rows) is True
    assert holds({**test, "share": 1}, rows) is False, "a group of equal values shows no trend"
    assert holds({**test, "sign": "negative"}, rows) is False


def test_the_trend_test_of_a_claim_orders_values_with_units_by_magnitude() -> None:
    rows = points([("500ms", 0.1), ("100ms", 0.2), ("10ms", 0.3)], "timer_granularity")
    test = {
        "form": "trend",
        "quantity": "efficiency",
        "over": {"table": "2"},
        "key": "timer_granularity",
        "groups": [],
        "sign": "negative",
    }
    assert holds(test, rows) is True


def test_the_correlation_test_of_a_claim_compares_the_ranks_of_two_quantities() -> None:
    rows = points([(1, 0.1), (2, 0.2), (3, 0.3)], "row")
    rows += points([(1, 0.9), (2, 0.8), (3, 0.85)], "row", quantity="fairness")
    test = {"form": "correlation", "x": "efficiency", "y": "fairness", "over": {"table": "2"}}
    assert holds({**test, "sign": "negative"}, rows) is True
    assert holds({**test, "sign": "positive"}, rows) is False


@pytest.mark.parametrize(("at_least", "share", "expected"), [(0.2, 0.5, True), (0.2, 1, False), (0.31, 0.5, False)])
def test_the_spread_test_of_a_claim_uses_the_largest_value_minus_the_smallest(
    at_least: float, share: float, expected: bool
) -> None:
    rows = points([(5, 1, 0.1), (5, 2, 0.4), (15, 1, 0.2), (15, 2, 0.3)], "sources", "z")
    test = {"form": "spread", "quantity": "efficiency", "over": {"table": "2"}, "groups": ["sources"]}
    assert holds({**test, "at_least": at_least, "share": share}, rows) is expected


def test_a_claim_that_a_setting_is_best_compares_the_means_of_all_settings() -> None:
    rows = points([(0.8, 1, 0.70), (0.8, 2, 0.80), (0.9, 1, 0.76), (0.9, 2, 0.76)], "z", "row")
    test = {"form": "best", "quantities": ["efficiency"], "over": {"table": "2"}}
    assert holds({**test, "setting": {"z": 0.9}}, rows) is True
    assert holds({**test, "setting": {"z": 0.8}}, rows) is False
    assert holds({**test, "setting": {"z": 0.8}, "within": 0.01}, rows) is True


def by_seed(policy: str, load: float, *values: float) -> Point:
    """Returns a row with a value for each seed from 1 on."""
    keys = {"policy": policy, "load": load}
    return Point("2", keys, "efficiency", sum(values) / len(values), dict(enumerate(values, start=1)))


#: At a load of 0.2 the ratio of `epd` to `ubr` is 1/2 for every seed; at 0.8 it is 1/2 or 2.
PAIRED = [
    by_seed("epd", 0.2, 0.1, 0.3, 0.4),
    by_seed("ubr", 0.2, 0.2, 0.6, 0.8),
    by_seed("epd", 0.8, 0.2, 0.8, 0.2),
    by_seed("ubr", 0.8, 0.4, 0.4, 0.4),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"high": 0.6}, None),  # For all rows together, the interval of their geometric mean contains 0.6.
        ({"high": 0.4, "on": ["load"], "rows": "some"}, None),
        ({"high": 0.4, "on": ["load"]}, False),
        ({"high": 0.6, "on": ["load"], "rows": "some"}, True),
        ({"high": 0.6, "on": ["load"]}, None),
        ({"low": 0.4, "high": 100, "on": ["load"], "rows": "some"}, True),
        ({"low": 1000, "on": ["load"], "rows": "some"}, False),
    ],
)
def test_claims_about_paired_ratios_are_decided_by_confidence_intervals(
    options: dict[str, Any], expected: bool | None
) -> None:
    test = {"form": "paired", "quantity": "efficiency", "a": EPD, "b": UBR, **options}
    assert claims.apply(test, PAIRED)[0] is expected


def test_the_paired_test_of_a_claim_compares_runs_with_the_same_seed() -> None:
    # Unpaired, the intervals of the two rows overlap, although every seed halves.
    test = {
        "form": "paired",
        "quantity": "efficiency",
        "a": {**EPD, "load": 0.2},
        "b": {**UBR, "load": 0.2},
        "high": 0.51,
    }
    holds, evidence = claims.apply(test, PAIRED)
    assert holds is True
    assert evidence == "ratio of efficiency 0.50 (0.50 to 0.50), allowed 0.51 or less"
    # A seed that is missing in one of the rows is not counted.
    more = [*PAIRED[1:], by_seed("epd", 0.2, 0.1, 0.3, 0.4, 7.0)]
    assert claims.apply(test, more) == (holds, evidence)
    # Rows in several tables count once.
    shared = Point("3", PAIRED[0].keys, "efficiency", PAIRED[0].value, PAIRED[0].by_seed)
    test |= {"a": {"table": ["2", "3"], "policy": "epd", "load": 0.2}}
    assert claims.apply(test, [*PAIRED, shared]) == (holds, evidence)


def test_the_confidence_interval_of_a_ratio_is_computed_from_logarithms() -> None:
    found = ratio([{1: 2.0, 2: 8.0, 3: 4.0}], [{1: 1.0, 2: 1.0, 3: 1.0, 4: 9.0}])
    half = half_width(3, math.log(2))
    assert (found.mean, found.seeds) == (pytest.approx(4.0), 3)
    assert (found.low, found.high) == (pytest.approx(4 * math.exp(-half)), pytest.approx(4 * math.exp(half)))
    assert (one := ratio([{1: 3.0}], [{1: 2.0}])).low == one.high == one.mean


def test_a_claim_with_an_inconclusive_test_is_undecided_unless_another_test_fails() -> None:
    undecided = {"form": "paired", "quantity": "efficiency", "a": EPD, "b": UBR, "high": 0.6}
    holding, failing = {**undecided, "high": 1000}, {**undecided, "low": 1000}
    assert claims.verdict([undecided, holding], PAIRED)[0] is None
    assert claims.verdict([undecided, failing], PAIRED)[0] is False
    assert claims.verdict([holding, holding], PAIRED)[0] is True


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([by_seed("epd", 0.2, 0.1), by_seed("ubr", 0.2, 0.0)], "positive"),
        ([by_seed("epd", 0.2, 0.1), by_seed("ubr", 0.8, 0.2)], "matches"),
        ([PAIRED[0], Point("2", PAIRED[1].keys, "efficiency", 0.2, {9: 0.2})], "share no seed"),
    ],
)
def test_ratios_whose_denominator_is_zero_are_refused(rows: list[Point], words: str) -> None:
    test = {"form": "paired", "quantity": "efficiency", "a": EPD, "b": UBR, "on": ["load"], "high": 1}
    with pytest.raises(PaperError, match=words):
        claims.apply(test, rows)


@pytest.mark.parametrize(
    "test",
    [
        {"form": "nearly", "quantity": "efficiency"},
        {"form": "bound", "quantity": "efficiency", "over": {"table": "8"}, "of": "mean", "low": 0},
        {"form": "best", "quantities": ["efficiency"], "over": EPD, "setting": {"policy": "fba"}},
        {
            "form": "trend",
            "quantity": "efficiency",
            "over": EPD,
            "key": "policy",
            "groups": ["buffer_cells"],
            "sign": "positive",
        },
        {
            "form": "trend",
            "quantity": "efficiency",
            "over": EPD,
            "key": "buffer_cells",
            "groups": ["policy"],
            "sign": "up",
        },
    ],
)
def test_an_invalid_claim_test_is_refused(test: dict[str, Any]) -> None:
    with pytest.raises(PaperError):
        claims.apply(test, POLICIES)


def as_printed(paper: Paper, tables: list[str] | None = None) -> list[Scored]:
    """Returns the printed numbers in place of results. All numbers of an experiment are equal."""
    return [
        Scored(number=number, values=(0.5 if number.published is None else number.published,), seeds=(1,), requested=1)
        for number in paper.numbers(tables=tables)
    ]


def test_every_claim_has_a_unique_name_a_quotation_and_a_test(paper: Paper) -> None:
    assert len(paper.claims) >= 20
    assert len({claim["id"] for claim in paper.claims}) == len(paper.claims)
    for claim in paper.claims:
        assert claim["text"].endswith(".")
        assert claim["quote"]
        assert claim["section"]
        assert {test["form"] for test in claim["tests"]} <= set(FORMS)


def test_every_claim_in_a_paper_can_be_evaluated(paper: Paper) -> None:
    judged, left_out = claims.judge(paper, as_printed(paper))
    assert left_out == []
    assert [claim.id for claim in judged] == [claim["id"] for claim in paper.claims]


def test_the_tests_of_claims_are_also_applied_to_the_published_numbers(paper: Paper) -> None:
    judged, _ = claims.judge(paper, as_printed(paper))
    for claim in judged:
        if claim.published_holds is not None:
            assert (claim.published_holds, claim.published_evidence) == (claim.holds, claim.evidence), claim.id
    # Claims in the text that contradict the paper's own tables.
    assert [claim.id for claim in judged if claim.published_holds is False] == [
        "epd-improves-wan-efficiency",
        "epd-leaves-wan-fairness",
        "selective-drop-fairer-than-epd-wan",
        "selective-drop-as-efficient-as-epd-lan",
        "fba-efficiency-grows-with-z-lan",
        "fba-efficiency-grows-with-z-wan",
        "fba-fairness-falls-with-z",
        "fba-best-r-and-z-lan",
    ]
    # Claims without printed numbers.
    assert [claim.id for claim in judged if claim.published_holds is None] == [
        "smaller-windows-raise-lan-efficiency",
        "coarse-timers-cost-throughput",
    ]


def test_a_claim_whose_rows_are_missing_is_omitted(paper: Paper) -> None:
    scored = [s for s in as_printed(paper, ["2"]) if s.number.network == "LAN"]
    judged, left_out = claims.judge(paper, scored)
    assert [claim.id for claim in judged] == [
        "ubr-lan-efficiency-below-half",
        "epd-improves-lan-efficiency",
        "selective-drop-as-efficient-as-epd-lan",
    ]
    assert len(judged) + len(left_out) == len(paper.claims)
    judged, _ = claims.judge(paper, scored[:-1])
    assert "ubr-lan-efficiency-below-half" in {claim.id for claim in judged}, (
        "only claims about the missing FBA row are left out"
    )


def test_a_claim_is_also_evaluated_for_each_seed_and_the_fraction_of_supporting_seeds_is_reported(paper: Paper) -> None:
    """Eight seeds support the claim and two contradict it. An eleventh seed was run for only some of its rows."""
    name = "selective-drop-fairness-falls-with-sources"
    scored = []
    for number in paper.numbers(tables=["3"]):
        five = number.keys["sources"] == 5
        values = [
            (0.9 if five else 0.8) if seed <= 8 else (0.7 if five else 0.8) for seed in range(1, 12 if five else 11)
        ]
        scored.append(Scored(number=number, values=tuple(values), seeds=tuple(range(1, len(values) + 1)), requested=1))
    judged, _ = claims.judge(paper, scored)
    [claim] = [claim for claim in judged if claim.id == name]
    assert claim.holds, "on the means"
    assert (claim.seeds_share, claim.seeds) == (pytest.approx(0.8), 10)
    assert {key: claim.to_dict()[key] for key in ("seeds_share", "seeds")} == {"seeds_share": 0.8, "seeds": 10}
    apart = [
        Scored(number=s.number, values=(0.5,), seeds=(1 + (s.number.keys["sources"] == 5),), requested=1)
        for s in scored
    ]
    judged, _ = claims.judge(paper, apart)
    [claim] = [claim for claim in judged if claim.id == name]
    assert (claim.seeds_share, claim.seeds) == (None, 0), "no seed has results for all rows of the claim"
