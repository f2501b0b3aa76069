"""Planted faults in the core: each fails a Rust test that compares with a model, not only with earlier runs."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from pages import ROOT
from project_copy import COPY, FAULTS, build

import faults

pytestmark = pytest.mark.slow

#: Tests that must find the faults.
MODULES = ("engine::tests::engines_agree", "port::", "scheduler::")


def test_the_campaign_finds_faults_in_twelve_places_and_every_law_one():
    rows = faults.read(faults.FAULTS)
    core = ROOT / faults.CORE
    faults.plant({path.relative_to(ROOT).as_posix(): path.read_text() for path in core.rglob("*.rs")}, rows)
    assert len({row["file"] for row in rows if row["found_by"] == "campaign"}) == 12
    laws = re.findall(r"#\[test\]\nfn (\w+)", (faults.FAULTS.parent / "laws" / "main.rs").read_text())
    assert sorted(row["found_by"] for row in rows if row["found_by"] != "campaign") == sorted(
        f"laws::{law}" for law in laws
    )


def test_every_planted_fault_is_found():
    program = build().by_name["celltrain-core", "celltrain_core"]
    assert not fails(program, fault=None), "without a fault all tests pass"
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda number: fails(program, fault=number), range(len(FAULTS))))
    assert [fault["fault"] for fault, is_found in zip(FAULTS, found, strict=True) if not is_found] == []


def fails(program: str, *, fault: int | None) -> bool:
    """Runs the modules' tests until one fails. Returns whether one failed."""
    # Shrinking the example would take longer than finding the fault.
    environment = {**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "PLANTED": str(fault)}
    core = COPY / "crates" / "celltrain-core"
    with subprocess.Popen(
        [program, *MODULES], cwd=core, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as tests:
        assert tests.stdout is not None
        found = any(line.rstrip().endswith("FAILED") for line in tests.stdout)
        tests.kill()
    return found or tests.returncode > 0
