"""The catalog of named things: models with their parameters, papers, studies, plans and scenarios.

Models and parameters come from the JSON Schema of a scenario, so a new policy or scheduler appears here automatically.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from celltrain import _core

Schema = dict[str, Any]

#: Kinds of models: the singular, and the schema's definition that lists the choices.
_MODELS = {
    "policies": ("policy", "Policy"),
    "memory_policies": ("memory policy", "MemoryPolicy"),
    "schedulers": ("scheduler", "Scheduler"),
    "allocators": ("allocator", "Allocator"),
    "discards": ("discard algorithm", "EdgeDiscard"),
    "tcp": ("TCP variant", "Tcp"),
    "congestion": ("congestion control", "Congestion"),
    "traffic": ("kind of traffic", "Traffic"),
    "topologies": ("topology", "Topology"),
}
CHOICES = {kind: definition for kind, (_, definition) in _MODELS.items()}
SINGULAR = {kind: singular for kind, (singular, _) in _MODELS.items()}
SINGULAR |= {"stacks": "transport stack", "services": "service of a VC", "papers": "paper", "studies": "study"}
SINGULAR |= {"plans": "plan", "cases": "case", "scenarios": "scenario"}
#: Folders of shipped files.
FOLDERS = {"plans": "plans/", "cases": "plans/bottleneck/", "scenarios": "scenarios/"}
KINDS = tuple(SINGULAR)
#: Kinds of names that can be listed.
LISTED = (*KINDS, "measures")
# Services of a VC, by the keys of their tables.
SERVICES = ("abr", "gfr")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A setting of a model."""

    name: str
    """Key in a TOML file; `links[].rate` is the key `rate` of every table in the list `links`."""
    type: str
    """Type of the parameter in words, such as `time`, `whole number` or `one of "keep", "discard"`."""
    unit: str
    """Unit of the value; empty if the value has no unit or already includes it."""
    default: Any
    """Default value; None if the parameter is required, or has no value when absent."""
    required: bool
    range: str
    """Allowed values; empty if the type defines them."""
    meaning: str
    rules: dict[str, Any] = field(default_factory=dict)
    """Default by profile of rules, for the keys of a TCP's groups."""

    def default_text(self) -> str:
        """Describes the default: the value of the profile `rfc`, and the profiles with other values."""
        if self.default is None:
            return "required" if self.required else "absent"
        others: dict[str, list[str]] = {}
        for name, value in self.rules.items():
            if value != self.default:
                others.setdefault(json.dumps(value), []).append(name)
        return "; ".join([json.dumps(self.default), *(f"{', '.join(of)}: {value}" for value, of in others.items())])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An item of the catalog."""

    kind: str
    """One of `KINDS`."""
    name: str
    summary: str
    """One line."""
    description: str = ""
    parameters: tuple[Parameter, ...] = field(default=())
    page: str | None = None
    """Page in Markdown, or the text of a plan or a scenario."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry in the form in which the command line prints it as JSON."""
        answer = {**asdict(self), "kind": SINGULAR[self.kind]}
        for parameter in answer["parameters"]:
            if not parameter["rules"]:
                del parameter["rules"]
        return answer


@cache
def entries(kind: str) -> tuple[Entry, ...]:
    """Returns all entries of a kind."""
    if kind in CHOICES:
        return tuple(_models(kind, CHOICES[kind]))
    if kind == "stacks":
        return tuple(_models(kind, "Stack"))
    if kind == "services":
        keys = _definitions()["VcOptions"]["properties"]
        return tuple(_model(kind, name, keys[name]["description"], keys[name], f"docs/{name}.md") for name in SERVICES)
    return tuple(_files(kind) if kind in FOLDERS else _documents(kind))


def everything() -> tuple[Entry, ...]:
    """Returns all entries of every kind."""
    return tuple(entry for kind in KINDS for entry in entries(kind))


def page_of(kind: str, name: str) -> str:
    """Returns the file name of a model's page: the model's name, with a prefix if a policy has the same name.

    >>> page_of("policies", "tail_drop"), page_of("discards", "tail_drop"), page_of("congestion", "formula")
    ('tail_drop', 'edge_tail_drop', 'congestion_formula')
    """
    policies = [choice["required"][0] for choice in _definitions()[CHOICES["policies"]]["oneOf"]]
    words = {"discards": "edge_", "congestion": "congestion_", "memory_policies": "memory_", "stacks": "stack_"}
    word = words.get(kind, "")
    return word + name if name in policies else name


def _models(kind: str, definition: str) -> Iterator[Entry]:
    for choice in _definitions()[definition]["oneOf"]:
        # A choice is either a table or a constant.
        [(name, table)] = choice.get("properties", {choice.get("const"): {}}).items()
        if kind == "congestion":
            # A constant. Its settings, if any, are in a separate table.
            table = _definitions()["TcpOptions"]["properties"].get(name, {})
        yield _model(kind, name, choice.get("description", ""), table, f"docs/models/{page_of(kind, name)}.md")


def _model(kind: str, name: str, summary: str, table: Schema, page: str) -> Entry:
    resolved = _resolved(table)
    return Entry(
        kind=kind,
        name=name,
        summary=_one_line(summary),
        description="\n\n".join(map(_one_line, resolved.get("description", "").split("\n\n"))),
        parameters=tuple(_parameters(resolved)),
        page=_core.data(page),
    )


def _documents(kind: str) -> Iterator[Entry]:
    from celltrain.papers.paper import PAPER, STUDY, describe

    of_kind = PAPER if kind == "papers" else STUDY
    for name in of_kind.ids():
        paper = describe(name, of_kind)
        where, question = (f" ({paper.published_in})", "") if of_kind is PAPER else ("", paper.question)
        page = _core.data(f"{kind}/{name}/README.md")
        yield Entry(kind=kind, name=name, summary=f"{paper.title}{where}", description=question, page=page)


def _files(kind: str) -> Iterator[Entry]:
    for path in _core.data_names(FOLDERS[kind]):
        name = path.removeprefix(FOLDERS[kind])
        if name.endswith(".toml") and "/" not in name:
            text = _core.data(path) or ""
            document = json.loads(_core.toml(text, path))["root"]
            summary = document.get("title" if kind == "cases" else "name", "")
            yield Entry(kind=kind, name=name.removesuffix(".toml"), summary=summary, page=text)


@cache
def _definitions() -> Schema:
    definitions: Schema = json.loads(_core.schema())["$defs"]
    return definitions


def _parameters(table: Schema, prefix: str = "") -> Iterator[Parameter]:
    required = table.get("required", [])
    # Required parameters come first.
    for key in sorted(table.get("properties", {}), key=lambda key: key not in required):
        schema = table["properties"][key]
        resolved, rules = _resolved(schema), schema.get("x-rules", {})
        # Each value of a rule has a separate description.
        values = [one for one in resolved.get("oneOf", []) if rules and "description" in one]
        meanings = [f" {one['const']}: {_one_line(one['description'])}" for one in values]
        yield Parameter(
            name=prefix + key,
            type=_type(resolved),
            unit=schema.get("x-unit") or resolved.get("x-unit", ""),
            default=rules.get("rfc", _default(schema)),
            required=key in required,
            range=_range(resolved, schema),
            meaning="".join([_one_line(schema.get("description") or resolved.get("description", "")), *meanings]),
            rules=rules,
        )
        items = _resolved(resolved.get("items", {}))
        yield from _parameters(items, f"{prefix}{key}[].") if items else _parameters(resolved, f"{prefix}{key}.")


def _default(schema: Schema) -> Any:
    """Returns the default of a key; None for a table whose keys have none."""
    default = schema.get("default")
    return None if isinstance(default, dict) and default and set(default.values()) == {None} else default


def rules_of(scenario: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    """Yields the rules that hold for each TCP of a scenario: the TCP's path, the key, the value, and where it is from.

    A value is from the scenario, or from the profile of the TCP.
    """
    groups = {
        group: _resolved(schema)["properties"]
        for group, schema in _definitions()["TcpOptions"]["properties"].items()
        if any("x-rules" in rule for rule in _resolved(schema).get("properties", {}).values())
    }
    for path, options in _tcps(scenario):
        rules = options.get("rules", "rfc")
        for key, value in _definitions()["TcpOptions"]["x-profiles"].get(rules, {}).items():
            own = options.get(key)
            yield path, key, value if own is None else own, rules if own is None else "set"
        for group, keys in groups.items():
            own = options.get(group, {})
            for key, schema in keys.items():
                if own.get(key) is not None:
                    yield path, f"{group}.{key}", own[key], "set"
                elif rules in schema.get("x-rules", {}):
                    yield path, f"{group}.{key}", schema["x-rules"][rules], rules


def _tcps(scenario: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields each TCP of a scenario, with its path."""
    tables = [("", scenario)]
    tables += [
        (f"{kind}.{name}.", own)
        for kind in ("flow", "requests", "incast")
        for name, own in scenario.get(kind, {}).items()
    ]
    for path, table in tables:
        for variant, options in (table.get("tcp") or {}).items():
            yield f"{path}tcp.{variant}", options


def _type(schema: Schema) -> str:
    schema = _resolved(schema)
    examples = [json.dumps(example) for example in schema.get("examples", [])]
    if "x-quantity" in schema:
        return f"{schema['x-quantity']}, such as {examples[0]}"
    if "x-threshold" in schema:
        return f"threshold, such as {', '.join(examples[:-1])} or {examples[-1]}"
    if words := _words(schema):
        return f"one of {', '.join(map(json.dumps, words))}" if len(words) > 1 else json.dumps(words[0])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_type, choices))
    kind = schema.get("type")
    if isinstance(kind, list):
        [kind] = [one for one in kind if one != "null"]
    if kind == "array":
        items = schema.get("prefixItems") or [schema["items"]]
        count = f"{len(items)} " if "prefixItems" in schema else ""
        return f"list of {count}{_type(items[0])}s"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"table whose keys are names and whose values are each a {_type(schema['additionalProperties'])}"
    if kind == "object" and schema.get("properties"):
        return "a table with the keys below"
    names = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
    return names.get(str(kind), "table")


def _range(*schemas: Schema) -> str:
    for schema in schemas:
        if "exclusiveMinimum" in schema:
            return f"above {schema['exclusiveMinimum']:g}"
    limits = {word: schema[word] for schema in schemas for word in ("minimum", "maximum") if word in schema}
    if len(limits) == 2:
        return f"{limits['minimum']:g} to {limits['maximum']:g}"
    if "minimum" in limits:
        return f"{limits['minimum']:g} or more"
    return f"{limits['maximum']:g} or less" if limits else ""


def _words(schema: Schema) -> list[str]:
    choices = schema.get("oneOf", [schema])
    if all("const" in choice or "enum" in choice for choice in choices):
        return [word for choice in choices for word in choice.get("enum", [choice.get("const")])]
    return []


def _resolved(schema: Schema) -> Schema:
    if "$ref" in schema:
        resolved: Schema = _definitions()[schema["$ref"].rsplit("/", 1)[-1]]
        return resolved
    present = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
    return _resolved(present[0]) if len(present) == 1 else schema


def _one_line(text: str) -> str:
    return " ".join(text.split())
