"""DualPI2 against an independent model of RFC 9332, decision by decision, and in networks."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

import pytest
from conftest import NIGHTLY
from queue_models import UNITS, Step, steps

import celltrain as ct

Frame = tuple[str, int]


@dataclass
class Queue:
    """L or C: its cells, the time at which each frame entered, and the state of its decisions."""

    cells: deque[Frame] = field(default_factory=deque)
    count: float = 0.0
    #: Waiting time of the frame dequeued last, in seconds.
    time: float = 0.0

    def recur(self, likelihood: float) -> bool:
        """Returns true with the given probability."""
        self.count += likelihood
        if self.count > 1:
            self.count -= 1
            return True
        return False


#: A packet of 1,500 bytes with LLC/SNAP header and AAL5 trailer, in cells.
TH_LEN = math.ceil((1500 + 8 + 8) / 48)


class Model:
    """RFC 9332, figures 3 to 8, with the frame as the packet. Times are in seconds, instants in units of the clock."""

    def __init__(self, in_l: set[str], *, target: float, t_update: float, min_th: float, tshift: float) -> None:
        """Starts with empty queues."""
        self.in_l, self.target, self.min_th, self.tshift = in_l, target, min_th, tshift
        self.lq, self.cq = Queue(), Queue()
        self.p_prime = self.prevq = 0.0
        self.next_update = self.step = round(t_update * UNITS)
        self.entered: dict[Frame, int] = {}
        #: The frame of the cell sent last, and the decisions on frames that have begun to leave.
        self.begun: Frame | None = None
        self.acts: dict[Frame, str] = {}

    def queue(self, vc: str) -> Queue:
        """The queue of a VC."""
        return self.lq if vc in self.in_l else self.cq

    def enqueue(self, frame: Frame, now: int) -> None:
        """A cell enters."""
        self.queue(frame[0]).cells.append(frame)
        self.entered.setdefault(frame, now)

    def scheduler(self) -> Queue:
        """The queue to serve."""
        heads = {id(queue): queue.cells[0] for queue in (self.lq, self.cq) if queue.cells}
        for queue in (self.lq, self.cq):
            if queue.cells and (len(heads) == 1 or heads[id(queue)] == self.begun):
                return queue
        l_entered, c_entered = (self.entered[queue.cells[0]] for queue in (self.lq, self.cq))
        return self.cq if c_entered < l_entered - round(self.tshift * UNITS) else self.lq

    def dequeue(self, now: int) -> Frame:
        """Takes the next cell from its queue, and decides about its frame if it is the first cell."""
        while self.next_update <= now:
            self.update()
            self.next_update += self.step
        queue = self.scheduler()
        frame = self.begun = queue.cells.popleft()
        if frame not in self.acts:
            queue.time = (now - self.entered[frame]) / UNITS
            others = sum(other != frame for other in queue.cells)
            self.acts[frame] = self.decide_l(queue, others) if queue is self.lq else self.decide_c(queue)
        if not queue.cells:
            queue.time = 0.0
        return frame

    def decide_l(self, queue: Queue, behind: int) -> str:
        """Lines 5 to 18 of figure 8."""
        p_cl, p_c = min(2 * self.p_prime, 1.0), self.p_prime**2
        if p_cl < 1:
            native = self.laqm(queue.time) if behind > TH_LEN else 0.0
            return "mark" if queue.recur(max(native, p_cl)) else "send"
        if queue.recur(p_c):
            return "drop"
        return "mark" if queue.recur(p_cl) else "send"

    def decide_c(self, queue: Queue) -> str:
        """Lines 19 to 28 of figure 8."""
        p_c = self.p_prime**2
        if not queue.recur(p_c):
            return "send"
        return "drop" if p_c >= 0.25 else "mark"

    def laqm(self, qdelay: float) -> float:
        """The ramp of L, which is half as wide as its start."""
        return min(max((qdelay - self.min_th) / (self.min_th / 2), 0.0), 1.0)

    def update(self) -> None:
        """The timer's action."""
        curq = max(self.lq.time, self.cq.time)
        self.p_prime += 0.15 * (curq - self.target) + 3.0 * (curq - self.prevq)
        self.p_prime = min(max(self.p_prime, 0.0), 1.0)
        self.prevq = curq


def follow(found: list[Step], model: Model, incapable: Collection[str]) -> Counter[str]:
    """Compares each cell that leaves with the model. Returns the number of decisions by queue and kind."""
    decisions: Counter[str] = Counter()
    marked = {step.frame for step in found if step.event == "marked"}
    for step in found:
        if step.event == "admitted":
            model.enqueue(step.frame, step.time)
        elif step.event in ("departed", "dropped"):
            is_new = step.frame not in model.acts
            assert model.dequeue(step.time) == step.frame, step
            act = model.acts[step.frame]
            # Retransmissions and UDP packets are not ECN-capable.
            allowed = {"send": ["departed"], "mark": ["departed", "dropped"], "drop": ["dropped"]}[act]
            assert step.event in allowed, (step, act)
            if step.frame in marked:
                assert act == "mark", step
            if step.frame[0] in incapable and act == "mark":
                assert step.event == "dropped", step
            if is_new:
                decisions[f"{'l' if model.queue(step.frame[0]) is model.lq else 'c'} {act}"] += 1
    return decisions


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("udp", "target", "expected"),
    [
        ({"tcp4": "5Mbps"}, 2000, {"l send", "l mark", "c send", "c mark"}),
        ({"tcp1": "10Mbps", "tcp4": "42Mbps"}, 500, {"l mark", "l drop", "c send", "c drop"}),
        ({"tcp1": "5Mbps"}, 1000, {"l send", "l mark", "c send", "c mark"}),
    ],
)
def test_dualpi2_serves_marks_and_drops_the_same_frames_as_a_model_of_the_rfc(
    tmp_path: Path, udp: dict[str, str], target: int, expected: set[str]
) -> None:
    settings = f'l4s = {{ tcp1-2 = 1, default = 0 }}\ntarget = "{target}us"\nt_update = "{target}us"\n'
    settings += f'min_th = "{target // 2}us"\nrange = "{target // 4}us"\ntshift = "{2 * target}us"\n'
    flows = 'ecn = "on"\n'
    for name, rate in udp.items():
        flows += f'[flow.{name}.traffic.constant_rate]\nrate = "{rate}"\npacket = "512B"\n'
    flows += '[flow.tcp2.tcp.newreno]\necn = "on"\ncongestion = "dctcp"\n'
    seconds = target / 1e6
    model = Model({"tcp1", "tcp2"}, target=seconds, t_update=seconds, min_th=seconds / 2, tshift=2 * seconds)
    duration = "2s" if NIGHTLY else "700ms"
    found = list(steps(tmp_path, "dualpi2", settings, seed=7, duration=duration, flows=flows))
    decisions = follow(found, model, udp)
    assert sum(decisions.values()) > 1000
    assert expected <= {kind for kind, number in decisions.items() if number > 10}, decisions


@pytest.mark.nightly
def test_in_dualpi2_overload_the_classic_loss_ratio_is_the_square_of_half_the_l4s_ratio(tmp_path: Path) -> None:
    """The coupling of RFC 9332, 2.1, in whole runs with 30 seeds. UDP packets are dropped where others are marked."""
    scenario = tmp_path / "overload.toml"
    scenario.write_text(
        'duration = "20s"\nmeasure.from = "10s"\nhost.start_spread = "50ms"\n'
        '[topology.n_source]\nsources = 3\nlink_rate = "50Mbps"\nlink_delay = "1ms"\n'
        '[flow.tcp1.traffic.constant_rate]\nrate = "2Mbps"\npacket = "1000B"\n'
        '[flow.tcp2-3.traffic.constant_rate]\nrate = "28Mbps"\npacket = "1000B"\n'
        "[port.bottleneck]\nbuffer = 20000\npolicy.dualpi2.l4s = { tcp1 = 1, default = 0 }\n"
    )

    def lost(flows: list[dict[str, int]]) -> float:
        return 1 - sum(flow["packets_delivered"] for flow in flows) / sum(flow["packets_sent"] for flow in flows)

    runs = [ct.run(scenario, seed=seed).to_dict()["flows"] for seed in range(1, 31)]
    differences = [lost(rest) - (lost([first]) / 2) ** 2 for first, *rest in runs]
    assert min(lost(rest) for _, *rest in runs) > 0.1
    half = 2.045 * stdev(differences) / math.sqrt(len(differences))
    assert abs(mean(differences)) <= half < 0.001


def test_dualpi2_gives_dctcp_and_newreno_similar_rates_and_a_short_delay_to_dctcp() -> None:
    result = ct.run(ct.load("lan-dualpi2")).to_dict()
    rates = [flow["goodput_mbps"] for flow in result["flows"]]
    ratio = sum(rates[:2]) / sum(rates[2:])
    assert 0.5 < ratio < 2, rates


def test_the_events_of_dualpi2_contain_the_coupled_marking_and_drop_probabilities(tmp_path: Path) -> None:
    run = ct.run(ct.load("lan-dualpi2"), events=ct.Events(tmp_path, kinds=["frames"]))
    table = run.events["frames"]
    columns = [table[name].to_pylist() for name in ("time_s", "reason", "drop_probability")]
    found: dict[str, dict[int, float]] = {"k times": {}, "square": {}}
    for time_s, reason, probability in zip(*columns, strict=True):
        for words, by_update in found.items():
            if words in (reason or "") and probability is not None:
                by_update[int(time_s / 0.015)] = probability
    p_cl, p_c = found.values()
    both = p_cl.keys() & p_c.keys()
    assert len(both) > 20
    for update in both:
        assert p_c[update] == pytest.approx((p_cl[update] / 2) ** 2)
