"""PIE against an independent model of RFC 8033, decision by decision."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, stdev

import pytest
from queue_models import CELL, UNITS, Draws, refusals, steps

import celltrain as ct

_SCALES = [(0.000001, 2048), (0.00001, 512), (0.0001, 128), (0.001, 32), (0.01, 8), (0.1, 2)]


class Model:
    """The pseudocode of RFC 8033 and its options. Delays are in seconds, instants in units of the clock."""

    def __init__(self, draws: Draws, *, qdelay_ref: float, t_update: float, max_burst: float, **options: bool) -> None:
        """Starts with an empty queue."""
        self.draws, self.options = draws, options
        self.qdelay_ref, self.t_update, self.max_burst = qdelay_ref, t_update, max_burst
        self.drop_prob = self.qdelay_old = self.current_qdelay = self.accu_prob = self.avg_dq_time = 0.0
        self.burst_allowance = 0
        self.queued = 0
        self.start: int | None = None
        self.dq_count = 0
        self.next_update = self.step = round(t_update * UNITS)

    def update(self, now: int) -> None:
        """Makes the updates of the timer up to `now`."""
        while self.next_update <= now:
            self.calculate_drop_prob()
            self.next_update += self.step

    def calculate_drop_prob(self) -> None:
        """The timer's action."""
        if self.options.get("dequeue_rate_estimation"):
            self.current_qdelay = self.queued * CELL * self.avg_dq_time / 16_384
        p = 0.125 * (self.current_qdelay - self.qdelay_ref) + 1.25 * (self.current_qdelay - self.qdelay_old)
        for limit, divisor in _SCALES:
            if self.drop_prob < limit:
                p /= divisor
                break
        if self.options.get("cap_drop_adjustment") and self.drop_prob >= 0.1 and p > 0.02:
            p = 0.02
        self.drop_prob += p
        if self.current_qdelay == 0 and self.qdelay_old == 0:
            self.drop_prob *= 0.98
        self.drop_prob = min(max(self.drop_prob, 0.0), 1.0)
        self.qdelay_old = self.current_qdelay
        self.burst_allowance = max(0, self.burst_allowance - self.step)

    def arrive(self, now: int) -> bool:
        """A packet arrives. Returns whether the packet is dropped."""
        self.update(now)
        drops = self.burst_allowance == 0 and self.drop_early()
        if drops:
            self.accu_prob = 0.0
        half = self.qdelay_ref / 2
        if self.drop_prob == 0 and self.current_qdelay < half and self.qdelay_old < half:
            self.burst_allowance = round(self.max_burst * UNITS)
        return drops

    def drop_early(self) -> bool:
        """The random decision."""
        if self.qdelay_old < self.qdelay_ref / 2 and self.drop_prob < 0.2:
            return False
        if self.queued * CELL <= 2 * 1024:
            return False
        if self.options.get("derandomization"):
            if self.drop_prob == 0:
                self.accu_prob = 0.0
            self.accu_prob += self.drop_prob
            if self.accu_prob < 0.85:
                return False
            if self.accu_prob >= 8.5:
                return True
        return self.draws.unit() < self.drop_prob

    def enter(self, now: int) -> None:
        """A cell enters the queue."""
        self.update(now)
        self.queued += 1

    def dequeue(self, now: int, sojourn: int) -> None:
        """A packet leaves the queue."""
        self.update(now)
        if not self.options.get("dequeue_rate_estimation"):
            self.current_qdelay = sojourn / UNITS

    def leave(self, now: int) -> None:
        """A cell leaves the queue."""
        self.update(now)
        self.queued -= 1
        if not self.options.get("dequeue_rate_estimation"):
            if self.queued == 0:
                self.current_qdelay = 0.0
            return
        if self.start is not None:
            self.dq_count += CELL
            if self.dq_count >= 16_384:
                dq_time = (now - self.start) / UNITS
                weight = 16_384 / 65_536
                is_first = self.avg_dq_time == 0
                self.avg_dq_time = dq_time if is_first else dq_time * weight + self.avg_dq_time * (1 - weight)
                self.start = None
        if self.start is None and self.queued * CELL >= 16_384:
            self.start, self.dq_count = now, 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options", [("cap_drop_adjustment", "derandomization"), (), ("derandomization",), ("dequeue_rate_estimation",)]
)
def test_pie_refuses_the_same_frames_as_a_model_of_the_rfc(tmp_path: Path, options: tuple[str, ...]) -> None:
    settings = 'qdelay_ref = "2ms"\nt_update = "2ms"\nmax_burst = "20ms"\n'
    settings += "".join(f"{option} = true\n" for option in options)
    draws = Draws(5, "port/sw1->sw2/policy")
    model = Model(draws, qdelay_ref=0.002, t_update=0.002, max_burst=0.02, **dict.fromkeys(options, True))
    frames, refused = refusals(steps(tmp_path, "pie", settings, seed=5, duration="1s"), model)
    assert frames > 1000
    assert refused > 20


@pytest.mark.nightly
def test_pie_settles_at_its_target_and_drops_the_excess_over_the_link_rate(tmp_path: Path) -> None:
    """The fixed point under constant overload: 1 - 50 / 60, and QDELAY_REF (RFC 8033, 4.2), from 30 seeds."""
    scenario = tmp_path / "overload.toml"
    scenario.write_text(
        'duration = "20s"\nmeasure.from = "10s"\nhost.start_spread = "50ms"\n'
        '[topology.n_source]\nsources = 3\nlink_rate = "50Mbps"\nlink_delay = "1ms"\n'
        '[flow.tcp1-3.traffic.constant_rate]\nrate = "20Mbps"\npacket = "1000B"\n'
        "[port.bottleneck]\nbuffer = 20000\n[port.bottleneck.policy.pie]\n"
    )
    ports = [ct.run(scenario, seed=seed, delays=True).ports.to_pylist()[0] for seed in range(1, 31)]
    drops = [port["discarded_frame_cells"] / port["offered_cells"] for port in ports]
    delays = [port["delay_ms_mean"] for port in ports]

    def half(values: list[float]) -> float:
        return float(2.045 * stdev(values) / math.sqrt(len(values)))

    assert abs(mean(drops) - 1 / 6) <= half(drops)
    # A packet waits for its own 22 cells too, 0.19 ms, which the queue does not contain when the packet arrives.
    assert 15 - half(delays) <= mean(delays) <= 15.19 + half(delays)
