"""The cases of an ensemble: scenarios, and their runs with several seeds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celltrain import _core
from celltrain.ensemble.plan.plan import canonical_with_memory
from celltrain.model.cancel import current


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One scenario of an ensemble.

    Attributes:
        number: Its number, from 0.
        configuration: The canonical scenario as JSON.
        memory: Bytes of memory that a run of it reserves.
        name: Its name, if the cases have names.
        settings: The settings in which it differs from the other cases, by axis.
    """

    number: int
    configuration: str
    memory: int
    name: str = ""
    settings: Mapping[str, float | str] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, scenario: Mapping[str, Any], **more: Any) -> Case:
        """Returns the case of a scenario; raises `ScenarioError` if the scenario is refused."""
        configuration, memory = canonical_with_memory(scenario)
        return cls(number=number, configuration=configuration, memory=memory, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of a case.

    Attributes:
        case: The case.
        seed: The seed of every random choice.
        key: A text that only this run has.
        measures: Measures of this run; those of the ensemble when None.
    """

    case: Case
    seed: int
    key: str
    measures: tuple[str, ...] | None = None


class _TookLongError(Exception):
    """A trial run has taken long enough."""


def trial_run(configuration: str, seed: int, seconds: float) -> tuple[dict[str, Any] | None, float]:
    """Runs a canonical scenario for some seconds at most.

    Returns:
        The answer, or None if the run was ended, and the seconds that a whole run takes.
    """
    begun, share = time.monotonic(), 0.0

    def check_time(done: float) -> None:
        nonlocal share
        share = done
        if share > 0 and time.monotonic() - begun > seconds:
            raise _TookLongError

    try:
        text, _ = _core.Scenario(configuration).run(seed, on_progress=check_time, cancel=current())
    except _TookLongError:
        return None, (time.monotonic() - begun) / share
    answer = json.loads(text)
    return answer, float(answer["timing"]["engine_seconds"])
