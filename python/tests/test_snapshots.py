"""The output of commands at 100 columns, and of a few at 80 and 120 too, compared with the files in `snapshots/`.

To add a command, add a line to `COMMANDS`. If a line has several commands separated by `;;`, the last is compared.
`CELLTRAIN_BLESS=1 pytest python/tests/test_snapshots.py` rewrites the files. Review their differences before you commit
them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, WITHOUT_POLICY, Command

import celltrain.papers as reproduction
from celltrain.ensemble import vetting
from celltrain.inspect import why

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (80, 100, 120)
#: Commands whose layout depends most on the width: help, a table of a run, and one of a comparison.
AT_EVERY_WIDTH = [
    "compare lan-tail-drop lan-epd --seeds 2 --vary duration=100ms --all",
    "doctor --help",
    "run small.toml --seeds 3",
    "run small.toml --trace queue",
]

#: One command per line. Each uses the files of `folder` below, and should take well under a second.
COMMANDS = """
--help
run --help
compare --help
vet --help
bottleneck --help
why --help
plot --help
plot sequence --help
reproduce --help
study --help
sweep --help
tune --help
store --help
report --help
check --help
mmu --help
mmu incast --help
mmu thresholds --help
mmu generations
list --help
explain --help
schema --help
bench --help
doctor --help
run lan-epd
run chain-epd
run lan-unresponsive
run gfr-tagging
run small.toml --seeds 3
run small.toml --md
run small.toml --seeds 5 --tex
compare lan-tail-drop lan-epd --seeds 2 --vary duration=100ms --all
compare lan-tail-drop lan-epd --seeds 2 --vary duration=100ms --md
compare lan-tail-drop lan-epd --seeds 2 --vary duration=100ms --tex
compare lan-tail-drop --seeds 2 --vary duration=100ms --vary tcp=vanilla,tahoe,sack
run small.toml --trace queue
compare lan-tail-drop lan-epd lan-selective-drop --seeds 2 --vary duration=300ms
compare lan-epd --seeds 5 --vary duration=100ms --vary port.bottleneck.policy=tail_drop,epd:threshold=80%,selective_drop:threshold=0.8 --vary port.bottleneck.buffer=1000,2000,3000,4000
compare lan-epd lan-sack --seeds 2 --vary duration=100ms --vary port.bottleneck.buffer=1000,2000
vet policy.toml --scenarios lan-5 --seeds 2
vet policy.toml --scenarios lan-5,lan-5-sack --against epd --seeds 2
vet policy.toml --scenarios lan-5 --against epd --seeds 2 --brief
why lan-epd --seed 18 --flow tcp4 --at 2.2s
reproduce af-96-1269 --table 1 --seeds 2
reproduce af-96-1269 --table 1 --seeds 2 --brief
reproduce af-96-1269 --table 1 --seeds 2 --tex
reproduce af-96-1269 --table 2 --network LAN --seeds 1
study different-rtts --seeds 2 --duration 100ms
sweep plan.toml --dry-run
sweep plan.toml --store out
sweep plan.toml --store out ;; store show out
sweep plan.toml --store out ;; store verify out
check small.toml lan-epd
check faulty.toml
run faulty.toml
run lan-epdd
run small.toml --seeds ten
compare lan-epd lan-sack --measures throughput
list policies
list schedulers
list tcp
list congestion
list traffic
list topologies
list papers
list studies
list plans
list cases
list scenarios
list measures
explain vanilla
explain epd
explain efficiency
explain fba
explain lan-epd
"""

FAULTY = """\
duration = "10 seconds"

[topology.n_source]
sources = 0
link_delay = "5us"
link_speed = "100Mbps"

[port.bottleneck]
buffer = "80%"

[port.bottleneck.policy.selective_drop]
threshold = 1.9
"""
POLICY = """\
name = "half"

[policy.formula]
admit = "X < 0.5 * K or Y * N < X"
"""
PLAN = """\
name = "buffers"
scenario = "small.toml"
measures = ["efficiency", "fairness", "cells.lost"]

[axes]
"port.bottleneck.buffer" = [80, 100]
"topology.n_source.link_delay" = ["5us", "50us"]

[seeds]
first = 1
count = 3
"""
#: Text that differs between runs or machines, with its replacement.
MASKS = (
    (r"speed: .*", "speed: ..."),
    (r"(?<=, in )[\d.]+ \w+(?=:)", "..."),
    (r"about .* of disk: an estimate, from .* each", "about ...: an estimate"),
    (r"\d+ threads", "N threads"),
    (r"celltrain \d+\.\d+\.\d+\S*", "celltrain VERSION"),
)


def slug(command: str) -> str:
    """Returns the file name for a command."""
    return re.sub(r"[^a-z0-9]+", "-", command.lower()).strip("-")[:100]


def commands() -> list[str]:
    return COMMANDS.strip().splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the commands use."""
    files = {"small.toml": SMALL, "without.toml": WITHOUT_POLICY, "faulty.toml": FAULTY, "policy.toml": POLICY}
    for name, text in {**files, "plan.toml": PLAN}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for module, name in ((reproduction, "reproduce"), (reproduction, "study"), (vetting, "vet"), (why, "why")):
        monkeypatch.setattr(module, name, remembered(getattr(module, name)))
    return tmp_path


#: Results of the slowest calls, shared by all widths.
ANSWERS: dict[str, Any] = {}


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, progress: Any = None, **options: Any) -> Any:
        key = repr((function.__name__, args, options))
        if key not in ANSWERS:
            ANSWERS[key] = function(*args, **options)
        return ANSWERS[key]

    return call


def printed(celltrain: Command, command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the output of a command at this screen width, including standard error."""
    monkeypatch.setenv("COLUMNS", str(width))
    # Each width writes to its own folder.
    for part in command.split(";;"):
        answer = celltrain(*(f"out{width}" if word == "out" else word for word in shlex.split(part)))
    parts = [
        answer.out,
        f"standard error:\n{answer.err}" if answer.err else "",
        f"exit code {answer.code}" if answer.code else "",
    ]
    text = "\n".join(part.rstrip("\n") for part in parts if part) + "\n"
    for pattern, stand_in in MASKS:
        text = re.sub(pattern, stand_in, text)
    return "".join(f"{line.rstrip()}\n" for line in text.replace(f"out{width}", "out").splitlines())


def cut(text: str) -> list[str]:
    """Returns the lines of an output in which something was cut off."""
    return [line for line in text.splitlines() if "\u2026" in line]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands(), ids=slug)
def test_each_command_prints_its_saved_output(
    command: str, celltrain: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = WIDTHS if command in AT_EVERY_WIDTH else (100,)
    texts = {width: printed(celltrain, command, width, monkeypatch) for width in widths}
    file = SNAPSHOTS / f"{slug(command)}.txt"
    found = f"$ celltrain {command}\n" + "".join(
        f"\n===== {width} columns =====\n{text}" for width, text in texts.items()
    )
    if os.environ.get("CELLTRAIN_BLESS") == "1":
        file.write_text(found)
    for width, text in texts.items():
        assert not cut(text), f"cut at {width} columns"
    assert file.exists(), "no snapshot yet: run with CELLTRAIN_BLESS=1"
    assert found == file.read_text(), "read the difference; CELLTRAIN_BLESS=1 accepts it"


@pytest.mark.nightly
@pytest.mark.parametrize("command", commands(), ids=slug)
def test_no_command_truncates_its_output_on_a_screen_of_80_or_120_columns(
    command: str, celltrain: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (80, 120):
        assert not cut(printed(celltrain, command, width, monkeypatch)), f"cut at {width} columns"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_doctor_command_does_not_truncate_its_findings(
    celltrain: Command, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(celltrain, "doctor", width, monkeypatch)
    assert "everything is fine" in text and not cut(text)
    assert max(map(len, text.splitlines())) <= width


def test_every_saved_output_belongs_to_a_tested_command() -> None:
    wanted = {f"{slug(command)}.txt" for command in commands()}
    assert len(wanted) == len(commands()), "two commands share a file"
    assert {path.name for path in SNAPSHOTS.iterdir()} == wanted
    assert set(AT_EVERY_WIDTH) <= set(commands())


def test_all_saved_outputs_together_are_small_enough_to_review() -> None:
    assert sum(path.stat().st_size for path in SNAPSHOTS.iterdir()) <= 250_000
