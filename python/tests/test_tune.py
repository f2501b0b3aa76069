"""Parameter searches: the same trials however often they are stopped, and intervals without selection bias."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics as by_hand
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from conftest import import_or_skip
from hypothesis import given, settings
from hypothesis import strategies as st
from tunes import PLAN, plan

import celltrain as ct
from celltrain.ensemble.plan import Plan, Seeds
from celltrain.ensemble.store import Store
from celltrain.ensemble.tuning import Tuned, TuneProgress, run_tune
from celltrain.ensemble.tuning.plan import Trial, ask
from celltrain.ensemble.tuning.search import best, estimated, finalists
from celltrain.errors import PlanError
from celltrain.running import Local
from small_sweep import stored

import_or_skip("optuna")


def same(folder, other):
    """Returns whether two folders have the same trials and runs."""
    stages = sorted(path.name for path in (folder / "runs").iterdir())
    assert stages == sorted(path.name for path in (other / "runs").iterdir())
    for stage in stages:
        one, two = (Store.open(path / "runs" / stage) for path in (folder, other))
        assert one.verify() == two.verify() == []
        assert one.table().to_pylist() == two.table().to_pylist()
    assert (folder / "asked.json").read_bytes() == (other / "asked.json").read_bytes()
    return True


def test_a_search_returns_its_trials_its_pareto_front_and_the_reference_settings(undisturbed):
    tuned, _ = undisturbed
    assert [one.title for one in tuned.searches] == ["buffer 60 cells", "buffer 100 cells"]
    for searched in tuned.searches:
        assert len(searched.trials) == 10
        assert [trial.generation for trial in searched.trials] == [0] * 4 + [1] * 4 + [2] * 2
        assert searched.trials[0].parameters == {"R": 0.9, "Z": 0.8}
        assert all(0.3 <= trial.parameters["R"] <= 1.0 for trial in searched.trials)
        assert [left.objective for left in searched.left] == [0, 1]
        assert sum(confirmed.label == "the paper's" for confirmed in searched.confirmed) == 1


def test_the_numbers_reported_by_a_search_match_those_computed_from_its_runs(undisturbed):
    tuned, folder = undisturbed
    rows = Store.open(folder / "runs" / "confirmation").wide().to_pylist()
    assert {row["seed"] for row in rows} == set(range(6, 11))
    for searched in tuned.searches:
        mine = [row for row in rows if row["buffer"] == searched.values["buffer"]]

        def of(parameters, measure, mine=mine):
            return [row[measure] for row in mine if all(row[name] == value for name, value in parameters.items())]

        reference = {"R": 0.9, "Z": 0.8}
        for confirmed in searched.confirmed:
            for measure, estimate in zip(("efficiency", "cells.lost"), confirmed.estimates, strict=True):
                values = of(confirmed.parameters, measure)
                assert len(values) == 5
                assert estimate.mean == pytest.approx(by_hand.fmean(values))
                # The quantile of Student's t with four degrees of freedom.
                assert estimate.half == pytest.approx(
                    2.7764451 * by_hand.stdev(values) / math.sqrt(5), rel=1e-6, abs=1e-12
                )
        for left in searched.left:
            for measure, difference in zip(("efficiency", "cells.lost"), left.differences, strict=True):
                pairs = zip(of(left.parameters, measure), of(reference, measure), strict=True)
                assert difference.mean == pytest.approx(by_hand.fmean(a - b for a, b in pairs), abs=1e-12)


def test_all_settings_in_a_stage_of_a_search_share_seeds_that_no_other_stage_uses(undisturbed):
    _, folder = undisturbed
    by_stage = {}
    for path in (folder / "runs").iterdir():
        rows = Store.open(path).wide().to_pylist()
        seeds = {row["point"]: set() for row in rows}
        for row in rows:
            seeds[row["point"]].add(row["seed"])
        assert len({frozenset(one) for one in seeds.values()}) == 1
        by_stage[path.name.split("-")[0]] = next(iter(seeds.values()))
    assert by_stage == {"search": {1, 2}, "selection": {3, 4, 5}, "confirmation": set(range(6, 11))}


@pytest.mark.slow
def test_the_result_of_a_search_depends_on_its_seed_and_not_on_the_number_of_threads(undisturbed, tmp_path):
    tuned, folder = undisturbed
    again = run_tune(plan(), tmp_path / "again", Local(1))
    assert again.to_json() == tuned.to_json()
    assert same(folder, tmp_path / "again")
    other = run_tune(plan(PLAN.replace("trials = 10", "trials = 10\nseed = 2")), tmp_path / "other", Local(2))
    assert [t.parameters for t in other.searches[0].trials[1:]] != [t.parameters for t in tuned.searches[0].trials[1:]]


def test_the_result_of_a_search_does_not_depend_on_other_searches_of_the_same_plan(undisturbed):
    tuned, _ = undisturbed
    alone = ct.tune(plan(PLAN.replace("[60, 100]", "[100]")), jobs=2)
    assert alone.searches[0].trials == tuned.searches[1].trials
    assert alone.searches[0].confirmed == tuned.searches[1].confirmed


class Stops(Local):
    """A worker that raises KeyboardInterrupt after a number of runs."""

    chunk_runs = 3

    def __init__(self, runs):
        super().__init__(2)
        self.left = runs

    def work(self, chunks, take):
        def counted(rows):
            take(rows)
            self.left -= len(rows.runs)
            if self.left <= 0:
                raise KeyboardInterrupt

        super().work(chunks, counted)


@pytest.mark.slow
def test_a_search_that_is_interrupted_repeatedly_gives_the_result_of_an_uninterrupted_search(undisturbed, tmp_path):
    tuned, whole = undisturbed
    folder = tmp_path / "stopped"
    stops = 0
    for runs in (1, 7, 15, 20, 31, 40, None):
        try:
            answer = run_tune(plan(), folder, Local(2) if runs is None else Stops(runs), resume=folder.exists())
        except KeyboardInterrupt:
            stops += 1
    assert stops >= 4
    assert answer.to_json() == tuned.to_json()
    assert same(folder, whole)
    assert run_tune(plan(), folder, Local(2), resume=True).to_json() == tuned.to_json()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
@pytest.mark.nightly
def test_a_search_killed_at_any_time_gives_the_same_result_after_resuming(undisturbed, tmp_path):
    tuned, whole = undisturbed
    (tmp_path / "plan.toml").write_text(PLAN)
    # Store results as often as possible, with runs slow enough to be killed between two writes.
    program = (
        "import sys, time, celltrain.ensemble.sweeps as c, celltrain.running.work as l; c.WRITE_RUNS = 3\n"
        "from pathlib import Path; from celltrain.ensemble.tuning import TunePlan, run_tune\n"
        "class Slow(l.Local):\n"
        "    def work(self, chunks, take): super().work(chunks, lambda rows: (time.sleep(0.004 * len(rows.runs)), take(rows)))\n"
        "folder = Path(sys.argv[2]); plan = TunePlan.load(sys.argv[1])\n"
        "run_tune(plan, folder, Slow(2), resume=(folder / 'tune.json').exists())"
    )
    folder = tmp_path / "killed"
    killed = 0
    for runs in (1, 36, 81):
        process = subprocess.Popen([sys.executable, "-c", program, tmp_path / "plan.toml", folder])
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if sum(map(stored, folder.glob("runs/*"))) >= runs:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.002)
        process.wait()
    assert killed >= 2
    assert run_tune(plan(), folder, Local(2), resume=True).to_json() == tuned.to_json()
    for stage in (folder / "runs").iterdir():
        assert Store.open(stage).verify() == []
    assert same(folder, whole)


def test_a_search_does_not_repeat_trials_that_have_already_run(tmp_path):
    few = PLAN.replace("from = 0.3, to = 1.0", "from = 0.8, to = 0.9, step = 0.1").replace("0.05", "0.9")
    told: list[TuneProgress] = []
    tuned = run_tune(plan(few), tmp_path / "few", Local(2), progress=told.append)
    assert [len(one.trials) for one in tuned.searches] == [10, 10]
    distinct = [len({tuple(t.parameters.values()) for t in one.trials}) for one in tuned.searches]
    assert all(count <= 7 for count in distinct)
    stores = [Store.open(path) for path in (tmp_path / "few" / "runs").glob("search-*")]
    assert sum(len(store.wide()) for store in stores) == 2 * sum(distinct)
    assert told[-1].trials == told[-1].total_trials == 20
    assert told[-1].runs == told[-1].most_runs == tuned.facts["runs"]
    assert told[-1].remaining_seconds == 0


def test_a_failed_trial_is_reported_and_the_search_continues(tmp_path):
    # A threshold above one half is invalid for a buffer this small; the core refuses it trial by trial.
    text = PLAN.replace("selective_drop = {}", "epd = { threshold = 50 }")
    text = text.replace("selective_drop.threshold", "epd.threshold").replace(
        "from = 0.3, to = 1.0", "from = 40, to = 99"
    )
    text = text[: text.index("Z = {")] + '[tune.references]\n"old" = { R = 50 }\n[tune.seeds]\nsearch = 2\n'
    tuned = run_tune(plan(text), tmp_path / "s", Local(2))
    failed = [t for t in tuned.searches[0].trials if t.means is None]
    assert failed
    assert all(t.parameters["R"] > 60 and "threshold" in t.error for t in failed)
    assert all(t.means is not None for t in tuned.searches[1].trials)
    assert all(c.estimates is not None for one in tuned.searches for c in one.confirmed)
    assert Tuned._of_dict(json.loads(tuned.to_json())).to_json() == tuned.to_json()


@pytest.mark.slow
def test_the_next_settings_that_a_search_tries_depend_only_on_earlier_trials():
    made = plan(PLAN.replace("[60, 100]", "[100]").replace('"cells.lost" = "minimize"', 'fairness = "maximize"'))
    history = []
    for generation in range(6):
        asked = ask(made, 0, generation, history, 8)
        assert asked == ask(made, 0, generation, history, 8)
        for numbers in asked:
            assert all(p.interval.near(float(n)) == n for p, n in zip(made.parameters, numbers, strict=True))
            r, z = map(float, numbers)
            values = (1 - (r - 0.7) ** 2, 1 - (z - 1.2) ** 2)
            history.append(Trial(generation=generation, numbers=numbers, values=values))
    far = [abs(float(t.numbers[0]) - 0.7) + abs(float(t.numbers[1]) - 1.2) for t in history]
    assert by_hand.median(far[-16:]) < 0.6 * by_hand.median(far[:16])


def test_a_search_silences_optuna_and_restores_its_log_level(capfd):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = plan()
    ask(made, 0, 1, [], 3)
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING
    assert capfd.readouterr() == ("", "")


def test_search_parameters_take_only_values_that_their_units_and_steps_allow():
    text = PLAN.replace(
        "[tune.references]",
        """
delay = { path = "topology.n_source.link_delay", from = "1us", to = "1ms", scale = "log" }
sources = { path = "topology.n_source.sources", from = 2, to = 9 }
[tune.references]""",
    ).replace("{ R = 0.9, Z = 0.8 }", '{ R = 0.9, Z = 0.8, delay = "5us", sources = 3 }')
    made = plan(text)
    r, z, delay, sources = made.parameters
    assert (r.interval.grid, z.interval.grid, delay.interval.grid, sources.interval.grid) == (
        None,
        Fraction(1, 20),
        None,
        1,
    )
    assert z.interval.near(0.8000000000000002) == Fraction(4, 5)
    assert sources.interval.draw(0.999999) == 9
    assert delay.setting(delay.interval.near(5e-6)) == "5000000ps"
    scenario = made.scenario(1, next(iter(made.references.values())))
    assert scenario["topology"]["n_source"] == {"sources": 3, "link_delay": "5000000ps"}
    assert (delay.unit, r.unit) == ("s", "")


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25), st.integers(1, 12))
def test_a_search_selects_its_finalists_front_by_front_like_a_simple_model(points, count):
    x, y = (np.array([p[i] for p in points], dtype=float) for i in (0, 1))

    def beaten(i, among):
        return any(
            points[j][0] >= points[i][0] and points[j][1] >= points[i][1] and points[j] != points[i] for j in among
        )

    left, layers = set(range(len(points))), []
    while left:
        layers.append({i for i in left if not beaten(i, left)})
        left -= layers[-1]
    chosen = finalists(x, y, count)
    assert len(chosen) == len(set(chosen)) == min(count, len(points))
    for layer in layers:
        taken = layer & set(chosen)
        if taken != layer:
            # If a whole front does not fit, only some of its points are chosen, and no point of a later front is
            # chosen.
            assert set(chosen) <= taken | set().union(*layers[: layers.index(layer)])
            break


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=25), st.integers(0, 9))
def test_the_best_setting_under_a_constraint_that_a_search_reports_matches_a_simple_model(points, least):
    x, y = (np.array([p[i] for p in points], dtype=float) for i in (0, 1))
    found = best(x, y, least)
    among = [p for p in points if p[1] >= least]
    assert (found is None) == (not among)
    if found is not None:
        assert points[found] == max(among)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_the_paired_confidence_intervals_of_a_search_match_a_simple_implementation(pairs):
    from celltrain.running.statistics import half_width

    differences = [b - a for a, b in pairs]
    values = np.array([[b, b] for _, b in pairs]) - np.array([[a, a] for a, _ in pairs])
    one, two = estimated(values)
    assert one == two
    assert one.mean == pytest.approx(by_hand.fmean(differences), abs=1e-12)
    naive = half_width(len(pairs), by_hand.stdev(differences))
    assert one.half == pytest.approx(naive, rel=1e-3, abs=1e-12)
    assert one.beyond == (abs(one.mean) > one.half)


def test_scenario_classes_can_be_used_in_a_search_in_python():
    lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.SelectiveDrop(), duration="4ms")
    z = {"path": "port.bottleneck.policy.selective_drop.z", "from": 0.2, "to": 2.0}
    seeds = {"search": 2, "selection": 2, "confirmation": 2}
    tuned = ct.tune(
        lan, parameters={"Z": z}, trials=6, batch=3, seeds=seeds, over={"port.bottleneck.buffer": [60, 100]}
    )
    assert [objective["measure"] for objective in tuned.facts["objectives"]] == ["efficiency", "fairness"]
    assert [len(searched.trials) for searched in tuned.searches] == [6, 6]
    assert [searched.left for searched in tuned.searches] == [(), ()]
    assert repr(tuned) == "Tuned('', 2 searches of 6 trials)"
    policies = {
        "path": "port.bottleneck.policy",
        "values": {"sd": ct.SelectiveDrop(), "again": ct.SelectiveDrop(z=0.5)},
    }
    assert (
        ct.tune(lan, parameters={"Z": z}, trials=1, seeds=seeds, over={"policy": policies}).searches[1].title == "again"
    )
    with pytest.raises(PlanError, match="needs the folder of the search to continue"):
        ct.tune(plan(), resume=True)


def test_the_name_of_a_search_configuration_omits_settings_determined_by_other_settings():
    rows = """[points]
axes.network = { path = "topology.n_source.link_delay", values = { LAN = "5us", WAN = "5ms" } }
axes.duration = "duration"
axes.sources = "topology.n_source.sources"
rows = [["LAN", "4ms", 3], ["LAN", "4ms", 5], ["WAN", "5ms", 3]]
"""
    made = plan(PLAN.replace(PLAN[PLAN.index("[axes]") : PLAN.index("[tune]")], rows))
    assert [made.title(i) for i in range(3)] == ["LAN, sources 3", "LAN, sources 5", "WAN, sources 3"]
    stored = made.runs(
        "stage",
        [(2, next(iter(made.references.values()))), (0, next(iter(made.references.values())))],
        Seeds(first=4, count=2),
    )
    assert stored.runs == 4
    assert stored.points[0].values == {"network": "WAN", "duration": 0.005, "sources": 3.0, "R": 0.9, "Z": 0.8}
    assert Plan.of_document(stored.document).digest == stored.digest
