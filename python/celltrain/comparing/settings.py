"""What is varied in a comparison: the axes that `vary` and `--vary` say, as a plan has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.paths import UnknownKeyError, choices, follow
from celltrain.plan.axis import AS_IS
from celltrain.plan.base import plain
from celltrain.text import among, described, shortened

#: What `--vary` takes, in a message.
FORM = (
    "PATH=VALUE,VALUE,...: port.bottleneck.buffer=1000,2000, or port.bottleneck.policy=tail_drop,epd:threshold=800 "
    "where the settings of a table follow its name, and as-is is what the scenario has there"
)
#: Characters of a setting in a name; longer ones lose their middle.
MOST_SETTING = 40
#: What is there, but not under the name that people look for.
OTHERWISE = {"red": "RED is a formula: compare the scenario lan-formula-red."}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def of_texts(texts: Sequence[str]) -> dict[str, Any]:
    """What the command line says, as `vary` takes it.

    >>> of_texts(["port.bottleneck.buffer=1000,2000", "port.bottleneck.policy=tail_drop,epd:threshold=800"])
    {'port.bottleneck.buffer': [1000, 2000], 'port.bottleneck.policy': {'path': 'port.bottleneck.policy', 'values': \
{'tail_drop': {'tail_drop': {}}, 'epd:threshold=800': {'epd': {'threshold': 800}}}}}
    """
    vary: dict[str, Any] = {}
    faults: list[Fault] = []
    for text in texts:
        path, sign, said = (part.strip() for part in text.partition("="))
        values = [value.strip() for value in said.split(",")]
        if not path or not sign or not all(values):
            faults.append(Fault.of_option("--vary", text, f"is not {FORM}"))
        elif path in vary:
            faults.append(Fault.of_option("--vary", text, f"sets {path}, and so does another: write its values in one"))
        else:
            try:
                vary[path] = _axis(path, values)
            except (UnknownKeyError, ValueError) as error:
                faults.append(Fault.of_option("--vary", text, str(error)))
    if faults:
        raise InputError(faults)
    return vary


def axes(vary: Mapping[str, Any]) -> dict[str, Any]:
    """What is varied as the tables of a plan's `[axes]`: tables among the values of a list get labels."""
    return {name: _labelled(name, said) for name, said in vary.items()}


def _axis(path: str, values: Sequence[str]) -> list[Any] | dict[str, Any]:
    """The values of an axis, from texts; raises `UnknownKeyError` or `ValueError` with a clause."""
    quantity = follow(path).quantity
    tables = choices(path)
    if tables:
        return {"path": path, "values": {text: _chosen(text, tables) for text in values}}
    return [text if quantity is not None else _value(text) for text in values]


def _chosen(text: str, tables: Sequence[str]) -> dict[str, Any] | str:
    """A table by its name and settings, such as `epd:threshold=800`; `as-is` is what the scenario has there."""
    if text == AS_IS:
        return text
    said, *settings = text.split(":")
    # As people write it, and as scenarios are named: Tail Drop, tail-drop.
    name = re.sub(r"[-_ ]+", "_", said.strip().lower())
    if name not in tables:
        hint = f"{OTHERWISE[name]} There are {', '.join(tables)}" if name in OTHERWISE else among(name, tables)
        raise ValueError(f"has {said!r}, which is not known there; {hint}; {AS_IS} is what the scenario has there")
    table: dict[str, Any] = {}
    for setting in settings:
        key, sign, value = (part.strip() for part in setting.partition("="))
        if not key or not sign or not value:
            raise ValueError(f"has {setting!r} for a setting of {name}; write {name}:KEY=VALUE")
        table[key] = _value(value)
    return {name: table}


def _value(text: str) -> Any:
    """A value as TOML would have it; what is no number and no yes or no is a text."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _labelled(name: str, said: Any) -> Any:
    """An axis as a plan has it: classes of a scenario as tables, and tables in a list under labels."""
    if isinstance(said, Mapping):
        listed = said.get("values")
        if listed is None or isinstance(listed, Mapping):
            return plain(said)
        values = _labelled(name, listed)
        return {**plain({key: said[key] for key in said if key != "values"}), "values": _values_of(values)}
    if isinstance(said, str | bytes) or not isinstance(said, Iterable):
        raise InputError([Fault.of_option("vary", described(said), f"is not a list of values for {name}")])
    values = [plain(value) for value in said]
    if not any(isinstance(value, Mapping) for value in values):
        return values
    labels = _labels(values)
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError([Fault.of_option("vary", again, f"is there twice among the values of {name}")])
    return {"path": name, "values": dict(zip(labels, values, strict=True))}


def _values_of(axis: Any) -> Any:
    return axis["values"] if isinstance(axis, Mapping) else axis


def _labels(values: Sequence[Any]) -> list[str]:
    """What values are called: a table with one key, such as a policy, by that key, and by what it has of its own.

    That is the settings in which it differs from others of that key.
    """
    named = [_named(value) for value in values]
    labels = []
    for name, settings in named:
        alike = [others for other, others in named if other == name]
        own = [key for key, one in settings.items() if any(others.get(key) != one for others in alike)]
        labels.append(":".join([name, *(f"{key}={shortened(_said(settings[key]), MOST_SETTING)}" for key in own)]))
    # Of long texts the middle may be all that differs.
    return [
        label
        if labels.count(label) == 1
        else ":".join([name, *(f"{key}={_said(one)}" for key, one in settings.items())])
        for label, (name, settings) in zip(labels, named, strict=True)
    ]


def _said(setting: object) -> str:
    """A setting as somebody would write it: 9 and not 9.0."""
    return f"{setting:.15g}" if isinstance(setting, float) else str(setting)


def _named(value: Any) -> tuple[str, dict[str, Any]]:
    """The name of a table with one key, and its settings by their paths in it; a Python class goes by its own name."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return str(value), {}
    [(name, table)] = value.items()
    settings = dict(_settings(table)) if isinstance(table, Mapping) else {}
    if name == "python" and isinstance(called := settings.get("class"), str):
        name = re.split(r"[:.]", called)[-1]
        settings = {key.removeprefix("settings."): one for key, one in settings.items()}
    return str(name), settings


def _settings(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, one in table.items():
        if isinstance(one, Mapping):
            yield from _settings(one, f"{before}{key}.")
        else:
            yield f"{before}{key}", one
