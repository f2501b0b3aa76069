"""Counts the Python functions of celltrain that a question calls, and the scenarios that it reads.

    python scripts/python_calls.py [--json]

Functions of other packages do not count. Each question is asked once before, so that imports do not count either.
Threads count, too.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import celltrain as ct

PACKAGE = str(Path(ct.__file__).parent)
#: The function that reads a scenario; all other ways of reading call it.
READING = "of_core"
SHORT = {"duration": "10ms"}
EPD = ct.load("lan-epd", settings=SHORT)
TAIL_DROP = ct.load("lan-tail-drop", settings=SHORT)


def sweep(points: int, seeds: int) -> None:
    """Sweeps a threshold."""
    path = "port.bottleneck.policy.epd.threshold"
    ct.sweep(EPD, over={path: [500 + point for point in range(points)]}, seeds=seeds, jobs=1)


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


def counted(ask: Callable[[], object]) -> Counter[str]:
    """Returns the number of calls by function."""
    ask()
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_name] += 1

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
    rows = {}
    for question, ask in QUESTIONS.items():
        calls = counted(ask)
        rows[question] = {"calls": calls.total(), "readings": calls[READING]}
    sizes = ("10 points, 2 seeds", "10 points, 12 seeds", "30 points, 2 seeds")
    base, seeds, points = (rows[f"sweep, {size}"]["calls"] for size in sizes)
    more = {"one more row of a sweep": (seeds - base) / 100, "one more point of a sweep": (points - base) / 20}
    if "--json" in sys.argv:
        print(json.dumps({**rows, **more}))
        return
    print(f"{'question':<38} {'calls':>8} {'readings':>9}")
    for question, row in rows.items():
        print(f"{question:<38} {row['calls']:>8,} {row['readings']:>9,}")
    for question, calls_each in more.items():
        print(f"{question:<38} {calls_each:>8.1f}")


if __name__ == "__main__":
    main()
