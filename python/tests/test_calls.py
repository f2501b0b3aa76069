"""Calls of Python functions that a command needs, because their number shows how far an answer is from its question."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

import celltrain as ct
from celltrain import _core
from celltrain.model.scenario import Reading
from celltrain.running import local

LAN = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="2ms")
BUFFERS = {"port.bottleneck.buffer": [100 + 10 * place for place in range(10)]}


def calls(work: Callable[[], object]) -> Counter[str]:
    """Counts the calls of Python functions on this thread and on threads that it starts, by module and function."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def test_one_more_row_of_a_sweep_takes_at_most_ten_python_calls() -> None:
    def swept(seeds: int) -> Counter[str]:
        return calls(lambda: ct.sweep(LAN, over=BUFFERS, seeds=seeds, jobs=1))

    swept(2)
    few, many = swept(10), swept(210)
    more = {name: (count - few[name]) / 2000 for name, count in many.items() if count > few[name]}
    shown = "\n".join(f"{count:6.2f} {name}" for name, count in sorted(more.items(), key=lambda one: -one[1]))
    assert sum(more.values()) <= 10, shown


def test_a_comparison_and_a_sweep_read_each_scenario_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    before = Reading.of_core

    def of_core(found: tuple[_core.Scenario | None, str]) -> Reading:
        read.append(found)
        return before(found)

    monkeypatch.setattr(Reading, "of_core", of_core)
    monkeypatch.setattr(local, "_core", SimpleNamespace(run_cases=_core.run_cases))
    other = LAN.replace(port={"bottleneck": ct.Port(buffer=90, policy=ct.Epd(threshold=50))})
    ct.compare(LAN, other, names=["one", "other"], seeds=2)
    assert len(read) == 2
    read.clear()
    ct.sweep(LAN, over=BUFFERS, seeds=2, jobs=1)
    assert len(read) == 10
