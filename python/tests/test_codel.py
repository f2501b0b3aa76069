"""CoDel against an independent model of RFC 8289, decision by decision."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from queue_models import CELL, UNITS, Step, steps

import celltrain as ct


class Model:
    """The pseudocode of RFC 8289, section 5. Times are in units of the clock."""

    def __init__(self, target: int, interval: int, maxpacket: int) -> None:
        """Starts with an empty queue."""
        self.target, self.interval, self.maxpacket = target, interval, maxpacket
        self.first_above_time = self.drop_next = self.count = self.lastcount = 0
        self.dropping = False
        self.port = self.dequeue()
        next(self.port)

    def ok_to_drop(self, now: int, sojourn: int, queued: int) -> bool:
        """The part of `dodequeue` after a packet has been taken from the queue."""
        if sojourn < self.target or queued <= self.maxpacket:
            self.first_above_time = 0
            return False
        if self.first_above_time == 0:
            self.first_above_time = now + self.interval
            return False
        return now >= self.first_above_time

    def control_law(self, time: int) -> int:
        """The time of the next drop."""
        return time + int(self.interval / math.sqrt(self.count))

    def dequeue(self) -> Generator[str, tuple[int, int, int], None]:
        """Receives the packet at the head, and yields what happens to the packet."""
        fate = "sent"
        while True:
            packet = yield fate
            now = packet[0]
            ok = self.ok_to_drop(*packet)
            if self.dropping:
                self.dropping = ok
                while self.dropping and now >= self.drop_next:
                    packet = yield "dropped"
                    now = packet[0]
                    self.count += 1
                    self.dropping = self.ok_to_drop(*packet)
                    if self.dropping:
                        self.drop_next = self.control_law(self.drop_next)
            elif ok:
                packet = yield "dropped"
                self.ok_to_drop(*packet)
                self.dropping = True
                delta = self.count - self.lastcount
                is_recent = now - self.drop_next < 16 * self.interval
                self.count = delta if delta > 1 and is_recent else 1
                self.drop_next = self.control_law(now)
                self.lastcount = self.count
            fate = "sent"


def fates(found: list[Step], model: Model) -> Counter[str]:
    """Compares each cell at the head with the model. Returns the numbers of frames sent and dropped."""
    since: dict[tuple[str, int], int] = {}
    cells: Counter[tuple[str, int]] = Counter()
    fate: dict[tuple[str, int], str] = {}
    for step in found:
        if step.event == "admitted":
            since.setdefault(step.frame, step.time)
            cells[step.frame] += 1
        elif step.event in {"departed", "dropped"}:
            if step.frame not in fate:
                queued = (cells.total() - cells[step.frame]) * CELL
                fate[step.frame] = model.port.send((step.time, step.time - since[step.frame], queued))
            cells[step.frame] -= 1
            if not cells[step.frame]:
                del cells[step.frame]
            assert step.event == {"sent": "departed", "dropped": "dropped"}[fate[step.frame]], (step, vars(model))
    return Counter(fate.values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("target", "interval", "seed"), [(500, 5000, 3), (1000, 10_000, 1), (5000, 20_000, 2)])
def test_codel_drops_the_same_frames_as_a_model_of_the_rfc(
    tmp_path: Path, target: int, interval: int, seed: int
) -> None:
    settings = f'target = "{target}us"\ninterval = "{interval}us"'
    found = list(steps(tmp_path, "codel", settings, seed=seed))
    counts = fates(found, Model(target * UNITS // 1_000_000, interval * UNITS // 1_000_000, 1500))
    assert counts["sent"] > 1000
    assert counts["dropped"] > 20


def test_the_event_of_a_codel_drop_contains_the_waiting_time_and_the_target(tmp_path: Path) -> None:
    lan = ct.load("lan-codel", settings={"duration": "400ms"})
    run = ct.run(lan, events=ct.Events(tmp_path, kinds=["frames"]))
    frames = run.events["frames"]
    dropped = frames.filter(pc.equal(frames["event"], "dropped")).to_pylist()
    assert dropped
    assert all(row["waited_s"] >= row["target_s"] == 0.005 for row in dropped)
    port = run.to_dict()["ports"][0]
    assert port["dropped_cells"] > 0
