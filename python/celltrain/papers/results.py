"""The results of a reproduction: the numbers with their ensembles, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from celltrain import _core
from celltrain.papers import claims, score
from celltrain.papers.claims import Claim
from celltrain.papers.paper import STUDY, Paper
from celltrain.papers.score import Scored


@dataclass(frozen=True, kw_only=True, repr=False)
class Results:
    """The tables of a paper, or of a study, run again: every number with its ensemble, every claim with its verdict.

    Attributes:
        seeds: Requested seeds, by network (under "" if the paper has none).
        scored: Printed numbers and those of the experiments, in the order of the paper, as far as they were run.
        fingerprints: Fingerprint of each run, by configuration and seed.
        cell_hops: Cells that crossed a link, in all runs.
        elapsed_seconds: Real time of all runs.
        interrupted: True if not all runs had ended.
    """

    paper: Paper
    seeds: Mapping[str, int]
    scored: Sequence[Scored]
    fingerprints: Mapping[tuple[int, int], str] = field(default_factory=dict)
    cell_hops: int = 0
    elapsed_seconds: float = 0.0
    interrupted: bool = False

    @property
    def numbers(self) -> list[Scored]:
        """The printed numbers, or all numbers of a study."""
        return [s for s in self.scored if s.number.published is not None or self.paper.kind is STUDY]

    @property
    def experiments(self) -> list[Scored]:
        """Numbers without a printed value, run for the paper's claims."""
        return [s for s in self.scored if s.number.published is None and self.paper.kind is not STUDY]

    @property
    def claims(self) -> list[Claim]:
        """The verdict on every claim whose rows were all run."""
        return self._judged[0]

    @property
    def claims_left_out(self) -> list[str]:
        """The claims that need rows that were not run."""
        return self._judged[1]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers that agree, in all and by table, network and quantity."""
        return score.summary(self.scored)

    @cached_property
    def _judged(self) -> tuple[list[Claim], list[str]]:
        return claims.judge(self.paper, self.scored)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain reproduce --json`, or of `celltrain study --json`."""
        return {
            self.paper.kind.word: self.paper.id,
            "seeds": max(self.seeds.values()),
            "numbers": [scored.to_dict() for scored in self.numbers],
            "claims": [claim.to_dict() for claim in self.claims],
            "summary": self.summary,
            "seeds_by_network": dict(self.seeds),
            "experiments": [scored.to_dict() for scored in self.experiments],
            "claims_left_out": self.claims_left_out,
            "overrides": self.paper.overrides,
            "interrupted": self.interrupted,
            "cell_hops": self.cell_hops,
            "elapsed_seconds": self.elapsed_seconds,
            "build": _core.build(),
        }

    def __repr__(self) -> str:
        held = sum(claim.holds for claim in self.claims)
        inside = f"{self.summary['inside']} of {self.summary['scored']} numbers inside"
        return (
            f"{type(self).__name__}({self.paper.id!r}, {inside if self.paper.has_print else f'{len(self.scored)} numbers'}, "
            f"{held} of {len(self.claims)} claims hold{', interrupted' if self.interrupted else ''})"
        )
