"""The runs that show what happened to a flow, and the answer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.event_rows import one_of
from celltrain.errors import CancelledError, Fault, InputError, ScenarioError, warn
from celltrain.inspect.reasons.history import NEVER, Episode, Fates, History, Rows
from celltrain.inspect.reasons.story import Told, dead, nothing, of_episode
from celltrain.model.arguments import Answer, checked
from celltrain.model.cancel import Cancel, check, current, endable
from celltrain.model.cards import Card
from celltrain.model.network import Network
from celltrain.model.quantities import QUANTITIES
from celltrain.model.scenario import read, table
from celltrain.running.events import Events, read_events
from celltrain.running.summary import WITHOUT_TCP
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain import _core
    from celltrain.model.types import Scenario

#: Seconds before and after the instant in which segments are kept at first: longer than most timeouts.
_REACH = Fraction(30)
#: Seconds of losses up to which the frames of all VCs are kept beside those of the flow.
_ALL_VCS = 1.0
#: A frame that is lost was sent so long before, at the most, in seconds: time for full buffers on the way.
_ON_WAY = Fraction(2)
#: Sentences of the answer for people.
MOST = 12


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What happened, and the events that it follows from."""

    text: str
    events: tuple[Rows, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The events: `kind` is the table's name, the rest are the columns of the row."""
        return [row for rows in self.events for row in rows.to_list()]


class Why(Answer):
    """What happened to a flow around an instant, in sentences; as a text it is the most important ones."""

    _call = "celltrain.why"
    _facts: dict[str, Any]
    _told: list[Told]

    @classmethod
    def _of(cls, facts: dict[str, Any], told: list[Told]) -> Why:
        made = cls.__new__(cls)
        made._facts = facts
        made._told = told
        return made

    @property
    def is_well(self) -> bool:
        """Whether nothing was lost and nothing was sent again at the instant."""
        return bool(self._facts["is_well"])

    @property
    def from_s(self) -> float | None:
        """From when on not all was well; None where all was."""
        start = self._facts["from_s"]
        return None if start is None else float(start)

    @property
    def to_s(self) -> float | None:
        """When all was well again; None where it was all along, or not before the run ended."""
        end = self._facts["to_s"]
        return None if end is None else float(end)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """All that is to be said."""
        return [Sentence(text=one.text, events=one.rows) for one in self._told]

    def text(self, most: int | None = MOST) -> str:
        """The sentences, one a line.

        Where there are more than `most`: the first loss and its cause, what it cost, and of the others those that are
        nearest to the instant.
        """
        told = self._told
        if most is None or len(told) <= most:
            return "\n".join(one.text for one in told)
        kept = _kept(told, self._facts["at_s"], most - 1)
        lines = [told[place].text for place in sorted(kept)]
        return "\n".join(
            [*lines, f"{len(told) - len(kept)} more sentences are left out; celltrain why --all prints them."]
        )

    def to_dict(self) -> dict[str, Any]:
        """As `celltrain why --json` prints it: every sentence with the events that it follows from."""
        sentences = [{"text": one.text, "rows": one.rows} for one in self.sentences]
        return {**self._facts, "sentences": sentences}

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        title = f"{self._facts['flow']} at {self._facts['at_s']:g} s"
        return Card(title=title, lines=self.text().split("\n")).html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self.text())

    def __repr__(self) -> str:
        return f"Why(flow={self._facts['flow']!r}, at_s={self._facts['at_s']:g}, {len(self._told)} sentences)"


def _kept(told: Sequence[Told], at: float, most: int) -> set[int]:
    """The places of the sentences that stay where there is room for so many."""
    causes = [one.group for one in told if one.group is not None]
    first = min(causes, default=None)
    ends = {0, *(place for place in range(len(told) - 3, len(told)) if told[place].is_needed)}
    kept = ends | {
        place for place, one in enumerate(told) if one.group is not None and one.group == first and one.place < 2
    }

    def add(places: list[int], room: int) -> None:
        """As many of them as there is room for, the nearest ones; none without the one that it refers to."""
        until = len(kept) + room
        for place in sorted(places, key=lambda place: abs(told[place].time - at)):
            group = told[place].group
            opening = {
                other for other, one in enumerate(told) if group is not None and (one.group, one.place) == (group, 0)
            }
            if len(kept | opening | {place}) <= min(until, most):
                kept.update(opening, {place})

    needed = [place for place, one in enumerate(told) if one.is_needed and place not in kept]
    # What is told of losses has room too, however many timeouts there were.
    add([place for place in range(len(told)) if not told[place].is_needed], max(most - len(kept) - len(needed), 2))
    add(needed, most)
    return kept


@checked(ScenarioError)
@endable
def why(
    scenario: Scenario | str | os.PathLike[str],
    *,
    flow: str | None = None,
    at: str,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> Why:
    """Says what happened to a flow around an instant: what was lost and why, how its sender noticed, and what it cost.

    The scenario is run twice: on the fast engine for the flow's segments, which show when all was well, and on the
    reference engine, until all is well again, for what became of the frames. Both are the run that `celltrain.run` makes.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        flow: The connection; when None, the one in the longest trouble around that time.
        at: The time to look at, to the precision written: `"2.4s"` means 2.35 s to 2.45 s.
        seed: Seed of every random choice; the scenario's own when None.
        progress: Called now and then with the share of the work that is done, 0 to 1.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: When the scenario is refused, the flow is not there, or the instant is none of the run.
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> lan = ct.n_source(
    ...     sources=3, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="20ms", tcp=ct.Sack()
    ... )
    >>> answer = ct.why(lan, flow="tcp1", at="1ms")
    >>> answer.is_well, answer.sentences[1].rows[0]["kind"]
    (False, 'frames')
    """
    opened = Opened.of(scenario, seed, progress)
    instant = _instant(at, opened.duration, opened.written_duration)
    runs = opened.runs
    flow = runs.worst(opened.flows, instant, _exactness(at)) if flow is None else opened.checked_flow(flow)
    history = runs.history(flow, instant)
    episode = _around(history.episodes, float(instant), _exactness(at))
    facts = {
        "scenario": opened.name,
        "seed": opened.seed,
        "flow": flow,
        "at_s": float(instant),
        "is_well": episode is None,
        "from_s": None if episode is None else episode.start,
        "to_s": None if episode is None or episode.end == NEVER else episode.end,
    }
    before = [dead(history)] if history.delivered_nothing else []
    if episode is None:
        return Why._of(facts, [*before, *nothing(history, float(instant), float(opened.duration))])
    fates = runs.fates(history, episode, _ports(opened.network, flow))
    return Why._of(facts, [*before, *of_episode(history, episode, fates, float(instant))])


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A scenario that is accepted, with its network and the means to run it."""

    name: str
    seed: int
    duration: Fraction
    written_duration: str
    network: Network
    runs: _Runs

    @classmethod
    def of(
        cls, scenario: Scenario | str | os.PathLike[str], seed: int | None, progress: Callable[[float], object] | None
    ) -> Opened:
        """Reads a scenario; raises `ScenarioError`."""
        reading = read(scenario)
        accepted = reading.accepted()
        warn(reading.warnings)
        if seed is not None and not 0 <= seed < 1 << 64:
            raise ScenarioError([Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")])
        settings = table(accepted)
        duration = QUANTITIES["time"].read(settings["duration"])
        return cls(
            name=settings["name"],
            seed=settings["seed"] if seed is None else seed,
            duration=duration,
            written_duration=settings["duration"],
            network=Network.of_core(accepted),
            runs=_Runs(accepted, seed, duration, _without_tcp(settings), progress),
        )

    @property
    def flows(self) -> list[str]:
        """The names of all connections."""
        return [route.name for route in self.network.flows]

    def checked_flow(self, flow: str) -> str:
        """The name of a connection; raises `ScenarioError` if there is none of this name."""
        try:
            one_of("flow", "a flow of this network", flow, self.flows)
        except InputError as error:
            raise ScenarioError(error.faults) from None
        return flow


def _without_tcp(settings: Mapping[str, Any]) -> frozenset[str]:
    """The flows that do not retransmit."""
    return frozenset(
        flow
        for flow, options in settings.get("flow", {}).items()
        if any(kind in WITHOUT_TCP for kind in options.get("traffic") or {})
    )


def _instant(at: str, duration: Fraction, written: str) -> Fraction:
    try:
        instant = QUANTITIES["time"].read(at)
    except ValueError as error:
        raise ScenarioError([Fault.of_option("at", shown(at), f"is not {error}")]) from None
    if instant > duration:
        raise ScenarioError([Fault.of_option("at", shown(at), f"lies outside the run, which lasts {written}")])
    return instant


def _exactness(at: str) -> float:
    """Half of the last digit of an instant, in seconds.

    >>> _exactness("2.4s"), _exactness("30ms")
    (0.05, 0.0005)
    """
    number, unit = at.strip().rstrip("abcdefghijklmnopqrstuvwxyz "), at.strip().lstrip("0123456789._ ")
    digits = len(number.partition(".")[2].replace("_", ""))
    return float(QUANTITIES["time"].read(f"1{unit}") / 2 / 10**digits)


def _around(episodes: Sequence[Episode], instant: float, exactness: float) -> Episode | None:
    """The one that an instant lies in, or the nearest one as far as the instant is exact."""

    def distance(one: Episode) -> float:
        return max(one.start - instant, instant - one.end, 0.0)

    nearest = min(episodes, key=distance, default=None)
    return nearest if nearest is not None and distance(nearest) <= exactness else None


def _ports(network: Network, flow: str) -> list[str]:
    """The ports that a flow's data and its ACKs cross: links are in pairs, there and back."""
    route = next(route for route in network.flows if route.name == flow)
    links = dict.fromkeys(side for link in route.links for side in (link, link ^ 1))
    return [network.links[link].name for link in links]


class _Runs:
    """Runs the scenario, as far as is needed, and reads the events that it tells."""

    def __init__(
        self,
        accepted: _core.Scenario,
        seed: int | None,
        duration: Fraction,
        without_tcp: frozenset[str],
        progress: Callable[[float], object] | None,
    ) -> None:
        self._accepted = accepted
        self._seed = seed
        self._duration = duration
        self._without_tcp = without_tcp
        self._progress = progress

    def history(self, flow: str, instant: Fraction) -> History:
        """The flow's segments and timers around an instant: of all the run where those near by do not show when all was well."""
        start, end = max(instant - _REACH, Fraction(0)), min(instant + _REACH, self._duration)
        while True:
            [history] = self.histories([flow], start, end, share=(0.0, 0.5))
            earlier = any(float(start) < one.start <= instant for one in history.episodes)
            later = any(one.start >= instant and one.end < NEVER for one in history.episodes)
            inside = any(float(start) < one.start <= instant <= one.end < NEVER for one in history.episodes)
            if inside or (earlier and later) or (start == 0 and end == self._duration):
                return history
            start, end = Fraction(0), self._duration

    def histories(
        self, flows: Sequence[str], start: Fraction, end: Fraction, *, share: tuple[float, float]
    ) -> list[History]:
        """The histories of some connections in a span of the run.

        Frames that neither arrived nor were overtaken may be on their way. If one is overdue, the reference engine tells its fate.
        """
        tables = self._run(
            "fast", ["segments", "timers"], start, end, flows=flows if len(flows) == 1 else None, share=share
        )

        def histories(gone: Collection[tuple[str, int]]) -> list[History]:
            whole = start == 0 and end == self._duration
            return [
                History(
                    name,
                    tables["segments"],
                    tables["timers"],
                    has_tcp=name not in self._without_tcp,
                    gone=gone,
                    is_whole=whole,
                )
                for name in flows
            ]

        found = histories(())
        overdue = {one.flow: one.time[places].min() for one in found if len(places := one.overdue(float(end)))}
        if not overdue:
            return found
        first = max(Fraction(min(overdue.values())) - Fraction(1, 10**9), Fraction(0))
        frames = self._run("reference", ["frames"], first, end, flows=list(overdue), share=(share[1], share[1]))
        return histories(Fates(frames["frames"]).gone())

    def worst(self, flows: Sequence[str], instant: Fraction, exactness: float) -> str:
        """The connection with the longest episode around an instant; the first one if all is well."""
        start, end = max(instant - _REACH, Fraction(0)), min(instant + _REACH, self._duration)

        def length(history: History) -> float:
            episode = _around(history.episodes, float(instant), exactness)
            return 0.0 if episode is None else min(episode.end, float(end)) - episode.start

        return max(self.histories(flows, start, end, share=(0.0, 0.0)), key=length).flow

    def fates(self, history: History, episode: Episode, ports: Sequence[str]) -> Fates:
        """What became of the frames that were sent in an episode; of those of all VCs where that is not too much."""
        last = episode.start
        for places in (history.lost, history.lost_acks):
            inside = history.within(places, episode)
            last = max([last, *history.time[inside].tolist()])
        start = max(Fraction(episode.start) - Fraction(1, 10**9), Fraction(0))
        end = min(Fraction(last) + _ON_WAY, self._duration)
        if episode.end < NEVER and Fraction(episode.end) > last:
            # Before all is well again what was lost was lost.
            end = min(end, Fraction(episode.end) + Fraction(1, 10**9))
        flows = None if last - episode.start <= _ALL_VCS else [history.flow]
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
        """The events of a span of a run, which ends soon after it: the duration stays, as the clock depends on it."""
        outer, own = current(), Cancel()

        def on_progress(done: float) -> None:
            if done * float(self._duration) > float(end) or (outer is not None and outer.cancelled):
                own.cancel()
            if self._progress is not None:
                part = min(done * float(self._duration) / max(float(end), 1e-12), 1.0)
                self._progress(share[0] + (share[1] - share[0]) * part)

        time = QUANTITIES["time"]
        window = f"{time.write(start)}:{time.write(end)}"
        with tempfile.TemporaryDirectory(prefix="celltrain-why-") as name:
            folder = Path(name) / "events"
            kept = Events(folder=folder, kinds=kinds, flows=flows, ports=ports, window=window)
            try:
                with kept.taking(is_temporary=True) as take:
                    self._accepted.run(
                        *(self._seed, (), None, None, engine, on_progress, own._handle, kept.for_core(), take)
                    )
            except CancelledError:
                check()
            except ValueError as error:
                raise ScenarioError.of_refusal(error) from None
            log = read_events(folder)
            return {kind: log[kind] for kind in kinds}
