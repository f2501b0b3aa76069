"""RED against an independent model of its papers, decision by decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from queue_models import UNITS, Draws, refusals, steps


class Model:
    """The algorithm of Floyd and Jacobson (1993), with the gentle and adaptive variants. The queue is in cells."""

    def __init__(self, draws: Draws, *, gentle: bool, adaptive: bool) -> None:
        """Starts with an empty queue."""
        self.draws, self.gentle, self.adaptive = draws, gentle, adaptive
        self.min_th, self.max_th, self.max_p, self.w_q = 50.0, 150.0, 0.02, 0.002
        self.avg, self.count, self.q, self.q_time = 0.0, -1, 0, 0
        self.s = 512 * 8 / 42.4e6 * UNITS
        self.next_adaptation = self.step = UNITS // 10

    def adapt(self, now: int) -> None:
        """Adapts max_p at each interval up to `now`."""
        low = self.min_th + 0.4 * (self.max_th - self.min_th)
        high = self.min_th + 0.6 * (self.max_th - self.min_th)
        while self.next_adaptation <= now:
            if self.avg > high and self.max_p <= 0.5:
                self.max_p += min(0.01, self.max_p / 4)
            elif self.avg < low and self.max_p >= 0.01:
                self.max_p *= 0.9
            self.next_adaptation += self.step

    def arrive(self, now: int) -> bool:
        """A packet arrives. Returns whether the packet is dropped."""
        if self.adaptive:
            self.adapt(now)
        if self.q > 0:
            self.avg += self.w_q * (self.q - self.avg)
        else:
            self.avg *= (1 - self.w_q) ** ((now - self.q_time) / self.s)
        if self.avg < self.min_th:
            self.count = -1
            return False
        self.count += 1
        if self.avg < self.max_th:
            p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
        elif self.gentle and self.avg < 2 * self.max_th:
            p_b = self.max_p + (1 - self.max_p) * (self.avg - self.max_th) / self.max_th
        else:
            p_b = 1.0
        if p_b < 1 - self.count * p_b:
            p_a = p_b / (1 - self.count * p_b)
            drops = p_a > 0 and self.draws.unit() < p_a
        else:
            drops = True
        if drops:
            self.count = 0
        return drops

    def enter(self, now: int) -> None:
        """A cell enters the queue."""
        self.q += 1

    def dequeue(self, now: int, sojourn: int) -> None:
        """A packet leaves the queue."""

    def leave(self, now: int) -> None:
        """A cell leaves the queue."""
        self.q -= 1
        if self.q == 0:
            self.q_time = now


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("gentle", "adaptive"), [(False, False), (True, False), (False, True)])
def test_red_refuses_the_same_frames_as_a_model_of_the_papers(tmp_path: Path, gentle: bool, adaptive: bool) -> None:
    settings = 'min_th = 50\nmax_th = "150 cells"\ninterval = "100ms"\n'
    settings += f"gentle = {str(gentle).lower()}\nadaptive = {str(adaptive).lower()}"
    model = Model(Draws(7, "port/sw1->sw2/policy"), gentle=gentle, adaptive=adaptive)
    frames, refused = refusals(steps(tmp_path, "red", settings, seed=7, duration="1s"), model)
    assert frames > 1000
    assert refused > 20
