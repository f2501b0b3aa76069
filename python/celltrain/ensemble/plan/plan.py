"""A checked plan, and what stands for a run of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.ensemble.plan.axis import Drawn
from celltrain.ensemble.plan.contents import Contents
from celltrain.ensemble.plan.reader import read_again, read_file, read_toml, read_values
from celltrain.errors import Fault, PlanError, ScenarioError
from celltrain.model.arguments import checked
from celltrain.model.scenario import Reading, table
from celltrain.running.summary import tcp_summary

if TYPE_CHECKING:
    from celltrain.model.types import Scenario


@dataclass(frozen=True, kw_only=True)
class Plan(Contents):
    """A checked plan."""

    @classmethod
    @checked(PlanError)
    def load(cls, path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None) -> Plan:
        """The plan in a TOML file; raises `PlanError` with everything that is wrong with it.

        Args:
            path: The file, or the name of a shipped plan.
            settings: Values that replace those of the plan's scenario, by path into the scenario.
        """
        return cls._of(read_file(Path(path), settings))

    @classmethod
    @checked(PlanError)
    def of_toml(cls, text: str, *, file: str = "plan", folder: str | os.PathLike[str] = ".") -> Plan:
        """The plan in a text; `folder` is where the scenario it names stands."""
        return cls._of(read_toml(text, file, Path(folder)))

    @classmethod
    @checked(PlanError)
    def of(cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], *, file: str = "sweep") -> Plan:
        """The plan of a scenario and everything else as in a file, as Python values."""
        return cls._of(read_values(base, document, file))

    @classmethod
    def of_side(cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], file: str) -> Plan:
        """The plan of one of several scenarios with the same axes, which may take effect in another one only."""
        return cls._of(read_values(base, document, file, unused=False))

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> Plan:
        """The plan again whose `document` this is."""
        return cls._of(read_again(document))

    @classmethod
    def _of(cls, contents: Contents) -> Plan:
        return cls(**{one.name: getattr(contents, one.name) for one in fields(contents)})

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change when anything does that changes which runs there are, or what of them is kept."""
        said = {key: value for key, value in self.document.items() if key not in ("name", "limits")}
        # Another version of scipy may draw another sample.
        drawn = [
            [axis.name, hashlib.sha256(axis.numbers.shares.tobytes()).hexdigest()]
            for axis in self.axes
            if isinstance(axis.numbers, Drawn)
        ]
        text = json.dumps([said, self.measures, drawn], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@checked(ScenarioError)
def tcps(plan: Contents) -> list[str]:
    """Returns the different TCPs of a plan's points, each as `tcp_summary` has it."""
    points = range(len(plan.points)) if any(_changes_tcp(axis.path) for axis in plan.axes) else range(1)
    first: dict[tuple[tuple[str, int], ...], int] = {}
    for index in points:
        own = tuple((axis.name, place) for axis, place in plan.points.places(index) if _changes_tcp(axis.path))
        first.setdefault(own, index)
    scenarios = (json.loads(canonical(plan.points[index].scenario)) for index in first.values())
    return list(dict.fromkeys(map(tcp_summary, scenarios)))


def _changes_tcp(path: str) -> bool:
    return path.partition(".")[0] in ("tcp", "flow")


def canonical(scenario: Mapping[str, Any]) -> str:
    """A scenario as the one text that stands for it: every default filled in, keys sorted, without seed and name.

    Raises `ScenarioError` when it is refused.

    >>> from celltrain import load
    >>> text = canonical(load("scenarios/lan-epd.toml").to_dict())
    >>> text[:8]
    '{"aal5":'
    """
    return canonical_with_memory(scenario)[0]


def canonical_with_memory(scenario: Mapping[str, Any]) -> tuple[str, int]:
    """Returns the same, and the bytes of memory that a run of it reserves."""
    reading = Reading.of_table(scenario, "scenario")
    accepted = table(reading.accepted())
    text = compact({key: value for key, value in accepted.items() if key not in ("seed", "name")})
    return text, reading.memory_bytes or 0


def compact(value: Any) -> str:
    """JSON with sorted keys and nothing between."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@checked(PlanError)
def run_key(configuration: str, seed: int, *, version: str | None = None) -> str:
    """24 hex digits that stand for one run: of its canonical scenario, its seed, and the version (this one's)."""
    if not 0 <= seed < 1 << 64:
        raise PlanError([Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")])
    text = f"{version or _core.build()['version']}\n{seed}\n{configuration}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]
