"""What is varied in a comparison: the axes that `vary` and `--vary` say, as a plan has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.model.overrides import is_tcp, plain, resolved
from celltrain.model.paths import UnknownKeyError
from celltrain.model.policy_files import Policy
from celltrain.text import described, shortened

#: What is compared if several scenarios are, or the condition if policies are compared within each.
SCENARIO = "scenario"
#: Characters of a setting in a name; longer ones lose their middle.
MOST_SETTING = 40


def axes(vary: Mapping[str, Any]) -> dict[str, Any]:
    """What is varied as the tables of a plan's `[axes]`: tables among the values of a list get labels."""
    return {name: _labelled(name, said) for name, said in vary.items()}


def _labelled(name: str, said: Any) -> Any:
    """An axis as a plan has it: classes of a scenario as tables, and tables in a list under labels."""
    if isinstance(said, Mapping):
        listed = said.get("values")
        if listed is None or isinstance(listed, Mapping):
            return plain(said)
        values = _labelled(str(said.get("path", name)), listed)
        return {**plain({key: said[key] for key in said if key != "values"}), "values": _values_of(values)}
    if isinstance(said, str | bytes) or not isinstance(said, Iterable):
        raise InputError([Fault.of_option("vary", described(said), f"is not a list of values for {name}")])
    listed = list(said)
    try:
        found = [resolved(name, value) if isinstance(value, str | Policy) else ("", plain(value)) for value in listed]
    except (UnknownKeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError([Fault.of_option("vary", name, str(error))]) from None
    values = [value for _, value in found]
    if not any(isinstance(value, Mapping) for value in values):
        return values
    labels = [given or label for (given, _), label in zip(found, _labels(values), strict=True)]
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError([Fault.of_option("vary", again, f"is there twice among the values of {name}")])
    # The table of a TCP that a text names depends on the scenario.
    kept = [
        said if isinstance(said, str) and is_tcp(name) else value for said, value in zip(listed, values, strict=True)
    ]
    return {"path": name, "values": dict(zip(labels, kept, strict=True))}


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
