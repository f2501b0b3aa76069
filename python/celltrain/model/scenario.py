"""Scenarios from files and from Python, their faults, and writing them as TOML files."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import Fault, InputError, ScenarioError
from celltrain.model import overrides, paths, policy_files, shipped
from celltrain.model.arguments import Cancel, Rate, Time, checked, current
from celltrain.model.files import named
from celltrain.text import BROKEN, broken_texts, described, shown

if TYPE_CHECKING:
    from celltrain.model.policy_files import Policy as PolicyFile
    from celltrain.model.python_classes import PythonPolicy
    from celltrain.model.python_classes import Stack as PythonStack
    from celltrain.model.types import Buffer, Policy, Scenario, Stack, Tcp


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The core's verdict on a scenario."""

    case: _core.Case | None = None
    """The scenario after reading and checking, ready to run. None if it has faults."""
    faults: list[Fault]
    """All faults of the scenario."""
    warnings: list[str] = field(default_factory=list)
    """Reasons to doubt the scenario's results."""
    memory_bytes: int | None = None
    """Memory that a run reserves; None if the scenario has faults."""
    does_not_fit: bool = False
    """True if the scenario needs more memory than is free now. It may run later or on another machine."""

    @classmethod
    def of_core(cls, read: tuple[_core.Case | None, str]) -> Reading:
        """Creates the verdict from the core's answer."""
        case, text = read
        answer = json.loads(text)
        faults = [_with_advice(Fault(**fault)) for fault in answer.pop("faults")]
        return cls(case=case, faults=faults, warnings=[one["message"] for one in answer.pop("warnings")], **answer)

    @classmethod
    def of_table(cls, scenario: Mapping[str, Any], name: str) -> Reading:
        """Reads a scenario from a table; `name` is its name in faults. Files that it names are relative to this folder."""
        try:
            made, files = shipped.with_rows(scenario, None, shown(name))
            text = as_json(made, name)
        except InputError as error:
            return cls(faults=error.faults)
        reading = cls.of_core(_core.parse_json(text, shown(name), current()))
        return replace(reading, faults=[shipped.placed(fault, files) for fault in reading.faults]) if files else reading

    @classmethod
    def of_text(cls, text: str, file: str) -> Reading:
        """Reads a scenario from the text of a file. Files that it names are relative to its folder."""
        if any(part in text for part in shipped.OF_FILES):
            answer = json.loads(_core.toml(text, file))
            root, lines = answer["root"] or {}, answer["lines"]
            try:
                made, files = shipped.with_rows(root, Path(file).parent, file, lines)
            except InputError as error:
                return cls(faults=error.faults)
            if files:
                faults = []
                for fault in (reading := cls.of_table(made, file)).faults:
                    moved = shipped.placed(fault, files)
                    is_moved = moved is not fault
                    faults.append(
                        moved if is_moved else fault.changed(file=file, line=shipped.line_of(lines, fault.key))
                    )
                return replace(reading, faults=faults)
        return cls.of_core(_core.parse(text, file, current()))

    def accepted(self) -> _core.Case:
        """Returns the case; raises `ScenarioError` if the scenario has faults."""
        if self.case is None:
            raise ScenarioError(self.faults)
        return self.case

    @property
    def scenario(self) -> dict[str, Any] | None:
        """The scenario as a table, with every default filled in; None if it has faults."""
        return None if self.case is None else table(self.case)


@cache
def controls() -> list[str]:
    """Lists the values of `congestion` of a TCP."""
    choices = json.loads(_core.schema())["$defs"]["Congestion"]["oneOf"]
    return [word for choice in choices for word in choice.get("enum", [choice.get("const")])]


def _with_advice(fault: Fault) -> Fault:
    """Suggests what to write instead: a congestion control is a setting of a TCP."""
    table, _, name = fault.key.rpartition(".")
    kind = table.rpartition(".")[2]
    problem = fault.problem
    if not problem.startswith("is unknown"):
        return fault
    if kind == "tcp" and name in controls():
        example = f'write congestion = "{name}" below [{table}.vanilla], or another TCP'
        problem = f"is unknown: {name} is a congestion control; {example}"
    return fault if problem == fault.problem else fault.changed(problem=problem)


def table(case: _core.Case) -> dict[str, Any]:
    """Returns the table of a scenario that has been read."""
    scenario: dict[str, Any] = json.loads(case.json)
    return scenario


def as_json(scenario: Mapping[str, Any], name: str) -> str:
    """Writes a scenario as JSON; raises `ScenarioError`, under this name, for values that no file can contain."""
    try:
        text = json.dumps(scenario, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        broken = broken_texts(scenario)
        raise ScenarioError(
            Fault.of(BROKEN, file=name, key=key, value=described(text)) for key, text in broken
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ScenarioError.of_file(name, f"cannot be written as JSON ({error})") from None
    return text


def read(
    scenario: Scenario | str | os.PathLike[str], settings: Mapping[str, Any] | None = None, *, option: str = ""
) -> Reading:
    """Reads and checks a scenario: a `Scenario`, the path of a TOML file, or the name of a shipped scenario.

    Args:
        scenario: The scenario.
        settings: Values that replace the scenario's own, by path; they are appended to the scenario's name.
        option: The option that set `settings`, for messages.
    """
    try:
        if settings:
            return _overridden(scenario, settings, option)
        if not isinstance(scenario, str | os.PathLike):
            return Reading.of_table(_table_of(scenario), name_of(scenario))
        name, text = shipped.named_text(scenario)
    except InputError as error:
        return Reading(faults=error.faults)
    reading = Reading.of_text(text, name)
    if reading.faults and (root := json.loads(_core.toml(text, name))["root"]) is not None:
        other = other_kind(root, name)
        return reading if other is None else replace(reading, faults=[other])
    return reading


def _table_of(scenario: Any) -> dict[str, Any]:
    """Returns the table of a `celltrain.Scenario`; raises `ScenarioError` for other objects."""
    if not hasattr(scenario, "to_dict"):
        problem = "is neither a celltrain.Scenario nor the path of a TOML file"
        raise ScenarioError.of_option("scenario", scenario, problem)
    made: dict[str, Any] = scenario.to_dict()
    return made


#: Keys that occur in plans but not in scenarios.
_OF_PLANS = {"scenario", "axes", "paired", "points", "sample", "measures", "seeds", "tune"}


def other_kind(root: Mapping[str, Any], file: str) -> Fault | None:
    """Returns a fault if a policy file or a plan was given where a scenario is expected; otherwise None."""
    if policy_files.has_policy(root):
        example = f"a scenario takes it with --set port.bottleneck.policy=@{file}, and celltrain vet {file} tests it"
        return Fault.of_file(file, f"is a policy, not a scenario; {example}")
    if not root.keys() & {"topology", "duration"} and root.keys() & _OF_PLANS:
        command = "tune" if "tune" in root else "sweep"
        return Fault.of_file(file, f"is a plan, not a scenario; to check it: celltrain {command} {file} --dry-run")
    return None


def no_plan(root: Mapping[str, Any], file: str) -> Fault | None:
    """Returns a fault if a policy file was given where a plan is expected; otherwise None."""
    if root.keys() & _OF_PLANS or not policy_files.has_policy(root):
        return None
    example = (
        f'an axis of a plan takes it: "port.bottleneck.policy" = ["epd", "@{file}"]; celltrain vet {file} tests it'
    )
    return Fault.of_file(file, f"is a policy, not a plan; {example}")


def _overridden(scenario: Scenario | str | os.PathLike[str], settings: Mapping[str, Any], option: str) -> Reading:
    """Reads a scenario and applies settings; raises `InputError` if it cannot be read at all."""
    if isinstance(scenario, str | os.PathLike):
        file, text = shipped.named_text(scenario)
        (root, lines), stem = shipped.toml(text, file), Path(file).stem
        if (other := other_kind(root, file)) is not None:
            raise ScenarioError([other])
        root = dict(shipped.with_rows(root, Path(file).parent, file, lines)[0])
    else:
        root, lines, file, stem = _table_of(scenario), {}, name_of(scenario), ""
    made, found = overrides.applied(root, settings)
    name = made.get("name", "")
    if found.keys() - {"name"} and isinstance(name, str):
        words = overrides.in_words({path: one for path, one in found.items() if path != "name"})
        made["name"] = f"{name or stem} ({words})".lstrip()
    reading = Reading.of_table(made, file)
    return replace(reading, faults=[_placed(fault, file, lines, found, option, made) for fault in reading.faults])


def _placed(
    fault: Fault,
    file: str,
    lines: Mapping[str, int],
    settings: Mapping[str, overrides.Setting],
    option: str,
    made: Mapping[str, Any],
) -> Fault:
    """Adds the location of a fault: the option that sets the key, the policy file, or the line in the scenario file."""
    if (other := overrides.misnamed(fault, made, settings)) is not None:
        wrong, path = other
        written = f" ({option} {path}={settings[path].typed})" if option else ""
        return wrong.changed(problem=f"{wrong.problem}{written}", file=file)
    # Check settings inside a table before the table itself.
    for path, setting in sorted(settings.items(), key=lambda item: -len(item[0])):
        is_ambiguous = "names 2" in fault.problem and path.startswith(f"{fault.key}.")
        if is_ambiguous or policy_files.is_below(fault.key, path):
            text = setting.typed
            problem = f"{fault.problem} ({option} {path}={text})" if option else fault.problem
            if at := policy_files.refused(replace(fault, problem=problem), path, setting.value):
                return at
            if is_ambiguous:
                name, _, inner = path.removeprefix(f"{fault.key}.").partition(".")
                problem = f"{problem}; to choose {name} write {option} {fault.key}={name}:{inner}={text}"
            return fault.changed(problem=problem, file=file, line=None)
    return fault.changed(file=file, line=shipped.line_of(lines, fault.key))


def name_of(scenario: Scenario) -> str:
    """Returns the scenario's name in faults."""
    return scenario.name or "scenario"


@checked(ScenarioError)
def load(
    path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None, cancel: Cancel | None = None
) -> Scenario:
    """Loads a scenario from a TOML file, or a shipped scenario, checks it, and fills in every default.

    Args:
        path: The file, or the name of a shipped scenario.
        settings: Values that replace those of the file, by path, such as `{"port.bottleneck.buffer": 2000}`: the same as
            `--set` on the command line. A policy may be a text such as `"epd:threshold=80%"` or `"mine.toml"`.
        cancel: A handle that cancels the call from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: If the file has faults; lists all of them.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> ct.load("lan-epd").port["bottleneck"].policy
    Epd(threshold=800)
    >>> ct.load("lan-epd", settings={"port.bottleneck.policy": "fba:z=0.5"}).port["bottleneck"].policy
    Fba(threshold=0.9, z=0.5)
    """
    from celltrain.model.types import Scenario

    return Scenario.model_validate(table(read(path, settings).accepted()))


@checked(ScenarioError)
def check(scenario: Scenario | str | os.PathLike[str], *, cancel: Cancel | None = None) -> list[Fault]:
    """Lists all faults of a scenario. The list is empty if the scenario can run.

    If the scenario has Python stacks, its beginning runs twice. Both runs must give the same result.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one, such as `"lan-epd"`.
        cancel: A handle that cancels the call from another thread; see `celltrain.Cancel`.

    Raises:
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=1200))
    >>> for fault in ct.check(lan):
    ...     print(fault.key, fault.problem)
    port.bottleneck.policy.epd.threshold is above the buffer of 1000 cells; a threshold is at most the buffer
    """
    reading = read(scenario)
    return [*reading.faults, *repeated(reading)]


def repeated(reading: Reading) -> list[Fault]:
    """Runs the beginning of a scenario with Python stacks twice. Returns a fault if the results differ, or a run fails.

    Repeats the check with ten times the duration, up to the whole run, as long as it should take less than
    `PATIENCE_S`.
    """
    scenario = reading.scenario or {}
    kinds = {kind: scenario.get(kind) or {} for kind in ("flow", "requests", "incast")}
    own = {f"{kind}.{name}.stack": one for kind, tables in kinds.items() for name, one in tables.items()}
    tables = {"stack": scenario, **own}
    stacks = {key: (one.get("stack") or {}).get("python") for key, one in tables.items()}
    found = {key: one["class"] for key, one in stacks.items() if one}
    if reading.case is None or not found:
        return []
    problem = (
        "gives another result when it runs again; take times from arguments, and random numbers from self.end.seed"
    )
    whole = paths.seconds(scenario["duration"])
    lasts = min(BEGINNING_S, whole)
    while True:
        begins = time.monotonic()
        beginning = {key: one for key, one in scenario.items() if key != "measure"}
        short = Reading.of_table({**beginning, "duration": f"{1e3 * lasts:.9g}ms"}, "the beginning").case
        if short is None and lasts < whole:
            return []
        try:
            first, second = (fingerprint(short or reading.case) for _ in range(2))
        except ScenarioError as error:
            return error.faults
        if first != second:
            return [
                Fault.of_option(f"{key}.python.class", json.dumps(called), problem) for key, called in found.items()
            ]
        if lasts == whole or 10 * (time.monotonic() - begins) > PATIENCE_S:
            return []
        lasts = min(10 * lasts, whole)


def fingerprint(case: _core.Case, seed: int | None = None, engine: str = "fast") -> str:
    """Runs a scenario without measuring anything, and returns the fingerprint."""
    return str(json.loads(case.run(seed, engine=engine, cancel=current())[0])["fingerprint"])


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
    stack: Stack | PythonStack | None = None,
    name: str = "",
) -> Scenario:
    """Makes the papers' network: N sources send through two switches to N destinations over one congested link.

    Args:
        sources: N, each source with a destination and a TCP connection of its own.
        link_delay: Propagation delay of every link, for example `"5us"`; a connection crosses three links.
        buffer_cells: Buffer of the congested port in cells, or `"infinite"`.
        policy: The policy of that port, for example `celltrain.Epd(threshold=800)`, or an instance of a
            `celltrain.PythonPolicy`, a text such as `"epd:threshold=80%"`, or `celltrain.Policy.read("mine.toml")`.
        link_rate: Rate of every link.
        duration: Simulated time.
        seed: Seed of every random choice.
        tcp: The TCP of every connection; `celltrain.Vanilla()` when None.
        stack: The real stack of every connection, for example `celltrain.Smoltcp()` or an instance of a
            `celltrain.Stack`; none when None.
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
        stack=stack,  # type: ignore[arg-type]
        # Port converts objects that stand for a policy.
        port={"bottleneck": Port(buffer_cells=buffer_cells, policy=policy)},  # type: ignore[arg-type]
    )


#: Minimum simulated seconds for which `check` runs Python stacks.
BEGINNING_S = 0.1
#: Maximum real time of a longer check, in seconds.
PATIENCE_S = 5.0

# Keys that are written first. Other keys follow in their own order.
ORDER = (
    *("name", "duration", "seed", "topology", "tcp", "stack", "flow", "vc", "port", "edge"),
    *("hosts", "switches", "edge_devices", "links", "flows"),
    *("between", "from", "to", "rate", "delay", "rate_back", "delay_back"),
)
# Lists longer than this are written with one item per line.
MAX_LINE = 100


@checked()
def save(scenario: Scenario, path: str | os.PathLike[str], *, head: str = "") -> None:
    """Writes a scenario as a TOML file without its defaults; `load` reads it again.

    Args:
        scenario: The scenario.
        path: The file; an existing one is overwritten. A link is followed; a pipe or a device is refused.
        head: Comment lines at the top.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800))
    >>> ct.save(lan, "mine.toml")
    >>> ct.load("mine.toml") == lan
    True
    """
    content = to_toml(scenario, head=head).encode()
    with named(path) as file:
        file.write(content)


def to_toml(scenario: Scenario, *, head: str = "") -> str:
    """Writes a scenario as TOML: one line for each link and flow, tables by their paths."""
    tables = scenario._to_dict(exclude_defaults=True)
    as_json(tables, name_of(scenario))
    comment = "".join(f"# {shown(line)}".rstrip() + "\n" for line in head.splitlines())
    return "\n".join(part for part in (comment, *_tables(tables, ())) if part)


def _tables(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Writes each table: its own values first, then the tables inside it."""
    own = {key: value for key, value in _in_order(table) if not isinstance(value, dict)}
    inner = {key: value for key, value in _in_order(table) if isinstance(value, dict)}
    lines = [f"{toml_key(key)} = {toml_value(value)}\n" for key, value in own.items()]
    # A table that contains only tables needs no header, but an empty table does.
    heads = [f"[{'.'.join(map(toml_key, path))}]\n"] if path and (own or not inner) else []
    texts = ["".join([*heads, *lines])]
    for key, value in inner.items():
        texts += _tables(value, (*path, key))
    return texts


def toml_value(value: Any) -> str:
    """Writes a value as TOML."""
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(own)}" for key, own in _in_order(value))
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        items = [toml_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        is_short = len(line) <= MAX_LINE and not any(isinstance(item, dict) for item in value)
        if is_short:
            return line
        if all(isinstance(item, str) for item in value):
            return "[\n" + _wrapped(items) + "]"
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    # TOML has the escapes of JSON; other invisible characters get numeric escapes.
    return "".join(c if c.isprintable() else _numbered(c) for c in json.dumps(value, ensure_ascii=False))


def _numbered(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def _wrapped(items: list[str]) -> str:
    """Wraps items into lines of at most `MAX_LINE` characters. A longer item gets its own line."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 6 > MAX_LINE:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{item},"
    return "".join(f"    {line}\n" for line in lines)


def _in_order(table: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(table.items(), key=lambda item: ORDER.index(item[0]) if item[0] in ORDER else len(ORDER))


def toml_key(key: str) -> str:
    """Writes a key as TOML."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)
