"""Measures: paths into a result, combined members, products, traces."""

from __future__ import annotations

from typing import Any

import pytest

import celltrain as ct
from celltrain.model.measures import MeasureError, check_syntax, measure, needs_series

ANSWER: dict[str, Any] = {
    "efficiency": 0.5,
    "goodput_mbps": 10.0,
    "file_delay_ms": {"mean": 520.0, "median": None, "files": 7},
    "flows": [{"name": f"tcp{number}", "goodput_mbps": float(number)} for number in range(1, 5)],
    "scenario": {"port": {"thresholds": {"tcp1-2": 10, "tcp3-4": 30}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("efficiency", 0.5),
        ("3", 3.0),
        ("goodput_mbps", 10.0),
        ("file_delay_ms.mean", 520.0),
        ("file_delay_ms.mean / file_delay_ms.files", 520 / 7),
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
        ("2 + 3 * 4 - 6 / 3", 12.0),
        ("( 2 + 3 ) * ( 4 - 1 ) / 5", 3.0),
        ("( flows.sum(tcp*).goodput_mbps - 1 ) / 3", 3.0),
        ("flows.sum(t*3).goodput_mbps", 3.0),
    ],
)
def test_a_measure_expression_combines_paths_and_numbers(text: str, value: float) -> None:
    assert measure(text, ANSWER) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "efficiency *",
        "efficiency efficiency",
        "* efficiency",
        "efficiency + * 2",
        "( efficiency",
        "efficiency )",
        "nothing",
        "flows.tcp9.goodput_mbps",
        "flows.sum(udp*).goodput_mbps",
        "file_delay_ms.median",
        "efficiency % 1",
        "efficiency - ",
        "flows.median(*).goodput_mbps",
    ],
)
def test_a_measure_with_an_unknown_path_is_refused_and_the_message_names_the_path(text: str) -> None:
    with pytest.raises(MeasureError):
        measure(text, ANSWER)


def test_the_result_of_a_run_contains_every_measure_that_the_papers_use() -> None:
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells="infinite", policy=ct.TailDrop(), duration="1s")
    asked = lan.replace(measure=ct.MeasureOptions(file_size="100kB"))
    answer = ct.run(asked).to_dict()
    # D = L / R + RTT with RTT = W / R: each flow has half of the link's data rate, and its window waits at the port.
    expected = (100_000 + 65_535) * 8e-3 / 62.6
    assert measure("goodput_mbps", answer) == pytest.approx(125.2, rel=0.02)
    assert measure("file_delay_ms.mean", answer) == pytest.approx(expected, rel=0.02)
    assert measure("flows.mean(*).file_delay_ms.mean", answer) == pytest.approx(expected, rel=0.02)
    with pytest.raises(MeasureError, match=r"file_delay_ms\.mean"):
        measure("file_delay_ms.mean", ct.run(lan).to_dict())


def test_recorded_series_are_read_only_if_a_measure_needs_them() -> None:
    assert needs_series("series.climb.mean(*)")
    assert not needs_series("flows.mean(*).goodput_mbps")
    assert measure("series.climb.largest(*)", ANSWER) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1/0", "'1/0' is not in the result of a run: there is no '1/0'"),
        ("flows.tcp9.goodput_mbps", "there is no 'tcp9'"),
        ("flows.sum(tcp3-5).goodput_mbps", "there is no 'tcp5'"),
        ("flows.sum(tcp4-3).goodput_mbps", "'tcp4-3' is an empty range"),
        ("flows.sum(tcp\u0661-\u0663).goodput_mbps", "is neither a name nor a range of names"),
        ("flows.tcp1.name", "the path leads to a text, not to a number"),
        ("flows.tcp1", "the path leads to a table or a list, not to a number"),
        ("efficiency.mean", "a number or a string has no field 'mean'"),
        ("scenario.hosts.a", "a number or a string has no field 'a'"),
        ("contracts.mean(*).goodput_mbps", "'mean(*)' has no values"),
        ("flows.median(*).goodput_mbps", "there is no 'median'; choose from sum, mean"),
        ("series", "series must be followed by climb or mean_window, and then a flow"),
        ("series.climb", "series must be followed by climb or mean_window, and then a flow"),
        (
            "efficiency % 1",
            "'efficiency % 1' cannot be read: an operator is expected before '%'\n    efficiency % 1\n               ^",
        ),
        ("( efficiency", "'( efficiency' lacks a ')'\n    ( efficiency\n                ^"),
        ("efficiency * 1e400", "'1e400' is too large a number"),
        ("( " * 5000 + "efficiency" + " )" * 5000, "more than 100 pairs of parentheses"),
    ],
)
def test_an_invalid_measure_expression_is_refused_with_a_message(text: str, words: str) -> None:
    # Regression: some messages quoted Python exceptions such as KeyError('1/0'), and some measures raised uncaught
    # errors.
    with pytest.raises(MeasureError) as refusal:
        measure(text, {**ANSWER, "scenario": {"hosts": ["a"]}, "contracts": []})
    assert words in str(refusal.value)
    assert "Error(" not in str(refusal.value)


@pytest.mark.parametrize("text", ["1", "9" * 5000, "2 * ( 3 + 4 )", "1e400", "x" * 10_001])
def test_a_measure_expression_without_a_path_or_with_a_syntax_error_is_refused(text: str) -> None:
    with pytest.raises(MeasureError):
        check_syntax(text)


def test_a_name_range_in_a_measure_expression_matches_existing_names() -> None:
    # Regression: the range was first expanded into a hundred billion names.
    with pytest.raises(MeasureError, match="is a range of 99,999,999,999 names, but there are only 4"):
        measure("flows.sum(tcp1-99999999999).goodput_mbps", ANSWER)
    with pytest.raises(MeasureError, match="neither a name nor a range"):
        measure(f"flows.sum(tcp1-{'9' * 5000}).goodput_mbps", ANSWER)
