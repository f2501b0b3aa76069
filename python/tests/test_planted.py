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


def test_the_list_of_planted_faults_covers_each_engine_law_and_has_campaign_faults_in_14_files():
    rows = faults.read(faults.FAULTS)
    core = ROOT / faults.CORE
    faults.plant({path.relative_to(ROOT).as_posix(): path.read_text() for path in core.rglob("*.rs")}, rows)
    of_laws = [row["found_by"] for row in rows if row["found_by"].startswith("laws::")]
    assert len({row["file"] for row in rows if row["found_by"] not in of_laws}) == 14
    laws = re.findall(r"#\[test\]\nfn (\w+)", (faults.FAULTS.parent / "laws" / "main.rs").read_text())
    assert sorted(of_laws) == sorted(f"laws::{law}" for law in laws)


@pytest.mark.nightly
def test_each_fault_planted_in_the_source_is_detected_by_the_test_listed_for_it():
    program = build().by_name["celltrain-core", "celltrain_core"]
    tests = sorted({row["found_by"] for row in FAULTS})
    with ThreadPoolExecutor(2) as pool:
        without_fault = list(pool.map(lambda test: fails(program, test, fault=None), tests))
        found = list(
            pool.map(lambda number: fails(program, FAULTS[number]["found_by"], fault=number), range(len(FAULTS)))
        )
    assert not any(without_fault)
    assert [row["fault"] for row, is_found in zip(FAULTS, found, strict=True) if not is_found] == []


def fails(program: str, test: str, *, fault: int | None) -> bool:
    """Runs a test. Returns whether the test failed."""
    # Shrinking the example would take longer than finding the fault.
    environment = {**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "PLANTED": str(fault)}
    done = subprocess.run(
        [program, "--exact", test],
        cwd=COPY / "crates" / "celltrain-core",
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "running 1 test\n" in done.stdout, f"{test}: there is no such test"
    return done.returncode != 0
