"""Counts the calls of Python functions that an answer needs, as a measure of indirection in the package."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.nightly
def test_each_command_makes_few_python_calls_and_reads_each_scenario_once() -> None:
    # Runs in a separate process, because a profile function may keep a long-running interpreter from ending.
    command = [sys.executable, str(ROOT / "scripts" / "python_calls.py"), "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout)
    assert rows["one more row of a sweep"] <= 10
    assert rows["compare, 2 cases, 2 seeds"]["calls"] <= 900
    assert rows["reproduce, 1 table, 2 configurations"]["calls"] <= 3000
    readings = {"run": 1, "compare, 2 cases, 2 seeds": 2, "sweep, 10 points, 2 seeds": 10, "why": 1}
    readings |= {"sweep, 30 points, 2 seeds": 30, "reproduce, 1 table, 2 configurations": 2, "report, 3 points": 0}
    assert {question: rows[question]["readings"] for question in readings} == readings
    again = [
        question for question, row in rows.items() if isinstance(row, dict) and row["readings"] != row["scenarios"]
    ]
    assert not again, "these questions read a scenario twice"
