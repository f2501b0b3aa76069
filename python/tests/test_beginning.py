"""The first commands that a new user tries: `new`, `why` without options, lists without arguments, and completion."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from celltrain.cli import options


def test_a_scenario_written_by_celltrain_new_is_valid_and_commented_and_runs(celltrain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = celltrain("new", "mine")
    assert (answer.code, answer.out.splitlines()[0]) == (0, "wrote mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    assert 'name = "mine"' in text and text.count("#") > 10
    assert celltrain("check", "mine.toml").code == 0
    assert celltrain("run", "mine.toml", "--json").json["scenario"] == "mine"


def test_celltrain_new_can_start_from_a_shipped_scenario_and_overwrites_no_file(celltrain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert celltrain("new", "far", "--like", "wan-epd", "--json").json == {"file": "far.toml"}
    assert 'name = "far"' in (tmp_path / "far.toml").read_text()
    again = celltrain("new", "far.toml")
    assert (again.code, "already exists; choose another name" in again.err) == (2, True)
    unknown = celltrain("new", "other", "--like", "wan-ep")
    assert (unknown.code, "did you mean wan-epd?" in unknown.err) == (2, True)
    assert not (tmp_path / "other.toml").exists()
    assert celltrain("new", "no/folder").code == 2


@pytest.mark.slow
def test_the_why_command_lists_loss_episodes_and_the_command_that_explains_the_first_one(celltrain):
    answer = celltrain("why", "lan-tail-drop", "--set", "duration=5s")
    assert answer.code == 0
    rows = [row.split() for row in answer.out.splitlines() if re.match(r"\s*\d+\.\d{6}", row)]
    silences = [float(row[-3].replace(",", "")) for row in rows]
    assert len(silences) == 10 and silences == sorted(silences, reverse=True)
    command = answer.out.splitlines()[-1].partition("celltrain ")[2].split()
    explained = celltrain(*command)
    assert explained.code == 0
    flow = command[command.index("--flow") + 1]
    began = re.match(rf"From ([0-9.]+) s on {flow} lost {rows[0][-2]} segments", explained.out)
    assert began is not None and float(began[1]) == float(rows[0][0])
    assert "shorter silences are not shown" in answer.out + answer.err


@pytest.mark.slow
def test_the_why_command_does_not_require_a_flow_name(celltrain):
    assert celltrain("why", "lan-epd", "--set", "duration=500ms", "--at", "0.3s", "--json").json["is_well"] is False


@pytest.mark.parametrize(
    ("complete", "beginning", "found"),
    [
        (options.complete_measures, "efficiency,fairness_", ["efficiency,fairness_max_min"]),
        (options.complete_paths, "port.bottleneck.bu", ["port.bottleneck.buffer="]),
        (
            options.complete_paths,
            "port.bottleneck.policy=tail_drop,selec",
            ["port.bottleneck.policy=tail_drop,selective_drop"],
        ),
        (options.complete_paths, "nowhere.", []),
        (options.complete_shipped, "lan-tail", ["lan-tail-drop"]),
    ],
)
def test_shell_completion_suggests_names_of_measures_and_of_scenarios_and_paths(complete, beginning, found):
    assert complete(beginning) == found


def test_shell_completion_suggests_the_flows_of_the_scenario():
    assert options.complete_flows(SimpleNamespace(params={"file": "lan-epd"}), "tcp") == [
        f"tcp{i}" for i in range(1, 6)
    ]
    assert options.complete_flows(SimpleNamespace(params={"file": "no-such"}), "tcp") == []
    assert options.complete_flows(SimpleNamespace(params={}), "") == []


def test_the_list_command_counts_the_models_of_each_kind_and_accepts_kinds_in_the_singular(celltrain):
    counts = {row["kind"]: row["count"] for row in celltrain("list", "--json").json}
    assert counts["policies"] == len(celltrain("list", "policy", "--json").json) > 10
    assert counts["measures"] == len(celltrain("list", "measures", "--json").json)
    answer = celltrain("list")
    assert answer.code == 0 and all(kind in answer.out for kind in counts)
    unknown = celltrain("list", "polices")
    assert (unknown.code, "did you mean policies?" in unknown.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "named"), [("explain", "selective_drop"), ("reproduce", "af-96-1269"), ("study", "tagging")]
)
def test_the_celltrain_program_without_arguments_prints_its_usage(celltrain, command, named):
    answer = celltrain(command)
    assert (answer.code, answer.err) == (0, "")
    assert named in answer.out and f"celltrain {command} " in answer.out
    assert named in json.dumps(celltrain(command, "--json").json)
