"""One run on several threads gives the same result, or a clear message if the network cannot be partitioned."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command

import celltrain as ct
from celltrain.running import results

#: The links are so long that a thread has work to do while cells from the other thread are on their way.
FAR = ct.n_source(sources=5, link_delay="50ms", buffer_cells=300, policy=ct.Epd(threshold=200), duration="2s")
NEAR = ct.n_source(sources=2, link_delay="5us", buffer_cells=300, policy=ct.Epd(threshold=200), duration="10ms")


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the tests independent of the number of cores."""
    monkeypatch.setattr(results, "cores", lambda: 4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threads", [2, 4])
def test_a_partitioned_network_has_the_same_result_on_any_number_of_threads(threads: int) -> None:
    """Compares the whole result except its speed, and expects no warning."""
    alone, shared = ct.run(FAR).to_dict(), ct.run(FAR, threads=threads).to_dict()
    for answer in (alone, shared):
        del answer["timing"]
    assert alone == shared


def test_measures_over_a_measuring_window_are_the_same_on_any_number_of_threads() -> None:
    """The runs up to the start and up to the end of the window are partitioned like the whole run."""
    windowed = FAR.replace(measure={"from": "500ms", "to": "1500ms"})
    assert ct.run(windowed, threads=2).goodput_mbps == ct.run(windowed).goodput_mbps


def test_a_network_that_cannot_be_partitioned_runs_on_one_thread_with_a_warning() -> None:
    """The result of the run is nevertheless complete."""
    with pytest.warns(ct.CelltrainWarning, match="threads = 2: the run uses one"):
        shared = ct.run(NEAR, threads=2)
    assert shared.fingerprint == ct.run(NEAR).fingerprint


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"threads": 0}, "threads = 0 is not a number of threads from 1 to 4"),
        ({"threads": -2}, "threads = -2 is not a number of threads"),
        ({"threads": 5}, "from 1 to 4, one for each core"),
        ({"threads": 2, "trace": "queue"}, "threads = 2 cannot be combined with trace"),
        ({"threads": 2, "engine": "reference"}, "threads = 2 cannot be combined with engine"),
        ({"threads": "2"}, "threads"),
    ],
)
def test_an_invalid_number_of_threads_is_refused(options: dict[str, object], problem: str) -> None:
    """The message names a valid alternative."""
    with pytest.raises(ct.InputError) as refused:
        ct.run(NEAR, **options)  # type: ignore[arg-type]
    assert problem in str(refused.value)


def test_the_run_command_and_the_python_function_give_the_same_message_about_threads(celltrain: Command) -> None:
    """The command exits with code 2, and its message is one line."""
    refused = celltrain("run", "lan-epd", "--threads", "5")
    assert refused.code == 2
    assert refused.err.strip() == ("threads = 5 is not a number of threads from 1 to 4, one for each core")


def at_once(sources: int = 6) -> str:
    """Returns a scenario with a port that processes cells early.

    The port receives cells from another port of its partition, and hosts of another partition are behind it.
    """
    here, there = ([f"{side}{i}" for i in range(sources)] for side in ("left", "right"))
    links = [(host, "sw1", "5us", "155.52Mbps") for host in here] + [
        (host, "sw3", "5us", "155.52Mbps") for host in there
    ]
    links += [("sw1", "sw2", "5us", "155.52Mbps"), ("sw2", "sw3", "50ms", "45Mbps")]
    flows = [*zip(here, there, strict=True), *zip(there, here, strict=True)]
    return "\n".join(
        [
            'duration = "3s"',
            "[topology.network]",
            f"hosts = {[*here, *there]}",
            'switches = ["sw1", "sw2", "sw3"]',
            "links = [",
            *(f'{{ between = ["{a}", "{b}"], delay = "{delay}", rate = "{rate}" }},' for a, b, delay, rate in links),
            "]",
            "flows = [",
            *(f'{{ name = "{a}-{b}", from = "{a}", to = "{b}" }},' for a, b in flows),
            "]",
            "[tcp.reno]",
            'receive_window = "600000B"',
            "[port.default]",
            "buffer = 1000",
            "[port.default.policy.selective_drop]",
        ]
    )


@pytest.mark.filterwarnings("error")
def test_a_port_that_admits_batches_makes_the_same_decisions_on_one_and_two_threads(
    tmp_path: Path,
) -> None:
    """The port's queue is trimmed when frames end, which may be after the end of a window."""
    (path := tmp_path / "at-once.toml").write_text(at_once())
    assert ct.run(path, threads=2).fingerprint == ct.run(path).fingerprint
