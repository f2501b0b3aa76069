"""FQ-CoDel against an independent model of RFC 8290, cell by cell."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from pathlib import Path

import pytest
import test_codel
from queue_models import CELL, UNITS, Step, steps

import celltrain as ct

#: Time of a cell in units of the clock.
CELL_TIME = 2


class Queue:
    """The cells of a VC as pairs of frame and arrival, and the state of CoDel."""

    def __init__(self, target: int, interval: int) -> None:
        """Starts empty."""
        self.cells: deque[tuple[int, int]] = deque()
        self.codel = test_codel.Model(target, interval, 1500)
        self.credits = 0
        #: The frame that has begun to leave, and its fate.
        self.begun: int | None = None
        self.fate = ""


class Model:
    """RFC 8290, section 4, with the frame as the packet. `quantum` is in bytes, times are in units."""

    def __init__(self, target: int, interval: int, quantum: int, limit: int) -> None:
        """Starts with no queue."""
        self.queues: dict[str, Queue] = defaultdict(lambda: Queue(target, interval))
        self.quantum, self.limit = quantum, limit
        self.new: deque[str] = deque()
        self.old: deque[str] = deque()
        self.free_at = 0

    def waiting(self) -> int:
        """The number of cells in all queues."""
        return sum(len(queue.cells) for queue in self.queues.values())

    def settle(self, now: int) -> None:
        """If the link has become free before `now` and found nothing, the lists are empty."""
        if self.free_at < now and not self.waiting():
            self.new.clear()
            self.old.clear()

    def enqueue(self, vc: str, frame: int, now: int) -> None:
        """A cell enters (section 4.1)."""
        self.queues[vc].cells.append((frame, now))
        if vc not in self.new and vc not in self.old:
            self.queues[vc].credits = self.quantum
            self.new.append(vc)

    def pushed_out(self) -> list[tuple[str, int]]:
        """The cells that the longest queue loses (section 4.1)."""
        vc = max(sorted(self.queues), key=lambda name: len(self.queues[name].cells))
        queue = self.queues[vc]
        frames = list(dict.fromkeys(frame for frame, _ in queue.cells if frame != queue.begun))
        lost = frames[: min(64, (len(frames) + 1) // 2)]
        gone = [(vc, frame) for frame, _ in queue.cells if frame in lost]
        queue.cells = deque(cell for cell in queue.cells if cell[0] not in lost)
        return gone

    def dequeue(self, now: int) -> tuple[str, int, str]:
        """Returns the next cell at the head, and its fate (section 4.2)."""
        while True:
            names = self.new or self.old
            queue = self.queues[vc := names[0]]
            continues = bool(queue.cells) and queue.cells[0][0] == queue.begun
            if queue.credits <= 0 and not continues:
                queue.credits += self.quantum
                self.old.append(names.popleft())
            elif not queue.cells:
                names.popleft()
                if names is self.new:
                    self.old.append(vc)
            else:
                break
        frame, arrival = queue.cells.popleft()
        if frame != queue.begun:
            behind = sum(other != frame for other, _ in queue.cells)
            queue.begun = frame
            queue.fate = queue.codel.port.send((now, now - arrival, behind * CELL))
        if queue.fate == "sent":
            queue.credits -= CELL
            self.free_at = now + CELL_TIME
        return vc, frame, {"sent": "departed", "dropped": "dropped"}[queue.fate]


def follow(found: list[Step], model: Model) -> Counter[str]:
    """Compares each cell that leaves a queue with the model. Returns the number of cells by event."""
    removed: deque[tuple[str, int]] = deque()
    events: Counter[str] = Counter()
    for step in found:
        events[step.event] += 1
        model.settle(step.time)
        match step.event:
            case "admitted":
                assert not removed
                model.enqueue(*step.frame, step.time)
                assert model.waiting() <= model.limit
            case "pushed_out":
                if not removed:
                    assert model.waiting() == model.limit
                    removed.extend(model.pushed_out())
                assert step.frame == removed.popleft(), step
            case "departed" | "dropped":
                assert (*step.frame, step.event) == model.dequeue(step.time), step
    return events


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("target", "interval", "quantum", "buffer", "seed"),
    [(5000, 20_000, 300, 2000, 2), (500, 5000, 4000, 400, 3), (1000, 10_000, 1514, 100_000, 1)],
)
def test_fq_codel_sends_and_drops_and_pushes_out_the_same_cells_as_a_model_of_the_rfc(
    tmp_path: Path, target: int, interval: int, quantum: int, buffer: int, seed: int
) -> None:
    settings = f'target = "{target}us"\ninterval = "{interval}us"\nquantum = "{quantum}B"'
    flows = '[flow.tcp4.traffic.constant_rate]\nrate = "20Mbps"\npacket = "512B"\n'
    found = list(steps(tmp_path, "fq_codel", settings, seed=seed, buffer=buffer, flows=flows))
    limits = (target * UNITS // 1_000_000, interval * UNITS // 1_000_000)
    events = follow(found, Model(*limits, quantum, buffer))
    assert events["departed"] > 10_000
    assert events["dropped"] > 100
    assert (events["pushed_out"] > 100) == (buffer <= 2000)


def test_fq_codel_gives_each_tcp_flow_a_fair_share_despite_unresponsive_udp_traffic() -> None:
    flows = ct.run(ct.load("lan-fq-codel")).to_dict()["flows"]
    # A fifth of the link is 31.1 Mb/s with headers.
    assert min(flow["goodput_mbps"] for flow in flows[:4]) > 20
