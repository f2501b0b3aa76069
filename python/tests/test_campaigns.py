"""Small versions of the campaigns. The tests check that they run and that they detect faults."""

from __future__ import annotations

import importlib
import random
import re
import subprocess
import sys
from collections import Counter

import pytest
from conftest import NIGHTLY
from pages import ROOT

from celltrain.model import overrides
from celltrain.model.scenario import read

pytestmark = pytest.mark.slow

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def test_every_campaign_named_in_pages_or_workflows_exists():
    import campaign

    listed = subprocess.run([sys.executable, campaign.__file__], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(campaign.CAMPAIGNS)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.yml")]
    named = {name for page in pages for name in re.findall(r"NAME=([a-z-]+)|{ name: ([a-z-]+)", page.read_text())}
    assert {first or second for first, second in named} <= set(campaign.CAMPAIGNS)
    commands = [one.command if isinstance(one.command, str) else "" for one in campaign.CAMPAIGNS.values()]
    scripts = [script for command in commands for script in re.findall(r"\S+\.py", command)]
    assert len(scripts) > 10
    assert not [script for script in scripts if not (ROOT / script).exists()]


def test_every_rust_test_that_a_campaign_runs_or_skips_exists():
    """Regression: Cargo succeeds even if no test has the name, so a campaign ran none."""
    text = "".join((ROOT / file).read_text() for file in ("scripts/campaign.py", ".cargo/mutants.toml"))
    names = re.findall(r"\w::([a-z_]+) --|--skip\", \"(\w+)", text)
    source = "".join(path.read_text() for path in (ROOT / "crates").glob("celltrain-*/**/*.rs"))
    assert len(names) == 3
    assert [name for name in names if f"fn {''.join(name)}" not in source] == []


def test_a_campaign_passes_its_seed_and_extra_arguments_to_its_command(monkeypatch):
    import campaign

    ran: list[str] = []
    monkeypatch.setattr(campaign, "run", lambda command: ran.append(command) or 0)
    monkeypatch.setattr(sys, "argv", ["campaign", "kills", "--count", "7", "--seed", "3", "--only", "threads"])
    assert campaign.main() == 0
    assert ran == ["python scripts/kills.py --kills 7 --seed 3 --only threads"]


def test_every_setting_in_the_linux_over_cells_campaign_is_valid(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "peers"))
    import linux_cells

    for network, policy, _ in linux_cells.SETTINGS:
        settings = overrides.single(linux_cells.settings(network, policy))
        assert read(linux_cells.SCENARIO, settings, option="--set").accepted()


@pytest.mark.nightly
def test_a_process_exits_normally_after_using_a_results_store():
    # About 1 in 200 processes aborted, because an Arrow thread released Python bytes during interpreter shutdown.
    program = [sys.executable, str(ROOT / "scripts" / "exits.py"), "--count", "5", "--seed", "3"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in all: 5 exits, 0 abnormal" in done.stdout


def test_the_campaign_of_process_exits_counts_abnormal_exits(scripts, monkeypatch, capsys):
    import exits

    monkeypatch.setattr(exits, "_sweep", lambda store: None)
    monkeypatch.setattr(exits, "OPEN", "")
    monkeypatch.setattr(exits, "RUNS", {})
    monkeypatch.setattr(exits, "USES", {"dies": "import os; os.abort()"})
    monkeypatch.setattr(sys, "argv", ["exits", "--count", "2"])
    assert exits.main() == 1
    assert "in all: 2 exits, 2 abnormal" in capsys.readouterr().out


@POSIX
def test_a_sweep_loses_no_results_if_its_processes_are_killed_at_any_time(scripts, tmp_path):
    import kills

    campaign = kills.Campaign.of(tmp_path, 7, seeds=60, duration="5ms")
    assert kills.at_random(campaign, kills=2, each=2) == Counter(driver=2)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="needs a library that is loaded before libc")
def test_a_sweep_loses_no_results_if_its_processes_are_killed_while_writing_any_file(scripts, tmp_path):
    import kills

    if not kills.can_force():
        pytest.skip("needs cc")
    campaign = kills.Campaign.of(tmp_path, 7, seeds=5, duration="2ms")
    library = kills.built(tmp_path)
    for name, call, place in (
        ("database", "rename", 1),
        ("database", "pwrite", 3),
        ("log", "pwrite", 2),
        ("log", "unlink", 1),
        ("journal", "unlink", 1),
    ):
        assert kills.forced_at(campaign, library, name, str(place), call), f"{name}: {call} {place}"


@pytest.mark.nightly
@POSIX
def test_the_campaign_that_kills_processes_detects_missing_result_rows(scripts, tmp_path):
    import kills

    campaign = kills.Campaign.of(tmp_path, 7, seeds=5, duration="2ms")
    store = tmp_path / "s"
    campaign.driver(store).communicate()
    campaign.undisturbed = campaign.undisturbed.slice(1)
    with pytest.raises(kills.WrongError, match="the rows differ from the rows of an undisturbed sweep"):
        campaign.finish(store, campaign.driver(store))


def test_damaged_input_files_are_refused_with_messages(scripts, tmp_path, monkeypatch):
    import mutated_files

    for path, name in (
        ("celltrain.running.cluster", "_missing"),
        ("celltrain.ensemble.cases", "PROBE_SECONDS"),
    ):
        # monkeypatch restores this value after the test.
        monkeypatch.setattr(importlib.import_module(path), name, getattr(sys.modules[path], name))
    mutated_files.calm()
    bench = mutated_files.Bench(tmp_path)
    bench.set_up(search=False)
    codes = Counter()
    # Searches take longest and are tested separately.
    numbers = range(48 if NIGHTLY else 12)
    for number in [n for n in numbers if mutated_files.KINDS[n % len(mutated_files.KINDS)] != "trials"]:
        case, code, wrong = bench.do(20261122, number)
        assert not wrong, f"{case}: {wrong}"
        codes[code] += 1
    assert codes[0] > 0 < codes[2]


def test_every_mutation_in_the_campaign_of_damaged_files_changes_its_file(scripts):
    import mutated_files

    chance = random.Random(5)
    for how, change in mutated_files.HOW.items():
        for content in (mutated_files.PLAN.encode(), bytes(range(256)) * 20):
            found = {change(content, chance) for _ in range(20)}
            assert (found == {content}) == (how == "nothing"), how
