"""The independent models of CoDel, FQ-CoDel and PIE against ns-3, drop by drop, with the same arrivals.

`data/ns3_queues.csv` was written by `peers/queue_discs_ns3.cc`. The models are those that predict celltrain's decisions in
`test_codel.py`, `test_fq_codel.py` and `test_pie.py`. Times are in nanoseconds.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import test_codel
import test_fq_codel
import test_pie

_FACTS = Path(__file__).parent / "data" / "ns3_queues.csv"
_ARRIVALS, _BYTES, _INTERVAL, _SERVICE = 1000, 1500, 1_000_003, 1_250_007
_PATTERN = "001002"
_TARGET, _CODEL_INTERVAL = 5_000_000, 100_000_000


def facts(disc: str, what: str) -> list[str]:
    """Returns the values of one kind that ns-3 wrote about a queue discipline."""
    with _FACTS.open() as file:
        return [value for found, kind, value in csv.reader(file) if (found, kind) == (disc, what)]


def drops(disc: str) -> list[int]:
    """The packets that ns-3 dropped, in order."""
    return [int(number) for number in facts(disc, "dropped")]


def run(arrive: Callable[[int, int], None], send: Callable[[int], bool]) -> None:
    """Runs a link. `arrive` gets the number of a packet and the time; `send` returns whether a packet is sent."""
    free_at: int | None = None
    for number in range(_ARRIVALS):
        now = number * _INTERVAL
        while free_at is not None and free_at < now:
            free_at = free_at + _SERVICE if send(free_at) else None
        arrive(number, now)
        if free_at is None:
            free_at = now + _SERVICE if send(now) else None
    while free_at is not None and free_at < _ARRIVALS * _INTERVAL:
        free_at = free_at + _SERVICE if send(free_at) else None


class Rounded:
    """CoDel with the arithmetic of ns-3 (and of Linux): units of 1,024 ns, and one step of Newton's method per drop.

    RFC 8289, section 5.5, has `control_law(t, count) = t + INTERVAL / sqrt(count)`. The first step from a count of 1 to 2
    gives 0.5 instead of 0.71. ns-3 also compares with `first_above_time` by > instead of >=, and with MAXPACKET by <.
    """

    def __init__(self, target: int, interval: int, maxpacket: int) -> None:
        """Starts with an empty queue."""
        self._model = _Newton(target >> 10, interval >> 10, maxpacket - 1)
        self.port = self

    def send(self, packet: tuple[int, int, int]) -> str:
        """Receives the packet at the head, and returns what happens to the packet."""
        now, sojourn, queued = packet
        return self._model.port.send((now >> 10, sojourn >> 10, queued))


class _Newton(test_codel.Model):
    inverse, known = 0xFFFF, 0

    def ok_to_drop(self, now: int, sojourn: int, queued: int) -> bool:
        return super().ok_to_drop(now, sojourn, queued) and now > self.first_above_time

    def control_law(self, time: int) -> int:
        if self.count != self.known:
            self.inverse = 0xFFFF if self.count == 1 else self._step()
            self.known = self.count
        return time + (self.interval * (self.inverse << 16) >> 32)

    def _step(self) -> int:
        inverse = self.inverse << 16
        value = (3 << 32) - self.count * (inverse * inverse >> 32)
        return (value >> 2) * inverse >> 31 >> 16


def codel_drops(model: test_codel.Model | Rounded) -> list[int]:
    """The packets that CoDel drops at a single queue."""
    queue: deque[tuple[int, int]] = deque()
    dropped = []

    def send(now: int) -> bool:
        while queue:
            number, arrival = queue.popleft()
            if model.port.send((now, now - arrival, len(queue) * _BYTES)) == "sent":
                return True
            dropped.append(number)
        return False

    run(lambda number, now: queue.append((number, now)), send)
    return dropped


def test_codel_drops_the_packets_that_ns_3_drops_with_the_arithmetic_of_ns_3() -> None:
    assert codel_drops(Rounded(_TARGET, _CODEL_INTERVAL, _BYTES)) == drops("codel")


def test_codel_with_exact_square_roots_drops_later_than_ns_3_but_about_as_many_packets() -> None:
    exact, found = codel_drops(test_codel.Model(_TARGET, _CODEL_INTERVAL, _BYTES)), drops("codel")
    assert abs(exact[0] - found[0]) <= 1
    assert all(0 <= ours - theirs <= 25 for ours, theirs in zip(exact[2:], found[2:], strict=False))
    assert len(found) - 3 <= len(exact) < len(found)


def test_fq_codel_drops_the_packets_of_each_flow_that_ns_3_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_codel, "Model", Rounded)
    monkeypatch.setattr(test_fq_codel, "CELL", _BYTES)
    monkeypatch.setattr(test_fq_codel, "CELL_TIME", _SERVICE)
    model = test_fq_codel.Model(_TARGET, _CODEL_INTERVAL, 1514, _ARRIVALS)
    dropped = []

    def arrive(number: int, now: int) -> None:
        model.settle(now)
        model.enqueue(_PATTERN[number % len(_PATTERN)], number, now)

    def send(now: int) -> bool:
        model.settle(now)
        while model.waiting():
            _, number, fate = model.dequeue(now)
            if fate == "departed":
                return True
            dropped.append(number)
        return False

    run(arrive, send)
    assert dropped == drops("fq_codel")


class _Draws:
    def __init__(self, numbers: Iterator[str]) -> None:
        self._numbers = numbers

    def unit(self) -> float:
        return float(next(self._numbers))


def test_pie_drops_the_packets_that_ns_3_drops_given_its_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_pie, "UNITS", 10**9)
    # In ns-3, the mean size is the size of a packet, so PIE drops nothing while two packets wait.
    monkeypatch.setattr(test_pie, "CELL", 1024)
    draws = _Draws(iter(facts("pie", "draw")))
    model = test_pie.Model(draws, qdelay_ref=0.015, t_update=0.015, max_burst=0.0)  # type: ignore[arg-type]
    queue: deque[tuple[int, int]] = deque()
    dropped = []

    def arrive(number: int, now: int) -> None:
        if model.arrive(now):
            dropped.append(number)
            return
        queue.append((number, now))
        model.enter(now)

    def send(now: int) -> bool:
        if not queue:
            return False
        _, arrival = queue.popleft()
        model.dequeue(now, now - arrival)
        model.leave(now)
        return True

    run(arrive, send)
    assert dropped == drops("pie")
