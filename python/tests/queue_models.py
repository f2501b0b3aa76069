"""Common parts of the independent models of CoDel, PIE and RED: an event log as seen by a packet queue, and random numbers.

The models follow the sources, not the code of celltrain. A frame is a packet that arrives, and is dequeued, with its
first cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import celltrain as ct

#: Units of the clock in a second: cells take 10 us at 42.4 Mb/s, and links 5 us.
UNITS = 200_000
#: Bytes of a cell.
CELL = 53
_NETWORK = """
name = "a port with a policy"
duration = "{duration}"
seed = {seed}

[topology.n_source]
sources = 4
link_rate = "42.4Mbps"
link_delay = "5us"

[tcp.newreno]
{flows}
[port.bottleneck]
buffer = {buffer}

[port.bottleneck.policy.{policy}]
{settings}
"""


class Step(NamedTuple):
    """A cell at the port: it has arrived, entered, left or been dropped or pushed out. Times are in units."""

    time: int
    event: str
    frame: tuple[str, int]
    is_first: bool


def steps(
    folder: Path,
    policy: str,
    settings: str,
    *,
    seed: int,
    duration: str = "1s",
    buffer: int = 100_000,
    flows: str = "",
) -> Iterator[Step]:
    """Runs the network, and returns the steps of all cells at its bottleneck, in order."""
    text = _NETWORK.format(policy=policy, settings=settings, seed=seed, duration=duration, buffer=buffer, flows=flows)
    scenario = folder / "port.toml"
    scenario.write_text(text)
    run = ct.run(ct.load(scenario), events=ct.Events(folder / "events", kinds=["cells"]))
    table = run.events["cells"]
    columns = [table[name].to_pylist() for name in ("time_s", "event", "vc", "frame", "index")]
    for time_s, event, vc, frame, index in zip(*columns, strict=True):
        yield Step(round(time_s * UNITS), event, (vc, frame), index == 0)


class Draws:
    """The random numbers of a port's policy: xoshiro256** 1.0 (Blackman and Vigna 2018), seeded by SplitMix64."""

    def __init__(self, seed: int, name: str) -> None:
        """Starts the stream with this name."""
        x = 0xCBF29CE484222325
        for byte in name.encode():
            x = (x ^ byte) * 0x100000001B3 & _WORD
        x ^= _mixed(seed)
        self._state = [_mixed(x + 0x9E3779B97F4A7C15 * i & _WORD) for i in range(1, 5)]

    def unit(self) -> float:
        """Returns the next number in [0, 1)."""
        s = self._state
        result = _rotated(s[1] * 5 & _WORD, 7) * 9 & _WORD
        t = s[1] << 17 & _WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotated(s[3], 45)
        return (result >> 11) / (1 << 53)


_WORD = (1 << 64) - 1


def _mixed(x: int) -> int:
    z = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return z ^ z >> 31


def _rotated(x: int, bits: int) -> int:
    return (x << bits | x >> 64 - bits) & _WORD


def refusals(found: Iterator[Step], model: Any) -> tuple[int, int]:
    """Compares the admission of each frame with a model. Returns the numbers of frames and of refused frames.

    The model's `arrive(time)` returns whether the frame is refused; `enter`, `dequeue` and `leave` take cells.
    """
    since: dict[tuple[str, int], int] = {}
    refused: dict[tuple[str, int], bool] = {}
    for step in found:
        match step.event:
            case "arrived" if step.is_first:
                refused[step.frame] = model.arrive(step.time)
            case "admitted":
                assert not refused[step.frame], f"{step} enters, but the model refuses its frame"
                since.setdefault(step.frame, step.time)
                model.enter(step.time)
            case "lost":
                assert refused[step.frame], f"{step} is lost, but the model admits its frame"
            case "departed":
                if step.is_first:
                    model.dequeue(step.time, step.time - since.pop(step.frame))
                model.leave(step.time)
    return len(refused), sum(refused.values())
