"""The scenario that the points of a plan change, and values that come from Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core, shipped
from celltrain.base import as_model
from celltrain.cancel import current
from celltrain.errors import Fault, PlanError, ScenarioError
from celltrain.plan.document import Diagnostics, parse
from celltrain.scenario import Reading, name_of, named_text, read_text
from celltrain.text import BROKEN, described, is_text
from celltrain.text import shown as shown_path

if TYPE_CHECKING:
    from celltrain.models import Scenario


def base_of(base: Scenario | str | os.PathLike[str], diagnostics: Diagnostics) -> Base:
    """What a plan starts from: a scenario, or the path or the name of one."""
    if isinstance(base, str | os.PathLike):
        try:
            file, text = named_text(base)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
        table, _ = parse(text, file)
        return Base(table, file, text)
    if hasattr(base, "to_dict"):
        try:
            return Base(base.to_dict(), name_of(base), None)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
    raise PlanError([Fault.of_option("base", described(base), "is not a scenario, nor the path or the name of one")])


def plain(value: Any) -> Any:
    """A value as JSON and TOML know them: scenario classes as their tables, arrays as lists."""
    value = as_model(value)
    if hasattr(value, "model_dump"):
        # Choices are written under their key, which their own class does not know.
        try:
            return _choice(value)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str) and not is_text(value):
        raise PlanError([Fault.of(BROKEN, key=described(value))])
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    return value


def _choice(value: Any) -> dict[str, Any]:
    """A table of a scenario; what is one of several kinds, such as a policy, under the key of its kind."""
    from celltrain.models import NSource, Port, Scenario, TailDrop

    port = Port(buffer_cells="infinite", policy=TailDrop())
    scenario = Scenario(duration="1s", topology=NSource(sources=1, link_delay="0s"))
    holders = ((port, ("policy", "scheduler", "allocator")), (scenario, ("tcp", "topology")))
    for holder, fields in holders:
        for field in fields:
            try:
                table: dict[str, Any] = holder.replace(**{field: value}).to_dict()[field]
            except ScenarioError:
                continue
            return table
    return dict(value.to_dict())


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
            missing = "is no file beside the plan"
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
