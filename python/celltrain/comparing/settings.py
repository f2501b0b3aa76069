"""What is varied in a comparison: the axes that `vary` and `--vary` say, as a plan has them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.paths import UnknownKeyError, choices, follow
from celltrain.plan.base import plain
from celltrain.text import described

#: What `--vary` takes, in a message.
FORM = (
    "PATH=VALUE,VALUE,...: port.bottleneck.buffer=1000,2000, or port.bottleneck.policy=tail_drop,epd:threshold=800 "
    "where the settings of a table follow its name"
)
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


def _chosen(text: str, tables: Sequence[str]) -> dict[str, Any]:
    """A table by its name and settings, such as `epd:threshold=800`."""
    name, *settings = text.split(":")
    if name not in tables:
        near = difflib.get_close_matches(name, tables, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"has {name!r}, which is none of its tables; {hint}There are {', '.join(tables)}")
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
    labels = [_label(value) for value in values]
    shared = {label for label in labels if labels.count(label) > 1}
    longer = [_label(value, whole=label in shared) for value, label in zip(values, labels, strict=True)]
    if again := next((label for label in longer if longer.count(label) > 1), None):
        raise InputError([Fault.of_option("vary", again, f"is there twice among the values of {name}")])
    return {"path": name, "values": dict(zip(longer, values, strict=True))}


def _values_of(axis: Any) -> Any:
    return axis["values"] if isinstance(axis, Mapping) else axis


def _label(value: Any, *, whole: bool = False) -> str:
    """What a value is called: a table with one key, such as a policy, by that key, and by its settings too if asked for."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return str(value)
    [(name, table)] = value.items()
    settings = table.items() if whole and isinstance(table, Mapping) else ()
    return ":".join([str(name), *(f"{key}={one}" for key, one in settings)])
