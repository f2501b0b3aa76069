"""Invalid search plans and unrelated folders: messages name the line and the value."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from conftest import import_or_skip
from tunes import PLAN, plan

from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store.folder import checksum
from celltrain.ensemble.tuning import run_tune
from celltrain.ensemble.tuning.plan import Folder
from celltrain.errors import CelltrainWarning, PlanError, StoreError, TuneError
from celltrain.running import Local

import_or_skip("optuna")


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            PLAN[PLAN.index("[tune]") :],
            "",
            ["plan:1: lacks a table [tune] with the settings to search; without one, use celltrain sweep"],
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
            ["plan:14: tune.objectives names one measure, but a front needs two measures, such as"],
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
        ("from = 0.3, to = 1.0", "from = 0.3, to = inf", ["tune.parameters.R.to = Infinity is not a plain number"]),
        ("step = 0.05", "step = 5", ["plan:20: tune.parameters.Z.step = 5 is more than the whole range"]),
        ("step = 0.05", 'step = 0.05, scale = "log"', ["tune.parameters.Z.step = 0.05 works only with a linear scale"]),
        (
            "{ R = 0.9, Z = 0.8 }",
            "{ R = 0.9 }",
            ['plan:22: tune.references."the paper\'s" lacks Z: a reference needs a value for every parameter'],
        ),
        ("{ R = 0.9, Z = 0.8 }", "{ R = 0.9, Z = 0.8, Y = 1 }", [".Y = 1 is not a parameter; choose from R, Z"]),
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
        ("[axes]\n", "[seeds]\ncount = 3\n[axes]\n", ["plan:11: seeds cannot be set here; use [tune.seeds]"]),
        (
            "[axes]\n",
            "[sample]\npoints = 3\n[axes]\n",
            ["plan:11: sample does not belong in a plan for celltrain tune"],
        ),
        (
            'buffer = { path = "port.bottleneck.buffer", values = [60, 100] }',
            '"port.bottleneck.policy.selective_drop.z" = [1.0]',
            [
                "tune.parameters.Z.path",
                "sets port.bottleneck.policy.selective_drop.z, which port.bottleneck.policy.selective_drop.z also sets",
            ],
        ),
        (
            PLAN[PLAN.index("[tune.parameters]") : PLAN.index("[tune.references]")],
            "",
            ["plan:13: tune lacks parameters"],
        ),
        ("search = 2", "search = 90000000", ["plan:13: tune asks for ", "at most 100,000,000 are possible"]),
    ],
)
def test_errors_in_a_search_plan_are_reported_with_their_line(old, new, messages):
    assert old in PLAN
    with pytest.raises(PlanError) as refused:
        plan(PLAN.replace(old, new))
    for message in messages:
        assert message in str(refused.value)


def test_the_error_for_passing_a_search_plan_to_sweep_names_the_right_command():
    with pytest.raises(PlanError, match=r"plan:13: tune makes this a plan for celltrain tune"):
        Plan.of_toml(PLAN)


def test_the_points_listed_in_the_points_table_of_a_search_plan_are_checked():
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
    assert 'points.rows[2][1] = "fba" is not a label of policy; choose from epd' in str(refused.value)
    for rows, message in (
        ("[]", "points has no rows"),
        ('[["5us"], ["5us", 1]]', "points.rows[1] = "),
        ('[["5us"], ["5us"]]', "points.rows[1] = "),
    ):
        with pytest.raises(PlanError, match=message.replace("[", r"\[").replace("]", r"\]")):
            Plan.of_toml(f'{base}[points]\naxes.delay = "topology.n_source.link_delay"\nrows = {rows}\n')


def test_a_search_refuses_a_folder_of_another_plan_or_version_or_without_a_search(undisturbed, tmp_path):
    _, folder = undisturbed
    with pytest.raises(TuneError, match="is already a search"):
        run_tune(plan(), folder, Local(1))
    with pytest.raises(TuneError, match="was made from another plan: it differs in tune; name a new folder"):
        run_tune(plan(PLAN.replace("trials = 10", "trials = 11")), folder, Local(1), resume=True)
    with pytest.raises(TuneError, match=r"is not a search: it has no tune\.json"):
        run_tune(plan(), tmp_path, Local(1), resume=True)
    with pytest.raises(TuneError, match="is not there"):
        run_tune(plan(), tmp_path / "nowhere", Local(1), resume=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("x")
    with pytest.raises(TuneError, match="contains other files"):
        run_tune(plan(), tmp_path / "full", Local(1))
    with pytest.raises(TuneError, match="is a file, not a folder"):
        run_tune(plan(), tmp_path / "full" / "letter.txt", Local(1))
    made = tmp_path / "made"
    Folder.create(made, plan()).lock.close()
    manifest = json.loads((made / "tune.json").read_text())
    for key, value, message in (
        ("version", "0.0.9", "was made by celltrain 0.0.9, but this is "),
        ("profile", "strange", "was made by a strange build"),
        ("format", 9, "has format 9, but this celltrain reads 2"),
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
        Folder.resume(made, plan()).lock.close()
    (made / "tune.json").write_text(json.dumps(manifest))
    (made / "asked.json").write_text('{"generations": [[[["a"]]]]}')
    with pytest.raises(TuneError, match=r"asked\.json: has content that celltrain did not write"):
        run_tune(plan(), made, Local(1), resume=True)


def test_a_search_refuses_a_folder_to_which_another_process_writes(tmp_path):
    with (
        closing(Folder.create(tmp_path / "s", plan()).lock),
        pytest.raises(StoreError, match=r"is being written by another search \(process \d+\)"),
    ):
        run_tune(plan(), tmp_path / "s", Local(1), resume=True)
