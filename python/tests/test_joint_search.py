"""The joint search over a paper's open choices: questions, store, scores, and the resulting pages."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import efci_search
import joint_page
import joint_runs
import littles_law
import lock_step_search
import paper_page
import wan_search
from celltrain.model.scenario import Reading
from celltrain.papers.score import Scored
from joint_runs import Runs, Scores, Space, after, log_likelihood
from joint_search import Search

PAPERS = ["af-96-1269", "draft-jagan"]


@pytest.fixture(scope="module", params=PAPERS)
def space(request: pytest.FixtureRequest) -> Space:
    return Space(request.param)


@pytest.fixture
def wan() -> Space:
    """The search space of 96-1269, with runs of 0.2 s."""
    space = Space("af-96-1269")
    space.duration = "200ms"
    return space


@pytest.mark.nightly
def test_every_alternative_in_the_joint_search_is_valid_and_changes_the_scenario_of_at_least_one_row(
    space: Space,
) -> None:
    rows = sorted({number.configuration for number in space.numbers})[:: 9 if space.paper_id == "af-96-1269" else 1]
    before = space.scenarios(space.default, rows)
    for configuration in space.alone():
        scenarios = space.scenarios(configuration, rows)
        faults = [fault for one in scenarios.values() for fault in Reading.of_table(one, "x").faults]
        assert faults == [], space.text(configuration)
        measured = [space.measured_from(configuration, network) for network in space.networks]
        assert scenarios != before or any(measured), space.text(configuration)


@pytest.mark.slow
def test_each_stage_of_the_joint_search_contains_the_rows_of_the_previous_stage(space: Space) -> None:
    for earlier, later in zip(space.stages, space.stages[1:], strict=False):
        assert set(earlier.numbers) < set(later.numbers)
        assert earlier.numbers


def test_the_name_of_a_configuration_in_the_joint_search_lists_its_choices(wan: Space) -> None:
    assert wan.text(wan.default) == "the defaults"
    changed = wan.with_answer(0, 2, wan.with_answer(2, 1))
    assert wan.text(changed) == "ties in a fixed order; least timeout 1 tick"
    assert len(set(wan.alone())) == sum(len(question.answers) - 1 for question in wan.questions)


def test_a_modelling_choice_for_the_wan_leaves_the_lan_scenarios_unchanged(wan: Space) -> None:
    wan.duration = None
    [place] = [i for i, question in enumerate(wan.questions) if question.name == "WAN window"]
    changed = wan.with_answer(place, 1)
    assert wan.overrides(changed, "WAN") == {**wan.common, "tcp.vanilla.receive_window": "580000B"}
    assert wan.overrides(changed, "LAN") == wan.common == {"tcp.vanilla.timer.tick_phase": "drifting"}


def test_the_joint_search_confirms_its_best_configurations_with_runs_of_the_papers_duration() -> None:
    space = Space("draft-jagan")
    row = space.numbers[0].configuration
    screened, whole = (space.scenarios(space.default, [row], whole=whole)[row] for whole in (False, True))
    assert (screened["duration"], whole["duration"]) == ("5s", "20s")
    assert {**screened, "duration": "20s"} == whole


def test_efficiency_from_a_later_start_time_counts_only_the_data_that_arrives_after_that_time() -> None:
    flows = [{"delivered_bytes": 300}, {"delivered_bytes": 500}]
    answer = {"flows": flows, "duration_s": 4.0, "efficiency": 0.8}
    series = {"time_s": np.array([0.0, 1.0, 2.0]), "delivered_bytes": np.array([[0, 0], [200, 200], [250, 450]])}
    # In the last three of the four seconds, the flows deliver 100 and 300 of the 800 bytes: half of the bytes in three
    # quarters of the time.
    late = after(answer, series, 1.0)
    assert late["efficiency"] == pytest.approx(0.8 * 0.5 / 0.75)
    assert late["fairness"] == pytest.approx(400**2 / (2 * (100**2 + 300**2)))


def test_nearly_all_slow_start_losses_occur_in_the_second_half_of_slow_start(wan: Space, tmp_path: Path) -> None:
    row = next(wan.numbers[i].configuration for i in wan.stages[1].numbers if wan.numbers[i].network == "WAN")
    results = {row: {"efficiency": "efficiency", "fairness": "fairness"}}
    runs = Runs(wan, tmp_path / "store.sqlite")
    scenarios = wan.scenarios(wan.default, [row])
    [whole] = runs._run(scenarios, [(row, 1)], results, None, 1).values()
    [late] = runs._run(scenarios, [(row, 1)], results, 0.1, 1).values()
    assert whole is not None
    assert late is not None
    # In the WAN, the whole 200 ms are slow start, and nearly all data arrives in the last 100 ms.
    assert 1.5 * whole["efficiency"] < late["efficiency"] < 2 * whole["efficiency"]
    runs.close()


def test_the_likelihood_of_a_configuration_equals_the_value_recorded_in_the_search_results(wan: Space) -> None:
    number = wan.numbers[0]
    scored = Scored(number=number, values=(0.5, 0.6, 0.64), seeds=(1, 2, 3), requested=1)
    assert number.published is not None
    assert log_likelihood(number.published, scored.mean, scored.sd or 0.0) == wan_search.log_likelihood(scored)


def test_the_joint_search_does_not_repeat_stored_runs(
    wan: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = wan.stages[0].numbers
    first = Runs(wan, tmp_path / "store.sqlite")
    first.run(wan.default, numbers, [1, 2], 1)
    first.ask(wan.default, "all")
    kept = first.figures
    first.close()
    monkeypatch.setattr(joint_runs._core, "run_many", None)
    again = Runs(wan, tmp_path / "store.sqlite")
    again.run(wan.default, numbers, [1, 2], 1)
    assert again.figures == kept
    assert list(again.asked) == [wan.default]
    assert len(kept) == 2 * len({wan.numbers[number].configuration for number in numbers})
    again.close()


@pytest.mark.nightly
@pytest.mark.slow
def test_the_joint_search_starts_with_the_defaults_and_abandons_poor_settings_and_repeats_no_run(
    wan: Space, tmp_path: Path
) -> None:
    wan.stages = wan.stages[:2]
    runs = Runs(wan, tmp_path / "store.sqlite")
    search = Search(runs, "all", 1, 1)
    search.go(9, float("inf"), ["service", "backoff"])
    asked = list(runs.asked)
    assert asked[:4] == [f"0{service}0{backoff}{wan.default[4:]}" for service in "01" for backoff in "01"]
    assert len(asked) == len(set(asked)) == 9
    assert len(search.seen[0]) == 9
    best = search.best(1)[0]
    last = Scores(runs, range(1, 7)).screening(best, 1)
    assert last is not None
    assert search.value(last) == max(search.seen[1])
    runs.close()


def test_a_sample_of_the_joint_search_runs_random_configurations_with_every_tie_order_equally_often(
    wan: Space, tmp_path: Path
) -> None:
    runs = Runs(wan, tmp_path / "store.sqlite")
    Search(runs, "all", 1, 1).sample(10, until=0)
    assert sorted(configuration[0] for configuration in runs.asked) == list("0011223344")
    rows = {wan.numbers[i].configuration for i in wan.stages[0].numbers}
    assert runs.figures.keys() == {(configuration, row, 1) for configuration in runs.asked for row in rows}
    runs.close()


def test_the_joint_search_abandons_a_configuration_that_reproduces_two_exact_rows_fewer_than_the_defaults(
    wan: Space, tmp_path: Path
) -> None:
    wan.duration = None
    runs = Runs(wan, tmp_path / "store.sqlite")
    search = Search(runs, "all", 1, 1)
    stage = wan.stages[0]
    assert stage.lock_step
    assert {wan.numbers[i].table for i in stage.numbers} == {"5"}
    # With ties as in a list of events, last in, first out, 12 rows are exact.
    ordered = wan.with_answer(0, 4)
    runs.run(ordered, stage.numbers, [1], 1)
    assert search.scores.exact(ordered, [1]) == 12
    assert [search.goes_on(ordered, 0, rows) for rows in (10, 11, 12)] == [False, True, True]
    nothing = {"efficiency": 0.0, "fairness": 0.0}
    runs.figures |= {(ordered, wan.numbers[i].configuration, 9): nothing for i in stage.numbers}
    assert search.scores.exact(ordered, [9]) == 0
    assert search.scores.exact(ordered, [1, 9]) == 6
    assert search.scores.exact(ordered, [1, 2]) is None
    runs.close()


def test_lock_step_rows_do_not_affect_the_likelihood_of_a_configuration(wan: Space, tmp_path: Path) -> None:
    runs = Runs(wan, tmp_path / "store.sqlite")
    for number in wan.numbers:
        for seed in range(1, 7):
            figures = runs.figures.setdefault((wan.default, number.configuration, seed), {})
            assert figures is not None
            assert number.published is not None
            figures[number.quantity.name] = number.published + seed / 100
    scores = Scores(runs, range(1, 7))
    seeds, every = range(1, 7), range(len(wan.numbers))
    before = (
        scores.screening(wan.default, 1),
        scores.final(wan.default, seeds),
        scores.inside(wan.default, seeds, "LAN", every),
    )
    assert scores.exact(wan.default, [1]) == 0
    for place in wan.lock_step:
        number = wan.numbers[place]
        for seed in seeds:
            runs.figures[wan.default, number.configuration, seed][number.quantity.name] = number.published  # type: ignore[index, assignment]
    assert scores.exact(wan.default, [1]) == 14
    after = (
        scores.screening(wan.default, 1),
        scores.final(wan.default, seeds),
        scores.inside(wan.default, seeds, "LAN", every),
    )
    assert after == before
    assert before[2][1] == sum(number.network == "LAN" for number in wan.numbers) - 28
    runs.close()


def test_the_joint_search_excludes_choices_that_make_two_lock_step_rows_inexact_under_every_tie_order() -> None:
    space = Space(lock_step_search.PAPER, excluded=True)
    with (ROOT / "docs" / "results" / space.paper_id / "lock-step-1.csv").open(encoding="utf-8", newline="") as handle:
        defaults, *rows = csv.DictReader(handle)
    listed = {lists: Space(space.paper_id, excluded=lists) for lists in (False, True)}
    searched, every = ({s.text(one) for one in lock_step_search.answers(s)} - {"the defaults"} for s in listed.values())
    assert {row["answer"] for row in rows} == every
    orders = [head.strip("`") for head in defaults if head.startswith("`")]
    assert sorted(orders) == ["event_list", "event_list_last_in", "fixed", "rotating"]
    for row in rows:
        exact, default = ({order: int(one[f"`{order}`"]) for order in orders} for one in (row, defaults))
        assert lock_step_search.excluded(exact, default) == (row["verdict"] == "excluded"), row
        assert (row["answer"] in searched) == (row["verdict"] == "searched"), row


@pytest.mark.nightly
def test_one_lock_step_row_needs_fractional_window_bytes_and_three_rows_need_fractional_ssthresh_segments(
    tmp_path: Path,
) -> None:
    space = Space(lock_step_search.PAPER, excluded=True)
    runs = Runs(space, tmp_path / "store.sqlite")
    found = {
        space.text(one): lock_step_search.counts(runs, one, 1)["event_list_last_in"]
        for one in lock_step_search.answers(space)
        if one == space.default
        or space.text(one) in ("linear growth in whole bytes", "ssthresh kept in whole segments")
    }
    assert found == {"the defaults": 12, "linear growth in whole bytes": 11, "ssthresh kept in whole segments": 9}
    runs.close()


def test_the_efci_search_confirms_the_best_settings_and_each_changed_setting_separately() -> None:
    default, *_ = found = efci_search.confirmed({"a": 1, "b": 1}, [{"a": 2, "b": 3}, {"a": 2, "b": 1}])
    assert found == [default, {"a": 2, "b": 3}, {"a": 2, "b": 1}, {"a": 1, "b": 3}]
    with efci_search.CONFIRMATION.open(encoding="utf-8", newline="") as handle:
        lines = list(csv.DictReader(handle))
    page = (ROOT / "docs" / "papers" / "draft-jagan.md").read_text(encoding="utf-8")
    for rif, threshold in (("0.03125", "250"), ("0.0078125", "50"), ("0.0078125", "250"), ("0.03125", "50")):
        [line] = [
            one
            for one in lines
            if (one["rif"], one["threshold"], one["icr"], one["adtf"]) == (rif, threshold, "155.52Mbps", "500ms")
        ]
        cells = [line[f"goodput_{table}"] for table in efci_search.TABLES]
        errors = [f"{float(line[name]):.0%}".replace("%", " %") for name in ("goodput_error", "delay_error")]
        assert " | ".join(cells + errors) in page


@pytest.mark.nightly
def test_lock_step_rows_are_exact_under_any_clock_drift_only_without_the_default_timer_rules(
    tmp_path: Path,
) -> None:
    space = Space("af-96-1269")
    with (ROOT / "papers" / space.paper_id / "joint.csv").open(encoding="utf-8", newline="") as handle:
        found = [row["answers"] for row in csv.DictReader(handle) if row["exact"] == "14"]
    runs = Runs(space, tmp_path / "store.sqlite")
    scores = Scores(runs, range(1, 7))
    names = [question.name for question in space.questions]
    ordered = [configuration for configuration in found if configuration[0] != "0"]
    assert (len(found), len(ordered)) == (17, 13)
    for configuration in found:
        answers = dict(zip(names, configuration, strict=True))
        assert (answers["samples"], answers["backoff"]) != ("0", "0")
    for configuration in ordered:
        runs.run(configuration, space.stages[0].numbers, [2, 3], 1)
        assert scores.exact(configuration, [2, 3]) == 14, space.text(configuration)
    runs.close()


@pytest.mark.slow
def test_the_error_for_an_unknown_modelling_choice_names_the_choice(wan: Space, tmp_path: Path) -> None:
    runs = Runs(wan, tmp_path / "store.sqlite")
    with pytest.raises(SystemExit, match="there is no question named weather; choose from ties, service"):
        Search(runs, "all", 1, 1).go(1, float("inf"), ["weather"])
    runs.close()


def is_on(page: Path, block: str, content: str) -> None:
    """Asserts that a page and its files contain exactly what the script would write."""
    text, tables = paper_page.without_tables(page, block, content)
    # `make format` wraps the page.
    now = page.read_text(encoding="utf-8")
    assert paper_page.replaced(now, block, text).split() == now.split()
    for path, rows in tables.items():
        with path.open(encoding="utf-8", newline="") as handle:
            assert list(csv.reader(handle)) == rows, path


@pytest.mark.parametrize("paper", PAPERS)
def test_the_documentation_page_of_the_joint_search_matches_the_saved_table(paper: str) -> None:
    space = Space(paper)
    with (ROOT / "papers" / paper / "joint.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert rows[0]["answers"] == space.default
    for row in rows:
        digits = zip(space.questions, map(int, row["answers"]), strict=True)
        assert all(answer < len(question.answers) for question, answer in digits)
    is_on(ROOT / "docs" / "papers" / f"{paper}.md", "joint", joint_page.tables(space, rows))


def test_the_joint_search_computes_outstanding_data_by_littles_law_from_throughput_and_delay() -> None:
    # R_i = 8.106 Mb/s for 520 ms is 526,890 bytes: a file of 100,000 bytes and 46.7 packets of 9140 bytes.
    assert littles_law.Seen(81.06, 520, 9180).outstanding == pytest.approx(46.7, abs=0.05)
    # If 100,000 bytes take 80 ms at 10 Mb/s, only the file is outstanding.
    assert littles_law.Seen(100, 80, 1500).outstanding == pytest.approx(0)


def test_the_documentation_page_of_the_joint_search_lists_the_outstanding_data_of_every_tcp_variant() -> None:
    space = Space("draft-jagan")
    with littles_law.TABLE.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for configuration in littles_law.recoveries(space):
        assert len([row for row in rows if row["answers"] == configuration and row["seeds"] != "1"]) == 4
    is_on(littles_law.PAGE, "outstanding", littles_law.tables(space, rows))
    printed = littles_law.in_print(space)
    assert [round(printed["1", s].outstanding) for s in ("ubr", "ubr+epd", "abr-efci", "abr-er")] == [47, 51, 38, 39]
    assert round(printed["6", "abr-er"].outstanding) == 153
