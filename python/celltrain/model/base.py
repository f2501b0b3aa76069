"""Base of the generated scenario classes: they refuse unknown settings, are immutable, and can be written as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, PydanticSerializationError, core_schema
from typing_extensions import Self

from celltrain import _core
from celltrain.errors import Fault, ScenarioError
from celltrain.model import grammar
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.text import described, key_path

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationInfo


class Model(BaseModel):
    """A table of a scenario. Its fields are checked on creation; `replace` makes a changed copy."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, validate_default=True, allow_inf_nan=False
    )

    def __str__(self) -> str:
        return repr(self)

    #: Key of this table in a choice among tables, such as `epd` for a policy; empty if it is not part of a choice.
    choice_key: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _with_lists(cls, settings: Any) -> Any:
        """Makes a table given for a list of tables a list of one; otherwise pydantic would read the table's settings."""
        if not isinstance(settings, dict):
            return settings
        if "rules" in cls.model_fields:
            settings = cls._with_profile(settings)
        single = {
            name: (value,)
            for name, value in settings.items()
            if isinstance(value, Model)
            and (field := cls.model_fields.get(name)) is not None
            and get_origin(field.annotation) is tuple
        }
        return settings | single

    @classmethod
    def _with_profile(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Adds the values that the profile of a TCP gives to absent keys at the top of its table."""
        rules = settings.get("rules")
        names = {str(field.validation_alias or name): name for name, field in cls.model_fields.items()}
        profile = _profiles().get(rules, {}) if isinstance(rules, str) else {}
        absent = {key: value for key, value in profile.items() if not settings.keys() & {key, names[key]}}
        return absent | settings

    if not TYPE_CHECKING:

        def __init__(self, /, **settings: Any) -> None:
            with _refusing(type(self)):
                super().__init__(**settings)

        # Marks this constructor as equivalent to that of BaseModel. Then pydantic validates inner tables without
        # calling it, so that one error lists every fault.
        __init__.__pydantic_base_init__ = True

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(
                f"a {type(self).__name__} cannot be changed; make a changed copy: .replace({name}=...)"
            )

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Makes a table from its values; raises `ScenarioError`."""
        with _refusing(cls):
            return super().model_validate(obj, **options)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Makes a table from JSON; raises `ScenarioError`."""
        if not isinstance(json_data, str | bytes | bytearray):
            raise ScenarioError.of_option("json_data", described(json_data), "is not a str or bytes of JSON")
        try:
            with _refusing(cls):
                return super().model_validate_json(json_data, **options)
        except UnicodeEncodeError:
            raise ScenarioError.of_file(cls.__name__, "is not JSON that can be encoded in UTF-8") from None

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed, checked like a new one.

        >>> from celltrain import Fba
        >>> Fba().replace(z=0.5)
        Fba(threshold=0.9, z=0.5)
        """
        own = {name: getattr(self, name) for name in self.model_fields_set & type(self).model_fields.keys()}
        return type(self)(**own | (self.__pydantic_extra__ or {}) | changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the table as a dictionary, with the keys of a TOML file."""
        return self._to_dict()

    def _to_dict(self, *, exclude_defaults: bool = False) -> dict[str, Any]:
        try:
            return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=exclude_defaults)
        except PydanticSerializationError:
            # pydantic does not validate copies (`model_copy`, `model_construct`), so they may contain anything.
            problem = "holds a value that a scenario cannot have; make the copy with replace(), which names the value"
            raise ScenarioError.of_file(type(self).__name__, problem) from None


class Experiment(CardMixin, Model):
    """A whole scenario. `print` and notebooks show the settings that differ from the defaults."""

    def _card(self) -> Card:
        changes = self._to_dict(exclude_defaults=True)
        name = changes.pop("name", "") or "A scenario"
        rows = [[".".join(path) or "scenario", own or "defaults"] for path, own in _settings(changes, ())]
        return Card(
            title=str(name),
            grids=[Grid(heads=["table", "settings"], rows=rows, left=(0, 1))],
            notes=['Everything else has its default. celltrain.save(scenario, "file.toml") saves it.'],
        )


def _settings(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields each table of a scenario: its path, and its own settings in one line."""
    own = ", ".join(f"{key} = {value}" for key, value in table.items() if not isinstance(value, Mapping))
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if own or not inner:
        yield path, own
    for key, value in inner.items():
        yield from _settings(value, (*path, key))


def as_model(value: Any) -> Any:
    """Returns the table for which an object stands, such as an instance of a `celltrain.PythonPolicy`."""
    stands_for = getattr(type(value), "_as_model", None)
    return value if stands_for is None else stands_for(value)


class Keyed:
    """A choice among tables, tagged by a key, as in `{"epd": {"threshold": 800}}`.

    In Python, the choice is an instance of the class for that key.
    """

    def __init__(self, **variants: type[Model]) -> None:
        self.variants = variants
        for key, variant in variants.items():
            variant.choice_key = key

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        keys: dict[type, str] = {variant: key for key, variant in self.variants.items()}

        def tag(value: object) -> str | None:
            value = as_model(value)
            if isinstance(value, Mapping):
                return next(iter(value)) if len(value) == 1 else None
            return keys.get(type(value))

        def content(value: object) -> object:
            value = as_model(value)
            return next(iter(value.values())) if isinstance(value, Mapping) else value

        def write(value: Model, info: core_schema.SerializationInfo) -> dict[str, object]:
            options = {name: getattr(info, name) for name in ("mode", "by_alias", "exclude_none", "exclude_defaults")}
            return {keys[type(value)]: value.model_dump(**options)}

        choices: dict[Any, CoreSchema] = {
            key: core_schema.no_info_before_validator_function(content, handler.generate_schema(variant))
            for key, variant in self.variants.items()
        }
        classes = " or ".join(variant.__name__ for variant in self.variants.values())
        expected = f"is neither one of {classes} nor a table with one of the keys {', '.join(self.variants)}"

        def of_text(value: object, info: ValidationInfo) -> object:
            """Reads a text such as `epd:threshold=80%`. Refuses a class in place of an object."""
            if isinstance(value, type) and (value in keys or hasattr(value, "_as_model")):
                problem = f"is a class: pass an object of the class, {value.__name__}()"
                raise PydanticCustomError("text", "{problem}", {"problem": problem})
            if not isinstance(value, str):
                return value
            try:
                return grammar.choice(value, list(self.variants), info.field_name or "choice")
            except ValueError as error:
                problem = str(error).removeprefix(f"has {value!r}, which ")
                raise PydanticCustomError("text", "{problem}", {"problem": problem}) from None

        union = core_schema.tagged_union_schema(choices, tag, custom_error_type="choice", custom_error_message=expected)
        return core_schema.with_info_before_validator_function(
            of_text, union, serialization=core_schema.plain_serializer_function_ser_schema(write, info_arg=True)
        )


def _is_threshold(value: Any) -> Any:
    """Refuses numbers and texts that are not thresholds."""
    if isinstance(value, int | float | str) and (problem := _core.threshold(json.dumps(value))):
        raise PydanticCustomError("threshold", "{problem}", {"problem": problem})
    # In TOML files, too, numbers of cells are integers.
    return int(value) if isinstance(value, float) and value > 1 else value


Threshold: TypeAlias = Annotated[float | int | str, BeforeValidator(_is_threshold)]
"""A threshold of a buffer: a share (`0.8`, `"80%"`), cells (`800`, `"800 cells"`) or `"buffer - 200 cells"`."""


#: Names that pydantic gives to members of unions. They are not keys. A type is the last part of a place.
_TYPES = ("bool", "float", "int", "str")
_MEMBER = re.compile(r"constrained-[a-z]+|(dict|function-[a-z]+|list|literal|nullable|tuple)\[.*\]")


@contextmanager
def _refusing(model: type[Model]) -> Iterator[None]:
    """Turns pydantic's errors into a `ScenarioError`."""
    try:
        yield
    except ValidationError as error:
        raise ScenarioError(_faults(error, model)) from None


def _faults(error: ValidationError, model: type[Model]) -> list[Fault]:
    """Returns only one fault for each setting, even if its value matched none of several types."""
    names = {str(field.validation_alias): name for name, field in model.model_fields.items()}
    faults: dict[str, Fault] = {}
    for part in error.errors(include_url=False):
        first, *inner = [place for place in part["loc"] if not _MEMBER.fullmatch(str(place))] or [""]
        # Another member of the union has already reported this value.
        if part["type"] == "string_type" and inner and inner[-1] == "str":
            continue
        while inner and inner[-1] in _TYPES and part["type"] not in ("missing", "extra_forbidden"):
            inner.pop()
        key = reduce(key_path, [names.get(str(first), first), *inner], "") if first else ""
        message = part["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        value, problem = described(part["input"]), f"is refused: {message[:1].lower()}{message[1:]}"
        if part["type"] == "missing":
            value, problem = "", "is missing"
        elif part["type"] == "tuple_type":
            problem = "is not a list; put it into brackets, as in [...]"
        elif part["type"] in ("threshold", "text"):
            problem = message
        elif part["type"] == "string_type" and (example := _example(model, part["loc"])):
            problem = f'is not a text with a unit, such as "{example}"'
        elif part["type"] == "extra_forbidden":
            problem = "is unknown"
            if place := _moved(str(part["loc"][-1])):
                problem = f"is now {key.removesuffix(str(part['loc'][-1]))}{place}"
            elif not inner and (tables := _as_tables(str(first), model)):
                problem += f"; write {tables}, which replaces the whole table"
            elif not inner:
                known = ", ".join(model.model_fields)
                problem += f"; known fields: {known}" if known else "; this table has no keys"
        if key in faults:
            problem = f"{faults[key].problem} or {problem.removeprefix('is refused: ')}"
        faults[key] = Fault.of(problem, file=model.__name__, key=key, value=value)
    return list(faults.values())


def _as_tables(path: str, model: type[Model]) -> str:
    """Returns the tables to write instead of a path such as `link."sw1->sw2".lose`; empty for other names."""
    head, *rest = (part.strip('"') for part in re.findall(r'"[^"]*"|[^."]+', path) or [""])
    if head not in model.model_fields or not rest:
        return ""
    return f"{head}={''.join(f'{{{json.dumps(key)}: ' for key in rest)}...{'}' * len(rest)}"


@cache
def _profiles() -> dict[str, dict[str, Any]]:
    """Returns the values of the profiles of TCPs for keys at the top of their tables."""
    profiles: dict[str, dict[str, Any]] = json.loads(_core.schema())["$defs"]["TcpOptions"]["x-profiles"]
    return profiles


def _moved(key: str) -> str:
    """Returns the new place of a key that was at the top of a TCP's table; empty for other keys."""
    return str(json.loads(_core.schema())["$defs"]["TcpOptions"]["x-moved"].get(key, ""))


def _example(model: type[Model], loc: tuple[int | str, ...]) -> str:
    """Returns an example for a field with a unit; empty for other fields and for fields of inner tables."""
    [name, *inner] = loc or [""]
    fields = [one for key, one in model.model_fields.items() if name in (key, one.validation_alias)]
    examples = fields[0].examples if fields and not inner else None
    return str(examples[0]) if examples else ""
