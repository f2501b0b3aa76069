"""Results of a search as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with half the width of its 95 % interval."""

    mean: float
    half: Annotated[float, BeforeValidator(lambda half: math.nan if half is None else half)]
    """NaN for fewer than two values."""

    @property
    def beyond(self) -> bool:
        """True if the interval excludes zero."""
        return abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial of the search, with its few seeds: the best trials look better than they are."""

    generation: int
    parameters: dict[str, float]
    means: tuple[float, float] | None
    """Means of the objectives; None if the trial failed."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """A setting that was run with the seeds of confirmation, which were not used to choose it."""

    parameters: dict[str, float]
    estimates: tuple[Estimate, Estimate] | None
    """Estimates of the objectives; None if a run failed."""
    label: str | None
    """Name of the reference, if it is one."""
    chosen: bool
    """True if it was on the front of selection."""
    front: bool
    """True if no other setting beats it in the means of confirmation."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """Gain over a reference: the best setting in one objective among those at least as good in the other.

    Chosen by the seeds of selection. The differences, setting less reference, are from the seeds of confirmation, paired.
    """

    reference: str
    objective: int
    """0 or 1: the objective that was optimised."""
    parameters: dict[str, float]
    same: bool
    """True if the setting is the reference: nothing better was found."""
    estimates: tuple[Estimate, Estimate]
    differences: tuple[Estimate, Estimate]
    """In the unit of the measure, whatever direction is better."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One configuration."""

    values: dict[str, float | str]
    """Values by axis."""
    title: str
    trials: tuple[Tried, ...]
    confirmed: tuple[Confirmed, ...]
    """Settings from the best in the first objective."""
    left: tuple[Left, ...]
