"""Explanations of losses: the episodes of a flow, and the events around an instant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.errors import ScenarioError
from celltrain.inspect.changes import with_rates
from celltrain.inspect.history import NEVER, Episode, EventRuns, History
from celltrain.inspect.story import Sentence, deadlock, sentences_on, sentences_without_episode
from celltrain.model.arguments import Cancel, checked
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.paths import QUANTITIES
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Maximum number of sentences in the text.
MOST = 12
#: Maximum number of connections without deliveries named in a warning.
MOST_DEAD = 8
#: Headings of `Episodes.rows`.
HEADS = ["from (s)", "to (s)", "silent (ms)", "lost segments", "retransmitted"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Why:
    """An explanation of losses and retransmissions of a flow around an instant. The text contains the most important sentences.

    Attributes:
        is_well: True if nothing was lost or retransmitted at the instant, and no deadlock had stopped links.
        from_s: Start of the episode around the instant; None if there is none.
        to_s: End of the episode; None if there is none, or if it had not ended by the end of the run.
    """

    scenario: str
    seed: int
    flow: str
    at_s: float
    is_well: bool
    from_s: float | None
    to_s: float | None
    sentences: Sequence[Sentence]

    def text(self, most: int | None = MOST) -> str:
        """Returns the sentences, one per line.

        If there are more than `most`, keeps the first loss with its cause, the cost, and the sentences nearest to the
        instant.
        """
        texts = [sentence.text for sentence in self.sentences]
        if most is not None and len(texts) > most:
            kept = _kept(self.sentences, self.at_s, most - 1)
            left_out = len(texts) - len(kept)
            texts = [texts[place] for place in sorted(kept)]
            texts.append(f"{left_out} more sentences are not shown; celltrain why --all prints them.")
        return "\n".join(texts)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain why --json`: every sentence with the events on which it is based."""
        sentences = [{"text": sentence.text, "rows": sentence.rows} for sentence in self.sentences]
        return {**vars(self), "sentences": sentences}

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return Card(title=f"{self.flow} at {self.at_s:g} s", lines=self.text().split("\n")).html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text())

    def __repr__(self) -> str:
        return f"Why(flow={self.flow!r}, at_s={self.at_s:g}, {len(self.sentences)} sentences)"


def _kept(sentences: Sequence[Sentence], at: float, most: int) -> set[int]:
    """Returns the indices of the sentences to keep, at most `most`: the ends, the first loss, and the nearest."""
    openings = {one.group: place for place, one in enumerate(sentences) if one.place == 0}
    first = min((one.group for one in sentences if one.group is not None), default=None)
    kept = {0, *(place for place in range(len(sentences) - 3, len(sentences)) if sentences[place].is_needed)}
    kept |= {place for place, one in enumerate(sentences) if first is not None and one.group == first and one.place < 2}
    for place in sorted(range(len(sentences)), key=lambda place: abs(sentences[place].time - at)):
        # A sentence may refer to the first sentence of its group.
        group = sentences[place].group
        more = kept | {place, place if group is None else openings[group]}
        kept = more if len(more) <= most else kept
    return kept


@checked(ScenarioError)
def why(
    scenario: Scenario | str | os.PathLike[str],
    *,
    flow: str | None = None,
    at: str,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> Why:
    """Explains what happened to a flow at a given time: losses, their cause, how the sender reacted, and the cost.

    The scenario is run twice: on the fast engine for the flow's segments, which show the episode, and on the reference
    engine, until the end of the episode, for the outcomes of frames. Both give the same results as `celltrain.run`.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        flow: The connection. When None, the one in the longest trouble around that time.
        at: The time to look at, to the precision written: `"2.4s"` means 2.35 s to 2.45 s.
        seed: Seed of every random choice; the scenario's own when None.
        progress: Called from time to time with the completed fraction of the work, 0 to 1.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: If the scenario is refused, there is no such flow, the time is outside the run, or no flow's
            packets have TCP's sequence numbers.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> lan = ct.n_source(
    ...     sources=3, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="20ms", tcp=ct.Sack()
    ... )
    >>> answer = ct.why(lan, flow="tcp1", at="1ms")
    >>> answer.is_well, answer.sentences[1].rows[0]["kind"]
    (False, 'frames')
    """
    runs = EventRuns.of(scenario, seed, progress)
    instant = float(_instant(at, runs))
    flows = runs.flows if flow is None else [runs.check_flow(flow)]
    history, episode = runs.around(flows, instant, _exactness(at))
    if episode is None:
        sentences = sentences_without_episode(history, instant, float(runs.duration))
    else:
        told = sentences_on(history, episode, runs.outcomes(history, episode))
        sentences = with_rates(told, runs.rate_changes)
    deadlocked = runs.deadlock(Fraction(instant))
    if deadlocked is not None:
        found = deadlocked.to_list()
        cause = Sentence(text=deadlock(found), time=found[0]["time_s"], events=(deadlocked,), is_needed=True)
        sentences = [cause, *(sentences if episode is not None else [])]
    return Why(
        scenario=runs.name,
        seed=runs.seed,
        flow=history.flow,
        at_s=instant,
        is_well=episode is None and deadlocked is None,
        from_s=None if episode is None else episode.start,
        to_s=None if episode is None or episode.end == NEVER else episode.end,
        sentences=sentences,
    )


def _instant(at: str, runs: EventRuns) -> Fraction:
    try:
        instant = QUANTITIES["time"].read(at)
    except ValueError as error:
        raise ScenarioError.of_option("at", shown(at), f"is not {error}") from None
    if instant > runs.duration:
        raise ScenarioError.of_option("at", shown(at), f"lies outside the run, which lasts {runs.written_duration}")
    return instant


def _exactness(at: str) -> float:
    """Returns half a unit of an instant's last digit, in seconds.

    >>> _exactness("2.4s"), _exactness("30ms")
    (0.05, 0.0005)
    """
    number, unit = at.strip().rstrip("abcdefghijklmnopqrstuvwxyz "), at.strip().lstrip("0123456789._ ")
    digits = len(number.partition(".")[2].replace("_", ""))
    return float(QUANTITIES["time"].read(f"1{unit}") / 2 / 10**digits)


@dataclass(frozen=True, kw_only=True)
class Silence:
    """An episode of a connection, during which lost or retransmitted data was not yet acknowledged.

    Attributes:
        from_s: Time at which the first lost or retransmitted segment was sent.
        to_s: Time at which all such segments were acknowledged; None if the run ended before.
        silent_s: Longest time in the episode during which the connection sent nothing.
        at_s: Start of that silence, a good time to pass to `celltrain.why`.
    """

    flow: str
    from_s: float
    to_s: float | None
    lost_segments: int
    retransmitted_segments: int
    silent_s: float
    at_s: float

    @classmethod
    def of(cls, history: History, episode: Episode, end: float) -> Silence:
        """Summarises an episode in a run that ends at `end`."""
        until = min(episode.end, end)
        sent = history.time[history.sent]
        # A silence that begins with the last segment of an episode ends when the episode ends.
        edges = np.append(sent[(sent >= episode.start) & (sent <= until)], until)
        longest = int(np.argmax(np.diff(edges))) if len(edges) > 1 else 0
        return cls(
            flow=history.flow,
            from_s=episode.start,
            to_s=None if episode.end == NEVER else episode.end,
            lost_segments=len(history.within(history.lost, episode)),
            retransmitted_segments=len(history.within(history.retransmitted, episode)),
            silent_s=float(np.diff(edges)[longest]) if len(edges) > 1 else 0.0,
            at_s=float(edges[longest]),
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Episodes(CardMixin):
    """The episodes of one connection, sorted by silence, longest first. `celltrain.why` explains each of them.

    Attributes:
        flow: The chosen connection, or the one with the longest silence.
        delivered_nothing: Connections that delivered nothing in the whole run.
    """

    scenario: str
    seed: int
    flow: str
    delivered_nothing: Sequence[str]
    episodes: Sequence[Silence]

    def __iter__(self) -> Iterator[Silence]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, place: int) -> Silence:
        return self.episodes[place]

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain why --json` without `--at`."""
        return asdict(self)

    @property
    def warning(self) -> str:
        """Names the connections that delivered nothing in the whole run; empty if there are none."""
        dead = [shown(flow) for flow in self.delivered_nothing]
        more = f" and {len(dead) - MOST_DEAD:,} more" if len(dead) > MOST_DEAD else ""
        return f"Nothing of {', '.join(dead[:MOST_DEAD])}{more} arrived in the whole run." if dead else ""

    def rows(self) -> list[list[str]]:
        """Returns a row of texts for each episode: start, end, silence, segments lost and retransmitted."""
        return [
            [
                f"{one.from_s:.6f}",
                "end of run" if one.to_s is None else f"{one.to_s:.6f}",
                f"{one.silent_s * 1e3:,.0f}",
                f"{one.lost_segments:,}",
                f"{one.retransmitted_segments:,}",
            ]
            for one in self.episodes
        ]

    def _card(self) -> Card:
        nothing = "" if self.episodes else f"{self.flow} neither lost nor retransmitted anything."
        return Card(
            title=f"{self.flow} of {self.scenario or 'a run'}, seed {self.seed}",
            lines=[line for line in (self.warning, nothing) if line],
            grids=[Grid(heads=HEADS, rows=self.rows(), left=())],
        )

    def __repr__(self) -> str:
        return f"Episodes(flow={self.flow!r}, {len(self)} episodes)"


@checked(ScenarioError)
def episodes(
    scenario: Scenario | str | os.PathLike[str],
    *,
    flow: str | None = None,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> Episodes:
    """Lists when a connection was in trouble: each episode with its losses and its longest silence.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        flow: The connection; the one with the longest silence when None.
        seed: Seed of every random choice; the scenario's own when None.
        progress: Called from time to time with the completed fraction of the work, 0 to 1.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: If the scenario is refused or has no such flow, or no flow's packets have TCP's sequence numbers.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> found = ct.episodes("lan-epd", seed=18)
    >>> found.flow, found[0].silent_s > found[1].silent_s
    ('tcp5', True)
    """
    runs = EventRuns.of(scenario, seed, progress)
    flows = runs.flows if flow is None else [runs.check_flow(flow)]
    histories = runs.explicable(runs.histories(flows, runs.duration, share=(0.0, 1.0)), runs.duration)
    silences = [[Silence.of(one, episode, float(runs.duration)) for episode in one.episodes] for one in histories]
    longest = [max((silence.silent_s for silence in of_flow), default=0.0) for of_flow in silences]
    worst = longest.index(max(longest))
    return Episodes(
        scenario=runs.name,
        seed=runs.seed,
        flow=histories[worst].flow,
        delivered_nothing=[one.flow for one in histories if one.delivered_nothing],
        episodes=sorted(silences[worst], key=lambda one: -one.silent_s),
    )
