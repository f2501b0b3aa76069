"""The tables of a plan as pydantic models: what each key takes, the JSON Schema, and faults in a plan's own words.

pydantic finds what has the wrong form. Its places (`loc`) are looked up in the plan, which has the path and the line, and
its texts are replaced by clauses that follow `path = value`. Rules between keys, or about the scenario, are in `reader`.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from celltrain.ensemble.plan.axes import MAX_RUNS, SEEDS
from celltrain.ensemble.plan.document import Document, Place
from celltrain.model.measures import SERIES
from celltrain.model.quantities import QUANTITIES, seconds

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidatorFunctionWrapHandler

#: Points of a sample, which is drawn as a whole.
MAX_SAMPLE = 1 << 20
#: SQLite counts seeds in 63 bits.
MAX_SEED = (1 << 63) - 1
#: Values of a range.
MOST_VALUES = 1 << 62
#: Trials of one search.
MOST_TRIALS = 10_000
#: Samplers take a seed of 32 bits.
MOST_DRAWN = (1 << 32) - 1
#: Longest real time, and longest time between two samples: thirty years.
MOST_SECONDS = 10**9
#: Example of objectives, in messages.
OBJECTIVES = 'two measures, such as { efficiency = "maximize", fairness = "maximize" }'

_REFUSED: Any = object()


@dataclasses.dataclass(frozen=True)
class Needed:
    """Marks a key that a plan must have. The problem follows the path of its table if the key is absent or empty."""

    problem: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Returns the schema of a value that is not empty."""
        written = handler(schema)
        least = {"array": "minItems", "object": "minProperties"}.get(written.get("type", ""))
        return {least: 1, **written} if least else written


@dataclasses.dataclass(frozen=True)
class Says:
    """The problem of a value of the wrong form; with `kinds`, the value is a table or list with entries of its own.

    Attributes:
        schema: The schema of the value, instead of the one of the annotated type.
    """

    problem: str
    kinds: tuple[type, ...] = ()
    schema: CoreSchema | None = dataclasses.field(default=None, hash=False)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema with this problem for its errors; a value that is refused already is None."""

        def judge(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
            if value is _REFUSED:
                return None
            try:
                if not self.kinds or isinstance(value, self.kinds):
                    return validate(value)
            except ValidationError:
                if self.kinds:
                    raise
            raise PydanticCustomError("form", self.problem)

        return core_schema.no_info_wrap_validator_function(judge, self.schema or handler(source))


def whole(least: int, most: int) -> Says:
    """Returns the form of a whole number in a range."""
    schema = core_schema.int_schema(strict=True, ge=least, le=most)
    return Says(f"is not a whole number from {least:,} to {most:,}", schema=schema)


def one_of(*words: str) -> Says:
    """Returns the form of one of some words."""
    listed = ", ".join(f'"{word}"' for word in words)
    return Says(f"must be one of {listed}", schema=core_schema.literal_schema(list(words)))


def _time() -> Says:
    def judge(text: str) -> str:
        if not 0 < seconds(text) <= MOST_SECONDS:
            raise ValueError
        return text

    text = core_schema.str_schema(strict=True, pattern=rf"\d\s*({'|'.join(QUANTITIES['time'].units)})\s*$")
    problem = f'is not a time above zero, such as "60s", and at most {MOST_SECONDS}s'
    return Says(problem, schema=core_schema.no_info_after_validator_function(judge, text))


_TABLE = Says("is not a table", (Mapping,))
Time = Annotated[str, _time()]
Path = Annotated[str, Says("is not a path into the scenario such as port.bottleneck.buffer")]
#: The key of the scenario decides between a number and a text.
Bound = Annotated[Any, WithJsonSchema({"type": ["number", "string"]})]


class Form(BaseModel):
    """A table of a plan. A refused value is absent, so that the rest can be judged.

    Every key may therefore be absent from an instance; `Needed` marks those that a plan must have.
    """

    # Unknown keys are kept until they are refused, with the nearest known key.
    model_config = ConfigDict(extra="allow", frozen=True)

    short: ClassVar[tuple[type, str, dict[str, Any]] | None] = None

    @model_validator(mode="before")
    @classmethod
    def _present(cls, said: Any) -> Any:
        table = {cls.short[1]: said} if cls.short is not None and isinstance(said, cls.short[0]) else said
        if not isinstance(table, Mapping):
            return table
        return {key: value for key, value in table.items() if value is not None and value is not _REFUSED}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Returns the schema of all ways of writing the table."""
        return handler(schema) if cls.short is None else {"anyOf": [cls.short[2], handler(schema)]}

    @classmethod
    def names(cls) -> list[str]:
        """Returns the keys as a plan writes them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def needed(cls) -> dict[str, str]:
        """Returns the keys that a plan must have, and the problem if one is absent."""
        fields = cls.model_fields.items()
        return {name: one.problem for name, field in fields for one in field.metadata if isinstance(one, Needed)}


class RangeForm(Form):
    """Both ends of the values of an axis.

    Attributes:
        path: Path into the scenario, such as `port.bottleneck.buffer`; the axis's name when absent.
        from: The lower end: a number, or one with its unit, as the scenario takes it.
        to: The upper end.
        scale: Equal differences (linear) or equal ratios (log) between the values.
    """

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    path: Path | None = None
    from_: Bound = Field(None, alias="from")
    to: Bound = None
    scale: Annotated[str, one_of("linear", "log")] = "linear"


class AxisForm(RangeForm):
    """Something varied: values, or from one end to another. A list of values is short for a table.

    Attributes:
        values: A list, or a table of values by their labels.
        step: Difference between two values of a range, on a linear scale.
        count: Number of values of a range.
    """

    short = (list, "values", {"type": "array", "minItems": 1})

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": ["values"],
                    "not": {"anyOf": [{"required": [key]} for key in ("from", "to", "step", "count", "scale")]},
                },
                {"required": ["from", "to", "step"]},
                {"required": ["from", "to", "count"]},
            ]
        }
    )

    values: (
        Annotated[list[Any] | dict[str, Any], Says("is neither a list nor a table of values with labels")] | None
    ) = None
    step: Bound = None
    count: Annotated[int, whole(1, MOST_VALUES)] | None = None


_AXIS = Says("is neither a list of values nor a table with a path and values, or from and to", (list, Mapping))
Axes = dict[str, Annotated[AxisForm | None, _AXIS]]


class ColumnForm(Form):
    """One column of the rows. A path is short for a table.

    Attributes:
        path: Path into the scenario; the axis's name when absent.
        values: Values by their labels; the rows then have the labels.
    """

    short = (str, "path", {"type": "string"})

    path: Path | None = None
    values: Annotated[dict[str, Any], Field(min_length=1), Says("is not a table of values with labels")] | None = None


_ROWS = Says("is not a list of lists with one value for each axis", (list,))


class PointsForm(Form):
    """Points one by one: a row of values for the axes that it names.

    Attributes:
        axes: Names and paths, in the order of the rows' values.
        rows: Lists of values, one for each axis.
    """

    axes: Annotated[
        dict[str, Annotated[ColumnForm | None, Says("is not a table", (str, Mapping))]] | None,
        Needed("has no axes; give a table of names and paths, in the order of the rows' values"),
    ] = None
    rows: Annotated[
        Annotated[list[Annotated[Any, WithJsonSchema({"type": "array"})]], _ROWS] | None,
        Needed("has no rows; give a list of lists with one value for each axis"),
    ] = None


class SampleForm(Form):
    """Axes that are drawn together.

    Attributes:
        method: Method that spreads the points of the sample.
        points: Number of points.
        seed: Seed of the sample.
        axes: Axes by name, each with both ends.
    """

    method: Annotated[str, one_of("sobol", "latin_hypercube")] = "sobol"
    points: Annotated[
        Annotated[int, whole(1, MAX_SAMPLE)] | None, Needed("lacks points, the number of points to draw")
    ] = None
    seed: Annotated[int, whole(0, MOST_DRAWN)] = 1
    axes: Annotated[dict[str, Annotated[RangeForm | None, _TABLE]] | None, Needed("has no axes to draw from")] = None


_NAMED = Annotated[str, Field(pattern=r"\S", strict=True), Says("is not one of the measures")]
_WIDTH = Annotated[
    float, Field(gt=0, strict=True, allow_inf_nan=False), Says("is not a number above zero, half the width")
]


class UntilForm(Form):
    """Seeds are added to a point until the 95 % interval of a measure's mean is narrow enough.

    Attributes:
        measure: One of the measures.
        interval: Half the width of the 95 % interval.
        at_least: Least number of seeds of a point.
        at_most: Largest number of seeds of a point.
    """

    measure: Annotated[_NAMED | None, Needed("lacks measure")] = None
    interval: Annotated[_WIDTH | None, Needed("lacks interval")] = None
    at_least: Annotated[int, whole(2, MAX_RUNS)] = 5
    at_most: Annotated[Annotated[int, whole(2, MOST_VALUES)] | None, Needed("lacks at_most")] = None


class SeedsForm(Form):
    """The seeds of each point. A whole number is short for a count.

    Attributes:
        first: The first seed; the others follow.
        count: Number of seeds of every point.
        until: Adds seeds until an interval is narrow enough, instead of a count.
    """

    short = (int, "count", {"type": "integer", "minimum": 1})

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["count", "until"]}})

    first: Annotated[int, whole(0, MAX_SEED - MAX_RUNS)] = 1
    count: Annotated[int, whole(1, MOST_VALUES)] = SEEDS
    until: UntilForm | None = None


class LimitsForm(Form):
    """Limits of a run.

    Attributes:
        time: Real time that a run may take, such as `"60s"`.
    """

    time: Time | None = None


_SERIES = f"a list out of {', '.join(SERIES)}"
_RECORD = Annotated[list[Annotated[str, one_of(*SERIES)]], Says(f"is not {_SERIES}", (list,))]


class SeriesForm(Form):
    """The series that every run records.

    Attributes:
        record: Names of the series.
        step: The time between two samples, such as `"1ms"`.
        ports: Names of ports; the bottleneck when absent.
    """

    record: Annotated[_RECORD | None, Needed(f"lacks record = {_SERIES}")] = None
    step: Annotated[Time | None, Needed('lacks step, the time between two samples, such as "1ms"')] = None
    ports: Annotated[list[Annotated[str, Field(strict=True)]], Says("is not a list of ports' names")] | None = None


class StagesForm(Form):
    """Number of seeds of each stage of a search; the stages have no seed in common.

    Attributes:
        first: First seed of the first stage.
        search: Seeds of every trial.
        selection: Seeds of every finalist.
        confirmation: Seeds of every setting of the final front.
    """

    first: Annotated[int, whole(0, MAX_SEED - MAX_RUNS)] = 1
    search: Annotated[int, whole(1, MAX_RUNS)] = 5
    selection: Annotated[int, whole(2, MAX_RUNS)] = 10
    confirmation: Annotated[int, whole(2, MAX_RUNS)] = 30


class ParameterForm(RangeForm):
    """Something searched.

    Attributes:
        step: Difference between two values, on a linear scale; every value of the range is possible when absent.
    """

    step: Bound = None


class TuneForm(Form):
    """The parameters of a search, its objectives and its size.

    Attributes:
        parameters: Parameters by name, each with both ends.
        objectives: Two measures, each maximized or minimized.
        references: Settings to compare with, by their labels: a value for every parameter.
        trials: Number of trials of each search.
        batch: Number of trials that are chosen together.
        finalists: Largest number of settings of each search that go on to selection, references not counted.
        seed: Seed of the sampler.
        seeds: Seeds of the three stages.
    """

    parameters: Annotated[
        dict[str, Annotated[ParameterForm | None, _TABLE]] | None,
        Needed("lacks parameters, a table of what to search, each with path, from and to"),
    ] = None
    objectives: Annotated[
        dict[str, Annotated[str | None, one_of("maximize", "minimize")]] | None,
        Needed(f"lacks objectives: {OBJECTIVES}"),
        Field(json_schema_extra={"minProperties": 2, "maxProperties": 2}),
    ] = None
    references: dict[str, Annotated[dict[str, Bound] | None, _TABLE]] | None = None
    trials: Annotated[int, whole(1, MOST_TRIALS)] = 64
    batch: Annotated[int, whole(1, MOST_TRIALS)] = 8
    finalists: Annotated[int, whole(1, MOST_TRIALS)] = 8
    seed: Annotated[int, whole(0, MOST_DRAWN)] = 1
    seeds: StagesForm = StagesForm()


MEASURES = 'is not a list of measures such as "efficiency"'
_MEASURE = Annotated[str | None, Says('is not a measure such as "efficiency"', (str,))]
_PAIRED = Says("is not a list of tables: write [[paired]]", (list,))


class PlanForm(Form):
    """A plan of celltrain: for `celltrain sweep`, or, with a table [tune], for `celltrain tune`.

    Attributes:
        name: A title; the name of the file when absent.
        scenario: A file next to the plan, a shipped scenario's name, or a scenario as a table, as `celltrain schema`
            has it.
        measures: Measures of every run.
        axes: Axes by name, crossed with each other.
        paired: Tables of axes that move together.
        points: Points one by one.
        seeds: Seeds of each point.
        limits: Limits of each run.
        series: Series of every run.
        tune: Search of parameters, for `celltrain tune`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "required": ["scenario"],
            "dependentSchemas": {"tune": {"properties": {"sample": False, "seeds": False, "series": False}}},
        },
    )

    name: Annotated[str, Field(pattern=r"^$|\S", strict=True), Says("is not a text")] | None = None
    scenario: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    measures: Annotated[list[_MEASURE], Says(MEASURES, (list,))] | None = Field(None, json_schema_extra={"minItems": 1})
    axes: Axes | None = None
    paired: Annotated[list[Annotated[Axes | None, _TABLE]], _PAIRED] | None = None
    points: PointsForm | None = None
    sample: SampleForm | None = None
    seeds: SeedsForm = SeedsForm()
    limits: LimitsForm = LimitsForm()
    series: SeriesForm | None = None
    tune: TuneForm | None = None


AnyForm = TypeVar("AnyForm", bound=Form)


def read(form: type[AnyForm], document: Document, known: Iterable[str], *, leave: Iterable[str] = ()) -> AnyForm:
    """Reads the plan as a form, without refused values.

    Args:
        form: The model of the whole plan.
        document: The plan; collects its faults.
        known: Keys that a plan of this kind may have, in messages.
        leave: Keys that are refused already.
    """
    values = {key: value for key, value in document.document.items() if key not in leave}
    refused: set[Place] = set()
    try:
        table = form.model_validate(values)
    except ValidationError as error:
        for part in error.errors(include_url=False):
            place = document.place(part["loc"])
            problem = part["msg"] if part["type"] == "form" else "is not a table"
            document.refuse(place, problem, document.at(place))
            refused.add(place)
        table = form.model_validate(_without(values, refused, ()))
    for place, inner in _tables(table, ()):
        names = list(known) if inner is table else inner.names()
        for key in inner.model_extra or {}:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}? Known" if near else "known"
            document.refuse((*place, key), f"is unknown; {hint} keys: {', '.join(names)}")
        for name, needed in inner.needed().items():
            if not getattr(inner, name) and (*place, name) not in refused:
                document.refuse(place, needed)
    return table


def _without(value: Any, refused: set[Place], place: Place) -> Any:
    """Returns a value in which refused places are marked."""
    if place in refused:
        return _REFUSED
    if isinstance(value, Mapping):
        return {key: _without(one, refused, (*place, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, refused, (*place, number)) for number, one in enumerate(value)]
    return value


def _tables(value: Any, place: Place) -> Iterator[tuple[Place, Form]]:
    """Yields all forms inside a value, and their places."""
    if isinstance(value, Form):
        yield place, value
        value = {field.alias or name: getattr(value, name) for name, field in type(value).model_fields.items()}
    if isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tables(one, (*place, step))


class PlanSchema(GenerateJsonSchema):
    """Writes the JSON Schema of forms: TOML has no null, and a plan no unknown keys."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """Leaves out None, which stands for an absent key."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """Leaves out None as a default, and defaults of tables."""
        written = super().default_schema(schema)
        if written.get("default") is None or isinstance(written["default"], dict):
            written.pop("default", None)
        return written

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Adds the keys that a table needs, and the descriptions in docstrings."""
        form: type[Form] = schema["cls"]
        required = {"required": list(form.needed())} if form.needed() else {}
        written = {**super().model_schema(schema), "title": form.__name__.removesuffix("Form"), **required}
        for base in reversed(form.__mro__[: form.__mro__.index(Form)]):
            about, _, keys = (inspect.getdoc(base) or "").partition("\n\nAttributes:\n")
            written["description"] = " ".join(about.split())
            for name, text in re.findall(r"^    (\w+): ((?:.|\n      )+)", keys, re.MULTILINE):
                written["properties"][name]["description"] = " ".join(text.split())
        return {**written, "additionalProperties": False}

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """Names a table after its form, without `Form`."""
        core_ref, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(core_ref.replace("Form:", ":")), mode))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Returns False: titles would repeat the keys."""
        return False


def json_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a plan."""
    return PlanForm.model_json_schema(schema_generator=PlanSchema)
