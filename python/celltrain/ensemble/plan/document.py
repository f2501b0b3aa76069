"""A plan as a document, with the scenario that it names: values, line numbers and faults."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from celltrain import _core
from celltrain.errors import Fault, InputError, PlanError
from celltrain.model import overrides, shipped
from celltrain.model.files import UnreadableError, below
from celltrain.model.grammar import AS_IS
from celltrain.model.paths import UnknownKeyError, choices, set_key
from celltrain.model.scenario import Reading, name_of, other_kind, table
from celltrain.model.shipped import named_text, read_text
from celltrain.text import described, key_path, shortened, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

Lines = Mapping[str, int]
#: Keys of tables and indices of lists, from the top of the plan to a value.
Place = tuple[str | int, ...]

#: Maximum number of bits of a whole number. A larger number is outside every range and does not fit in a float.
MOST_BITS = 1023
#: Maximum number of faults that are reported.
MOST_FAULTS = 100


class RefusedError(Exception):
    """Raised if a part of a plan is refused; the document contains the faults."""


def parse(text: str, file: str) -> tuple[dict[str, Any], Lines]:
    """Returns the values of a TOML text, and the line of every key; raises `PlanError`."""
    answer = json.loads(_core.toml(text, file))
    if answer["faults"]:
        raise PlanError(Fault(**fault) for fault in answer["faults"])
    # Python's TOML parser keeps the order of the keys, which becomes the order of the columns. Dates are converted to
    # text.
    try:
        return json.loads(json.dumps(tomllib.loads(text), default=str)), answer["lines"]
    except ValueError as error:
        # Python's TOML parser rejects numbers with thousands of digits.
        raise PlanError.of_file(file, f"cannot be read as TOML ({error})") from None


def as_text(value: Any) -> str:
    """Formats a value for a message."""
    if isinstance(value, Mapping):
        return "{...}"
    try:
        return shortened(json.dumps(value, ensure_ascii=False, default=described))
    except ValueError:
        # The value is a list that contains itself, or a number with more digits than Python prints.
        return described(value)


class Document:
    """The contents of a plan, its scenario, and the faults of both.

    Attributes:
        document: The plan as it was given, with texts such as policy names replaced by tables.
        name: The default name.
        scenario: The scenario that is varied.
        scenario_file: The file of the scenario.
        scenario_text: The text of this file, if it is not the plan itself.
        case: The scenario's case, if it has been read before.
        settings: Settings that replace the scenario's own.
        faults: All faults found so far.
    """

    def __init__(self, file: str, lines: Lines | None, document: Mapping[str, Any]) -> None:
        self.file, self.lines, self.document = file, lines, dict(document)
        self.name, self.scenario_file, self.scenario_text = "", file, ""
        self.scenario: dict[str, Any] = {}
        self.case: _core.Case | None = None
        self.settings: Mapping[str, overrides.Setting] = {}
        self.faults: list[Fault] = []

    @classmethod
    def of_text(cls, text: str, file: str, folder: Path | None, settings: Mapping[str, Any] | None = None) -> Self:
        """Returns the plan of a TOML text; `settings` replace settings of its scenario."""
        document, lines = parse(text, file)
        made = cls(file, lines, document)
        made.name = Path(file).stem if file.endswith(".toml") else ""
        made._find_scenario(document.get("scenario"), folder)
        if settings:
            made._replace_settings(settings)
        made._resolve_texts(folder)
        return made

    @classmethod
    def of_values(
        cls, scenario: Scenario | _core.Case | str | os.PathLike[str], document: Mapping[str, Any], file: str
    ) -> Self:
        """Returns the plan of Python values."""
        try:
            made = cls(
                file, None, overrides.plain({key: value for key, value in document.items() if value is not None})
            )
            if isinstance(scenario, str | os.PathLike):
                made._use_text(*named_text(scenario))
                if (other := other_kind(made.scenario, made.scenario_file)) is not None:
                    raise PlanError([other])
            elif isinstance(scenario, _core.Case):
                made.scenario, made.case = table(scenario), scenario
            elif hasattr(scenario, "to_dict"):
                made.scenario, made.scenario_file = scenario.to_dict(), name_of(scenario)
            else:
                problem = "is neither a scenario nor the path or name of one"
                raise PlanError.of_option("base", described(scenario), problem)
        except InputError as error:
            raise PlanError(error.faults) from None
        name = made.scenario.get("name")
        made.name = name if isinstance(name, str) else ""
        made._resolve_texts(None)
        return made

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Returns the plan of a stored document."""
        table = document.get("scenario")
        if not isinstance(table, Mapping):
            raise PlanError.of_file("plan", "has no scenario in the form that celltrain writes")
        made = cls("plan", None, document)
        made.scenario = dict(table)
        return made

    def _use_text(self, file: str, text: str) -> None:
        """Reads the scenario from a file; raises `PlanError`."""
        root, lines = parse(text, file)
        scenario, _ = shipped.with_rows(root, Path(file).parent, file, lines)
        self.scenario, self.scenario_file, self.scenario_text = dict(scenario), file, text

    def _find_scenario(self, given: Any, folder: Path | None) -> None:
        """Finds the scenario of a plan: a table, a file next to the plan, or a shipped scenario."""
        if isinstance(given, Mapping):
            try:
                self.scenario = dict(shipped.with_rows(given, folder, self.file)[0])
            except InputError as error:
                for fault in error.faults:
                    own = fault.file == self.file
                    self.faults.append(fault.changed(key=f"scenario.{fault.key}") if own else fault)
        elif given is None:
            self.refuse("", "has no scenario; add a table [scenario], or scenario = the name of a file in its folder")
        elif not isinstance(given, str):
            self.refuse("scenario", "is neither a table nor the name of a file", given)
        else:
            try:
                # Unlike pathlib, os.path accepts names longer than the system allows.
                if (found := shipped.found(given, "scenario", folder)) is not None:
                    self._use_text(*found)
                elif folder is not None and os.path.exists(folder / given):  # noqa: PTH110
                    path = below(folder, given)
                    self._use_text(shown(path), read_text(path))
                else:
                    problem = f"is not a file in the plan's folder{shipped.advice(Path(given), 'scenario')}"
                    self.refuse("scenario", problem, given)
            except UnreadableError as error:
                self.refuse("scenario", error.problem, given)
            except InputError as error:
                self.faults.extend(error.faults)

    def _replace_settings(self, settings: Mapping[str, Any]) -> None:
        """Replaces settings of the scenario, and adds them to the names of the scenario and of the plan."""
        try:
            made, self.settings = overrides.applied(self.scenario, settings)
        except InputError as error:
            self.faults.extend(error.faults)
            return
        words = overrides.in_words(self.settings)
        name = self.document.get("name", Path(self.file).stem)
        if isinstance(name, str):
            self.document["name"] = f"{name} ({words})"
        self.scenario = {**made, "name": f"{made.get('name') or ''} ({words})".lstrip()}
        self.scenario_file, self.scenario_text = f"{self.scenario_file} with {words}", ""

    def _resolve_texts(self, folder: Path | None) -> None:
        """Replaces texts that describe tables, such as `epd:threshold=80%` or `mine.toml`, with the tables.

        A TCP named by text keeps the settings of the scenario. Paths of policy files are relative to the folder.
        """
        scenario = self._with_single_values()
        paired = self.document.get("paired")
        several = range(len(paired)) if isinstance(paired, list) else ()
        for place in (("axes",), ("points", "axes"), *(("paired", number) for number in several)):
            axes = self.at(place) if self.has(*place) else None
            if isinstance(axes, dict):
                made = [self._with_tables(name, axis, (*place, name), scenario, folder) for name, axis in axes.items()]
                axes.update(zip(axes, made, strict=True))

    def _with_single_values(self) -> Mapping[str, Any]:
        """Returns the scenario after axes with a single value have set settings of its TCP."""
        made = {**self.scenario, "tcp": copy.deepcopy(self.scenario.get("tcp"))}
        axes, own = self.document.get("axes"), made["tcp"]
        for name, given in axes.items() if isinstance(axes, Mapping) and isinstance(own, Mapping) else ():
            axis = given if isinstance(given, Mapping) else {"values": given}
            path, values = str(axis.get("path", name)), axis.get("values")
            inside = any(path.startswith(f"tcp.{kind}.") for kind in own)
            if inside and isinstance(values, list) and len(values) == 1:
                with suppress(UnknownKeyError):
                    set_key(made, path, copy.deepcopy(values[0]))
        return made

    def _with_tables(
        self, name: str, given: Any, place: Place, scenario: Mapping[str, Any], folder: Path | None
    ) -> Any:
        """Returns an axis with texts replaced by tables, or unchanged if it has no such text or a faulty one."""
        axis = {"values": given} if isinstance(given, list) else given if isinstance(given, Mapping) else {}
        path, values = axis.get("path", name), axis.get("values")
        with suppress(UnknownKeyError):
            if not isinstance(path, str) or not isinstance(values, list | Mapping):
                return given
            every = values.values() if isinstance(values, Mapping) else values
            names_sizes = any(isinstance(value, str) and shipped.is_row_file(path, value) for value in every)
            if not names_sizes and not choices(path):
                return given
            labelled = isinstance(values, Mapping)
            entries: Iterable[tuple[Any, Any]] = values.items() if isinstance(values, Mapping) else enumerate(values)
            made: dict[str, Any] = {}
            before, is_changed = len(self.faults), False
            for step, value in entries:
                label, table = value if isinstance(value, str) else "", value
                if isinstance(value, str) and value != AS_IS:
                    try:
                        label, table = overrides.resolved(path, value, folder)
                        if overrides.is_tcp(path):
                            table = overrides.with_settings_of(scenario, path, table)
                        is_changed = True
                    except InputError as error:
                        self.faults.extend(error.faults)
                    except ValueError as error:
                        at = (*place, step) if axis is not given else (*place, "values", step)
                        self.refuse(at, str(error), value)
                made[step if labelled else label] = table
            if is_changed and len(self.faults) == before and len(made) == len(values) and (labelled or "" not in made):
                return {**axis, "path": path, "values": made}
        # Faults are reported for the axis as written in the plan.
        return given

    def scenario_faults(self) -> list[Fault]:
        """Returns the faults of the unvaried scenario."""
        if self.scenario_text:
            return Reading.of_text(self.scenario_text, self.scenario_file).faults
        found = []
        for fault in Reading.of_table(self.scenario, self.scenario_file).faults:
            key = f"scenario.{fault.key}" if fault.key else "scenario"
            line = self.line(key)
            found.append(Fault.of(fault.problem, file=self.scenario_file, line=line, key=key, value=fault.value))
        return found

    def place(self, steps: Iterable[str | int]) -> Place:
        """Returns the steps that exist in the plan.

        A step is missing if, for example, the name of an axis is also its path.
        """
        found: list[str | int] = []
        value: Any = self.document
        for step in steps:
            if step in value if isinstance(value, Mapping) else isinstance(value, list) and step in range(len(value)):
                found.append(step)
                value = value[step]
        return tuple(found)

    def at(self, place: Place) -> Any:
        """Returns the value at a place of the plan."""
        value: Any = self.document
        for step in place:
            value = value[step]
        return value

    def has(self, *place: str | int) -> bool:
        """Returns whether the plan has a value at a place, either valid or invalid."""
        return self.place(place) == place and self.at(place) is not None

    def path(self, place: str | Place) -> str:
        """Returns a place as a path, up to the last step that exists in the plan."""
        return place if isinstance(place, str) else reduce(key_path, self.place(place), "")

    def line(self, path: str) -> int | None:
        """Returns the line of a key, or of the nearest table around it; None if the plan is not a text."""
        while self.lines is not None and path not in self.lines:
            end = max(path.rfind("."), path.rfind("["))
            if end < 0:
                return 1
            path = path[:end]
        return None if self.lines is None else self.lines[path]

    def refuse(self, at: str | Place, problem: str, value: Any = ...) -> None:
        """Adds a fault. The problem is a clause that follows `path = value`, or a clause that follows the path."""
        path = self.path(at)
        text = "" if value is ... else as_text(value)
        fault = Fault.of(problem, file=self.file, line=self.line(path), key=path, value=text)
        if fault in self.faults:
            return
        self.faults.append(fault)
        if len(self.faults) > MOST_FAULTS:
            more = Fault.of(f"has more faults; only the first {MOST_FAULTS} are shown", file=self.file)
            raise PlanError([*self.faults[:MOST_FAULTS], more])

    def refused(self, at: str | Place, problem: str, value: Any = ...) -> RefusedError:
        """Adds a fault, and returns the exception to raise if the rest of this part cannot be checked."""
        self.refuse(at, problem, value)
        return RefusedError()

    def finish(self) -> None:
        """Raises `PlanError` if there are faults."""
        if self.faults:
            raise PlanError(self.faults)

    def numbers(self, value: Any = ..., place: Place = ()) -> None:
        """Refuses whole numbers too large for any setting, in the plan or in a value inside it."""
        value = self.document if value is ... else value
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            self.refuse(place, "is too large for any setting", value)
        if isinstance(value, Mapping | list):
            for step, one in value.items() if isinstance(value, Mapping) else enumerate(value):
                if isinstance(one, int | Mapping | list):
                    self.numbers(one, (*place, step))
