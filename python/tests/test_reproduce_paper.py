"""A paper's folder, expanded into numbers and configurations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from celltrain import _core
from celltrain.model.paths import seconds, set_key
from celltrain.model.scenario import Reading
from celltrain.papers.paper import PAPER, Number, Paper, PaperError, evaluate, load, matches, substitute

PAPERS = Path(__file__).parents[2] / "papers"
AF_96_1269 = "af-96-1269"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load(AF_96_1269)


def find(paper: Paper, table: str, **keys: Any) -> Number:
    [number] = [n for n in paper.table(table).numbers if matches({**n.keys, "quantity": n.quantity.name}, keys)]
    return number


def test_every_paper_folder_that_contains_a_description_is_a_known_paper() -> None:
    assert PAPER.ids() == sorted(path.parent.name for path in PAPERS.glob("*/paper.toml"))


def test_paper_folders_contain_no_code_except_for_searches() -> None:
    """Only scripts that search a paper's open choices are allowed, in a separate folder."""
    files = [path for path in PAPERS.rglob("*") if path.is_file() and "search" not in path.relative_to(PAPERS).parts]
    assert {path.suffix for path in files} <= {".toml", ".csv", ".md"}


def test_every_number_printed_in_paper_96_1269_is_recorded(paper: Paper) -> None:
    counts = {table.number: len(table.numbers) for table in paper.tables}
    assert counts.pop("lock-step") == 28, "these numbers repeat 14 rows of Table 5"
    assert counts == {"1": 12, "2": 48, "3": 48, "4": 88, "5": 108, "6": 108, "windows": 36, "timers": 36}


def test_a_scenario_used_by_several_tables_of_a_paper_is_listed_once(paper: Paper) -> None:
    assert len({c.text for c in paper.configurations}) == len(paper.configurations)
    assert Counter(c.network for c in paper.configurations) == {"LAN": 130, "WAN": 88}
    # The sum consists of 4 scenarios without loss; 12 rows for each of 4 policies; 44 rows that vary Z, minus the 12
    # with Z = 0.8; 108 rows that vary R and Z, minus the 12 with R = 0.9 and Z = 0.8; and 14 of these in another order
    # of ties.
    published = {n.configuration for table in paper.tables if not table.experiment for n in table.numbers}
    assert len(published) == 4 + 48 + 32 + 96 + 14
    # Smaller windows, and finer and coarser timers, in six cases each.
    assert len(paper.configurations) == len(published) + 12 + 12


def test_a_run_whose_result_a_paper_prints_in_several_tables_is_simulated_once(paper: Paper) -> None:
    place = {"sources": 15, "network": "WAN", "buffer_cells": 24000}
    selective_drop = {
        find(paper, "2", policy="selective_drop", **place).configuration,
        find(paper, "3", policy="selective_drop", **place).configuration,
        find(paper, "4", z=0.8, quantity="fairness", **place).configuration,
    }
    fba = {
        find(paper, "2", policy="fba", **place).configuration,
        find(paper, "3", policy="fba", **place).configuration,
        find(paper, "6", z=0.8, r=0.9, quantity="efficiency", **place).configuration,
    }
    assert len(selective_drop) == len(fba) == 1
    assert selective_drop != fba


@pytest.mark.parametrize(
    ("table", "keys", "published"),
    [
        ("1", {"sources": 15, "network": "WAN", "quantity": "max_queue_cells"}, 196203),
        ("2", {"network": "LAN", "sources": 5, "buffer_cells": 1000, "policy": "epd"}, 0.49),
        ("3", {"network": "WAN", "sources": 15, "buffer_cells": 36000, "policy": "selective_drop"}, 0.89),
        ("4", {"sources": 15, "network": "LAN", "buffer_cells": 2000, "z": 1, "quantity": "fairness"}, 0.13),
        ("5", {"sources": 5, "z": 0.2, "r": 0.5, "buffer_cells": 3000, "quantity": "fairness"}, 0.90),
        ("6", {"sources": 5, "z": 0.2, "r": 0.1, "buffer_cells": 12000, "quantity": "efficiency"}, 0.78),
    ],
)
def test_numbers_are_printed_with_as_many_decimal_places_as_in_the_paper(
    paper: Paper, table: str, keys: dict[str, Any], published: float
) -> None:
    assert find(paper, table, **keys).published == published


@pytest.mark.parametrize(
    ("table", "keys", "port"),
    [
        (
            "1",
            {"sources": 5, "network": "LAN", "quantity": "fairness"},
            {"buffer": "infinite", "policy": {"tail_drop": {}}},
        ),
        (
            "2",
            {"network": "WAN", "sources": 5, "buffer_cells": 24000, "policy": "ubr"},
            {"buffer": 24000, "policy": {"tail_drop": {}}},
        ),
        (
            "2",
            {"network": "WAN", "sources": 15, "buffer_cells": 36000, "policy": "epd"},
            {"buffer": 36000, "policy": {"epd": {"threshold": 35800}}},
        ),
        (
            "4",
            {"sources": 5, "network": "LAN", "buffer_cells": 1000, "z": 0.95, "quantity": "fairness"},
            {"buffer": 1000, "policy": {"selective_drop": {"threshold": 0.9, "z": 0.95}}},
        ),
        (
            "5",
            {"sources": 15, "z": 0.2, "r": 0.5, "buffer_cells": 2000, "quantity": "fairness"},
            {"buffer": 2000, "policy": {"fba": {"threshold": 0.5, "z": 0.2}}},
        ),
    ],
)
def test_a_published_number_is_assigned_to_the_scenario_that_its_row_describes(
    paper: Paper, table: str, keys: dict[str, Any], port: dict[str, Any]
) -> None:
    number = find(paper, table, **keys)
    scenario = paper.configurations[number.configuration].scenario
    assert scenario["port"] == {"bottleneck": port}
    assert scenario["topology"]["n_source"]["sources"] == keys["sources"]
    assert scenario["topology"]["n_source"]["link_delay"] == {"LAN": "5us", "WAN": "5ms"}[number.keys["network"]]


def test_every_table_of_paper_96_1269_has_the_same_defaults(paper: Paper) -> None:
    rest = set()
    for configuration in paper.configurations:
        scenario = json.loads(configuration.text)
        del scenario["port"], scenario["topology"]["n_source"]["sources"]
        for varied in ("receive_window", "timer_granularity"):
            del scenario["tcp"]["vanilla"][varied]
        scenario.pop("switch", None)
        rest.add((configuration.network, json.dumps(scenario, sort_keys=True)))
    assert len(rest) == 2, "apart from varied settings, there is one LAN and one WAN"


def test_the_core_accepts_every_configuration_of_paper_96_1269_without_a_warning(paper: Paper) -> None:
    for configuration in paper.configurations:
        answer = Reading.of_core(_core.parse_json(configuration.text, "configuration"))
        assert (answer.faults, answer.warnings) == ([], []), configuration.text


def test_rows_in_which_paper_96_1269_contradicts_itself_are_shown_but_not_scored(paper: Paper) -> None:
    tables = [table for table in paper.tables if not table.experiment and table.number != "5"]
    unscored = [n for table in tables for n in table.numbers if not n.scored]
    assert [(n.table, n.row) for n in unscored] == [
        (table, {"network": "LAN", "sources": sources, "buffer_cells": 1000, "policy": "fba"})
        for table in ("2", "3")
        for sources in (5, 15)
    ]
    assert all(n.note for n in unscored)


@pytest.mark.parametrize(
    ("keys", "tolerance"),
    [
        ({"sources": 5, "network": "LAN", "quantity": "max_queue_cells"}, 0),
        ({"sources": 15, "network": "LAN", "quantity": "max_queue_cells"}, 0),
        ({"sources": 5, "network": "WAN", "quantity": "max_queue_cells"}, 59.211),
        ({"sources": 15, "network": "WAN", "quantity": "max_queue_cells"}, 3924.06),
        ({"sources": 5, "network": "WAN", "quantity": "efficiency"}, 0.02),
        ({"sources": 5, "network": "WAN", "quantity": "fairness"}, 0.01),
    ],
)
def test_each_value_of_a_paper_that_was_read_off_a_plot_has_its_own_tolerance(
    paper: Paper, keys: dict[str, Any], tolerance: float
) -> None:
    number = find(paper, "1", **keys)
    assert number.point
    assert number.tolerance == pytest.approx(tolerance)


def test_the_default_tolerance_is_one_unit_of_the_last_printed_digit(paper: Paper) -> None:
    others = [n for table in paper.tables if table.number in "23456" for n in table.numbers]
    assert {n.tolerance for n in others} == {0.01}
    assert not any(n.point for n in others)


def test_published_numbers_can_be_selected_by_table_and_network(paper: Paper) -> None:
    assert len(paper.numbers()) == 512
    assert len(paper.numbers(tables=[2, "3"], networks=["WAN"])) == 48
    assert paper.numbers(tables=[5], networks=["WAN"]) == []


@pytest.mark.parametrize(("asked", "named"), [({"tables": [7]}, "'7'"), ({"networks": ["MAN"]}, "'MAN'")])
def test_unknown_tables_and_networks_of_a_paper_are_refused_and_named_in_the_message(
    paper: Paper, asked: dict[str, Any], named: str
) -> None:
    with pytest.raises(PaperError, match=named):
        paper.numbers(**asked)


def test_an_unknown_paper_is_refused_with_a_list_of_known_papers() -> None:
    with pytest.raises(PaperError, match="af-96-1269"):
        load("af-96-1268")


def test_a_paper_description_can_be_read_from_any_folder() -> None:
    from_disk = load(AF_96_1269, read=lambda path: (PAPERS.parent / path).read_text(encoding="utf-8"))
    assert len(from_disk.configurations) == 218


@pytest.mark.slow
def test_overrides_change_exactly_the_given_settings_in_every_scenario_of_a_paper() -> None:
    overrides = {"switch.service_order": "before_arrivals", "tcp.vanilla.minimum_rto": 5}
    changed = load(AF_96_1269, overrides=overrides)
    assert changed.overrides == overrides
    for before, after in zip(load(AF_96_1269).configurations, changed.configurations, strict=True):
        expected = json.loads(before.text)
        expected.setdefault("switch", {})["service_order"] = "before_arrivals"
        expected["tcp"]["vanilla"]["minimum_rto"] = 5
        assert json.loads(after.text) == expected


@pytest.mark.nightly
@pytest.mark.slow
def test_every_alternative_modelling_choice_for_paper_96_1269_is_valid_and_changes_some_scenario(paper: Paper) -> None:
    assert paper.choices
    default = Reading.of_core(_core.parse_json(paper.configurations[0].text, "default")).scenario
    for choice in paper.choices:
        changed = load(AF_96_1269, overrides=choice.overrides).configurations[0]
        answer = Reading.of_core(_core.parse_json(changed.text, choice.text))
        assert answer.faults == []
        assert answer.scenario != default, choice.text


def test_the_error_for_invalid_content_in_a_paper_folder_names_the_file() -> None:
    def read(path: str) -> str | None:
        return "this is not = = TOML" if path.endswith("paper.toml") else None

    with pytest.raises(PaperError, match=r"papers/mine/paper\.toml"):
        load("mine", read=read)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("buffer_cells", 1000),
        ("buffer_cells - 200", 800),
        ("buffer_cells - 200 + 1", 801),
        ("2 * sources + 0.5", 10.5),
        ("sources * 14052 - 12000", 58260),
        ("10 - 2 * 3 * 1 - 1", 3),
        ("network", "LAN"),
        ("z", 0.8),
    ],
)
def test_expressions_in_a_paper_description_may_add_subtract_and_multiply(expression: str, value: Any) -> None:
    assert evaluate(expression, {"buffer_cells": 1000, "sources": 5, "network": "LAN", "z": 0.8}) == value


@pytest.mark.parametrize(
    "expression",
    ["", "buffer_cells -", "buffer_cells-2", "unknown", "network - 1", "1 2", "__import__('os')"],
)
def test_an_expression_with_other_operators_in_a_paper_description_is_refused(expression: str) -> None:
    with pytest.raises(PaperError):
        evaluate(expression, {"buffer_cells": 1000, "network": "LAN"})


def test_a_string_that_consists_of_one_expression_becomes_its_value_and_not_a_text() -> None:
    assert substitute({"a": ["{n}", "x {n + 1} y", 3, "plain"]}, {"n": 5}) == {"a": [5, "x 6 y", 3, "plain"]}


def test_setting_a_key_in_a_paper_configuration_replaces_its_value() -> None:
    scenario = {"port": {"bottleneck": {"policy": {"epd": {"threshold": 800}}}}}
    set_key(scenario, "port.bottleneck.policy", {"tail_drop": {}})
    set_key(scenario, "tcp.vanilla.mss", "512B")
    assert scenario == {"port": {"bottleneck": {"policy": {"tail_drop": {}}}}, "tcp": {"vanilla": {"mss": "512B"}}}


@pytest.mark.parametrize(("text", "value"), [("10s", 10.0), ("5ms", 0.005), ("1.5us", 1.5e-6)])
def test_durations_in_a_paper_description_are_parsed_with_their_unit(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


def test_a_duration_without_a_unit_in_a_paper_description_is_refused() -> None:
    with pytest.raises(ValueError, match='such as "5us"'):
        seconds("10")
