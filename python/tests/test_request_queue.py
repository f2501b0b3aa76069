"""Waiting times of requests at one link, compared with queueing theory.

Each request fits into its initial window and waits only at its host's link, which serves requests in their order.
"""

from __future__ import annotations

import numpy as np
import pytest

import celltrain as ct

SCENARIO = """
duration = "40ms"
seed = 5
topology.leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 2, host_rate = "1Gbps", host_delay = "1us" }
tcp.newreno = { mss = "500B", initial_window = 10 }
port.default = { buffer = 100_000, policy.ppd = {} }

[requests.web]
load = 0.8
sizes = SIZES
sources = ["host1"]
destinations = ["host2"]
handshake = false
"""
SEGMENT_S = 12 * 53 * 8 / 1e9
"""Time of a segment on the link: 500 bytes take 12 cells with their headers and trailer."""


@pytest.fixture(params=['"500B"', "[[500, 0.5], [5000, 1]]"], ids=["M/D/1", "M/G/1"])
def requests(request, tmp_path):
    (tmp_path / "web.toml").write_text(SCENARIO.replace("SIZES", request.param))
    done = ct.run(tmp_path / "web.toml").requests.to_pandas()
    return done[done.completed_s.notna()].sort_values("opened_s")


def test_every_request_waits_as_long_as_lindleys_recursion_says(requests):
    service = requests.segments_sent.to_numpy() * SEGMENT_S
    opened = requests.opened_s.to_numpy()
    waiting = np.zeros(len(requests))
    for i in range(1, len(requests)):
        waiting[i] = max(0, waiting[i - 1] + service[i - 1] - (opened[i] - opened[i - 1]))
    rest = requests.completed_s.to_numpy() - opened - waiting - service
    # The switch sends the last segment again after it has arrived, and each of the two links has a delay of 1 us.
    assert rest == pytest.approx(np.full(len(requests), rest[0]), abs=1e-12)
    assert waiting.max() > 10 * SEGMENT_S
