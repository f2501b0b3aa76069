"""The axes of a comparison: `vary` and `--vary` as tables of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.model.overrides import is_tcp, plain, resolved
from celltrain.model.paths import UnknownKeyError
from celltrain.model.policy_files import Policy
from celltrain.text import described, shortened

#: Name of the comparison of several scenarios, and of the condition if policies are compared within each.
SCENARIO = "scenario"
#: Most characters of a setting in a name; longer settings lose their middle.
MOST_SETTING = 40


def axes(vary: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the axes as tables of a plan's `[axes]`; tables in a list of values get labels."""
    return {name: _labelled(name, given) for name, given in vary.items()}


def _labelled(name: str, given: Any) -> Any:
    """Returns one axis as in a plan: classes of a scenario as tables, and tables in a list with labels."""
    if isinstance(given, Mapping):
        listed = given.get("values")
        if listed is None or isinstance(listed, Mapping):
            return plain(given)
        values = _labelled(str(given.get("path", name)), listed)
        return {**plain({key: given[key] for key in given if key != "values"}), "values": _values_of(values)}
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError([Fault.of_option("vary", described(given), f"is not a list of values for {name}")])
    listed = list(given)
    try:
        found = [resolved(name, value) if isinstance(value, str | Policy) else ("", plain(value)) for value in listed]
    except (UnknownKeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError([Fault.of_option("vary", name, str(error))]) from None
    values = [value for _, value in found]
    if not any(isinstance(value, Mapping) for value in values):
        return values
    labels = [called or label for (called, _), label in zip(found, _labels(values), strict=True)]
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError([Fault.of_option("vary", again, f"is there twice among the values of {name}")])
    # The table of a TCP that a text names depends on the scenario.
    kept = [
        text if isinstance(text, str) and is_tcp(name) else value for text, value in zip(listed, values, strict=True)
    ]
    return {"path": name, "values": dict(zip(labels, kept, strict=True))}


def _values_of(axis: Any) -> Any:
    return axis["values"] if isinstance(axis, Mapping) else axis


def _labels(values: Sequence[Any]) -> list[str]:
    """Returns labels: for a table with one key, such as a policy, that key and the settings not shared with the same key."""
    named = [_named(value) for value in values]
    labels = []
    for name, settings in named:
        same_name = [others for other, others in named if other == name]
        own = [key for key, one in settings.items() if any(others.get(key) != one for others in same_name)]
        labels.append(":".join([name, *(f"{key}={shortened(_text(settings[key]), MOST_SETTING)}" for key in own)]))
    # Long texts may differ only in the middle.
    return [
        label
        if labels.count(label) == 1
        else ":".join([name, *(f"{key}={_text(one)}" for key, one in settings.items())])
        for label, (name, settings) in zip(labels, named, strict=True)
    ]


def _text(setting: object) -> str:
    """Returns a setting as people write it: 9 and not 9.0."""
    return f"{setting:.15g}" if isinstance(setting, float) else str(setting)


def _named(value: Any) -> tuple[str, dict[str, Any]]:
    """Returns the name of a table with one key, and its settings by path; a Python class has its own name."""
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
