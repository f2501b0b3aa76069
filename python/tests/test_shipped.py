"""Shipped scenarios and plans by name, from any folder; shell completion."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import NIGHTLY

import celltrain as ct
from celltrain.cli import options
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.tuning import TunePlan
from celltrain.model import shipped


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Runs each test in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_the_name_of_a_shipped_scenario_is_accepted_wherever_a_file_is(celltrain):
    """The name of a shipped scenario gives the same result as the file in the repository."""
    file = Path(__file__).parents[2] / "scenarios" / "lan-epd.toml"
    assert ct.load("lan-epd") == ct.load(file) == ct.load("lan-epd.toml")
    assert ct.check("lan-epd") == []
    assert ct.max_min_shares("lan-epd") == ct.max_min_shares(file)
    short = ct.load("lan-epd").replace(duration="20ms")
    assert ct.run(short).scenario == "five sources, LAN, EPD"
    assert celltrain("check", "lan-epd").out == "lan-epd: no problems found\n"
    assert celltrain("run", "lan-reno", "--json").json["scenario"] == ct.load("lan-reno").name


@pytest.mark.slow
def test_every_shipped_scenario_and_plan_is_found_by_its_name():
    """The plans' scenarios are also found, although they are not in the current folder."""
    assert set(shipped.names("scenario")) >= {"lan-tail-drop", "lan-epd", "wan-dfba"}
    for name in shipped.names("scenario")[:: 1 if NIGHTLY else 4]:
        assert ct.check(name) == []
    for name in shipped.names("plan"):
        assert (TunePlan if name.startswith("tune-") else Plan).load(name).name


def test_a_local_file_takes_precedence_over_the_shipped_scenario_with_the_same_name():
    """A folder with the name of a shipped scenario does not take precedence."""
    Path("lan-epd").mkdir()
    assert ct.load("lan-epd").topology.sources == 5
    shortened = ct.load("lan-epd").replace(duration="1ms")
    ct.save(shortened, "lan-reno.toml")
    assert ct.load("lan-reno.toml") == shortened
    assert ct.load("lan-reno").duration == "10s"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("lan-edp", "there is no such file, and no shipped scenario has this name; did you mean lan-epd?"),
        ("qqqq", "there is no such file, and no shipped scenario has this name. See: celltrain list scenarios"),
        ("nowhere/lan-epd.toml", "there is no such file; write lan-epd for the scenario that celltrain ships"),
        ("nowhere/mine.toml", "there is no such file"),
    ],
)
def test_the_error_for_an_unknown_scenario_name_suggests_the_most_similar_known_name(celltrain, said, expected):
    """Cases: two swapped letters, no similar name, a path only in the repository, and a path that does not exist."""
    answer = celltrain("run", said)
    assert answer.code == 2
    assert expected in answer.err
    with pytest.raises(ct.ScenarioError, match="there is no such file"):
        ct.load(said)


def test_the_error_for_an_unknown_plan_name_suggests_the_most_similar_known_name(celltrain):
    """Regression: the message called the plan a scenario."""
    answer = celltrain("sweep", "selective-drop-zr", "--dry-run")
    assert answer.code == 2
    assert "no shipped plan has this name; did you mean selective-drop-rz?" in answer.err


def test_a_shipped_plan_refers_to_its_shipped_scenario():
    """A file with the scenario's name in the current folder is not used instead."""
    Path("lan-selective-drop").write_text("no scenario")
    assert Plan.load("selective-drop-rz").base["topology"]["n_source"]["sources"] == 5


def test_shell_completion_completes_scenario_names_and_scenario_files():
    """Completes file names from their first letters, folders with a slash, and the last series in a list."""
    Path("land.toml").write_text("")
    Path("lanes").mkdir()
    assert options.complete_scenarios("lan-e") == ["lan-epd"]
    assert options.complete_scenarios("land") == ["land.toml"]
    assert options.complete_scenarios("lane") == ["lanes/"]
    assert "selective-drop-rz" in options.complete_plans("")
    assert options.complete_explained("selective") == ["selective_drop", "selective-drop-rz"]
    assert options.complete_series("queue,cw") == ["queue,cwnd"]
