"""What a plan may say: the form of every table. What lies between keys, or needs the scenario, is for the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from celltrain.ensemble.plan.contents import MAX_RUNS, SEEDS
from celltrain.ensemble.plan.form import Form, Needed, Of, OneOf, PlanSchema, Says, Time, Whole
from celltrain.model.measures import SERIES

METHODS = ("sobol", "latin_hypercube")
SCALES = ("linear", "log")
DIRECTIONS = ("maximize", "minimize")
#: A sample is drawn as a whole.
MAX_SAMPLE = 1 << 20
#: SQLite counts seeds in 63 bits.
MAX_SEED = (1 << 63) - 1
#: A range has so many values at most; nobody runs as many.
MOST_VALUES = 1 << 62
#: Of one search.
MOST_TRIALS = 10_000
#: What draws takes a seed of 32 bits.
MOST_DRAWN = (1 << 32) - 1

_PATH = Says("is not a path into the scenario such as port.bottleneck.buffer")
#: How objectives are written.
OBJECTIVES = 'two measures, such as { efficiency = "maximize", fairness = "maximize" }'
#: Which of them it is, the key of the scenario says.
_BOUND = WithJsonSchema({"type": ["number", "string"]})


class RangeForm(Form):
    """Both ends of what an axis is drawn from."""

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    path: Annotated[str, _PATH] | None = None
    """Into the scenario, such as `port.bottleneck.buffer`; the axis's name when absent."""
    from_: Annotated[Any, _BOUND] = Field(None, alias="from")
    """The lower end: a number, or one with its unit, as the scenario takes it."""
    to: Annotated[Any, _BOUND] = None
    """The upper end."""
    scale: Annotated[str, OneOf(SCALES)] = "linear"
    """What is even between the ends: differences or ratios."""


class AxisForm(RangeForm):
    """Something varied: values, or from one end to another. A list of values is short for a table."""

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
    """A list, or a table of values by their labels."""
    step: Annotated[Any, _BOUND] = None
    """Between two values of a range, on a linear scale."""
    count: Annotated[int, Whole(1, MOST_VALUES)] | None = None
    """How many values a range has."""

    @classmethod
    def in_full(cls, said: Any) -> Any:
        """A list is short for its values, at the path that the axis is named after."""
        return {"values": said} if isinstance(said, list) else said

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Either way of writing it."""
        return {"anyOf": [{"type": "array", "minItems": 1}, handler(schema)]}


_AXIS = Of((list, Mapping), "is neither a list of values nor a table with a path and values, or from and to")
Axes = dict[str, Annotated[AxisForm | None, _AXIS]]


class ColumnForm(Form):
    """What the values of the rows at one place set. A path is short for a table."""

    path: Annotated[str, _PATH] | None = None
    """Into the scenario; the axis's name when absent."""
    values: Annotated[dict[str, Any], Field(min_length=1), Says("is not a table of values with labels")] | None = None
    """By their labels, which stand in the rows then."""

    @classmethod
    def in_full(cls, said: Any) -> Any:
        """A text is short for its path."""
        return {"path": said} if isinstance(said, str) else said

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Either way of writing it."""
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class PointsForm(Form):
    """Points one by one: a row of values for the axes that it names."""

    axes: Annotated[
        dict[str, Annotated[ColumnForm | None, Of((str, Mapping))]] | None,
        Needed("has no axes: a table of names and paths, in the order of the rows' values"),
    ] = None
    """Names and paths, in the order of the rows' values."""
    rows: Annotated[
        Annotated[
            list[Annotated[Any, WithJsonSchema({"type": "array"})]],
            Of(list, "is not a list of lists, a value for each axis in each"),
        ]
        | None,
        Needed("has no rows: a list of lists, a value for each axis in each"),
    ] = None
    """Lists, a value for each axis in each."""


class SampleForm(Form):
    """Axes that are drawn together."""

    method: Annotated[str, OneOf(METHODS)] = METHODS[0]
    """How the points of the sample are spread."""
    points: Annotated[Annotated[int, Whole(1, MAX_SAMPLE)] | None, Needed("lacks points: how many are drawn")] = None
    """How many are drawn."""
    seed: Annotated[int, Whole(0, MOST_DRAWN)] = 1
    """Of what is drawn."""
    axes: Annotated[dict[str, Annotated[RangeForm | None, Of(Mapping)]] | None, Needed("has no axes to draw from")] = (
        None
    )
    """By name, each with both ends."""


class UntilForm(Form):
    """Seeds are added to a point until the 95 % interval of a measure's mean is narrow enough."""

    measure: Annotated[
        Annotated[str, Field(pattern=r"\S", strict=True), Says("is not one of the measures")] | None,
        Needed("lacks measure"),
    ] = None
    """One of the measures."""
    interval: Annotated[
        Annotated[
            float, Field(gt=0, strict=True, allow_inf_nan=False), Says("is not a number above zero, half the width")
        ]
        | None,
        Needed("lacks interval"),
    ] = None
    """Half the width of the 95 % interval."""
    at_least: Annotated[int, Whole(2, MAX_RUNS)] = 5
    """Seeds of every point."""
    at_most: Annotated[Annotated[int, Whole(2, MOST_VALUES)] | None, Needed("lacks at_most")] = None
    """Seeds of any point."""


class SeedsForm(Form):
    """How often each point is run, and with which seeds. A whole number is short for a count."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["count", "until"]}})

    first: Annotated[int, Whole(0, MAX_SEED - MAX_RUNS)] = 1
    """The first seed; the others follow."""
    count: Annotated[int, Whole(1, MOST_VALUES)] = SEEDS
    """Of every point."""
    until: UntilForm | None = None
    """As many as are needed, instead of a count."""

    @classmethod
    def in_full(cls, said: Any) -> Any:
        """A number is short for a count."""
        return {"count": said} if isinstance(said, int) else said

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Either way of writing it."""
        return {"anyOf": [{"type": "integer", "minimum": 1}, handler(schema)]}


class LimitsForm(Form):
    """What a run may take."""

    time: Annotated[str, Time()] | None = None
    """In real time, such as `"60s"`."""


class SeriesForm(Form):
    """What every run records."""

    record: Annotated[
        Annotated[
            list[Annotated[str, OneOf(tuple(SERIES))]],
            Of(list, f"is not a list out of {', '.join(SERIES)}"),
        ]
        | None,
        Needed(f"lacks record = a list out of {', '.join(SERIES)}"),
    ] = None
    """Which series."""
    step: Annotated[
        Annotated[str, Time()] | None, Needed('lacks step: the time between two samples, such as "1ms"')
    ] = None
    """The time between two samples, such as `"1ms"`."""
    ports: Annotated[list[Annotated[str, Field(strict=True)]], Says("is not a list of ports' names")] | None = None
    """Names; the bottleneck when absent."""


class StagesForm(Form):
    """How many seeds each stage of a search has, one stage's after the other's."""

    first: Annotated[int, Whole(0, MAX_SEED - MAX_RUNS)] = 1
    """The first seed of all."""
    search: Annotated[int, Whole(1, MAX_RUNS)] = 5
    """Of every trial."""
    selection: Annotated[int, Whole(2, MAX_RUNS)] = 10
    """Of every finalist."""
    confirmation: Annotated[int, Whole(2, MAX_RUNS)] = 30
    """Of every setting of the final front."""


class ParameterForm(RangeForm):
    """Something searched."""

    step: Annotated[Any, _BOUND] = None
    """Between two of its values, on a linear scale; every value of the range will do when absent."""


class TuneForm(Form):
    """What is searched, and how much is spent on it."""

    parameters: Annotated[
        dict[str, Annotated[ParameterForm | None, Of(Mapping)]] | None,
        Needed("lacks parameters: a table of what is searched, each with path, from and to"),
    ] = None
    """By name, each with both ends."""
    objectives: Annotated[
        dict[str, Annotated[str | None, OneOf(DIRECTIONS)]] | None,
        Needed(f"lacks objectives: {OBJECTIVES}"),
        Field(json_schema_extra={"minProperties": 2, "maxProperties": 2}),
    ] = None
    """Two measures, and where each is best."""
    references: dict[str, Annotated[dict[str, Annotated[Any, _BOUND]] | None, Of(Mapping)]] | None = None
    """Settings to compare with, by their labels: a value for every parameter."""
    trials: Annotated[int, Whole(1, MOST_TRIALS)] = 64
    """Of each search."""
    batch: Annotated[int, Whole(1, MOST_TRIALS)] = 8
    """Trials of a search that are asked for together."""
    finalists: Annotated[int, Whole(1, MOST_TRIALS)] = 8
    """Settings of each search that are run again to choose among, at most; references are not counted."""
    seed: Annotated[int, Whole(0, MOST_DRAWN)] = 1
    """Of what the search draws."""
    seeds: StagesForm = StagesForm()
    """Of the three stages."""


class PlanForm(Form):
    """A plan of celltrain: for `celltrain sweep`, or, with a table [tune], for `celltrain tune`."""

    model_config = ConfigDict(
        json_schema_extra={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "required": ["scenario"],
            "dependentSchemas": {"tune": {"properties": {"sample": False, "seeds": False, "series": False}}},
        },
    )

    name: Annotated[str, Field(pattern=r"^$|\S", strict=True), Says("is not a text")] | None = None
    """A title; that of the file when absent."""
    scenario: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    """A file beside the plan, a shipped scenario's name, or a scenario as a table, as `celltrain schema` has it."""
    measures: (
        Annotated[
            list[Annotated[str | None, Of(str, 'is not a measure such as "efficiency"')]],
            Of(list, 'is not a list of measures such as "efficiency"'),
        ]
        | None
    ) = Field(None, json_schema_extra={"minItems": 1})
    """What is kept of every run."""
    axes: Axes | None = None
    """What is varied, by name; crossed with each other."""
    paired: (
        Annotated[list[Annotated[Axes | None, Of(Mapping)]], Of(list, "is not a list of tables: write [[paired]]")]
        | None
    ) = None
    """Tables of axes that move together."""
    points: PointsForm | None = None
    """Points one by one."""
    sample: SampleForm | None = None
    """Axes that are drawn together."""
    seeds: SeedsForm = SeedsForm()
    """How often each point is run."""
    limits: LimitsForm = LimitsForm()
    """What a run may take."""
    series: SeriesForm | None = None
    """What every run records."""
    tune: TuneForm | None = None
    """What is searched."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    return PlanForm.model_json_schema(schema_generator=PlanSchema)
