"""Scenarios as TOML files."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from celltrain.model.arguments import checked
from celltrain.model.scenario import as_json, name_of
from celltrain.model.writing import named
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

# Keys that a person would write first; others follow in their own order.
ORDER = (
    *("name", "duration", "seed", "topology", "tcp", "flow", "vc", "port", "edge"),
    *("hosts", "switches", "edge_devices", "links", "flows"),
    *("between", "from", "to", "rate", "delay", "rate_back", "delay_back"),
)
# Longer lists have a line for each item.
MAX_LINE = 100


@checked()
def save(scenario: Scenario, path: str | os.PathLike[str], *, head: str = "") -> None:
    """Writes a scenario as a TOML file without its defaults; `load` reads it again.

    Args:
        scenario: The scenario.
        path: The file; an existing one is overwritten. A link is followed; a pipe or a device is refused.
        head: Lines of comment at the top.

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
    """Writes a scenario as text: a line for each link and flow, tables by their paths."""
    tables = scenario._to_dict(exclude_defaults=True)
    as_json(tables, name_of(scenario))
    comment = "".join(f"# {shown(line)}".rstrip() + "\n" for line in head.splitlines())
    return "\n".join(part for part in (comment, *_tables(tables, ())) if part)


def _tables(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Writes each table, its own values first."""
    own = {key: value for key, value in _in_order(table) if not isinstance(value, dict)}
    inner = {key: value for key, value in _in_order(table) if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in own.items()]
    # A table of nothing but tables needs no head; an empty one does.
    heads = [f"[{'.'.join(map(_key, path))}]\n"] if path and (own or not inner) else []
    texts = ["".join([*heads, *lines])]
    for key, value in inner.items():
        texts += _tables(value, (*path, key))
    return texts


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(own)}" for key, own in _in_order(value))
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        items = [_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        is_short = len(line) <= MAX_LINE and not any(isinstance(item, dict) for item in value)
        if is_short:
            return line
        if all(isinstance(item, str) for item in value):
            return "[\n" + _wrapped(items) + "]"
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    # TOML has the escapes of JSON; other invisible characters are numbered.
    return "".join(c if c.isprintable() else _numbered(c) for c in json.dumps(value, ensure_ascii=False))


def _numbered(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def _wrapped(items: list[str]) -> str:
    """Wraps items in lines of at most `MAX_LINE` characters, unless one is longer."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 6 > MAX_LINE:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{item},"
    return "".join(f"    {line}\n" for line in lines)


def _in_order(table: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(table.items(), key=lambda item: ORDER.index(item[0]) if item[0] in ORDER else len(ORDER))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)
