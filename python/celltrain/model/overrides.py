"""Settings that replace a scenario's own: `--set`, `--vary`, and values from Python.

>>> of_texts(["port.bottleneck.buffer=1000,2000", "port.bottleneck.policy=tail_drop,epd:threshold=800"])
{'port.bottleneck.buffer': [1000, 2000], 'port.bottleneck.policy': {'path': 'port.bottleneck.policy', 'values': \
{'tail_drop': {'tail_drop': {}}, 'epd:threshold=800': {'epd': {'threshold': 800}}}}}
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from celltrain.errors import CelltrainError, Fault, InputError, ScenarioError
from celltrain.model import grammar, policy_files, shipped
from celltrain.model.grammar import AS_IS
from celltrain.model.paths import UnknownKeyError, choices, follow, set_key
from celltrain.text import BROKEN, described, half_pair, nearest, shortened

#: Format of each option, for messages.
FORMS = {
    "--vary": (
        "PATH=VALUE,VALUE,...: port.bottleneck.buffer=1000,2000, or port.bottleneck.policy=tail_drop,epd:threshold=800 "
        f"where the settings of a table follow its name, and {AS_IS} means the scenario's own value"
    ),
    "--set": "PATH=VALUE: port.bottleneck.buffer=2000, or port.bottleneck.policy=epd:threshold=80%",
}


def of_texts(texts: Sequence[str], option: str = "--vary") -> dict[str, Any]:
    """Returns the axes of a plan for `--vary`: for each path a list of values, or tables with labels.

    Raises `InputError` with every fault.
    """
    return {path: _axis(path, settings) for path, settings in _parsed(texts, option).items()}


def _axis(path: str, settings: Sequence[Setting]) -> Any:
    """Returns an axis of values. A TCP remains text, because its table depends on the scenario."""
    if not choices(path):
        return [one.value for one in settings]
    return {"path": path, "values": {one.label: one.label if is_tcp(path) else one.value for one in settings}}


def of_options(vary: Sequence[str], settings: Sequence[str]) -> dict[str, Any]:
    """Returns the axes of `--vary` and `--set` together, as `of_texts` does; raises `InputError`."""
    varied, fixed = of_texts(vary), single(settings)
    if again := [path for path in fixed if path in varied]:
        raise InputError([fault_of("--set", f"{path}={fixed[path].label}", "sets what --vary sets") for path in again])
    return {**varied, **{path: _axis(path, [one]) for path, one in fixed.items()}}


def as_options(faults: Sequence[Fault], vary: Sequence[str], settings: Sequence[str]) -> list[Fault]:
    """Turns faults of the argument `vary` into faults of `--vary` and `--set`."""
    options = [("--vary", text) for text in vary] + [("--set", text) for text in settings]
    texts = {("vary", text.partition("=")[0].strip()): (option, text) for option, text in options}
    return [
        fault_of(*texts[fault.key, fault.value], fault.problem) if (fault.key, fault.value) in texts else fault
        for fault in faults
    ]


def single(texts: Sequence[str] | None, option: str = "--set") -> dict[str, Setting]:
    """Returns the value that `--set` gives each path; raises `InputError` with all faults."""
    parsed = _parsed(texts or [], option)
    several = {f"{path}={own[0].typed}": len(own) for path, own in parsed.items() if len(own) > 1}
    if several:
        advice = "give one value, or compare all values: celltrain compare FILE --vary"
        raise InputError(fault_of(option, text, f"has {n} values; {advice} {text}") for text, n in several.items())
    return {path: own[0] for path, own in parsed.items()}


@dataclass(frozen=True)
class Setting:
    """A value of an option with its label, such as the name of a policy, and the text that the user typed."""

    label: str
    value: Any
    typed: str


def resolved(path: str, given: Any, folder: Path | None = None) -> tuple[str, Any]:
    """Returns the label and the plain value of a setting that a caller gives for a path.

    A text for a table has the form of the command line, or names a policy file. Raises `ValueError`, `InputError`,
    `UnknownKeyError`.

    Args:
        path: Path into the scenario.
        given: A number, a text, a table, or an object that stands for a table.
        folder: Folder of the plan that gives the setting; None if the user does. Files that it names must be in it.
    """
    if isinstance(given, Setting):
        return given.label, given.value
    if isinstance(given, policy_files.Policy):
        return given.name, given.as_setting()
    if isinstance(given, str) and shipped.is_row_file(path, given):
        return given, shipped.read_rows(given, folder, path).rows
    tables = choices(path) if isinstance(given, str) else []
    if not tables:
        value = plain(given)
        return next(iter(value), "") if isinstance(value, Mapping) else str(value), value
    if given == AS_IS:
        return AS_IS, AS_IS
    kind = path.rpartition(".")[2]
    also = [f"{AS_IS} (the scenario's own value)"]
    if kind == "policy":
        if policy_files.is_file(given):
            policy = policy_files.read(given, folder, of_memories=path.startswith("switch."))
            return policy.name, policy.as_setting()
        if given not in tables and (near := shipped.with_ending(Path(given), folder)):
            raise ValueError(f"has {given!r}; did you mean {near}?")
        also.insert(0, "@FILE.toml (a policy file)")
    if kind == "stack" and (of_class := policy_files.stack_of_class(given, folder, tables)):
        return of_class
    return given, grammar.choice(given, tables, kind, also)


def is_tcp(path: str) -> bool:
    """Returns whether a path leads to a TCP.

    A change of its variant keeps the other settings; see `with_settings_of`.
    """
    return path.rpartition(".")[2] == "tcp"


def with_settings_of(scenario: Mapping[str, Any], path: str, table: Any) -> Any:
    """Completes a TCP's table with the settings of the scenario's own TCP.

    All TCP variants have the same settings. A flow without its own TCP uses the scenario's TCP.

    >>> wan = {"tcp": {"vanilla": {"mss": "1460B", "receive_window": "600000B"}}}
    >>> with_settings_of(wan, "tcp", {"sack": {"mss": "9180B"}})
    {'sack': {'mss': '9180B', 'receive_window': '600000B'}}
    """
    place: Any = scenario
    for step in path.split("."):
        place = place.get(step) if isinstance(place, Mapping) else None
    own = scenario.get("tcp") if place is None else place
    if not isinstance(own, Mapping) or len(own) != 1:
        return table
    [(kind, settings)], [kept] = table.items(), own.values()
    if not isinstance(kept, Mapping):
        return table
    # Drop a formula if another congestion control is chosen.
    replaced = settings.get("congestion", "formula") != "formula"
    return {kind: _merged({key: one for key, one in kept.items() if not (replaced and key == "formula")}, settings)}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two tables. Values of the second table replace those of the first."""
    made = copy.deepcopy(dict(below))
    for key, value in above.items():
        inside = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
        made[key] = _merged(made[key], value) if inside else copy.deepcopy(value)
    return made


def applied(scenario: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Setting]]:
    """Returns the scenario with these settings applied, and the settings by path.

    Raises `InputError` if a path or a text is wrong.
    """
    made: dict[str, Any] = copy.deepcopy(dict(scenario))
    by_path: dict[str, Setting] = {}
    faults = []
    # Apply a whole table before the settings inside the table.
    for path in sorted(settings, key=lambda path: path.count(".")):
        given = settings[path]
        try:
            follow(path)
            label, value = resolved(path, given)
            if isinstance(given, str | Setting) and is_tcp(path) and isinstance(value, Mapping):
                value = with_settings_of(made, path, value)
            if value != AS_IS or not choices(path):
                set_key(made, path, copy.deepcopy(value))
        except InputError as error:
            faults += error.faults
        except (CelltrainError, ValueError) as error:
            faults.append(Fault.of(str(error), key=path))
        else:
            typed = given.typed if isinstance(given, Setting) else given if isinstance(given, str) else label
            by_path[path] = Setting(shortened(label), value, shortened(typed))
    if faults:
        raise ScenarioError(faults)
    return made, {path: by_path[path] for path in settings}


def misnamed(fault: Fault, scenario: Mapping[str, Any], paths: Iterable[str]) -> tuple[Fault, str] | None:
    """If a setting names a port that the scenario lacks, returns a fault with the port probably meant, and the path.

    Args:
        fault: A fault of the scenario with the settings.
        scenario: The scenario with the settings.
        paths: The paths of the settings.
    """
    name, ports = fault.key.partition("port.")[2].partition(".")[0], scenario.get("port")
    if not fault.problem.startswith("is missing") or not isinstance(ports, Mapping) or name not in ports:
        return None
    own = [path for path in paths if path.startswith(f"port.{name}.")]
    if {path.split(".")[2] for path in own} != set(ports[name]):
        return None
    if near := nearest(name, [port for port in ports if port != name]):
        problem = f"is not a port of this scenario; did you mean port.{near}?"
        return Fault.of(problem, file=fault.file, key=f"port.{name}"), own[0]
    if "default" in ports:
        instead = f"port.default.{own[0].removeprefix(f'port.{name}.')}"
        problem = f"is missing, as the scenario has no port.{name}; did you mean {instead}?"
        return fault.changed(problem=problem, line=None), own[0]
    return None


def in_words(settings: Mapping[str, Setting]) -> str:
    """Formats settings for the end of a scenario's name."""
    return ", ".join(f"{path}={one.label}" for path, one in settings.items())


def plain(value: Any) -> Any:
    """Converts a value to types of JSON and TOML: scenario classes become tables, arrays become lists."""
    if isinstance(value, policy_files.Table):
        return value
    if isinstance(value, type):
        raise InputError.of_option(
            "value", value.__name__, f"is a class: pass an object of the class, {value.__name__}()"
        )
    if not isinstance(value, str | int | float | Mapping):
        from celltrain.model.base import as_model

        value = as_model(value)
    if hasattr(value, "model_dump"):
        # A choice, such as a policy, is written under its key.
        table = value.to_dict()
        return {value.choice_key: table} if value.choice_key else table
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str) and half_pair(value):
        raise ScenarioError.of(BROKEN, key=described(value))
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    return value


def _parsed(texts: Sequence[str], option: str) -> dict[str, list[Setting]]:
    """Returns the values of an option by path; raises `InputError` with all faults."""
    parsed: dict[str, list[Setting]] = {}
    faults: list[Fault] = []
    for text in texts:
        path, sign, written = (part.strip() for part in text.partition("="))
        try:
            values = grammar.split(written)
            if not path or not sign or not all(values):
                raise ValueError(f"is not {FORMS[option]}")
            if path in parsed:
                once = "write all its values in one option" if option == "--vary" else "give it once"
                raise ValueError(f"sets {path}, which another setting also sets: {once}")
            found = _labelled(path, values)
            labels = told_apart([label for label, _ in found], [value for _, value in found], values)
            parsed[path] = [Setting(label, value, written) for label, (_, value) in zip(labels, found, strict=True)]
            if again := next((label for label in labels if labels.count(label) > 1), None):
                raise ValueError(f"has {again} twice; delete one")
        except InputError as error:
            faults += error.faults
        except (UnknownKeyError, ValueError) as error:
            faults.append(fault_of(option, text, str(error)))
    if faults:
        raise InputError(faults)
    return parsed


def _labelled(path: str, texts: Sequence[str]) -> list[tuple[str, Any]]:
    """Reads the values of an option, each with its label."""
    is_quantity = follow(path).quantity is not None
    if choices(path):
        for before, text in pairwise(texts):
            if problem := grammar.misplaced(text, before):
                raise ValueError(problem)
        return [resolved(path, text) for text in texts]
    for text in texts:
        if is_quantity and len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            raise ValueError(f"has quotes; write it without quotes: {path}={text[1:-1]}")
    return [(text, text if is_quantity else grammar.value(text)) for text in texts]


def told_apart(labels: Sequence[str], values: Sequence[Any], given: Sequence[Any]) -> list[str]:
    """Adds the kind, or the text that the user gave, to labels that different tables share.

    >>> told_apart(["Mine", "Mine", "epd"], [{"formula": {}}, {"python": {}}, {"epd": {}}], ["@a.toml", "a:Mine", "epd"])
    ['Mine (formula)', 'Mine (Python)', 'epd']
    >>> told_apart(["Mine", "Mine"], [{"formula": {"admit": "X < 1"}}, {"formula": {}}], ["@a.toml", "@b.toml"])
    ['Mine (@a.toml)', 'Mine (@b.toml)']

    Labels of equal tables remain equal.
    """
    told = list(labels)
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [place for place, one in enumerate(labels) if one == label]
        tables = [values[place] for place in places]
        if not all(isinstance(table, Mapping) and len(table) == 1 for table in tables):
            continue
        kinds = [KINDS.get(next(iter(table)), "built-in") for table in tables]
        texts = [str(given[place]) if isinstance(given[place], str) else "" for place in places]
        marks = kinds if len(set(kinds)) == len(kinds) else texts
        for place, table, mark in zip(places, tables, marks, strict=True):
            if mark and tables.count(table) == 1:
                told[place] = f"{label} ({mark})"
    return told


#: Kinds of policies whose users choose the name, by key.
KINDS = {"formula": "formula", "python": "Python"}


def fault_of(option: str, text: str, problem: str) -> Fault:
    """Returns a fault of an option as typed: `--set PATH=VALUE is ...`."""
    return Fault.saying(f"{option} {shortened(text)} {problem}", key=option, value=text)
