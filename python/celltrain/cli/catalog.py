"""The catalog: models of every kind with their parameters, papers, studies, plans, scenarios.

Models and parameters come from the JSON Schema of a scenario, so a new policy or scheduler is here without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from celltrain import _core

Schema = dict[str, Any]

# Definitions in the schema with the choices of each kind.
CHOICES = {
    "policies": "Policy",
    "schedulers": "Scheduler",
    "allocators": "Allocator",
    "discards": "EdgeDiscard",
    "tcp": "Tcp",
    "congestion": "Congestion",
    "traffic": "Traffic",
    "topologies": "Topology",
}
# Services of a VC: the key of its table, the class in the schema, the page.
SERVICES = {"abr": ("Abr", "docs/abr.md"), "gfr": ("Gfr", "docs/gfr.md")}
KINDS = (*CHOICES, "services", "papers", "studies", "plans", "scenarios")
SINGULAR = {
    "policies": "policy",
    "schedulers": "scheduler",
    "allocators": "allocator",
    "discards": "discard algorithm",
    "tcp": "TCP variant",
    "congestion": "congestion control",
    "traffic": "kind of traffic",
    "topologies": "topology",
    "services": "service of a VC",
    "papers": "paper",
    "studies": "study",
    "plans": "plan",
    "scenarios": "scenario",
}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A setting of a model."""

    name: str
    """Its key in a TOML file; `links[].rate` is the key `rate` of every table in the list `links`."""
    type: str
    """Such as `time`, `whole number` or `one of "keep", "discard"`."""
    unit: str
    """Empty where the value carries its unit, or has none."""
    default: Any
    """None where it must be set, or may be absent."""
    required: bool
    range: str
    """The values allowed; empty where the type says it all."""
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something that has a name."""

    kind: str
    """One of `KINDS`."""
    name: str
    summary: str
    """One line."""
    description: str = ""
    parameters: tuple[Parameter, ...] = field(default=())
    page: str | None = None
    """Its page as Markdown, or the text of a plan or a scenario."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON answers of the command line."""
        return {**asdict(self), "kind": SINGULAR[self.kind]}


@cache
def entries(kind: str) -> tuple[Entry, ...]:
    """Everything of a kind."""
    if kind == "services":
        return tuple(_services())
    if kind == "papers":
        return tuple(_papers())
    if kind == "studies":
        return tuple(_studies())
    if kind == "plans":
        return tuple(_plans())
    if kind == "scenarios":
        return tuple(_scenarios())
    return tuple(_models(kind))


def everything() -> tuple[Entry, ...]:
    """Everything of every kind."""
    return tuple(entry for kind in KINDS for entry in entries(kind))


def page_of(kind: str, name: str) -> str:
    """The file of a model's page: its name's, with a word before it where a policy has that name too.

    >>> page_of("policies", "tail_drop"), page_of("discards", "tail_drop"), page_of("congestion", "formula")
    ('tail_drop', 'edge_tail_drop', 'congestion_formula')
    """
    definitions: Schema = json.loads(_core.schema())["$defs"]
    policies = [choice["required"][0] for choice in definitions[CHOICES["policies"]]["oneOf"]]
    word = {"discards": "edge_", "congestion": "congestion_"}.get(kind, "")
    return word + name if name in policies else name


def _models(kind: str) -> Iterator[Entry]:
    definitions: Schema = json.loads(_core.schema())["$defs"]
    for choice in definitions[CHOICES[kind]]["oneOf"]:
        # A choice among tables, or among words.
        [(name, reference)] = choice.get("properties", {choice.get("const"): {}}).items()
        table = _resolved(reference, definitions)
        if kind == "congestion":
            # A word. Its settings, if any, are a separate table.
            table = _resolved(definitions["TcpOptions"]["properties"].get(name, {}), definitions)
        yield Entry(
            kind=kind,
            name=name,
            summary=_one_line(choice.get("description", "")),
            description=_paragraphs(table.get("description", "")),
            parameters=tuple(_parameters(table, definitions, "")),
            page=_core.data(f"docs/models/{page_of(kind, name)}.md"),
        )


def _services() -> Iterator[Entry]:
    definitions: Schema = json.loads(_core.schema())["$defs"]
    keys = definitions["VcOptions"]["properties"]
    for name, (definition, page) in SERVICES.items():
        table = definitions[definition]
        yield Entry(
            kind="services",
            name=name,
            summary=_one_line(keys[name]["description"]),
            description=_paragraphs(table["description"]),
            parameters=tuple(_parameters(table, definitions, "")),
            page=_core.data(page),
        )


def _parameters(table: Schema, definitions: Schema, prefix: str) -> Iterator[Parameter]:
    required = table.get("required", [])
    # Required parameters come first.
    for key in sorted(table.get("properties", {}), key=lambda key: key not in required):
        schema = table["properties"][key]
        resolved = _resolved(schema, definitions)
        default = schema.get("default")
        yield Parameter(
            name=prefix + key,
            type=_type(resolved, definitions),
            unit=schema.get("x-unit") or resolved.get("x-unit", ""),
            default=default,
            required=key in required,
            range=_range(resolved, schema),
            meaning=_one_line(schema.get("description") or resolved.get("description", "")),
        )
        items = _resolved(resolved.get("items", {}), definitions)
        if items.get("properties"):
            yield from _parameters(items, definitions, f"{prefix}{key}[].")
        elif resolved.get("properties"):
            yield from _parameters(resolved, definitions, f"{prefix}{key}.")


def _type(schema: Schema, definitions: Schema) -> str:
    schema = _resolved(schema, definitions)
    if "x-quantity" in schema:
        return f"{schema['x-quantity']}, such as {json.dumps(schema['examples'][0])}"
    if "x-threshold" in schema:
        *others, last = map(json.dumps, schema["examples"])
        return f"threshold, such as {', '.join(others)} or {last}"
    if words := _words(schema):
        return f"one of {', '.join(map(json.dumps, words))}" if len(words) > 1 else json.dumps(words[0])
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(_type(s, definitions) for s in schema.get("anyOf") or schema["oneOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        [kind] = [k for k in kind if k != "null"]
    if kind == "array":
        items = schema.get("prefixItems") or [schema["items"]]
        count = f"{len(items)} " if "prefixItems" in schema else ""
        return f"list of {count}{_type(items[0], definitions)}s"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"table by name, each a {_type(schema['additionalProperties'], definitions)}"
    if kind == "object" and schema.get("properties"):
        return "table of the keys below"
    names = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
    return names.get(str(kind), "table")


def _range(*schemas: Schema) -> str:
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


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    if "$ref" in schema:
        resolved: Schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        return resolved
    present = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
    return _resolved(present[0], definitions) if len(present) == 1 else schema


def _papers() -> Iterator[Entry]:
    from celltrain.papers.paper import PAPER, load

    for name in PAPER.ids():
        paper = load(name)
        summary = f"{paper.title} ({paper.published_in})"
        yield Entry(kind="papers", name=name, summary=summary, page=_core.data(f"papers/{name}/README.md"))


def _studies() -> Iterator[Entry]:
    from celltrain.papers.paper import STUDY, load

    for name in STUDY.ids():
        study = load(name, kind=STUDY)
        yield Entry(
            kind="studies",
            name=name,
            summary=study.title,
            description=study.question,
            page=_core.data(f"studies/{name}/README.md"),
        )


def _plans() -> Iterator[Entry]:
    for path in _core.data_names("plans/"):
        text = _core.data(path) or ""
        document = json.loads(_core.toml(text, path))["root"]
        yield Entry(
            kind="plans", name=path.removeprefix("plans/").removesuffix(".toml"), summary=document["name"], page=text
        )


def _scenarios() -> Iterator[Entry]:
    for path in _core.data_names("scenarios/"):
        if path.endswith(".toml"):
            text = _core.data(path) or ""
            document = json.loads(_core.toml(text, path))["root"]
            name = path.removeprefix("scenarios/").removesuffix(".toml")
            yield Entry(kind="scenarios", name=name, summary=document.get("name", ""), page=text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _paragraphs(text: str) -> str:
    return "\n\n".join(_one_line(paragraph) for paragraph in text.split("\n\n"))
