"""Runs of a scenario that keep the events of some flows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from celltrain.drawing.event_rows import one_of
from celltrain.errors import CancelledError, Fault, InputError, ScenarioError, warn
from celltrain.inspect.history import NEVER, Episode, Fates, History
from celltrain.model.cancel import Cancel, check, current
from celltrain.model.network import Network
from celltrain.model.quantities import QUANTITIES
from celltrain.model.scenario import read, table
from celltrain.running.events import Events, read_events
from celltrain.running.summary import WITHOUT_TCP

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain import _core
    from celltrain.model.types import Scenario

#: Seconds before and after the instant in which segments are kept at first: longer than most timeouts.
_REACH = Fraction(30)
#: Seconds of losses up to which the frames of all VCs are kept.
_ALL_VCS = 1.0
#: Seconds from sending a frame to its loss, at most: time for full buffers on the way.
_ON_WAY = Fraction(2)
#: Resolution of windows of events.
_INSTANT = Fraction(1, 10**9)


@dataclass(frozen=True, kw_only=True)
class EventRuns:
    """A scenario, and runs of it that keep events.

    Attributes:
        seed: Seed of the runs; the scenario's own when None.
        progress: Called with the share of the work that is done, 0 to 1.
    """

    scenario: _core.Scenario
    name: str
    seed: int
    duration: Fraction
    written_duration: str
    network: Network
    without_tcp: frozenset[str]
    progress: Callable[[float], object] | None

    @classmethod
    def of(
        cls, scenario: Scenario | str | os.PathLike[str], seed: int | None, progress: Callable[[float], object] | None
    ) -> EventRuns:
        """Reads a scenario; raises `ScenarioError`."""
        reading = read(scenario)
        accepted = reading.accepted()
        warn(reading.warnings)
        if seed is not None and not 0 <= seed < 1 << 64:
            raise ScenarioError([Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")])
        settings = table(accepted)
        flows = settings.get("flow", {}).items()
        return cls(
            scenario=accepted,
            name=settings["name"],
            seed=settings["seed"] if seed is None else seed,
            duration=QUANTITIES["time"].read(settings["duration"]),
            written_duration=settings["duration"],
            network=Network.of_core(accepted),
            without_tcp=frozenset(
                flow for flow, options in flows if any(kind in WITHOUT_TCP for kind in options.get("traffic") or {})
            ),
            progress=progress,
        )

    @property
    def flows(self) -> list[str]:
        """Names of all connections."""
        return [route.name for route in self.network.flows]

    def check_flow(self, flow: str) -> str:
        """Returns the name of a connection; raises `ScenarioError` if there is none of this name."""
        try:
            return one_of("flow", "a flow of this network", flow, self.flows)
        except InputError as error:
            raise ScenarioError(error.faults) from None

    def history(self, flow: str, instant: Fraction) -> History:
        """Returns the events of a flow around an instant, or of the whole run if those do not show the episode's ends."""
        for start, end in (self._around(instant), (Fraction(0), self.duration)):
            [history] = self.histories([flow], start, end, share=(0.0, 0.5))
            earlier = [one for one in history.episodes if start < one.start <= instant]
            later = any(one.start >= instant and one.end < NEVER for one in history.episodes)
            if any(instant <= one.end < NEVER for one in earlier) or (earlier and later):
                break
        return history

    def _around(self, instant: Fraction) -> tuple[Fraction, Fraction]:
        return max(instant - _REACH, Fraction(0)), min(instant + _REACH, self.duration)

    def histories(
        self, flows: Sequence[str], start: Fraction, end: Fraction, *, share: tuple[float, float]
    ) -> list[History]:
        """Returns the events of some connections in a span of the run.

        Frames that neither arrived nor were overtaken may be on their way. If one is overdue, the reference engine tells
        its fate.
        """
        one = flows if len(flows) == 1 else None
        tables = self._run("fast", ["segments", "timers"], start, end, flows=one, share=share)

        def histories(fates: Fates | None = None) -> list[History]:
            return [
                History(
                    name,
                    tables["segments"],
                    tables["timers"],
                    has_tcp=name not in self.without_tcp,
                    gone=fates.by_frame.keys() if fates else (),
                    is_whole=start == 0 and end == self.duration,
                )
                for name in flows
            ]

        known = histories()
        overdue = {one.flow: one.time[places].min() for one in known if len(places := one.overdue(float(end)))}
        if not overdue:
            return known
        first = Fraction(min(overdue.values())) - _INSTANT
        tables |= self._run("reference", ["frames"], first, end, flows=list(overdue), share=(share[1], share[1]))
        return histories(Fates(tables["frames"]))

    def worst(self, flows: Sequence[str], instant: Fraction, exactness: float) -> str:
        """Returns the connection with the longest episode around an instant; the first one if all is well."""
        start, end = self._around(instant)

        def length(history: History) -> float:
            episode = nearest(history.episodes, float(instant), exactness)
            return 0.0 if episode is None else min(episode.end, float(end)) - episode.start

        return max(self.histories(flows, start, end, share=(0.0, 0.0)), key=length).flow

    def fates(self, history: History, episode: Episode) -> Fates:
        """Returns the ends of the frames sent in an episode: of all VCs if the losses took a short time."""
        places = [*history.within(history.lost, episode), *history.within(history.lost_acks, episode)]
        last = max([episode.start, *history.time[places].tolist()])
        end = min(Fraction(last) + _ON_WAY, self.duration)
        if last < episode.end < NEVER:
            end = min(end, Fraction(episode.end) + _INSTANT)
        flows = None if last - episode.start <= _ALL_VCS else [history.flow]
        # Ports that the flow's data and its ACKs cross: links are in pairs, there and back.
        route = next(route for route in self.network.flows if route.name == history.flow)
        links = dict.fromkeys(way for link in route.links for way in (link, link ^ 1))
        ports = [self.network.links[link].name for link in links]
        start = Fraction(episode.start) - _INSTANT
        tables = self._run("reference", ["frames"], start, end, flows=flows, ports=ports, share=(0.5, 1.0))
        return Fates(tables["frames"])

    def _run(
        self,
        engine: str,
        kinds: Sequence[str],
        start: Fraction,
        end: Fraction,
        *,
        flows: Sequence[str] | None,
        ports: Sequence[str] | None = None,
        share: tuple[float, float],
    ) -> dict[str, pa.Table]:
        """Returns the events of a span of a run that is cancelled soon after it: the duration affects the run's clock."""
        outer, own = current(), Cancel()

        def on_progress(done: float) -> None:
            if done * float(self.duration) > float(end) or (outer is not None and outer.cancelled):
                own.cancel()
            if self.progress is not None:
                part = min(done * float(self.duration) / max(float(end), 1e-12), 1.0)
                self.progress(share[0] + (share[1] - share[0]) * part)

        time = QUANTITIES["time"]
        window = f"{time.write(max(start, Fraction(0)))}:{time.write(end)}"
        with tempfile.TemporaryDirectory(prefix="celltrain-why-") as name:
            folder = Path(name) / "events"
            kept = Events(folder=folder, kinds=kinds, flows=flows, ports=ports, window=window)
            try:
                with kept.taking(is_temporary=True) as take:
                    self.scenario.run(
                        *(self.seed, (), None, None, engine, on_progress, own._handle, kept.for_core(), take)
                    )
            except CancelledError:
                check()
            except ValueError as error:
                raise ScenarioError.of_refusal(error) from None
            log = read_events(folder)
            return {kind: log[kind] for kind in kinds}


def nearest(episodes: Sequence[Episode], instant: float, exactness: float) -> Episode | None:
    """Returns the episode around an instant, or the nearest one within the instant's exactness."""

    def distance(one: Episode) -> float:
        return max(one.start - instant, instant - one.end, 0.0)

    return min((one for one in episodes if distance(one) <= exactness), key=distance, default=None)
