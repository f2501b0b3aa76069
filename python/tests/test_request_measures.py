"""Measures of requests in comparisons, sweeps, reports and searches."""

from __future__ import annotations

import csv
import statistics as by_hand

import pytest

import celltrain as ct
from celltrain.drawing.figure import BOUND
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.ensemble.sweeps import run_plan
from celltrain.ensemble.tuning import TunePlan, run_tune
from celltrain.running import Local

SCENARIO = """
[scenario]
duration = "1ms"
topology.leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = "10Gbps", host_delay = "1us" }
tcp.newreno = { mss = "1460B", initial_window = 10 }
port.default = { buffer = 300, policy = { epd = {} } }
requests.web = { load = 0.6, sizes = "20kB" }
"""
P95, P999 = "requests.web.short.slowdown_p95", "requests.web.short.slowdown_p999"
ADVICE = "run longer, or let measure.to end earlier"
MEDIAN = "requests.web.short.completion_ms_median"
SWEEP = f"""
name = "web"
measures = ["{P95}", "{P999}"]
axes.buffer = {{ path = "port.default.buffer", values = [60, 300] }}
seeds.count = 2
{SCENARIO}"""
SEARCH = """
name = "web"
[tune]
objectives = {{ {objectives} }}
trials = 3
batch = 3
finalists = 2
parameters.T = {{ path = "port.default.policy.epd.threshold", from = 2, to = {largest} }}
references.low = {{ T = 2 }}
references.high = {{ T = {largest} }}
seeds = {{ search = 2, selection = 2, confirmation = 2 }}
"""


def searched(folder, *objectives, largest=290, scenario=SCENARIO):
    """Runs a small search for the threshold of EPD that minimizes two measures."""
    both = ", ".join(f'"{one}" = "minimize"' for one in objectives)
    text = SEARCH.format(objectives=both, largest=largest) + scenario
    return run_tune(TunePlan.of_toml(text), folder, Local(1))


def arrows(figure):
    """Returns the number of arrows at lower bounds in a figure."""
    return sum(
        len(one.get_offsets()) for axes in figure.axes for one in axes.collections if one.get_label() == f"_{BOUND}"
    )


def legend(figure):
    """Returns the legend's entries."""
    return [text.get_text() for own in figure.legends for text in own.get_texts()]


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    path = tmp_path_factory.mktemp("web") / "web.toml"
    path.write_text(SCENARIO.replace("[scenario]", ""))
    return path


@pytest.fixture(scope="module")
def short(web):
    """Returns the measures of the short requests of a single run."""

    def run(buffer, seed):
        scenario = ct.load(web, settings={"port.default.buffer": int(buffer)})
        [group] = ct.run(scenario, seed=seed).to_dict()["requests"]
        return group["short"]

    return run


def reason(opened):
    return f"'{P999}' needs 1,000 requests of a run, but this run has only {opened}"


def bound(requests):
    """Returns the note about the 95th percentile of a run."""
    counts = f"{requests['open']} of {requests['opened']}"
    return f"'{P95}' is a lower bound: {counts} requests were open at the end"


def bounds(runs):
    """Returns the warning about the 95th percentile of several runs, all of which have a lower bound."""
    most = max(runs, key=lambda requests: requests["open"])
    counts = f"up to {most['open']} of {most['opened']} requests were open at the end"
    return f"'{P95}' is a lower bound in {len(runs)} runs of {len(runs)}: {counts}; {ADVICE}"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "store"
    run_plan(Plan.of_toml(SWEEP), folder, Local(1))
    return folder


def test_a_comparison_shows_null_for_request_measures_with_too_few_requests(celltrain, web, short):
    varied = ("--vary", "port.default.buffer=60,300", "--seeds", 2, "--measures", f"{P95},{P999}")
    answer = celltrain("compare", web, *varied, "--json")
    assert answer.code == 0, answer.err
    rows = {row["name"]: row for row in answer.json["scenarios"]}
    means = {}
    for buffer in (60, 300):
        means[buffer] = by_hand.fmean(short(buffer, seed)["slowdown_p95"] for seed in (1, 2))
        assert rows[f"{buffer} cells"][P95]["mean"] == pytest.approx(means[buffer])
        assert rows[f"{buffer} cells"][P999] == {"mean": None, "low": None, "high": None, "n": 0}
    [difference] = answer.json["differences"]
    assert difference[P95]["mean"] == pytest.approx(means[300] - means[60])
    assert difference[P999]["mean"] is None
    assert f"{reason(short(60, 1)['opened'])}; the measure has no value in 4 runs of 4" in answer.json["warnings"]


def test_if_there_are_too_few_requests_for_a_percentile_a_sweep_stores_null_and_the_reason(swept, short):
    store = Store.open(swept)
    rows = {(row["buffer"], row["measure"]): row for row in store.summary().to_pylist()}
    for buffer in (60, 300):
        values = [short(buffer, seed)["slowdown_p95"] for seed in (1, 2)]
        assert rows[buffer, P95]["mean"] == pytest.approx(by_hand.fmean(values))
        assert (rows[buffer, P95]["n"], rows[buffer, P999]["n"], rows[buffer, P999]["mean"]) == (2, 0, None)
    for row in store.table().to_pylist():
        if row["measure"] == P999:
            opened = short(row["buffer"], row["seed"])["opened"]
            assert (row["value"], row["error"]) == (None, reason(opened))
        else:
            assert row["error"] == bound(short(row["buffer"], row["seed"]))


def test_a_sweep_states_how_many_requests_a_percentile_needs(celltrain, short, tmp_path):
    (tmp_path / "plan.toml").write_text(SWEEP)
    answer = celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "store")
    assert answer.code == 0
    assert answer.err.count(f"{reason(short(60, 1)['opened'])}; the measure has no value in 4 runs of 4") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_a_report_states_how_many_requests_a_percentile_needs(celltrain, swept, short, tmp_path):
    report = celltrain("report", swept, "--out", tmp_path / "report", "--json")
    assert report.code == 0
    assert f"{reason(short(60, 1)['opened'])}; the measure has no value in 4 runs of 4" in report.json["warnings"]
    means = {(row["value"], row["measure"]): row["mean"] for row in report.json["effects"]}
    assert means["60", P95] == pytest.approx(by_hand.fmean(short(60, seed)["slowdown_p95"] for seed in (1, 2)))
    assert means["60", P999] is None
    assert "needs 1,000 requests" in (tmp_path / "report" / "report.html").read_text()


def test_a_run_marks_percentiles_that_are_lower_bounds_and_warns_about_them(celltrain, web, tmp_path):
    answer = celltrain("run", web)
    with pytest.warns(ct.CelltrainWarning, match="only lower bounds"):
        [group] = ct.run(web).to_dict()["requests"]
    requests = group["short"]
    assert requests["open"] == requests["opened"] - requests["completed"] > 0.05 * requests["opened"]
    flags = {name: requests[f"{name}_censored"] for name in ("median", "p95", "p99", "p999")}
    assert flags == {"median": False, "p95": True, "p99": True, "p999": False}
    assert requests["censored"]
    for kind in ("completion_ms", "slowdown"):
        assert f"\u2265 {requests[f'{kind}_p95']:.4g}" in answer.out
        assert f"\u2265 {requests[f'{kind}_median']:.4g}" not in answer.out
    assert f"short: {requests['open']} of {requests['opened']}" in answer.err
    assert ADVICE in answer.err
    ended = tmp_path / "ended.toml"
    text = web.read_text().replace('"1ms"', '"3ms"').replace("load = 0.6", "load = 0.1")
    ended.write_text(text + '[measure]\nto = "1ms"\n')
    answer = celltrain("run", ended)
    assert "lower bound" not in answer.out + answer.err
    assert "\u2265" not in answer.out


def test_a_comparison_marks_means_of_lower_bounds_and_computes_no_difference_between_two_marked_means(
    celltrain, web, short, tmp_path
):
    varied = ("--vary", "port.default.buffer=60,300", "--seeds", 2, "--measures", f"{P95},{MEDIAN}")
    answer = celltrain("compare", web, *varied, "--json")
    assert bounds([short(buffer, seed) for buffer in (60, 300) for seed in (1, 2)]) in answer.json["warnings"]
    for row in answer.json["scenarios"]:
        flags = [short(int(row["name"].split()[0]), seed)["median_censored"] for seed in (1, 2)]
        assert (row[P95].get("censored"), row[MEDIAN].get("censored")) == (True, any(flags) or None)
    [difference] = answer.json["differences"]
    assert difference[P95]["censored"]
    out = celltrain("compare", web, *varied, "--out", tmp_path / "out").out
    assert out.count("\u2265 ") >= 2
    assert "unknown" in out
    with (tmp_path / "out" / "comparison.csv").open() as file:
        assert [row["censored"] for row in csv.DictReader(file) if row["measure"] == P95] == ["2", "2"]


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_a_store_records_which_values_are_lower_bounds_and_its_report_marks_them(celltrain, swept, short, tmp_path):
    every = [short(buffer, seed) for buffer in (60, 300) for seed in (1, 2)]
    assert bounds(every) in plan_warnings.of_store(Store.open(swept))
    summary = {row["measure"]: row["censored"] for row in Store.open(swept).summary().to_pylist()}
    assert summary == {P95: 2, P999: 0}
    assert {row["error"] for row in Store.open(swept).wide([P95]).to_pylist()} == {
        reason(requests["opened"]) for requests in every
    }
    report = celltrain("report", swept, "--out", tmp_path / "report", "--json")
    assert bounds(every) in report.json["warnings"]
    assert "\u2265 " in (tmp_path / "report" / "report.html").read_text()
    assert Store.open(swept).verify() == []


@pytest.mark.nightly
@pytest.mark.slow
def test_arrows_mark_lower_bounds_in_the_trade_off_figure_and_the_store_comparison_of_a_report(tmp_path):
    goodput = "requests.web.goodput_mbps"
    plan = SWEEP.replace(f'"{P999}"', f'"{goodput}", "cells.lost"')
    for folder, text in (("one", plan), ("other", plan.replace('"1ms"', '"0.9ms"'))):
        run_plan(Plan.of_toml(text), tmp_path / folder, Local(1))
    front = [f"-{P95}", goodput]
    report = ct.report(tmp_path / "one", compare_with=tmp_path / "other", front=front)
    drawings = {drawing.name: drawing for drawing in report.drawings()}
    assert report.data.bounds.tolist() == [[2, 0, 0], [2, 0, 0]]
    assert arrows(drawings["front"].figure) == 2 and arrows(drawings["comparison"].figure) == 4
    for drawing in (drawings["front"], drawings["comparison"]):
        assert legend(drawing.figure).count(BOUND) == 1 and "Arrows: lower bounds" in drawing.caption
    report = ct.report(tmp_path / "one", measures=[goodput, "cells.lost"], front=[goodput, "-cells.lost"])
    for drawing in report.drawings():
        assert not arrows(drawing.figure) and BOUND not in legend(drawing.figure) and "rrows" not in drawing.caption


def test_a_measure_computed_from_lower_bounds_is_not_marked_as_a_lower_bound(web):
    measures = (f"{P95} / 2", f"0 - {P95}", "requests.largest(*).short.slowdown_p95", P95)
    compared = ct.compare(web, seeds=1, measures=measures)
    assert compared.censored.reshape(-1).tolist() == [False, False, True, True]
    assert sum("is a lower bound: " in warning for warning in compared.warnings) == 4
    figure = compared.plot(measures=[P95])
    assert arrows(figure) == 1 and "arrows: lower bounds" in figure.get_suptitle()


def test_comparisons_warn_about_means_that_exclude_open_requests_but_do_not_mark_them_as_bounds(web):
    mean = "requests.web.all.completion_ms_mean"
    compared = ct.compare(web, seeds=1, measures=[mean, "requests.web.open", "requests.web.opened"])
    still_open, opened = (int(compared.values[0, 0, 0, place]) for place in (1, 2))
    assert still_open > 0.01 * opened and not compared.censored.any()
    [warning] = [one for one in compared.warnings if "excludes unfinished" in one]
    of = f"{still_open:,} of {opened:,} requests were open at the end"
    assert warning.startswith(f"'{mean}' excludes unfinished requests: {of}; run longer")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_search_can_minimize_a_request_measure(tmp_path):
    tuned = searched(tmp_path / "search", P95, "requests.web.timeouts_per_request")
    [warning] = tuned.facts["warnings"]
    assert warning.startswith(
        f"'{P95}' is a lower bound in {tuned.facts['runs']} runs of {tuned.facts['runs']}: up to "
    )
    assert [one["better"] for one in tuned.facts["objectives"]] == ["smaller", "smaller"]
    assert all(one.estimates[0].censored and not one.estimates[1].censored for one in tuned.searches[0].confirmed)
    trials = tuned.searches[0].trials
    assert [trial.censored for trial in trials] == [(True, False)] * len(trials)
    assert [trial["censored"] for trial in tuned.to_dict()["searches"][0]["trials"]] == [[True, False]] * len(trials)
    drawing = tuned.drawing()
    assert arrows(drawing.figure) >= len(trials) + len(tuned.searches[0].confirmed)
    assert legend(drawing.figure).count(BOUND) == 1 and "Arrows: lower bounds" in drawing.caption
    assert "\u2265 " in tuned.searches[0].confirmed[0].estimates[0].text() and "\u2265" in tuned.html()
    rows = Store.open(tmp_path / "search" / "runs" / "confirmation").wide().to_pylist()
    for confirmed in tuned.searches[0].confirmed:
        values = [row[P95] for row in rows if row["T"] == confirmed.parameters["T"]]
        assert confirmed.estimates[0].mean == pytest.approx(by_hand.fmean(values))
    # The second objective is a constraint: the remaining settings have no more timeouts than the reference setting.
    rows = Store.open(tmp_path / "search" / "runs" / "selection").wide().to_pylist()
    timeouts = {
        row["T"]: by_hand.fmean(one["requests.web.timeouts_per_request"] for one in rows if one["T"] == row["T"])
        for row in rows
    }
    of_first = [left for left in tuned.searches[0].left if left.objective == 0]
    assert [left.reference for left in of_first] == ["low", "high"]
    for left in of_first:
        assert timeouts[left.parameters["T"]] <= timeouts[{"low": 2, "high": 290}[left.reference]]


def test_a_search_states_how_many_requests_its_objective_needs(tmp_path):
    tuned = searched(tmp_path / "search", P95, P999)
    trials = tuned.searches[0].trials
    assert [trial.means for trial in trials] == [None] * 3
    assert all("needs 1,000 requests of a run, but this run has only" in trial.error for trial in trials)
    of_p95, of_p999 = tuned.facts["warnings"]
    assert of_p95.startswith(f"'{P95}' is a lower bound in ")
    assert of_p999 == f"{trials[0].error}; 3 of 3 trials have no value, and cannot be chosen"
    assert (tuned.facts["failed"], tuned.searches[0].left) == (0, ())


def test_a_search_warns_about_settings_with_which_requests_deliver_little_data(tmp_path):
    """Regression: only bytes of flows were counted, but networks with requests only have no flows."""
    incast = 'incast.query = { senders = 3, bytes = "240kB", interval = "400us" }'
    scenario = SCENARIO.replace('requests.web = { load = 0.6, sizes = "20kB" }', incast)
    scenario = scenario.replace("buffer = 300", "buffer = 6000").replace("1ms", "2ms")
    objectives = ("requests.query.timeouts_per_request", "cells.lost")
    tuned = searched(tmp_path / "search", *objectives, largest=5, scenario=scenario)
    assert tuned.facts["warnings"]
    for warning in tuned.facts["warnings"]:
        assert "cells is on the front and carries" in warning
    warnings = plan_warnings.of_store(Store.open(tmp_path / "search" / "runs" / "confirmation"))
    assert not [one for one in warnings if "carried nothing" in one or "delivered no data" in one]
