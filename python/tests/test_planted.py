"""Faults planted in the core: for each of them a Rust test fails that compares with a model, not with an earlier run."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from adding import TARGET, cargo
from pages import ROOT

#: One statement of a function each, which a fault leaves out.
FAULTS = list(csv.DictReader((ROOT / "crates/celltrain-core/tests/planted.csv").open()))
#: The modules whose tests look for them.
MODULES = ("engine::fast::batching_port", "engine::fast::run_queues", "port::", "scheduler::")
SWITCH = """
/// Returns whether a planted fault is in force.
mod planted {
    pub(crate) fn is_on(fault: &str) -> bool {
        static ON: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var("PLANTED").ok());
        ON.as_deref() == Some(fault)
    }
}
"""


def test_every_planted_fault_is_found():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is needed")
    copy = planted()
    built = cargo(copy, "test", "--locked", "--package", "celltrain-core", "--lib", "--no-run", "--message-format=json")
    messages = [json.loads(line) for line in built.splitlines()]
    [program] = [message["executable"] for message in messages if message.get("executable")]
    assert not fails(program, copy, fault=None), "without a fault all tests pass"
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda number: fails(program, copy, fault=number), range(len(FAULTS))))
    assert [fault["fault"] for fault, is_found in zip(FAULTS, found, strict=True) if not is_found] == []


def planted() -> Path:
    """A copy of the crates with all faults in it, each behind a switch: one build serves for all of them."""
    # The folder has another name, so that cargo tells these crates from those of the pages about adding.
    copy = TARGET / "planted"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "crates", copy / "planted")
    (copy / "Cargo.toml").write_text((ROOT / "Cargo.toml").read_text().replace('"crates/', '"planted/'))
    shutil.copy(ROOT / "Cargo.lock", copy)
    core = copy / "planted" / "celltrain-core" / "src"
    for number, fault in enumerate(FAULTS):
        source, statement = core / fault["file"], fault["statement"]
        before, function, rest = source.read_text().partition(f"fn {fault['function']}(")
        assert statement in rest, f"{fault}: put the statement into the table that took the place of this one"
        rest = rest.replace(statement, f'if !crate::planted::is_on("{number}") {{ {statement} }}', 1)
        source.write_text(before + function + rest)
    with (core / "lib.rs").open("a") as root:
        root.write(SWITCH)
    return copy


def fails(program: str, copy: Path, *, fault: int | None) -> bool:
    """Runs the modules' tests until one fails; returns whether one did."""
    # Finding the smallest example would take longer than finding the fault.
    environment = {**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "PLANTED": str(fault)}
    core = copy / "planted" / "celltrain-core"
    with subprocess.Popen(
        [program, *MODULES], cwd=core, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as tests:
        assert tests.stdout is not None
        found = any(line.rstrip().endswith("FAILED") for line in tests.stdout)
        tests.kill()
    return found or tests.returncode > 0
