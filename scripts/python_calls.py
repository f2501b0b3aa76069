"""Counts the Python functions of celltrain that a question calls, and how often it reads scenarios.

    python scripts/python_calls.py [--json]

Functions of other packages do not count. Each question is asked once before, so that imports do not count either.
Threads count, too.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import celltrain as ct
from celltrain import _core

PACKAGE = str(Path(ct.__file__).parent)
SHORT = {"duration": "10ms"}
EPD = ct.load("lan-epd", settings=SHORT)
TAIL_DROP = ct.load("lan-tail-drop", settings=SHORT)
THRESHOLD = "port.bottleneck.policy.epd.threshold"


def sweep(points: int, seeds: int) -> ct.Store:
    """Sweeps a threshold."""
    return ct.sweep(EPD, over={THRESHOLD: [500 + point for point in range(points)]}, seeds=seeds, jobs=1)


def tune() -> None:
    """Searches the threshold that the sweep varies."""
    seeds = {"search": 1, "selection": 2, "confirmation": 2}
    threshold = {"path": THRESHOLD, "from": 500, "to": 900}
    ct.tune(EPD, parameters={"threshold": threshold}, trials=4, batch=2, finalists=2, seeds=seeds, jobs=1)


STORE = sweep(3, 2)
QUESTIONS: dict[str, Callable[[], object]] = {
    "run": lambda: ct.run(EPD),
    "compare, 2 cases, 2 seeds": lambda: ct.compare(EPD, TAIL_DROP, seeds=2, jobs=1),
    "sweep, 10 points, 2 seeds": lambda: sweep(10, 2),
    "sweep, 10 points, 12 seeds": lambda: sweep(10, 12),
    "sweep, 30 points, 2 seeds": lambda: sweep(30, 2),
    "reproduce, 1 table, 2 configurations": lambda: ct.reproduce(
        "af-96-1269", tables=[1], networks=["LAN"], seeds=1, overrides=SHORT, jobs=1
    ),
}
#: Questions whose calls are not counted, because they spend their time in runs or other packages.
LONGER: dict[str, Callable[[], object]] = {
    # Tuning needs an optional package.
    **({"tune, 4 trials": tune} if importlib.util.find_spec("optuna") else {}),
    "vet, 1 scenario": lambda: ct.vet(
        {"formula": {"admit": "X <= 0.9 * K"}}, scenarios=["lan-5"], against=["epd:threshold=80%"], seeds=1, jobs=1
    ),
    "why": lambda: ct.why(EPD, at="5ms"),
    "report, 3 points": lambda: ct.report(STORE),
}


class Readings:
    """Notes the scenarios that are read while it is entered, which happens only by these functions of the core."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __enter__(self) -> Readings:
        self.before = _core.parse, _core.parse_json
        _core.parse, _core.parse_json = map(self.noting, self.before)
        return self

    def __exit__(self, *raised: object) -> None:
        _core.parse, _core.parse_json = self.before

    def noting(self, read: Callable[..., tuple[_core.Case | None, str]]) -> Callable[..., Any]:
        """Returns the function, changed to note the canonical scenario that it returns, or else the text."""

        def noting(text: str, *others: Any) -> tuple[_core.Case | None, str]:
            case, report = read(text, *others)
            # Read the text of a copy, because reading it drops the network of a case.
            self.texts.append(text if case is None else _core.Case(case.json).canonical)
            return case, report

        return noting


def readings(ask: Callable[[], object]) -> dict[str, int]:
    """Returns the number of readings, and of different scenarios that were read."""
    with Readings() as found:
        ask()
    return {"readings": len(found.texts), "scenarios": len(set(found.texts))}


def calls(ask: Callable[[], object]) -> int:
    """Returns the number of calls."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        ask()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def main() -> None:
    """Prints a row for each question, and the calls for each further row and point of a sweep."""
    rows = {question: readings(ask) | {"calls": calls(ask)} for question, ask in QUESTIONS.items()}
    # After these questions, whose packages have threads of their own, a profile function may never end.
    rows |= {question: readings(ask) for question, ask in LONGER.items()}
    sizes = ("10 points, 2 seeds", "10 points, 12 seeds", "30 points, 2 seeds")
    base, seeds, points = (rows[f"sweep, {size}"]["calls"] for size in sizes)
    more = {"one more row of a sweep": (seeds - base) / 100, "one more point of a sweep": (points - base) / 20}
    if "--json" in sys.argv:
        print(json.dumps({**rows, **more}))
        return
    print(f"{'question':<38} {'calls':>8} {'readings':>9} {'scenarios':>10}")
    for question, row in rows.items():
        print(f"{question:<38} {row.get('calls', ''):>8} {row['readings']:>9,} {row['scenarios']:>10,}")
    for question, calls_each in more.items():
        print(f"{question:<38} {calls_each:>8.1f}")


if __name__ == "__main__":
    main()
