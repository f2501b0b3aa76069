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


def test_waiting_times_of_requests_match_lindleys_recursion(requests):
    service = requests.segments_sent.to_numpy() * SEGMENT_S
    opened = requests.opened_s.to_numpy()
    waiting = np.zeros(len(requests))
    for i in range(1, len(requests)):
        waiting[i] = max(0, waiting[i - 1] + service[i - 1] - (opened[i] - opened[i - 1]))
    rest = requests.completed_s.to_numpy() - opened - waiting - service
    # The switch sends the last segment again after the segment has arrived, and each of the two links has a delay of 1
    # us.
    assert rest == pytest.approx(np.full(len(requests), rest[0]), abs=1e-12)
    assert waiting.max() > 10 * SEGMENT_S


def test_the_delays_measured_at_a_port_equal_the_waiting_times_of_lindleys_recursion(tmp_path):
    (tmp_path / "web.toml").write_text(SCENARIO.replace("SIZES", '"500B"').replace("40ms", "200ms"))
    result = ct.run(tmp_path / "web.toml", delays=True)
    opened = np.sort(result.requests.to_pandas().opened_s.to_numpy())
    waiting = np.zeros(len(opened))
    for i in range(1, len(opened)):
        waiting[i] = max(0, waiting[i - 1] + SEGMENT_S - (opened[i] - opened[i - 1]))
    # The last of twelve cells also waits for the eleven cells before it.
    delays = (waiting + SEGMENT_S * 11 / 12)[opened + waiting + SEGMENT_S * 11 / 12 <= 0.2] * 1e3
    [port] = [row for row in result.ports.to_pylist() if row["name"] == "host1->leaf1"]
    found = [port[f"delay_ms_{name}"] for name in ("mean", "p50", "p95", "p99", "p999")]
    exact = [np.quantile(delays, share, method="inverted_cdf") for share in (0.5, 0.95, 0.99, 0.999)]
    assert found == pytest.approx([delays.mean(), *exact], abs=1e-9)
    # M/D/1: the mean wait is rho D / (2 (1 - rho)), with the load rho that was drawn.
    load = len(opened) * SEGMENT_S / 0.2
    theory = load * SEGMENT_S / (2 * (1 - load))
    assert found[0] / 1e3 - SEGMENT_S * 11 / 12 == pytest.approx(theory, rel=0.2)


def test_packet_delays_are_measured_and_become_columns_only_on_request(tmp_path):
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=300, policy=ct.Ppd(), duration="20ms")
    plain, measured = ct.run(lan), ct.run(lan, delays=True)
    assert not [name for name in plain.ports.column_names + plain.flows.column_names if name.startswith("rtt_ms")]
    assert "delay_ms_p99" in measured.ports.column_names and "jitter_ms" in measured.flows.column_names
    assert plain.fingerprint == measured.fingerprint
    ct.compare(lan, seeds=2, measures=["flows.mean(*).rtt_ms_p99", "ports.bottleneck.delay_ms_p99"])


def test_each_scheduler_queue_has_a_row_of_delays_if_delays_are_requested(tmp_path):
    (tmp_path / "lan.toml").write_text("""
duration = "20ms"
topology.n_source = { sources = 2, link_delay = "5us" }
tcp.newreno = {}
port.bottleneck = { buffer = 300, policy.ppd = {}, scheduler.round_robin = {} }
""")
    plain, measured = ct.run(tmp_path / "lan.toml"), ct.run(tmp_path / "lan.toml", delays=True)
    assert plain.queues.num_rows == 0
    rows = {row["name"]: row for row in measured.queues.to_pylist()}
    assert list(rows) == ["sw1->sw2/tcp1", "sw1->sw2/tcp2"]
    [port] = [row for row in measured.ports.to_pylist() if row["name"] == "sw1->sw2"]
    means = [row["delay_ms_mean"] for row in rows.values()]
    assert min(means) <= port["delay_ms_mean"] <= max(means)
    ct.compare(tmp_path / "lan.toml", seeds=2, measures=["queues.sw1->sw2/tcp1.delay_ms_p99"])
