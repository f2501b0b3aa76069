"""The scenario that the points of a plan change, and values that come from Python."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.ensemble.plan.document import Diagnostics, Place, parse
from celltrain.errors import Fault, InputError, PlanError, ScenarioError
from celltrain.model import overrides, policy_files, shipped
from celltrain.model.cancel import current
from celltrain.model.grammar import AS_IS
from celltrain.model.paths import UnknownKeyError, choices, set_key
from celltrain.model.scenario import Reading, name_of, other_kind
from celltrain.model.shipped import named_text, read_text
from celltrain.text import described
from celltrain.text import shown as shown_path

if TYPE_CHECKING:
    from celltrain.model.types import Scenario


def base_of(base: Scenario | str | os.PathLike[str], diagnostics: Diagnostics) -> Base:
    """What a plan starts from: a scenario, or the path or the name of one."""
    if isinstance(base, str | os.PathLike):
        try:
            file, text = named_text(base)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
        table, _ = parse(text, file)
        if (other := other_kind(table, file)) is not None:
            raise PlanError([other])
        return Base(table, file, text)
    if hasattr(base, "to_dict"):
        try:
            return Base(base.to_dict(), name_of(base), None)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
    raise PlanError([Fault.of_option("base", described(base), "is not a scenario, nor the path or the name of one")])


def plain(value: Any) -> Any:
    """Returns a value as `overrides.plain` does; raises `PlanError`."""
    try:
        return overrides.plain(value)
    except ScenarioError as error:
        raise PlanError(error.faults) from None


def axis_paths(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and paths of everything that a plan varies."""
    tables = [document.get("axes"), *(document.get("paired") or ())]
    tables += [one.get("axes") for key in ("points", "sample") if isinstance(one := document.get(key), Mapping)]
    if isinstance(tune := document.get("tune"), Mapping):
        tables.append(tune.get("parameters"))
    for table in tables:
        for name, said in table.items() if isinstance(table, Mapping) else ():
            path = said if isinstance(said, str) else said.get("path", name) if isinstance(said, Mapping) else name
            yield name, str(path)


def with_tables(
    document: Mapping[str, Any], scenario: Mapping[str, Any], folder: Path | None, diagnostics: Diagnostics
) -> dict[str, Any]:
    """Returns a plan in which texts for tables, such as `epd:threshold=80%` or `mine.toml`, are these tables.

    Args:
        document: The plan.
        scenario: The scenario of the plan; a TCP that a text names keeps its settings.
        folder: Where relative paths of policy files start.
        diagnostics: Collects what is wrong with such texts.
    """
    made = dict(document)
    texts = _Texts(scenario=_with_single(scenario, made.get("axes")), folder=folder, diagnostics=diagnostics)
    if isinstance(axes := made.get("axes"), Mapping):
        made["axes"] = {name: _with_tables(name, said, ("axes", name), texts) for name, said in axes.items()}
    if isinstance(points := made.get("points"), Mapping) and isinstance(axes := points.get("axes"), Mapping):
        place = ("points", "axes")
        inside = {name: _with_tables(name, said, (*place, name), texts) for name, said in axes.items()}
        made["points"] = {**points, "axes": inside}
    if isinstance(paired := made.get("paired"), list):
        made["paired"] = [
            {name: _with_tables(name, said, ("paired", n, name), texts) for name, said in one.items()}
            if isinstance(one, Mapping)
            else one
            for n, one in enumerate(paired)
        ]
    return made


@dataclass(frozen=True, kw_only=True)
class _Texts:
    """Reads texts for tables."""

    scenario: Mapping[str, Any]
    folder: Path | None
    diagnostics: Diagnostics

    def read(self, path: str, text: str) -> tuple[str, Any]:
        """The label and the table of a text; raises what `overrides.resolved` raises."""
        label, value = overrides.resolved(path, text, self.folder)
        if overrides.is_tcp(path):
            value = overrides.with_settings_of(self.scenario, path, value)
        return label, value


def _with_single(scenario: Mapping[str, Any], axes: Any) -> Mapping[str, Any]:
    """The scenario with the settings of its TCP that an axis of one value sets at every point."""
    made = {**scenario, "tcp": copy.deepcopy(scenario.get("tcp"))}
    for name, said in axes.items() if isinstance(axes, Mapping) else ():
        axis = said if isinstance(said, Mapping) else {"values": said}
        path, values, own = str(axis.get("path", name)), axis.get("values"), made.get("tcp")
        inside = isinstance(own, Mapping) and any(path.startswith(f"tcp.{kind}.") for kind in own)
        if inside and isinstance(values, list) and len(values) == 1:
            with suppress(UnknownKeyError):
                set_key(made, path, copy.deepcopy(values[0]))
    return made


def _with_tables(name: str, said: Any, place: Place, texts_of: _Texts) -> Any:
    """An axis whose texts for tables are tables."""
    axis = {"values": said} if isinstance(said, list) else said
    if not isinstance(axis, Mapping) or not isinstance(path := axis.get("path", name), str):
        return said
    values, at = axis.get("values"), place if axis is not said else (*place, "values")
    try:
        if not isinstance(values, list | Mapping) or not choices(path):
            return said
    except UnknownKeyError:
        return said
    steps: Iterable[Any] = values if isinstance(values, Mapping) else range(len(values))
    texts = [step for step in steps if isinstance(values[step], str) and values[step] != AS_IS]
    if not texts:
        return said
    found: dict[Any, tuple[str, Any]] = {}
    for step in texts:
        try:
            found[step] = texts_of.read(path, values[step])
        except InputError as error:
            texts_of.diagnostics.faults.extend(error.faults)
        except ValueError as error:
            texts_of.diagnostics.refuse((*at, step), str(error), values[step])
    if isinstance(values, Mapping):
        made = {label: found[label][1] if label in found else value for label, value in values.items()}
    else:
        labelled = [found.get(n, (value if isinstance(value, str) else "", value)) for n, value in enumerate(values)]
        labels = [label for label, _ in labelled]
        if len(found) < len(texts) or "" in labels or len(set(labels)) < len(labels):
            # What is wrong is wrong with the list as it is written.
            return said
        made = dict(labelled)
    return {**axis, "path": path, "values": made}


def _beside(said: str, folder: Path | None) -> tuple[str, str]:
    """A file that a plan in a folder names, and its text; raises `FileNotFoundError` where there is none."""
    path = None if folder is None else folder / said
    try:
        there = path is not None and path.exists()
    except OSError:
        # A name may be longer than any can be.
        there = False
    if path is None or not there:
        raise FileNotFoundError(said)
    return shown_path(path), read_text(path)


class Base:
    """The scenario that points change, and where it stands."""

    def __init__(self, table: Mapping[str, Any], file: str, text: str | None) -> None:
        self.table = dict(table)
        self.file = file
        self.text = text
        self.settings: Mapping[str, overrides.Setting] = {}

    @property
    def name(self) -> str:
        """As the scenario says it; empty where it does not."""
        name = self.table.get("name")
        return name if isinstance(name, str) else ""

    @classmethod
    def named(cls, said: Any, diagnostics: Diagnostics, folder: Path | None) -> Base:
        """What a plan's `scenario` says: a table, a file beside the plan, or a shipped scenario.

        Args:
            said: What stands there.
            diagnostics: Of the plan.
            folder: Where the plan stands; None for a shipped plan, which nothing lies beside.
        """
        nothing = cls({}, diagnostics.file, None)
        if isinstance(said, Mapping):
            return cls(said, diagnostics.file, None)
        if said is None:
            diagnostics.refuse("", "lacks a scenario: a table [scenario], or scenario = the name of a file beside it")
            return nothing
        if not isinstance(said, str):
            diagnostics.refuse("scenario", "is not a table, nor the name of a file", said)
            return nothing
        try:
            file, text = shipped.found(said, "scenario", folder) or _beside(said, folder)
            table, _ = parse(text, file)
        except (ScenarioError, PlanError) as error:
            diagnostics.faults.extend(error.faults)
            return nothing
        except FileNotFoundError:
            missing = "is not a file beside the plan"
            diagnostics.refuse("scenario", f"{missing}{shipped.advice(Path(said), 'scenario')}", said)
            return nothing
        return cls(table, file, text)

    @classmethod
    def again(cls, document: Mapping[str, Any]) -> Base:
        """That of a plan which was kept."""
        table = document.get("scenario")
        if not isinstance(table, Mapping):
            raise PlanError([Fault.of_file("plan", "has no scenario as celltrain writes it")])
        return cls(table, "scenario", None)

    def with_settings(self, settings: Mapping[str, Any], diagnostics: Diagnostics) -> Base:
        """Returns the scenario with settings in place of its own; the plan may vary none of them, and its name tells them."""
        if not settings:
            return self
        try:
            made, found = overrides.applied(self.table, settings)
        except InputError as error:
            diagnostics.faults.extend(error.faults)
            return self
        for axis, path in axis_paths(diagnostics.document):
            if path in found:
                problem = f"sets what {diagnostics.file} varies (axis {axis})"
                diagnostics.faults.append(overrides.fault_of("--set", f"{path}={found[path].typed}", problem))
        words = overrides.in_words(found)
        document = diagnostics.document
        if isinstance(name := document.get("name", Path(diagnostics.file).stem), str):
            diagnostics.document = {**document, "name": f"{name} ({words})"}
        base = Base({**made, "name": f"{made.get('name') or ''} ({words})".lstrip()}, f"{self.file} with {words}", None)
        base.settings = found
        return base

    def refused(self, fault: Fault) -> Fault | None:
        """Returns a fault of a point as one of the policy file that `--set` names; None if it is not of one."""
        found = (policy_files.refused(fault, path, one.value) for path, one in self.settings.items())
        return next((at for at in found if at is not None), None)

    def faults(self, diagnostics: Diagnostics) -> list[Fault]:
        """What is wrong with it as it stands."""
        if self.text is not None:
            return Reading.of_core(_core.parse(self.text, self.file, current())).faults
        faults = Reading.of_table(self.table, self.file).faults
        own = Diagnostics(diagnostics.file, diagnostics._lines)
        for fault in faults:
            key = f"scenario.{fault.key}" if fault.key else "scenario"
            at = Fault.of(fault.problem, file=self.file, line=own.line(key), key=key, value=fault.value)
            own.faults.append(at)
        return own.faults
