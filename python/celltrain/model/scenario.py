"""Scenarios from files and from Python, and what is wrong with them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import Fault, InputError, ScenarioError
from celltrain.model import grammar, overrides, policy_files
from celltrain.model.arguments import Rate, Time, checked
from celltrain.model.cancel import Cancel, current, endable
from celltrain.model.documents import named_text
from celltrain.text import BROKEN, broken_texts, described, shown

if TYPE_CHECKING:
    from celltrain.model.policy_files import Policy as PolicyFile
    from celltrain.model.python_policy import PythonPolicy
    from celltrain.model.types import Buffer, Policy, Scenario, Tcp


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the core makes of a scenario."""

    handle: _core.Scenario | None
    """The scenario, read and checked: it can be run. None when it has faults."""
    faults: list[Fault]
    """Everything that is wrong with it."""
    warnings: list[str]
    """What to look at before trusting its results."""
    memory_bytes: int | None = None
    """Memory that a run of it reserves; None when it has faults."""
    does_not_fit: bool = False
    """Whether it is refused because it does not fit the memory there is: elsewhere, or later, it may."""

    @classmethod
    def of_core(cls, read: tuple[_core.Scenario | None, str]) -> Reading:
        """From the core's answer."""
        handle, text = read
        answer = json.loads(text)
        return cls(
            handle=handle,
            faults=[_pointed(Fault(**fault)) for fault in answer["faults"]],
            warnings=[warning["message"] for warning in answer["warnings"]],
            memory_bytes=answer["memory_bytes"],
            does_not_fit=answer["does_not_fit"],
        )

    @classmethod
    def of_table(cls, scenario: Mapping[str, Any], name: str) -> Reading:
        """Of a scenario as a table, which is under this name in faults."""
        try:
            text = as_json(scenario, name)
        except ScenarioError as error:
            return cls(handle=None, faults=error.faults, warnings=[])
        return cls.of_core(_core.parse_json(text, shown(name), current()))

    def accepted(self) -> _core.Scenario:
        """The scenario; raises `ScenarioError` when it has faults."""
        if self.handle is None:
            raise ScenarioError(self.faults)
        return self.handle

    @cached_property
    def scenario(self) -> dict[str, Any] | None:
        """The scenario as a table, with every default filled in; None when it has faults."""
        return None if self.handle is None else table(self.handle)


@cache
def controls() -> list[str]:
    """The congestion controls, as `congestion` of a TCP has them."""
    choices = json.loads(_core.schema())["$defs"]["Congestion"]["oneOf"]
    return [word for choice in choices for word in choice.get("enum", [choice.get("const")])]


def _pointed(fault: Fault) -> Fault:
    """A fault with where to look: a congestion control is not a TCP, but a setting of one, and RED is a formula."""
    table, _, name = fault.key.rpartition(".")
    if table.rpartition(".")[2] == "policy" and fault.problem.startswith("is unknown") and name in grammar.OTHERWISE:
        problem = re.sub(r"(did you mean \w+\? It|it) must", f"{grammar.OTHERWISE[name]} It must", fault.problem)
        return Fault.of(problem, file=fault.file, line=fault.line, key=fault.key, value=fault.value)
    if table.rpartition(".")[2] != "tcp" or not fault.problem.startswith("is unknown") or name not in controls():
        return fault
    problem = f'is unknown: {name} is a congestion control; write congestion = "{name}" below [{table}.vanilla], or another TCP'
    return Fault.of(problem, file=fault.file, line=fault.line, key=fault.key, value=fault.value)


def table(handle: _core.Scenario) -> dict[str, Any]:
    """A scenario that was read as a table: its JSON."""
    scenario: dict[str, Any] = json.loads(handle.json)
    return scenario


def as_json(scenario: Mapping[str, Any], name: str) -> str:
    """A scenario as JSON; raises `ScenarioError` for what can be written in no file, under this name."""
    try:
        text = json.dumps(scenario, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        broken = broken_texts(scenario)
        faults = [Fault.of(BROKEN, file=name, key=key, value=described(text)) for key, text in broken]
    except (TypeError, ValueError, RecursionError) as error:
        # A value of no type that JSON has, or a number of more digits than Python writes.
        faults = [Fault.of_file(name, f"cannot be written as JSON ({error})")]
    else:
        return text
    raise ScenarioError(faults)


def read(
    scenario: Scenario | str | os.PathLike[str], settings: Mapping[str, Any] | None = None, *, option: str = ""
) -> Reading:
    """Reads and checks a scenario, whether it is a `Scenario`, the path of a TOML file or the name of a shipped one.

    Args:
        scenario: The scenario.
        settings: Values that replace its own, by path; the name of the scenario then ends with them.
        option: The option that gives `settings`, in messages.
    """
    if settings:
        try:
            return _overridden(scenario, settings, option)
        except InputError as error:
            return Reading(handle=None, faults=error.faults, warnings=[])
    if isinstance(scenario, str | os.PathLike):
        try:
            name, text = named_text(scenario)
        except ScenarioError as error:
            return Reading(handle=None, faults=error.faults, warnings=[])
        reading = Reading.of_core(_core.parse(text, name, current()))
        if reading.faults and (root := json.loads(_core.toml(text, name))["root"]) is not None:
            other = other_kind(root, name)
            return reading if other is None else replace(reading, faults=[other])
        return reading
    if not hasattr(scenario, "to_dict"):
        problem = "is not a celltrain.Scenario, nor the path of a TOML file"
        return Reading(handle=None, faults=[Fault.of_option("scenario", scenario, problem)], warnings=[])
    try:
        values = scenario.to_dict()
    except ScenarioError as error:
        return Reading(handle=None, faults=error.faults, warnings=[])
    return Reading.of_table(values, name_of(scenario))


#: Keys that plans have and scenarios do not.
_OF_PLANS = {"scenario", "axes", "paired", "points", "sample", "measures", "seeds", "tune"}


def other_kind(root: Mapping[str, Any], file: str) -> Fault | None:
    """Returns the fault of a file that is a policy file or a plan where a scenario is expected; None if it is neither."""
    if policy_files.has_policy(root):
        example = f"a scenario takes it with --set port.bottleneck.policy=@{file}, and celltrain vet {file} tests it"
        return Fault.of_file(file, f"is a policy, not a scenario; {example}")
    if not root.keys() & {"topology", "duration"} and root.keys() & _OF_PLANS:
        command = "tune" if "tune" in root else "sweep"
        return Fault.of_file(file, f"is a plan, not a scenario; to check it: celltrain {command} {file} --dry-run")
    return None


def no_plan(root: Mapping[str, Any], file: str) -> Fault | None:
    """Returns the fault of a policy file where a plan is expected; None if it is not one."""
    if root.keys() & _OF_PLANS or not policy_files.has_policy(root):
        return None
    example = (
        f'an axis of a plan takes it: "port.bottleneck.policy" = ["epd", "@{file}"]; celltrain vet {file} tests it'
    )
    return Fault.of_file(file, f"is a policy, not a plan; {example}")


def _overridden(scenario: Scenario | str | os.PathLike[str], settings: Mapping[str, Any], option: str) -> Reading:
    """A scenario with settings in place of its own; raises `InputError` if it cannot be read at all."""
    if isinstance(scenario, str | os.PathLike):
        file, text = named_text(scenario)
        answer = json.loads(_core.toml(text, file))
        if answer["faults"]:
            raise ScenarioError([_pointed(Fault(**fault)) for fault in answer["faults"]])
        root, lines, stem = answer["root"], answer["lines"], Path(file).stem
        if (other := other_kind(root, file)) is not None:
            raise ScenarioError([other])
    elif hasattr(scenario, "to_dict"):
        root, lines, file, stem = scenario.to_dict(), {}, name_of(scenario), ""
    else:
        raise ScenarioError(read(scenario).faults)
    made, found = overrides.applied(root, settings)
    name = made.get("name", "")
    if found.keys() - {"name"} and isinstance(name, str):
        said = overrides.in_words({path: one for path, one in found.items() if path != "name"})
        made["name"] = f"{name or stem} ({said})".lstrip()
    reading = Reading.of_table(made, file)
    hinted = (_of_new_port(fault, root, found) for fault in reading.faults)
    return replace(reading, faults=[_placed(fault, file, lines, found, option, made) for fault in hinted])


def _of_new_port(fault: Fault, root: Mapping[str, Any], settings: Mapping[str, overrides.Setting]) -> Fault:
    """A fault of a port that only settings name, with the port that the scenario has for all."""
    ports = root.get("port")
    above = fault.key.rpartition(".")[0]
    kind, _, name = above.partition(".")
    known = isinstance(ports, Mapping) and "default" in ports and name not in ports
    if kind != "port" or not known or "is missing" not in fault.problem:
        return fault
    path = next((path for path in settings if path.startswith(f"{above}.")), None)
    if path is None:
        return fault
    problem = f"is missing, as the scenario has no {above}; did you mean port.default.{path.removeprefix(f'{above}.')}?"
    return Fault.of(problem, file=fault.file, key=fault.key, value=fault.value)


def _placed(
    fault: Fault,
    file: str,
    lines: Mapping[str, int],
    settings: Mapping[str, overrides.Setting],
    option: str,
    made: Mapping[str, Any],
) -> Fault:
    """A fault of a scenario with settings: the option that sets the key, its policy file, or the line of the file."""
    if (other := overrides.misnamed(fault, made, settings)) is not None:
        wrong, path = other
        said = f" ({option} {path}={settings[path].typed})" if option else ""
        return Fault.of(f"{wrong.problem}{said}", file=file, key=wrong.key)
    # A setting inside a table goes before the table.
    for path, setting in sorted(settings.items(), key=lambda item: -len(item[0])):
        text = setting.typed
        if f"{fault.key}.".startswith(f"{path}.") or (path.startswith(f"{fault.key}.") and "names 2" in fault.problem):
            problem = f"{fault.problem} ({option} {path}={text})" if option else fault.problem
            if at := policy_files.refused(replace(fault, problem=problem), path, setting.value):
                return at
            if path != fault.key and "names 2" in fault.problem:
                name, _, inner = path.removeprefix(f"{fault.key}.").partition(".")
                problem = f"{problem}; to choose {name} write {option} {fault.key}={name}:{inner}={text}"
            at = Fault.of(problem, file=file, key=fault.key, value=fault.value)
            return replace(at, excerpt=fault.excerpt)
    line = lines.get(fault.key)
    return replace(
        Fault.of(fault.problem, file=file, line=line, key=fault.key, value=fault.value), excerpt=fault.excerpt
    )


def name_of(scenario: Scenario) -> str:
    """What a scenario is called in faults."""
    return scenario.name or "scenario"


@checked(ScenarioError)
@endable
def load(
    path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None, cancel: Cancel | None = None
) -> Scenario:
    """The scenario in a TOML file, or a shipped one, checked, with every default filled in.

    Args:
        path: The file, or the name of a shipped scenario.
        settings: Values that replace those of the file, by path, such as `{"port.bottleneck.buffer": 2000}`: the same as
            `--set` on the command line. A policy may be a text such as `"epd:threshold=80%"` or `"mine.toml"`.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: With every fault of the file.
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> ct.load("lan-epd").port["bottleneck"].policy
    Epd(threshold=800)
    >>> ct.load("lan-epd", settings={"port.bottleneck.policy": "fba:z=0.5"}).port["bottleneck"].policy
    Fba(threshold=0.9, z=0.5)
    """
    from celltrain.model.types import Scenario

    return Scenario.model_validate(table(read(path, settings).accepted()))


@checked(ScenarioError)
@endable
def check(scenario: Scenario | str | os.PathLike[str], *, cancel: Cancel | None = None) -> list[Fault]:
    """Everything that is wrong with a scenario; an empty list when it can be run.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one, such as `"lan-epd"`.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=1200))
    >>> for fault in ct.check(lan):
    ...     print(fault.key, fault.problem)
    port.bottleneck.policy.epd.threshold is above the buffer of 1000 cells; a threshold is at most the buffer
    """
    return read(scenario).faults


@checked(ScenarioError)
def n_source(
    *,
    sources: int,
    link_delay: Time,
    buffer_cells: Buffer,
    policy: Policy | PythonPolicy | PolicyFile | str,
    link_rate: Rate = "155.52Mbps",
    duration: Time = "10s",
    seed: int = 1,
    tcp: Tcp | None = None,
    name: str = "",
) -> Scenario:
    """The papers' network: N sources send through two switches to N destinations, and one link between them congests.

    Args:
        sources: N, each source with a destination and a TCP connection of its own.
        link_delay: Propagation delay of every link, for example `"5us"`; a connection crosses three.
        buffer_cells: Places for waiting cells at the congested port, or `"infinite"`.
        policy: What that port does with its buffer, for example `celltrain.Epd(threshold=800)`, or an object of a
            `celltrain.PythonPolicy`, a text such as `"epd:threshold=80%"`, or `celltrain.Policy.read("mine.toml")`.
        link_rate: Rate of every link.
        duration: How long to simulate.
        seed: Seed of every random choice.
        tcp: The TCP of every connection; `celltrain.Vanilla()` when None.
        name: Description, shown in results and figures.

    >>> import celltrain as ct
    >>> wan = ct.n_source(
    ...     sources=15,
    ...     link_delay="5ms",
    ...     buffer_cells=12000,
    ...     policy=ct.SelectiveDrop(threshold=0.9, z=0.8),
    ...     tcp=ct.Vanilla(receive_window="600000B"),
    ... )
    >>> wan.topology.sources
    15
    """
    from celltrain.model.types import NSource, Port, Scenario, Vanilla

    return Scenario(
        name=name,
        duration=duration,
        seed=seed,
        topology=NSource(sources=sources, link_rate=link_rate, link_delay=link_delay),
        tcp=Vanilla() if tcp is None else tcp,
        # What stands for a policy is taken for it.
        port={"bottleneck": Port(buffer_cells=buffer_cells, policy=policy)},  # type: ignore[arg-type]
    )
