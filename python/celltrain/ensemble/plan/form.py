"""The form of a plan's tables: classes of pydantic, whose faults are said in a plan's own words and places.

pydantic finds what has the wrong form, and writes the JSON Schema. What it calls a place (`loc`) is looked up in the
plan, which has the path and the line; its texts are replaced by clauses that follow `path = value`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from celltrain.ensemble.plan.document import Diagnostics, Place
from celltrain.model.quantities import QUANTITIES, seconds

#: Of real time, and between two samples: thirty years.
MOST_SECONDS = 10**9

_REFUSED: Any = object()


class Form(BaseModel):
    """A table of a plan. What is refused in it is as good as absent, so that the rest can be judged.

    Every key may therefore be absent from an instance; `Needed` marks those that a plan must have.
    """

    # Unknown keys are kept until they are refused, with those that were meant.
    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def in_full(cls, said: Any) -> Any:
        """The table that a short way of writing it stands for."""
        return said

    @model_validator(mode="before")
    @classmethod
    def _present(cls, said: Any) -> Any:
        table = cls.in_full(said)
        if not isinstance(table, Mapping):
            return table
        return {key: value for key, value in table.items() if value is not None and value is not _REFUSED}

    @classmethod
    def names(cls) -> list[str]:
        """Its keys, as a plan writes them."""
        return [field.alias or name for name, field in cls.model_fields.items()]


@dataclass(frozen=True)
class Needed:
    """A key that a plan must have, and that says something; the clause follows the path of its table."""

    problem: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of what is not empty."""
        written = handler(schema)
        least = {"array": "minItems", "object": "minProperties"}.get(written.get("type", ""))
        return {least: 1, **written} if least else written


@dataclass(frozen=True)
class Of:
    """A table or list that has entries of its own; the clause is said of what is none."""

    kinds: type | tuple[type, ...]
    problem: str = "is not a table"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the annotated type, looked at after the kind."""

        def judge(value: Any) -> Any:
            if not isinstance(value, self.kinds):
                raise PydanticCustomError("form", self.problem)
            return value

        return _entry(core_schema.no_info_before_validator_function(judge, handler(source)))


@dataclass(frozen=True)
class Says:
    """A value without entries of its own; the clause is said of whatever is wrong with it."""

    problem: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the annotated type with this clause for all its errors."""
        return self.around(handler(source))

    def around(self, schema: CoreSchema) -> CoreSchema:
        """The same for any schema."""
        said = core_schema.custom_error_schema(schema, custom_error_type="form", custom_error_message=self.problem)
        return _entry(said)


@dataclass(frozen=True)
class Whole:
    """A whole number in a range."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of such a number."""
        says = Says(f"is not a whole number from {self.least:,} to {self.most:,}")
        return says.around(core_schema.int_schema(strict=True, ge=self.least, le=self.most))


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of these words."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return Says(f"must be one of {words}").around(core_schema.literal_schema(list(self.words)))


class Time:
    """A time above zero."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of such a text."""

        def judge(text: str) -> str:
            if not 0 < seconds(text) <= MOST_SECONDS:
                raise ValueError
            return text

        text = core_schema.str_schema(strict=True, pattern=rf"\d\s*({'|'.join(QUANTITIES['time'].units)})\s*$")
        says = Says(f'is not a time above zero such as "60s", and at most {MOST_SECONDS}s')
        return says.around(core_schema.no_info_after_validator_function(judge, text))


def _entry(schema: CoreSchema) -> CoreSchema:
    """The schema of what is None where it is refused: an entry of a table or a list keeps its place."""
    return core_schema.no_info_wrap_validator_function(
        lambda value, inside: None if value is _REFUSED else inside(value), schema
    )


AnyForm = TypeVar("AnyForm", bound=Form)


def read(form: type[AnyForm], diagnostics: Diagnostics, known: Iterable[str], *, leave: Iterable[str] = ()) -> AnyForm:
    """The plan as a form, without what is refused; `known` are the keys that such a plan may have.

    What is to be left out has been refused already.
    """
    document = {key: value for key, value in diagnostics.document.items() if key not in leave}
    refused: set[Place] = set()
    try:
        table = form.model_validate(document)
    except ValidationError as error:
        for part in error.errors(include_url=False):
            place = diagnostics.place(part["loc"])
            problem = part["msg"] if part["type"] == "form" else "is not a table"
            diagnostics.refuse(place, problem, diagnostics.at(place))
            refused.add(place)
        table = form.model_validate(_without(document, refused, ()))
    for place, inner in _tables(table, ()):
        names = list(known) if inner is table else inner.names()
        for key in inner.model_extra or {}:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}? Known" if near else "known"
            diagnostics.refuse((*place, key), f"is unknown; {hint} keys: {', '.join(names)}")
        for name, field in type(inner).model_fields.items():
            needed = next((one for one in field.metadata if isinstance(one, Needed)), None)
            absent = not getattr(inner, name) and (*place, field.alias or name) not in refused
            if needed is not None and absent:
                diagnostics.refuse(place, needed.problem)
    return table


def _without(value: Any, refused: set[Place], place: Place) -> Any:
    """A value with what is refused in it marked."""
    if place in refused:
        return _REFUSED
    if isinstance(value, Mapping):
        return {key: _without(one, refused, (*place, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, refused, (*place, number)) for number, one in enumerate(value)]
    return value


def _tables(value: Any, place: Place) -> Iterator[tuple[Place, Form]]:
    """All tables that have a form, and where they stand."""
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, Form):
        yield place, value
        inside = [(field.alias or name, getattr(value, name)) for name, field in type(value).model_fields.items()]
    elif isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for step, one in inside:
        yield from _tables(one, (*place, step))


class PlanSchema(GenerateJsonSchema):
    """The JSON Schema of forms: TOML has no null, and a plan no unknown keys."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """None stands for what is absent."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """None is no default, and those of a table are its own."""
        written = super().default_schema(schema)
        return {
            key: one for key, one in written.items() if key != "default" or not (one is None or isinstance(one, dict))
        }

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """A table, with the keys that it needs."""
        form: type[Form] = schema["cls"]
        needed = [
            field.alias or name
            for name, field in form.model_fields.items()
            if any(isinstance(one, Needed) for one in field.metadata)
        ]
        required = {"required": needed} if needed else {}
        title = form.__name__.removesuffix("Form")
        return {**super().model_schema(schema), "title": title, "additionalProperties": False, **required}

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """A table under the name of its form, without `Form`."""
        core_ref, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(core_ref.replace("Form:", ":")), mode))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Titles would repeat the keys."""
        return False
