"""Explicit congestion notification: marks at ports and memories, TCPs that react, DCTCP against its published theory."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import NIGHTLY

import celltrain as ct

#: Number of bits in a packet, which is one cell, and number of packets in a round trip without a queue.
PACKET = 12_000
BANDWIDTH_DELAY = 1e10 * 100e-6 / PACKET


def scenario(
    sources: int = 2, k: Any = "65 cells", seed: int = 1, tcp: dict[str, Any] | None = None, **port: Any
) -> ct.Scenario:
    options = {
        "mss": "1460B",
        "receive_window": "4MB",
        "timer_granularity": "1ms",
        "minimum_rto": 10,
        "timer": {"initial_rto": "1s"},
        "ecn": "on",
        "congestion": "dctcp",
        "windows": {"growth": "capped"},
    }
    return ct.Scenario.model_validate(
        {
            "duration": "300ms",
            "seed": seed,
            "cell": {"size": "1500B"},
            "topology": {"n_source": {"sources": sources, "link_rate": "10Gbps", "link_delay": "15466ns"}},
            "tcp": {"newreno": options | (tcp or {})},
            "host": {"start_spread": "1ms"},
            "port": {"bottleneck": {"buffer": 4000, "policy": {"tail_drop": {}}, "marking": {"k_min": k}, **port}},
        }
    )


def queue(network: ct.Scenario) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the queue every 5 us from 0.1 s on, with its smallest and largest lengths since the previous sample."""
    table = ct.run(network, trace="queue", step="5us", ports="bottleneck").series["queue"].to_pandas()
    table = table[table.time_s > 0.1]
    return tuple(table[f"queue_cells{which}"].to_numpy() for which in ("", "_least", "_largest"))


def amplitude(network: ct.Scenario) -> float:
    """Returns the mean amplitude (largest minus smallest queue) of the cycles between upward crossings of the mean."""
    length, least, largest = queue(network)
    mean = length.mean()
    starts = np.flatnonzero((length[:-1] < mean) & (length[1:] >= mean))
    cycles = [(a, b) for a, b in itertools.pairwise(starts) if b - a >= 8]
    return float(np.mean([largest[a:b].max() - least[a:b].min() for a, b in cycles]))


def published_amplitude(sources: int, k: int) -> float:
    """Alizadeh and others (2010), equations 4 to 8, with an exact solution for alpha: N (W* + 1) alpha / 2."""
    from scipy.optimize import brentq

    window = (BANDWIDTH_DELAY + k) / sources
    marked = (2 * window + 1) / (window + 1) ** 2
    alpha = float(brentq(lambda alpha: alpha**2 * (1 - alpha / 4) - marked, 0, 2))
    return sources * (window + 1) * alpha / 2


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("k", [40, 65])
@pytest.mark.parametrize("sources", [40, 10])
def test_the_queue_under_dctcp_oscillates_as_in_the_published_analysis(sources: int, k: int) -> None:
    measured = np.mean(
        [amplitude(scenario(sources, f"{k} cells", seed=seed)) for seed in ((1, 2) if NIGHTLY else (1,))]
    )
    assert measured == pytest.approx(published_amplitude(sources, k), rel=0.10)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("gain", "share"), [(0.0625, 0.76), (0.015625, 0.84)])
@pytest.mark.parametrize("k", [40, 65])
def test_the_queue_of_two_dctcp_connections_oscillates_less_than_predicted_because_their_alpha_varies(
    k: int, gain: float, share: float
) -> None:
    networks = [
        scenario(2, f"{k} cells", seed=seed, tcp={"windows": {"growth": "capped", "dctcp_gain": gain}})
        for seed in (1, 2)
    ]
    measured = np.mean([amplitude(network) for network in networks])
    assert measured == pytest.approx(share * published_amplitude(2, k), rel=0.06)


def test_a_dctcp_marking_threshold_of_a_seventh_of_the_bandwidth_delay_product_keeps_the_link_busy() -> None:
    assert queue(scenario(2, k="12 cells"))[1].min() > 0
    assert queue(scenario(2, k="2 cells"))[1].min() == 0


def test_a_marking_port_drops_packets_that_are_not_ecn_capable_and_no_others() -> None:
    reno = {"congestion": "jacobson"}
    marked, dropped = (ct.run(scenario(tcp=reno | {"ecn": ecn})).ports.to_pylist()[0] for ecn in ("on", "off"))
    assert 66 < marked["max_queue_cells"] < 4000 and marked["discarded_cells"] == marked["lost_cells"] == 0
    assert dropped["max_queue_cells"] == 66 and dropped["discarded_cells"] + dropped["lost_cells"] > 0


def test_events_show_congestion_marks_ece_echoes_and_window_reductions(tmp_path: Path) -> None:
    result = ct.run(scenario().replace(duration="5ms"), events=ct.Events(tmp_path, kinds=["segments", "cells"]))
    segments = pq.read_table(tmp_path / "segments.parquet").to_pandas()
    found = Counter(zip(segments.event, segments.ecn, strict=True))
    assert found["arrived", "marked"] > 0
    # Without loss, every marked segment is echoed exactly once.
    assert found["ack_sent", "echo"] == found["arrived", "marked"]
    assert found["sent", "reduced"] > 0
    cells = pq.read_table(tmp_path / "cells.parquet").to_pandas()
    assert (cells.event == "marked").sum() >= found["arrived", "marked"]
    assert result.fingerprint == ct.run(scenario().replace(duration="5ms"), engine="reference").fingerprint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": "4001 cells"}, "k_min"),
        ({"marking": {"k_min": "80 cells", "k_max": "79 cells"}}, "is below k_min, which is 80 cells"),
        ({"marking": {"k_min": "80 cells", "p_max": 1.5}}, "p_max = 1.5"),
        ({"marking": {"k_min": "80 cells", "weight": 0.0}}, "is not above 0 and at most 1"),
        ({"marking": {"k_min": "80 cells", "of": "memory"}}, "counts cells of a memory"),
        ({"allocator": {"efci": {"threshold": "80 cells"}}}, "remove one of the two"),
        ({"tcp": {"ecn": "off"}}, 'write ecn = "on" for congestion = "dctcp"'),
        ({"tcp": {"initial_window": 0}}, "initial_window"),
        ({"tcp": {"windows": {"dctcp_gain": 0.0}}}, "tcp.newreno.windows.dctcp_gain = 0.0"),
    ],
)
def test_impossible_congestion_marking_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ct.ScenarioError) as refused:
        ct.run(scenario(**changes))
    assert words in str(refused.value)
