"""Does a result hinge on lock-step: flows that start together, on hosts that take no time, one of which starves?

Two questions, both of which have to be answered with yes. *Are the flows in step?* (`in_step`): at least two connections start at
the same instant, and nothing in the scenario is drawn but the order of ties. *Does one starve?* (`Step.starves`): over the
whole run some flow delivers less than a hundredth of its max-min fair share, though the share is a hundred segments or
more, and timers ran out. Then the seeds may all show the same accident; `hinge` says so, and what breaks the step.

Only scenarios are judged in which starving has no other good reason: all flows are TCP with data from the start of the
flow on, all start in the first half of the run, and no scheduler gives one VC more than another.

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
from celltrain.model.quantities import QUANTITIES, seconds
from celltrain.model.scenario import Reading

#: Of its fair share: a flow that has less than this of it over a whole run starves.
NEAR_NONE = 0.01
#: Segments of the largest size: less in a whole run is no large share.
LARGE_SHARE = 100
#: The measures of a run that the question needs.
LEAST, TIMEOUTS = "flows.least(*).goodput_mbps", "flows.sum(*).timeouts"

#: Policies that refuse frames at random.
RANDOM_POLICIES = {"dfba", "dfba_1998"}
#: Schedulers under which all VCs are alike.
EVEN_SCHEDULERS = {"fifo", "round_robin"}
#: What a flow may have to send; data without end where nothing is said.
TCP_DATA = {"greedy", "file"}
#: Bytes that a segment's frame adds: headers of TCP and IP, LLC/SNAP, AAL5's trailer.
HEADERS = 20 + 20 + 8 + 8


@dataclass(frozen=True, kw_only=True)
class Step:
    """A scenario whose flows are in step."""

    together: int
    """How many flows start at one instant, at most."""
    fair_mbps: float
    """The least max-min fair share of a flow, of goodput, in megabits per second."""
    fair_segments: float
    """Segments of the largest size that this share comes to in the run."""
    processing: str
    """The time that the largest segment takes on the bottleneck: Floyd and Jacobson's random time."""
    tick: str
    """The coarsest tick of a retransmission timer."""
    ties_drawn: bool
    """Whether the order of ties differs from seed to seed."""

    def starves(self, least_mbps: float, timeouts: float) -> bool:
        """Whether a flow starves in a run with this least goodput of a flow, and so many timeouts of all flows."""
        return self.fair_segments >= LARGE_SHARE and timeouts > 0 and least_mbps < NEAR_NONE * self.fair_mbps


@dataclass(frozen=True, kw_only=True)
class Hinge:
    """A result that may hinge on lock-step."""

    step: Step
    seeds: int
    """How many seeds were run, and how many of them have a flow that starves."""
    starved: int
    least_mbps: float
    """The least goodput of a flow in any of them."""

    def __str__(self) -> str:
        step = self.step
        runs = f"{self.starved} of {self.seeds} seeds" if self.seeds > 1 else "its one seed"
        differ = "seeds differ in nothing but ties" if step.ties_drawn else "seeds do not differ"
        return (
            f"in {runs} a flow starves ({self.least_mbps:.3g} of a fair {step.fair_mbps:.3g} Mb/s), and {differ}: "
            f"{step.together} flows start together and hosts draw no times. The result may hinge on this lock-step. See "
            f'whether it stays with [host] processing = "{step.processing}", processing_times = "uniform", '
            f'or with clock_offset = "{step.tick}"'
        )


def hinge(scenario: Mapping[str, Any], runs: Mapping[int, tuple[float, float]]) -> Hinge | None:
    """What to look at before several seeds of a scenario are trusted; None where nothing speaks of lock-step.

    Args:
        scenario: The scenario as a table, with or without its defaults; one that is refused is not judged.
        runs: For each seed the least goodput of a flow in megabits per second, and the timeouts of all flows: what the
            measures `LEAST` and `TIMEOUTS` come to.

    >>> from celltrain import load
    >>> lan = load("scenarios/lan-tail-drop.toml").to_dict()
    >>> hinge(lan, {1: (9.5, 40.0), 2: (8.0, 41.0)}) is None
    True
    >>> found = hinge(lan, {1: (9.5, 40.0), 2: (0.1, 41.0)})
    >>> found.starved, found.seeds
    (1, 2)
    """
    # Cheap first: a network is built only where a flow has next to nothing.
    if not runs or not any(timeouts for _, timeouts in runs.values()):
        return None
    step = in_step(scenario)
    if step is None:
        return None
    starved = [least for least, timeouts in runs.values() if step.starves(least, timeouts)]
    return Hinge(step=step, seeds=len(runs), starved=len(starved), least_mbps=min(starved)) if starved else None


def in_step(scenario: Mapping[str, Any]) -> Step | None:
    """What is in step in a scenario; None where something is drawn besides ties, or starving has a good reason."""
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
        tick=max((tcp["timer_granularity"] for tcp in tcps), key=seconds),
    )


def drawn(scenario: Mapping[str, Any]) -> Iterator[str]:
    """By their paths, the settings of a scenario with its defaults by which runs of several seeds differ, beside ties."""
    host = scenario["host"]
    if seconds(host["processing"]) > 0 and host["processing_times"] == "uniform":
        yield "host.processing_times"
    for key in ("clock_offset", "start_spread"):
        if seconds(host[key]) > 0:
            yield f"host.{key}"
    if host["clock_skew"] > 0:
        yield "host.clock_skew"
    if any(tcp["tick_phase"] == "random" for tcp in _tcps(scenario)):
        yield "tcp.tick_phase"
    for name, flow in scenario["flow"].items():
        if any(kind.get("times") == "exponential" for kind in (flow["traffic"] or {}).values()):
            yield f"flow.{name}.traffic"
    for name, port in scenario["port"].items():
        if RANDOM_POLICIES & port["policy"].keys():
            yield f"port.{name}.policy"


def _all_alike(scenario: Mapping[str, Any]) -> bool:
    """Whether no flow is due less than its fair share: all are TCP with data, and no port prefers a VC."""
    kinds = {kind for flow in scenario["flow"].values() for kind in flow["traffic"] or ()}
    schedulers = {name for port in scenario["port"].values() for name in port["scheduler"] or ()}
    policies = [config for port in scenario["port"].values() for config in port["policy"].values()]
    by_vc = any(isinstance(value, Mapping) for config in policies for value in config.values())
    return kinds <= TCP_DATA and schedulers <= EVEN_SCHEDULERS and not by_vc and not scenario["vc"]


def _starts(scenario: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    """When each flow starts, in seconds: as its own table says, else that of a range, else the topology, else at once."""
    starts = dict.fromkeys(names, 0.0)
    [topology] = scenario["topology"].values()
    flows = topology.get("flows", ())
    starts |= {flow["name"]: seconds(flow["start"]) for flow in flows if isinstance(flow, Mapping)}
    # A name goes before a range.
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
