"""Searching parameters: the same trials however often it is stopped, and intervals that the choice has not spoilt."""

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
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import celltrain as ct
from celltrain import _core
from celltrain.errors import CelltrainWarning, PlanError, StoreError, TuneError
from celltrain.plan import Plan, Seeds
from celltrain.quantities import exact
from celltrain.running import Local
from celltrain.store import Store
from celltrain.store.manifest import checksum
from celltrain.tuning import Estimate, Tuned, TunePlan, TuneProgress, run_tune
from celltrain.tuning.analysis import best, finalists
from celltrain.tuning.ask import Trial, ask
from celltrain.tuning.folder import Folder, title
from celltrain.tuning.result import _mean

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "studies"

PLAN = """
name = "tiny"
[scenario]
duration = "4ms"
[scenario.topology.n_source]
sources = 3
link_delay = "5us"
[scenario.port.bottleneck]
buffer = 100
policy = { selective_drop = {} }
[axes]
buffer = { path = "port.bottleneck.buffer", values = [60, 100] }
[tune]
objectives = { efficiency = "maximize", "cells.lost" = "minimize" }
trials = 10
batch = 4
finalists = 3
[tune.parameters]
R = { path = "port.bottleneck.policy.selective_drop.threshold", from = 0.3, to = 1.0 }
Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.2, to = 2.0, step = 0.05 }
[tune.references]
"the paper's" = { R = 0.9, Z = 0.8 }
[tune.seeds]
search = 2
selection = 3
confirmation = 5
"""


def plan(text=PLAN):
    return TunePlan.of_toml(text)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A search that nothing came in the way of, and its folder."""
    folder = tmp_path_factory.mktemp("tune") / "whole"
    return run_tune(plan(), folder, Local(2)), folder


def same(folder, other):
    """Whether two folders hold the same: what was asked, every run, and the trials of Optuna's journal."""
    stages = sorted(path.name for path in (folder / "runs").iterdir())
    assert stages == sorted(path.name for path in (other / "runs").iterdir())
    for stage in stages:
        one, two = (Store.open(path / "runs" / stage) for path in (folder, other))
        assert one.verify() == two.verify() == []
        assert one.table().to_pylist() == two.table().to_pylist()
    assert (folder / "asked.json").read_bytes() == (other / "asked.json").read_bytes()
    assert journal(folder) == journal(other)
    return True


def journal(folder):
    import optuna

    backend = optuna.storages.journal.JournalFileBackend(str(folder / "optuna.journal"))
    storage = optuna.storages.JournalStorage(backend)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    studies = [optuna.load_study(study_name=name, storage=storage) for name in optuna.get_all_study_names(storage)]
    return {
        study.study_name: [(t.number, t.params, t.values, t.user_attrs, t.state.name) for t in study.trials]
        for study in studies
    }


def test_a_search_has_its_trials_its_front_and_what_the_reference_left(undisturbed):
    tuned, folder = undisturbed
    assert [one.title for one in tuned.searches] == ["buffer 60 cells", "buffer 100 cells"]
    for searched in tuned.searches:
        assert len(searched.trials) == 10
        assert [trial.generation for trial in searched.trials] == [0] * 4 + [1] * 4 + [2] * 2
        assert searched.trials[0].parameters == {"R": 0.9, "Z": 0.8}
        assert all(0.3 <= trial.parameters["R"] <= 1.0 for trial in searched.trials)
        assert [left.objective for left in searched.left] == [0, 1]
        assert sum(confirmed.label == "the paper's" for confirmed in searched.confirmed) == 1
    trials = journal(folder)
    assert {name: len(of) for name, of in trials.items()} == {"buffer 60 cells": 10, "buffer 100 cells": 10}


def test_what_is_told_is_what_the_runs_say(undisturbed):
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
                # Student's t with four degrees of freedom.
                assert estimate.half == pytest.approx(
                    2.7764451 * by_hand.stdev(values) / math.sqrt(5), rel=1e-6, abs=1e-12
                )
        for left in searched.left:
            for measure, difference in zip(("efficiency", "cells.lost"), left.differences, strict=True):
                pairs = zip(of(left.parameters, measure), of(reference, measure), strict=True)
                assert difference.mean == pytest.approx(by_hand.fmean(a - b for a, b in pairs), abs=1e-12)


def test_the_stages_have_no_seed_in_common_and_settings_of_a_stage_have_all(undisturbed):
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


def test_a_seed_gives_one_search_for_any_number_of_threads_and_another_seed_another(undisturbed, tmp_path):
    tuned, folder = undisturbed
    again = run_tune(plan(), tmp_path / "again", Local(1))
    assert again.to_json() == tuned.to_json()
    assert same(folder, tmp_path / "again")
    other = run_tune(plan(PLAN.replace("trials = 10", "trials = 10\nseed = 2")), tmp_path / "other", Local(2))
    assert [t.parameters for t in other.searches[0].trials[1:]] != [t.parameters for t in tuned.searches[0].trials[1:]]


def test_a_search_does_not_depend_on_which_others_the_plan_has(undisturbed):
    tuned, _ = undisturbed
    alone = ct.tune(plan(PLAN.replace("[60, 100]", "[100]")), jobs=2)
    assert alone.searches[0].trials == tuned.searches[1].trials
    assert alone.searches[0].confirmed == tuned.searches[1].confirmed


class Stops(Local):
    """Ctrl-C comes after so many runs."""

    chunk_runs = 3

    def __init__(self, runs):
        super().__init__(2)
        self.left = runs

    def work(self, chunks, take):
        def counted(rows):
            take(rows)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

        super().work(chunks, counted)


def test_interrupted_again_and_again_and_resumed_it_equals_the_undisturbed(undisturbed, tmp_path):
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


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_killed_at_any_moment_it_goes_on_as_if_nothing_had_happened(undisturbed, tmp_path):
    tuned, whole = undisturbed
    (tmp_path / "plan.toml").write_text(PLAN)
    # Parts as often as can be, and runs slow enough to be killed among.
    program = (
        "import sys, time, celltrain.coordination.coordinator as c, celltrain.running.local as l; c.PART_RUNS = 3\n"
        "from pathlib import Path; from celltrain.tuning import TunePlan, run_tune\n"
        "class Slow(l.Local):\n"
        "    def work(self, chunks, take): super().work(chunks, lambda rows: (time.sleep(0.004), take(rows)))\n"
        "folder = Path(sys.argv[2]); plan = TunePlan.load(sys.argv[1])\n"
        "run_tune(plan, folder, Slow(2), resume=(folder / 'tune.json').exists())"
    )
    folder = tmp_path / "killed"
    killed = 0
    for parts in (1, 12, 27):
        process = subprocess.Popen([sys.executable, "-c", program, tmp_path / "plan.toml", folder])
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(folder.glob("runs/*/parts/part-*"))) >= parts:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.002)
        process.wait()
    assert killed >= 2
    # Half a line of the journal, as a kill leaves it.
    with (folder / "optuna.journal").open("a") as file:
        file.write('{"op_code": 4, "work')
    assert run_tune(plan(), folder, Local(2), resume=True).to_json() == tuned.to_json()
    for stage in (folder / "runs").iterdir():
        assert Store.open(stage).verify() == []
    assert journal(folder) == journal(whole)


def test_trials_that_were_tried_before_are_not_run_again(tmp_path):
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


def test_a_trial_that_fails_is_told_and_the_search_goes_on(tmp_path):
    # A threshold above one half is no threshold of a buffer that small; the core refuses it trial by trial.
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


def test_asking_is_a_pure_function_and_knows_what_is_better():
    made = plan(PLAN.replace("[60, 100]", "[100]").replace('"cells.lost" = "minimize"', 'fairness = "maximize"'))
    history = []
    for generation in range(6):
        asked = ask(made, 0, generation, history, 8)
        assert asked == ask(made, 0, generation, history, 8)
        for numbers in asked:
            assert all(p.takes(n) for p, n in zip(made.parameters, numbers, strict=True))
            r, z = map(float, numbers)
            values = (1 - (r - 0.7) ** 2, 1 - (z - 1.2) ** 2)
            history.append(Trial(generation=generation, numbers=numbers, values=values))
    far = [abs(float(t.numbers[0]) - 0.7) + abs(float(t.numbers[1]) - 1.2) for t in history]
    assert by_hand.median(far[-16:]) < 0.6 * by_hand.median(far[:16])


def test_optuna_is_quiet_and_keeps_its_own_loudness(capfd):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = plan()
    ask(made, 0, 1, [], 3)
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING
    assert capfd.readouterr() == ("", "")


def test_parameters_take_what_their_units_and_steps_allow():
    text = PLAN.replace(
        "[tune.references]",
        """
delay = { path = "topology.n_source.link_delay", from = "1us", to = "1ms", scale = "log" }
sources = { path = "topology.n_source.sources", from = 2, to = 9 }
[tune.references]""",
    ).replace("{ R = 0.9, Z = 0.8 }", '{ R = 0.9, Z = 0.8, delay = "5us", sources = 3 }')
    made = plan(text)
    r, z, delay, sources = made.parameters
    assert (r.step, z.step, delay.step, sources.step) == (None, Fraction(1, 20), None, 1)
    assert z.near(0.8000000000000002) == Fraction(4, 5)
    assert sources.at(0.999999) == 9
    assert delay.setting(delay.near(5e-6)) == "5000000ps"
    scenario = made.scenario(1, made.references[0].numbers)
    assert scenario["topology"]["n_source"] == {"sources": 3, "link_delay": "5000000ps"}
    assert (delay.unit, r.unit) == ("s", "")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25), st.integers(1, 12))
def test_finalists_are_peeled_front_by_front_as_the_naive_twin_does(points, count):
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
            # Only what room was left for, and nothing of a later front.
            assert set(chosen) <= taken | set().union(*layers[: layers.index(layer)])
            break


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=25), st.integers(0, 9))
def test_the_best_at_no_less_is_the_naive_twins(points, least):
    x, y = (np.array([p[i] for p in points], dtype=float) for i in (0, 1))
    found = best(x, y, least)
    among = [p for p in points if p[1] >= least]
    assert (found is None) == (not among)
    if found is not None:
        assert points[found] == max(among)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_paired_intervals_are_the_naive_twins(pairs):
    from celltrain.statistics import half_width

    differences = [b - a for a, b in pairs]
    values = np.array([[b, b] for _, b in pairs]) - np.array([[a, a] for a, _ in pairs])
    one, two = _mean(values)
    assert one == two
    assert one.mean == pytest.approx(by_hand.fmean(differences), abs=1e-12)
    naive = half_width(len(pairs), by_hand.stdev(differences))
    assert one.half == pytest.approx(naive, rel=1e-3, abs=1e-12)
    assert one.beyond == (abs(one.mean) > one.half)


def test_from_python_with_scenario_classes():
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
    with pytest.raises(PlanError, match="needs the folder it goes on with"):
        ct.tune(plan(), resume=True)


def test_a_configuration_is_named_without_what_follows_from_it():
    rows = """[points]
axes.network = { path = "topology.n_source.link_delay", values = { LAN = "5us", WAN = "5ms" } }
axes.duration = "duration"
axes.sources = "topology.n_source.sources"
rows = [["LAN", "4ms", 3], ["LAN", "4ms", 5], ["WAN", "5ms", 3]]
"""
    made = plan(PLAN.replace(PLAN[PLAN.index("[axes]") : PLAN.index("[tune]")], rows))
    assert [title(made, i) for i in range(3)] == ["LAN, sources 3", "LAN, sources 5", "WAN, sources 3"]
    stored = made.runs(
        "stage", [(2, made.references[0].numbers), (0, made.references[0].numbers)], Seeds(first=4, count=2)
    )
    assert stored.runs == 4
    assert stored.points[0].values == {"network": "WAN", "duration": 0.005, "sources": 3.0, "R": 0.9, "Z": 0.8}
    assert Plan.of_document(stored.document).digest == stored.digest


# Bad input.


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            PLAN[PLAN.index("[tune]") :],
            "",
            ["plan:1: lacks a table [tune]: what is searched; a plan without one is for celltrain sweep"],
        ),
        (
            "selective_drop.z",
            "selective_drop.zed",
            ["plan:20: tune.parameters.Z.path = ", "'zed' is unknown"],
        ),
        (
            '"cells.lost" = "minimize"',
            '"cells.loss" = "minimize"',
            ['plan:14: tune.objectives."cells.loss" is not a measure of these runs: '],
        ),
        (
            ', "cells.lost" = "minimize"',
            "",
            ["plan:14: tune.objectives names one measure: a front is of two; two measures, such as"],
        ),
        ('"minimize"', '"least"', ['= "least" must be one of "maximize", "minimize"']),
        ('"cells.lost" = "minimize"', '"cells.(" = "minimize"', ["is not a measure"]),
        (
            "from = 0.3, to = 1.0",
            "from = 1.0, to = 0.3",
            ["plan:19: tune.parameters.R.to = 0.3 is not above from = 1.0"],
        ),
        ("from = 0.3, to = 1.0", "from = 0.3", ["plan:19: tune.parameters.R lacks to"]),
        (
            "from = 0.3, to = 1.0",
            'from = "3us", to = 1.0',
            ['plan:19: tune.parameters.R.from = "3us" is not a plain number'],
        ),
        (
            "from = 0.3, to = 1.0",
            "from = 0.3, to = 1.7",
            ["plan:19: port.bottleneck.policy.selective_drop.threshold = 1.7 ", "set by tune.parameters.R.to"],
        ),
        ("step = 0.05", "step = 5", ["plan:20: tune.parameters.Z.step = 5 is more than the whole range"]),
        ("step = 0.05", 'step = 0.05, scale = "log"', ["tune.parameters.Z.step = 0.05 goes with a linear scale only"]),
        (
            "{ R = 0.9, Z = 0.8 }",
            "{ R = 0.9 }",
            ['plan:22: tune.references."the paper\'s" lacks Z: a reference has a value for every parameter'],
        ),
        ("{ R = 0.9, Z = 0.8 }", "{ R = 0.9, Z = 0.8, Y = 1 }", [".Y = 1 is no parameter; parameters are R, Z"]),
        ("{ R = 0.9, Z = 0.8 }", '{ R = 0.9, Z = "a" }', ['.Z = "a" is not a plain number']),
        (
            "{ R = 0.9, Z = 0.8 }",
            "{ R = 9.9, Z = 0.8 }",
            ["plan:22: port.bottleneck.policy.selective_drop.threshold = 9.9 "],
        ),
        ("trials = 10", "trials = 0", ["plan:15: tune.trials = 0 is not a whole number from 1 to 10,000"]),
        ("trials = 10", "trails = 10", ["plan:15: tune.trails is unknown; did you mean trials?"]),
        ("search = 2", "search = 0", ["plan:24: tune.seeds.search = 0 is not a whole number from 1"]),
        ("confirmation = 5", "confirmation = 1", ["tune.seeds.confirmation = 1 is not a whole number from 2"]),
        ("[axes]\n", "[seeds]\ncount = 3\n[axes]\n", ["plan:11: seeds is what [tune.seeds] is for"]),
        ("[axes]\n", "[sample]\npoints = 3\n[axes]\n", ["plan:11: sample has no place in a plan for celltrain tune"]),
        (
            'buffer = { path = "port.bottleneck.buffer", values = [60, 100] }',
            '"port.bottleneck.policy.selective_drop.z" = [1.0]',
            ["tune.parameters.Z.path", "sets what port.bottleneck.policy.selective_drop.z sets too"],
        ),
        (
            PLAN[PLAN.index("[tune.parameters]") : PLAN.index("[tune.references]")],
            "",
            ["plan:13: tune lacks parameters"],
        ),
        ("search = 2", "search = 90000000", ["plan:13: tune asks for ", "nobody waits for more than 100,000,000"]),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, messages):
    assert old in PLAN
    with pytest.raises(PlanError) as refused:
        plan(PLAN.replace(old, new))
    for message in messages:
        assert message in str(refused.value)


def test_a_sweep_is_told_that_the_plan_is_for_tuning():
    with pytest.raises(PlanError, match=r"plan:13: tune makes this a plan for celltrain tune"):
        Plan.of_toml(PLAN)


def test_points_one_by_one_are_checked():
    base = PLAN[: PLAN.index("[axes]")]
    with pytest.raises(PlanError) as refused:
        Plan.of_toml(
            base
            + """[points]
axes.delay = "topology.n_source.link_delay"
axes.policy = { path = "port.bottleneck.policy", values = { epd = { epd = {} } } }
rows = [["5us", "epd"], [5, "epd"], ["1ms", "fba"]]
"""
        )
    assert "points.rows[1][0] = 5 is not a time" in str(refused.value)
    assert 'points.rows[2][1] = "fba" is no label of policy: epd' in str(refused.value)
    for rows, message in (
        ("[]", "points has no rows"),
        ('[["5us"], ["5us", 1]]', "points.rows[1] = "),
        ('[["5us"], ["5us"]]', "points.rows[1] = "),
    ):
        with pytest.raises(PlanError, match=message.replace("[", r"\[").replace("]", r"\]")):
            Plan.of_toml(f'{base}[points]\naxes.delay = "topology.n_source.link_delay"\nrows = {rows}\n')


def test_a_folder_of_another_plan_version_or_kind_is_refused(undisturbed, tmp_path):
    _, folder = undisturbed
    with pytest.raises(TuneError, match="is a search already"):
        run_tune(plan(), folder, Local(1))
    with pytest.raises(TuneError, match="was made from another plan: it differs in tune; name a new folder"):
        run_tune(plan(PLAN.replace("trials = 10", "trials = 11")), folder, Local(1), resume=True)
    with pytest.raises(TuneError, match=r"is not a search: it has no tune\.json"):
        run_tune(plan(), tmp_path, Local(1), resume=True)
    with pytest.raises(TuneError, match="is not there"):
        run_tune(plan(), tmp_path / "nowhere", Local(1), resume=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("x")
    with pytest.raises(TuneError, match="holds other files"):
        run_tune(plan(), tmp_path / "full", Local(1))
    with pytest.raises(TuneError, match="is a file, not a folder"):
        run_tune(plan(), tmp_path / "full" / "letter.txt", Local(1))
    made = tmp_path / "made"
    Folder.create(made, plan()).close()
    manifest = json.loads((made / "tune.json").read_text())
    for key, value, message in (
        ("version", "0.0.9", "was made by celltrain 0.0.9, and this is "),
        ("profile", "strange", "was made by a strange build"),
        ("format", 9, "has format 9, and this celltrain reads 1"),
    ):
        (made / "tune.json").write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(TuneError, match=message):
            run_tune(plan(), made, Local(1), resume=True)
    (made / "tune.json").write_text("{")
    with pytest.raises(TuneError, match="is not JSON"):
        run_tune(plan(), made, Local(1), resume=True)
    elsewhere = {**manifest, "optuna": "3.0.0"}
    for changed in (elsewhere, {key: value for key, value in elsewhere.items() if key != "sha256"}):
        (made / "tune.json").write_text(json.dumps(changed))
        with pytest.raises(TuneError, match=r"was changed \(its sha256"):
            Folder.resume(made, plan())
    (made / "tune.json").write_text(json.dumps({**elsewhere, "sha256": checksum(elsewhere)}))
    with pytest.warns(CelltrainWarning, match=r"was begun with optuna 3\.0\.0"):
        Folder.resume(made, plan()).close()
    (made / "tune.json").write_text(json.dumps(manifest))
    (made / "asked.json").write_text('{"generations": [[[["a"]]]]}')
    with pytest.raises(TuneError, match=r"asked\.json: is not what celltrain wrote"):
        run_tune(plan(), made, Local(1), resume=True)


def test_a_folder_that_another_process_writes_is_refused(tmp_path):
    with (
        Folder.create(tmp_path / "s", plan()),
        pytest.raises(StoreError, match=r"is being written by another search \(process \d+\)"),
    ):
        run_tune(plan(), tmp_path / "s", Local(1), resume=True)


# The command line.


def test_the_command_line(tmp_path, celltrain, monkeypatch):
    path = tmp_path / "tiny.toml"
    path.write_text(PLAN)
    foretold = celltrain("tune", path, "--dry-run", "--json", "--threads", 2).json
    assert (foretold["searches"], foretold["trials"], foretold["generations"], foretold["most_runs"]) == (2, 10, 3, 104)
    assert foretold["seconds"] > 0
    assert "at most 104 runs" in celltrain("tune", path, "--dry-run").out
    monkeypatch.chdir(tmp_path)
    said = celltrain("tune", path, "--json")
    assert (said.code, said.err) == (0, "")
    answer = said.json
    assert answer["folder"] == "out/tiny"
    assert [one["title"] for one in answer["searches"]] == ["buffer 60 cells", "buffer 100 cells"]
    assert {"trials", "confirmed", "left", "values"} <= answer["searches"][0].keys()
    assert answer["files"][0] == "out/tiny/report/tune.html"
    kept = json.loads((tmp_path / "out/tiny/report/tune.json").read_text())
    assert kept == {key: value for key, value in answer.items() if key not in ("folder", "interrupted", "files")}
    html = (tmp_path / "out/tiny/report/tune.html").read_text()
    assert "Left on the table" in html
    assert "<svg" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    svg = (tmp_path / "out/tiny/report/figures/fronts.svg").read_text()
    for text in ("efficiency, larger is better", "cells lost, smaller is better", "the paper's", "trials"):
        assert text in svg
    again = celltrain("tune", path, "--resume")
    assert again.code == 0
    assert "2 searches of 10 trials" in again.out
    refused = celltrain("tune", path, "--json")
    assert refused.code == 2
    assert "is a search already" in refused.json["faults"][0]["message"]


def test_the_page_opens_in_a_browser_without_a_word_in_its_console(undisturbed, tmp_path):
    from test_reports_browser import BROWSER, opened

    if BROWSER is None:
        pytest.skip("no chromium or google-chrome on PATH")
    tuned, _ = undisturbed
    [page, *_] = tuned.write(tmp_path / "report")
    text, console = opened(page, tmp_path)
    assert console == []
    assert text.count("<figure") == 1
    assert "cells lost, smaller is better" in text


def test_at_400_pixels_nothing_of_the_page_scrolls_sideways(undisturbed, tmp_path):
    from test_reports_browser import BROWSER, framed

    if BROWSER is None:
        pytest.skip("no chromium or google-chrome on PATH")
    tuned, _ = undisturbed
    [page, *_] = tuned.write(tmp_path / "report")
    for screen, narrow in ((400, True), (1280, False)):
        width, drawings, scrolling = framed(page, tmp_path, screen)
        assert width <= screen
        assert not narrow or scrolling == 0
        assert [one["narrow"] for one in drawings] == [narrow]
        assert all(one["fits"] for one in drawings)


def test_no_interval_of_the_figure_is_cut(undisturbed):
    from matplotlib.collections import LineCollection

    tuned, _ = undisturbed
    for width in ("page", "column"):
        for axes in tuned.drawing(width=width).figure.axes:
            (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
            bars = [one for one in axes.collections if isinstance(one, LineCollection)]
            assert bars
            ends = np.concatenate([segment for one in bars for segment in one.get_segments()])
            assert left <= ends[:, 0].min() and ends[:, 0].max() <= right
            assert low <= ends[:, 1].min() and ends[:, 1].max() <= high


def test_what_rounds_to_nothing_has_no_minus_on_the_page_of_the_study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import tune_page

    assert tune_page.difference(Estimate(mean=-0.0004, half=0.01)) == "+0.000 ± 0.010"
    assert tune_page.difference(Estimate(mean=-0.0006, half=0.01)) == "-0.001 ± 0.010"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_ctrl_c_keeps_what_is_done_and_says_so(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("search = 2", "search = 20000"))
    command = [sys.executable, "-m", "celltrain", "tune", path, "--out", tmp_path / "s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("s/runs/*/parts/part-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err == "interrupted: what is done is kept; go on with --resume\n"
    assert json.loads(out)["interrupted"]
    store = Store.open(tmp_path / "s" / "runs" / "search-001")
    assert len(store.wide()) > 100
    assert store.verify() == []


def test_optuna_is_not_imported_before_it_is_needed():
    program = "import sys, celltrain as ct, celltrain.cli; ct.tune; from celltrain.tuning import TunePlan; print('optuna' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# What is shipped.


@pytest.mark.parametrize("name", ["tune-selective-drop", "tune-fba"])
def test_the_plans_of_the_study_are_right(name):
    made = TunePlan.load(ROOT / "plans" / f"{name}.toml")
    assert len(made.configurations.points) == 12
    assert made.references[0].numbers == (exact(0.9), exact(0.8))
    assert _core.data(f"plans/{name}.toml") is not None


@pytest.mark.parametrize("name", ["selective-drop", "fba"])
def test_the_page_of_the_study_has_the_numbers_of_the_shipped_results(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import tune_page

    path = STUDIES / f"tuned-{name}.json"
    assert path.stat().st_size < 200_000
    tuned = Tuned._of_dict(json.loads(path.read_text()))
    assert tuned.to_json() == path.read_text()
    # What the script would write stands there.
    page = tune_page.PAGE.read_text()
    assert tune_page.replaced(page, tune_page.policy(tuned), tune_page.numbers(tuned)) == page
    # They are of the shipped plan.
    made = TunePlan.load(ROOT / "plans" / f"tune-{name}.toml")
    facts = tuned.facts
    assert (facts["name"], facts["trials"], facts["batch"]) == (made.name, made.trials, made.batch)
    assert facts["seeds"]["confirmation"] == {"first": made.confirmation.first, "count": made.confirmation.count}
    assert [s.title for s in tuned.searches] == [title(made, i) for i in range(len(made.configurations.points))]
    # The trials of the first generation are those the plan asks for now, on any machine.
    for place, searched in enumerate(tuned.searches):
        asked = ask(made, place, 0, [], made.batch)
        assert [tuple(map(float, numbers)) for numbers in asked] == [
            tuple(t.parameters.values()) for t in searched.trials[: made.batch]
        ]
    assert all(t.means is not None for s in tuned.searches for t in s.trials)
