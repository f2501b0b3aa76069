"""Settings as text: `PATH=VALUE,VALUE` on the command line, and `epd:threshold=80%` for a table such as a policy.

>>> choice("epd:threshold=80%", ["tail_drop", "epd"], "policy")
{'epd': {'threshold': '80%'}}
>>> split("formula:admit=min(X, 3) < 1,epd")
['formula:admit=min(X, 3) < 1', 'epd']
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from celltrain import _core
from celltrain.text import nearest

#: Value that stands for the scenario's own setting.
AS_IS = "as-is"
#: Advice on names that exist in another form.
OTHERWISE = {
    "cubic": "CUBIC is a congestion control of a TCP: write sack:congestion=cubic.",
}
#: Names of kinds in sentences.
_WORDS = {"tcp": "TCP"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
#: Plurals of the last part of a path.
_PLURALS = {"policy": "Policies", "tcp": "TCPs", "topology": "Topologies"}


def split(text: str, separator: str = ",") -> list[str]:
    """Splits a text at a separator, but not inside quotes or brackets; raises `ValueError` if one of these is not closed.

    >>> split('formula:admit="X < 1, really",[1, 2]')
    ['formula:admit="X < 1, really"', '[1, 2]']
    """
    parts, start, closing, quote, before = [], 0, [], "", ","
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and before in ",:=[{(":
            quote = character
        elif character in _PAIRS:
            closing.append(_PAIRS[character])
        elif closing and character == closing[-1]:
            closing.pop()
        elif character == separator and not closing:
            parts.append(text[start:place])
            start = place + 1
        before = before if character.isspace() else character
    if quote or closing:
        raise ValueError(f"has no closing {quote or closing[-1]}")
    return [part.strip() for part in [*parts, text[start:]]]


def value(text: str) -> Any:
    """Reads a value as TOML would; anything but a number, a boolean, a list, a table or a quoted text is a text.

    Raises `ValueError` with a clause.

    >>> value("1000"), value("0.5"), value("true"), value("80%"), value("[1, 2]")
    (1000, 0.5, True, '80%', [1, 2])
    """
    if text in ("true", "false"):
        return text == "true"
    if text[:1] in ("[", "{", '"', "'"):
        answer = json.loads(_core.toml(f"value = {text}", ""))
        if answer["faults"] or set(answer["root"]) != {"value"}:
            raise ValueError(f"has {text}, which TOML cannot read")
        return answer["root"]["value"]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def choice(text: str, tables: Sequence[str], kind: str, also: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the table for a name with settings; raises `ValueError` with a clause.

    Args:
        text: Such as `epd:threshold=80%`, or `formula:admit=Y < z * X / N:constants.z=0.8`.
        tables: The names to choose from.
        kind: Kind of the choice, such as `policy`.
        also: Other texts that the caller accepts; listed in the message about an unknown name.
    """
    written, *settings = split(text, ":")
    # Users also write Tail Drop or tail-drop.
    name = re.sub(r"[-_ ]+", "_", written.strip().lower())
    if settings and re.search(r"\.(toml|py)$", written) and kind == "policy":
        path = "python.settings" if written.endswith(".py") else "formula.constants"
        instead = f"give them by path, such as port.bottleneck.policy.{path}.NAME=VALUE"
        raise ValueError(f"cannot give settings to the file {written}; {instead}")
    if name not in tables:
        raise ValueError(f"has {written!r}, which {unknown(name, tables, kind, also)}")
    table: dict[str, Any] = {}
    for setting in settings:
        key, sign, own = (part.strip() for part in setting.partition("="))
        if not key or not sign or not own:
            raise ValueError(f"has {setting!r} as a setting of {name}; write {name}:KEY=VALUE")
        place = table
        *parents, last = key.split(".")
        for parent in parents:
            inner = place.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ValueError(f"has {key} as a setting of {name}, and also {parent} = {inner}; leave one out")
            place = inner
        place[last] = value(own)
    return {name: table}


def misplaced(value: str, before: str) -> str:
    """Returns a clause if a value seems to belong to the value before the comma; empty if not.

    >>> misplaced("z=2", "fba:threshold=0.5"), misplaced("5*K", "formula:admit=X<0")
    ("has 'z=2' after a comma; separate settings by colons: fba:threshold=0.5:z=2", \
'has a comma inside a number; write 0.5, not 0,5')
    """
    if re.match(r"[A-Za-z_][\w.]*\s*=(?!=)", value):
        return f"has {value!r} after a comma; separate settings by colons: {before}:{value}"
    whole, decimals = re.search(r"[0-9]+$", before), re.match(r"[0-9]+", value)
    if "=" in before and whole and decimals:
        return f"has a comma inside a number; write {whole[0]}.{decimals[0]}, not {whole[0]},{decimals[0]}"
    return ""


def unknown(name: str, tables: Sequence[str], kind: str, also: Sequence[str] = ()) -> str:
    """Returns a clause about a name that is none of the choices."""
    near = nearest(name, tables)
    hint = OTHERWISE.get(name) or (f"Did you mean {near}?" if near else "")
    word = _WORDS.get(kind, kind.replace("_", " "))
    listed = f"{_PLURALS.get(kind, 'Choices')}: {', '.join([*tables, *also])}"
    return f"is not a {word}. {hint}{' ' if hint else ''}{listed}"
