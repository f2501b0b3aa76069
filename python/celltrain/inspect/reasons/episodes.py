"""The episodes of a run in which a connection lost or retransmitted something, longest silence first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from celltrain.errors import ScenarioError
from celltrain.inspect.reasons.history import NEVER, Episode, History
from celltrain.inspect.reasons.run import Opened
from celltrain.model.arguments import Answer, checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.cards import Card, Carded, Grid
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario


#: Connections that delivered nothing and are named in a warning.
MOST_DEAD = 8


@dataclass(frozen=True, kw_only=True)
class Silence:
    """An episode of a connection: something was lost or retransmitted, and not yet acknowledged."""

    flow: str
    from_s: float
    """When the first lost or retransmitted segment was sent."""
    to_s: float | None
    """When all of it was acknowledged; None if the run ended before."""
    lost_segments: int
    retransmitted_segments: int
    silent_s: float
    """The longest time in the episode during which the connection sent nothing."""
    at_s: float
    """When that silence began: an instant to ask about."""


class Episodes(Answer, Carded):
    """The episodes of one connection, longest silence first; `celltrain.why` explains each."""

    _call = "celltrain.episodes"
    _facts: dict[str, Any]
    _found: tuple[Silence, ...]

    @classmethod
    def _of(cls, facts: dict[str, Any], found: Sequence[Silence]) -> Episodes:
        made = cls.__new__(cls)
        made._facts = facts
        made._found = tuple(found)
        return made

    @property
    def flow(self) -> str:
        """The connection: the one asked for, or the one with the longest silence."""
        return str(self._facts["flow"])

    def __iter__(self) -> Iterator[Silence]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, place: int) -> Silence:
        return self._found[place]

    def to_dict(self) -> dict[str, Any]:
        """As `celltrain why --json` prints it without `--at`."""
        return {**self._facts, "episodes": [asdict(one) for one in self._found]}

    @property
    def warning(self) -> str:
        """Says which of the connections looked at delivered nothing in the whole run; empty if none did."""
        dead = [shown(flow) for flow in self._facts["delivered_nothing"]]
        more = f" and {len(dead) - MOST_DEAD:,} more" if len(dead) > MOST_DEAD else ""
        return f"Nothing of {', '.join(dead[:MOST_DEAD])}{more} arrived in the whole run." if dead else ""

    def rows(self) -> list[list[str]]:
        """One row of texts for each episode: begin, end, silence, segments lost and retransmitted."""
        return [
            [
                f"{one.from_s:.6f}",
                "end of run" if one.to_s is None else f"{one.to_s:.6f}",
                f"{one.silent_s * 1e3:,.0f}",
                f"{one.lost_segments:,}",
                f"{one.retransmitted_segments:,}",
            ]
            for one in self._found
        ]

    def _card(self) -> Card:
        return Card(
            title=f"{self.flow} of {self._facts['scenario'] or 'a run'}, seed {self._facts['seed']}",
            lines=[
                *([self.warning] if self.warning else []),
                *([] if self._found else [f"{self.flow} lost nothing and retransmitted nothing."]),
            ],
            grids=[Grid(heads=HEADS, rows=self.rows(), left=())],
        )

    def __repr__(self) -> str:
        return f"Episodes(flow={self.flow!r}, {len(self)} episodes)"


#: Headings of `Episodes.rows`.
HEADS = ["from (s)", "to (s)", "silent (ms)", "lost segments", "retransmitted"]


@checked(ScenarioError)
@endable
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
        progress: Called now and then with the share of the work that is done, 0 to 1.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: When the scenario is refused or has no such flow.
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> found = ct.episodes("lan-epd", seed=18)
    >>> found.flow, found[0].silent_s > found[1].silent_s
    ('tcp5', True)
    """
    opened = Opened.of(scenario, seed, progress)
    flows = opened.flows if flow is None else [opened.checked_flow(flow)]
    duration = opened.duration
    histories = opened.runs.histories(flows, Fraction(0), duration, share=(0.0, 1.0))
    by_flow = {one.flow: _silences(one, float(duration)) for one in histories}
    worst = max(flows, key=lambda name: max((one.silent_s for one in by_flow[name]), default=0.0))
    dead = [one.flow for one in histories if one.delivered_nothing]
    facts = {"scenario": opened.name, "seed": opened.seed, "flow": worst, "delivered_nothing": dead}
    return Episodes._of(facts, sorted(by_flow[worst], key=lambda one: -one.silent_s))


def _silences(history: History, end: float) -> list[Silence]:
    return [_silence(history, episode, end) for episode in history.episodes]


def _silence(history: History, episode: Episode, end: float) -> Silence:
    import numpy as np

    until = min(episode.end, end)
    sent = history.time[history.is_sent]
    inside = sent[(sent >= episode.start) & (sent <= until)]
    # A silence may outlast the episode's last segment, and ends with the episode.
    edges = np.append(inside, until)
    longest = int(np.argmax(np.diff(edges))) if len(edges) > 1 else 0
    return Silence(
        flow=history.flow,
        from_s=episode.start,
        to_s=None if episode.end == NEVER else episode.end,
        lost_segments=len(history.within(history.lost, episode)),
        retransmitted_segments=len(history.within(np.flatnonzero(history.is_again), episode)),
        silent_s=float(np.diff(edges)[longest]) if len(edges) > 1 else 0.0,
        at_s=float(edges[longest]),
    )
