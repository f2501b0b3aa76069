"""The cases of an ensemble: scenarios, and their runs with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celltrain.ensemble.plan.plan import canonical_with_memory


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
