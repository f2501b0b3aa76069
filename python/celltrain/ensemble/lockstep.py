"""Checks whether a result may depend on lock-step, in which flows that start together run in step and one starves.

Both conditions must hold. *The flows are in step* (`in_step`): at least two connections start at the same instant, and
nothing in the scenario is random except the order of ties. *A flow starves* (`Step.starves`): over the whole run some
flow delivers less than a hundredth of its max-min fair share, although this share is at least a hundred segments, and
timers expired. All seeds may then show the same coincidence; `lock_step_warning` reports it, and suggests settings that
break the lock-step.

The check covers only scenarios in which starvation has no other likely cause: all flows are TCP and have data from
their start, all start in the first half of the run, and no scheduler prefers a VC.

Source: docs/design/lock-step.md; docs/mechanisms.md, A-03, A-60, A-61 and A-62; Floyd and Jacobson (1991) for random times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from celltrain.model.expressions import named
from celltrain.model.network import Network
from celltrain.model.paths import QUANTITIES, seconds
from celltrain.model.scenario import Reading

#: A flow counts as starved if it gets less than this fraction of its fair share over a whole run.
NEAR_NONE = 0.01
#: Minimum fair share, in segments of the largest size, for starvation to be meaningful.
LARGE_SHARE = 100
#: The measures needed from each run.
LEAST, TIMEOUTS = "flows.least(*).goodput_mbps", "flows.sum(*).timeouts"

#: Policies that refuse frames at random.
RANDOM_POLICIES = {"dfba", "dfba_1998"}
#: Schedulers that treat all VCs equally.
EVEN_SCHEDULERS = {"fifo", "round_robin"}
#: Kinds of TCP traffic that have data from the start.
TCP_DATA = {"greedy", "file"}
#: Bytes added to a segment in its frame: TCP and IP headers, LLC/SNAP, AAL5 trailer.
HEADERS = 20 + 20 + 8 + 8


@dataclass(frozen=True, kw_only=True)
class Step:
    """A scenario whose flows are in lock-step.

    Attributes:
        together: Largest number of flows that start at the same instant.
        fair_mbps: The smallest max-min fair share of any flow, as goodput in megabits per second.
        fair_segments: This share over the whole run, in segments of the largest size.
        processing: Transmission time of the largest segment at the bottleneck, as in Floyd and Jacobson's random time.
        tick: The coarsest tick of a retransmission timer.
        ties_drawn: True if the order of ties differs from seed to seed.
        ticks_drift: True if the common rate of all ticks differs from seed to seed.
    """

    together: int
    fair_mbps: float
    fair_segments: float
    processing: str
    tick: str
    ties_drawn: bool
    ticks_drift: bool = False

    def starves(self, least_mbps: float, timeouts: float) -> bool:
        """Returns whether a flow starves in a run, given the smallest goodput of a flow and the number of timeouts."""
        return self.fair_segments >= LARGE_SHARE and timeouts > 0 and least_mbps < NEAR_NONE * self.fair_mbps


@dataclass(frozen=True, kw_only=True)
class LockStepWarning:
    """A result that may depend on lock-step.

    Attributes:
        step: The scenario whose flows are in step.
        seeds: Number of seeds that were run.
        starved: Number of seeds in which a flow starves.
        least_mbps: The smallest goodput of a flow in any of these seeds.
    """

    step: Step
    seeds: int
    starved: int
    least_mbps: float

    def __str__(self) -> str:
        step = self.step
        runs = f"{self.starved} of {self.seeds} seeds" if self.seeds > 1 else "its one seed"
        changed = ["the order of ties"] * step.ties_drawn + ["the common rate of all ticks"] * step.ticks_drift
        differ = f"different seeds change only {' and '.join(changed)}" if changed else "seeds do not differ"
        return (
            f"in {runs} a flow starves ({self.least_mbps:.3g} of a fair {step.fair_mbps:.3g} Mb/s), and {differ}: "
            f"{step.together} flows start together and hosts use no random times. The result may depend on this lock-step. Check "
            f'whether it stays the same with [host] processing = "{step.processing}", processing_times = "uniform", '
            f'or with clock_offset = "{step.tick}"'
        )


def lock_step_warning(scenario: Mapping[str, Any], runs: Mapping[int, tuple[float, float]]) -> LockStepWarning | None:
    """Returns a warning if the results of several seeds may depend on lock-step, or else None.

    Args:
        scenario: The scenario as a table, with or without its defaults. A refused scenario gives no warning.
        runs: For each seed, the smallest goodput of a flow in megabits per second and the timeouts of all flows: the
            values of the measures `LEAST` and `TIMEOUTS`.

    >>> from celltrain import load
    >>> lan = load("scenarios/lan-tail-drop.toml").to_dict()
    >>> lock_step_warning(lan, {1: (9.5, 40.0), 2: (8.0, 41.0)}) is None
    True
    >>> found = lock_step_warning(lan, {1: (9.5, 40.0), 2: (0.1, 41.0)})
    >>> found.starved, found.seeds
    (1, 2)
    """
    # Building the network takes time, so first check whether any timer expired.
    if not runs or not any(timeouts for _, timeouts in runs.values()):
        return None
    step = in_step(scenario)
    if step is None:
        return None
    starved = [least for least, timeouts in runs.values() if step.starves(least, timeouts)]
    return (
        LockStepWarning(step=step, seeds=len(runs), starved=len(starved), least_mbps=min(starved)) if starved else None
    )


def in_step(scenario: Mapping[str, Any]) -> Step | None:
    """Returns the flows in lock-step.

    None if more than the order of ties is random, or if starvation may have other causes.
    """
    reading = Reading.of_table(scenario, "scenario")
    full = reading.scenario
    if full is None or any(True for _ in drawn(full)) or not _all_alike(full):
        return None
    network = Network.of_core(reading.accepted())
    names = [flow.name for flow in network.flows]
    starts = _starts(full, names)
    length = seconds(full["duration"])
    together = max(Counter(starts.values()).values(), default=0)
    if together < 2 or max(starts.values()) > length / 2:
        return None
    tcps = list(_tcps(full))
    segment = max(_bytes(tcp["mss"]) for tcp in tcps)
    fair = min(flow.max_min_mbps for flow in network.flows)
    cells = math.ceil((segment + HEADERS) / 48)
    return Step(
        together=together,
        fair_mbps=fair,
        fair_segments=fair * 1e6 / 8 * length / segment,
        processing=f"{round(cells * 424e3 / network.links[network.bottleneck].rate_mbps)}ns",
        ties_drawn=full["switch"]["tie_order"] == "random",
        ticks_drift=any(tcp["timer"]["tick_phase"] == "drifting" for tcp in tcps),
        tick=max((tcp["timer_granularity"] for tcp in tcps), key=seconds),
    )


def drawn(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yields the paths of settings, other than the order of ties, that make flows differ at random."""
    host = scenario["host"]
    if seconds(host["processing"]) > 0 and host["processing_times"] == "uniform":
        yield "host.processing_times"
    for key in ("clock_offset", "start_spread"):
        if seconds(host[key]) > 0:
            yield f"host.{key}"
    if host["clock_skew"] > 0:
        yield "host.clock_skew"
    if any(tcp["timer"]["tick_phase"] == "random" for tcp in _tcps(scenario)):
        yield "tcp.timer.tick_phase"
    for kind in ("requests", "incast"):
        if scenario.get(kind):
            yield kind
    for name, flow in scenario["flow"].items():
        if any(kind.get("times") == "exponential" for kind in (flow["traffic"] or {}).values()):
            yield f"flow.{name}.traffic"
    for name, port in scenario["port"].items():
        if RANDOM_POLICIES & port["policy"].keys():
            yield f"port.{name}.policy"


def _all_alike(scenario: Mapping[str, Any]) -> bool:
    """Returns whether all flows are the simulation's TCP with data from the start, and no port prefers a VC."""
    kinds = {kind for flow in scenario["flow"].values() for kind in flow["traffic"] or ()}
    schedulers = {name for port in scenario["port"].values() for name in port["scheduler"] or ()}
    policies = [config for port in scenario["port"].values() for config in port["policy"].values()]
    by_vc = any(isinstance(value, Mapping) for config in policies for value in config.values())
    groups = [one for kind in ("requests", "incast") for one in (scenario.get(kind) or {}).values()]
    hosted = any(table.get("stack") for table in (scenario, *scenario["flow"].values(), *groups))
    return kinds <= TCP_DATA and schedulers <= EVEN_SCHEDULERS and not (by_vc or hosted or scenario["vc"])


def _starts(scenario: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    """Returns the start of each flow in seconds: from its own table, a range's table or the topology; by default 0."""
    starts = dict.fromkeys(names, 0.0)
    [topology] = scenario["topology"].values()
    flows = topology.get("flows", ())
    starts |= {flow["name"]: seconds(flow["start"]) for flow in flows if isinstance(flow, Mapping)}
    # Process ranges of names first, so that a flow's own table overrides them.
    for name, own in sorted(scenario["flow"].items(), key=lambda entry: entry[0] in starts):
        if own["start"] is not None:
            starts |= dict.fromkeys(named(name, names), seconds(own["start"]))
    return starts


def _tcps(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    own = [flow["tcp"] for flow in scenario["flow"].values() if flow["tcp"]]
    for table in (scenario["tcp"], *own):
        yield from table.values()


def _bytes(text: str) -> float:
    return float(QUANTITIES["size"].read(text))
