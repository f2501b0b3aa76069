"""Faults planted in the core: for each of them a Rust test fails that compares with a model, not with an earlier run."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from project_copy import COPY, FAULTS, build

pytestmark = pytest.mark.slow

#: The modules whose tests look for them.
MODULES = ("engine::fast::output_buffer", "engine::fast::run_queues", "port::", "scheduler::")


def test_every_planted_fault_is_found():
    program = build().by_name["celltrain-core", "celltrain_core"]
    assert not fails(program, fault=None), "without a fault all tests pass"
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda number: fails(program, fault=number), range(len(FAULTS))))
    assert [fault["fault"] for fault, is_found in zip(FAULTS, found, strict=True) if not is_found] == []


def fails(program: str, *, fault: int | None) -> bool:
    """Runs the modules' tests until one fails; returns whether one did."""
    # Finding the smallest example would take longer than finding the fault.
    environment = {**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "PLANTED": str(fault)}
    core = COPY / "crates" / "celltrain-core"
    with subprocess.Popen(
        [program, *MODULES], cwd=core, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as tests:
        assert tests.stdout is not None
        found = any(line.rstrip().endswith("FAILED") for line in tests.stdout)
        tests.kill()
    return found or tests.returncode > 0
