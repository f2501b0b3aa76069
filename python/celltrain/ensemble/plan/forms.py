"""The tables of a plan as pydantic models: the values of each key, the JSON Schema, and faults in a plan's terms.

pydantic finds values of the wrong form. Their places (`loc`) are looked up in the plan for the path and the line, and
pydantic's messages are replaced with clauses that follow `path = value`. Rules that involve several keys or the
scenario are in `reader`.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, WithJsonSchema, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from celltrain.ensemble.plan.axes import MAX_RUNS, SEEDS
from celltrain.ensemble.plan.document import Document, Place
from celltrain.model.measures import SERIES
from celltrain.model.paths import QUANTITIES, seconds

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidatorFunctionWrapHandler

#: Maximum number of points of a sample, which is drawn all at once.
MAX_SAMPLE = 1 << 20
#: Seeds are limited to 63 bits by SQLite.
MAX_SEED = (1 << 63) - 1
#: Maximum number of values of a range.
MOST_VALUES = 1 << 62
#: Maximum number of trials of a search.
MOST_TRIALS = 10_000
#: Seeds of samplers have 32 bits.
MOST_DRAWN = (1 << 32) - 1
#: Maximum real time of a run, and maximum time between two samples: thirty years.
MOST_SECONDS = 10**9
#: Example of objectives for messages.
OBJECTIVES = 'two measures, such as { efficiency = "maximize", fairness = "maximize" }'

_REFUSED: Any = object()


@dataclasses.dataclass(frozen=True)
class Says:
    """The problem to report for a value of the wrong form; `kinds` is given for tables and lists with entries.

    Attributes:
        schema: The schema of the value, which replaces the schema of the annotated type.
    """

    problem: str
    kinds: tuple[type, ...] = ()
    schema: CoreSchema | None = dataclasses.field(default=None, hash=False)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema with this problem as its error. Values that were already refused become None."""

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
    """Returns the form of a key whose value is one of several words."""
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
SettingPath = Annotated[str, Says("is not a path into the scenario such as port.bottleneck.buffer")]
#: A number or a text, depending on the key in the scenario.
Bound = Annotated[Any, WithJsonSchema({"type": ["number", "string"]})]


class Form(BaseModel):
    """A table of a plan. Refused values are left out, so that the rest can be checked.

    Every key may therefore be absent from an instance.

    Attributes:
        needs: Keys that must be present and not empty. If one is not, the message is the table's path and this problem.
        short: A type that stands for a table with a single key, that key, and the JSON Schema of the type.
    """

    # Keep unknown keys, so that a later check can refuse them with a suggestion.
    model_config = ConfigDict(extra="allow", frozen=True)

    needs: ClassVar[Mapping[str, str]] = {}
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
        """Returns the keys as written in a plan."""
        return [field.alias or name for name, field in cls.model_fields.items()]


class RangeForm(Form):
    """Both ends of the values of an axis.

    Attributes:
        path: Path into the scenario, such as `port.bottleneck.buffer`; the axis's name when absent.
        from: The lower end: a number, with its unit if the scenario requires one.
        to: The upper end.
        scale: Spacing of the values: equal differences (linear) or equal ratios (log).
    """

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    path: SettingPath | None = None
    from_: Bound = Field(None, alias="from")
    to: Bound = None
    scale: Annotated[str, one_of("linear", "log")] = "linear"


class AxisForm(RangeForm):
    """A varied setting: a list of values, or a range. A list is shorthand for a table with `values`.

    Attributes:
        values: A list of values, or a table of values by label.
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
    """One column of the rows. A path is shorthand for a table with `path`.

    Attributes:
        path: Path into the scenario; the axis's name when absent.
        values: Values by label; the rows then contain the labels.
    """

    short = (str, "path", {"type": "string"})

    path: SettingPath | None = None
    values: Annotated[dict[str, Any], Field(min_length=1), Says("is not a table of values with labels")] | None = None


_ROWS = Says("is not a list of lists with one value for each axis", (list,))


class PointsForm(Form):
    """A list of points: named axes, and a row of values for each point.

    Attributes:
        axes: Names and paths, in the order of the values in a row.
        rows: Lists of values, one for each axis.
    """

    needs = {
        "axes": "has no axes; give a table of names and paths, in the order of the rows' values",
        "rows": "has no rows; give a list of lists with one value for each axis",
    }

    axes: dict[str, Annotated[ColumnForm | None, Says("is not a table", (str, Mapping))]] | None = None
    rows: Annotated[list[Annotated[Any, WithJsonSchema({"type": "array"})]], _ROWS] | None = None


class SampleForm(Form):
    """Axes that are drawn together.

    Attributes:
        method: Method of sampling.
        points: Number of points.
        seed: Seed of the sample.
        axes: Axes by name, each with both ends.
    """

    needs = {"points": "lacks points, the number of points to draw", "axes": "has no axes to draw from"}

    method: Annotated[str, one_of("sobol", "latin_hypercube")] = "sobol"
    points: Annotated[int, whole(1, MAX_SAMPLE)] | None = None
    seed: Annotated[int, whole(0, MOST_DRAWN)] = 1
    axes: dict[str, Annotated[RangeForm | None, _TABLE]] | None = None


_NAMED = Annotated[str, Field(pattern=r"\S", strict=True), Says("is not one of the measures")]
_WIDTH = Annotated[
    float, Field(gt=0, strict=True, allow_inf_nan=False), Says("is not a number above zero; it is half the width")
]


class UntilForm(Form):
    """Seeds are added to a point until the 95 % interval of a measure's mean is narrow enough.

    Attributes:
        measure: One of the measures.
        interval: Half the width of the 95 % interval.
        at_least: Minimum number of seeds of a point.
        at_most: Maximum number of seeds of a point.
    """

    needs = {"measure": "lacks measure", "interval": "lacks interval", "at_most": "lacks at_most"}

    measure: _NAMED | None = None
    interval: _WIDTH | None = None
    at_least: Annotated[int, whole(2, MAX_RUNS)] = 5
    at_most: Annotated[int, whole(2, MOST_VALUES)] | None = None


class SeedsForm(Form):
    """The seeds of each point. A whole number is shorthand for a table with `count`.

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

    needs = {"record": f"lacks record = {_SERIES}", "step": 'lacks step, the time between two samples, such as "1ms"'}

    record: _RECORD | None = None
    step: Time | None = None
    ports: Annotated[list[Annotated[str, Field(strict=True)]], Says("is not a list of ports' names")] | None = None


class StagesForm(Form):
    """Number of seeds of each stage of a search. No seed is used in two stages.

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
    """A parameter that is searched.

    Attributes:
        step: Difference between two values, on a linear scale. When absent, every value of the range is possible.
    """

    step: Bound = None


_DIRECTION = Annotated[str | None, one_of("maximize", "minimize")]
_TWO = Field(json_schema_extra={"minProperties": 2, "maxProperties": 2})


class TuneForm(Form):
    """The parameters of a search, its objectives and its size.

    Attributes:
        parameters: Parameters by name, each with both ends.
        objectives: Two measures, each maximized or minimized.
        references: Settings to compare with, by label: a value for every parameter.
        trials: Number of trials of each search.
        batch: Number of trials that are chosen together.
        finalists: Maximum number of settings of each search that advance to selection, not counting references.
        seed: Seed of the sampler.
        seeds: Seeds of the three stages.
    """

    needs = {
        "parameters": "lacks parameters, a table of the settings to search, each with path, from and to",
        "objectives": f"lacks objectives: {OBJECTIVES}",
    }

    parameters: dict[str, Annotated[ParameterForm | None, _TABLE]] | None = None
    objectives: Annotated[dict[str, _DIRECTION] | None, _TWO] = None
    references: dict[str, Annotated[dict[str, Bound] | None, _TABLE]] | None = None
    trials: Annotated[int, whole(1, MOST_TRIALS)] = 64
    batch: Annotated[int, whole(1, MOST_TRIALS)] = 8
    finalists: Annotated[int, whole(1, MOST_TRIALS)] = 8
    seed: Annotated[int, whole(0, MOST_DRAWN)] = 1
    seeds: StagesForm = StagesForm()


MEASURES = 'is neither a list of measures such as "efficiency" nor a table such as { "link use" = "efficiency" }'
_MEASURE = Annotated[str | None, Says('is not a measure such as "efficiency"', (str,))]
_MEASURES = Annotated[
    Annotated[list[_MEASURE], Field(json_schema_extra={"minItems": 1}), Tag("<list>")]
    | Annotated[dict[str, _MEASURE], Field(json_schema_extra={"minProperties": 1}), Tag("<table>")],
    Discriminator(lambda value: "<table>" if isinstance(value, Mapping) else "<list>"),
]
_PAIRED = Says("is not a list of tables: write [[paired]]", (list,))


class PlanForm(Form):
    """A plan for `celltrain sweep`, or, with a table [tune], for `celltrain tune`.

    Attributes:
        name: A title; the name of the file when absent.
        scenario: A file next to the plan, a shipped scenario's name, or a scenario as a table, as described by
            `celltrain schema`.
        measures: Measures of every run: a list, or a table of measures by the label that tables and figures show.
        axes: Axes by name, crossed with each other.
        paired: Tables of axes that move together.
        points: A list of points.
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
        }
    )

    name: Annotated[str, Field(pattern=r"^$|\S", strict=True), Says("is not a text")] | None = None
    scenario: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    measures: Annotated[_MEASURES, Says(MEASURES, (list, dict))] | None = None
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
    """Validates the plan as a form, and leaves out refused values.

    Args:
        form: The model of the whole plan.
        document: The plan, to which faults are added.
        known: Keys that a plan of this kind may have, for messages.
        leave: Keys that have already been refused.
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
            keys = ", ".join(names)
            hint = f"did you mean {near[0]}? Known keys: {keys}" if near else f"known keys: {keys}"
            document.refuse((*place, key), f"is unknown; {hint}")
        for name, needed in inner.needs.items():
            if not getattr(inner, name) and (*place, name) not in refused:
                document.refuse(place, needed)
    return table


def _without(value: Any, refused: set[Place], place: Place) -> Any:
    """Returns a value with the refused places marked."""
    if place in refused:
        return _REFUSED
    if isinstance(value, Mapping):
        return {key: _without(one, refused, (*place, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, refused, (*place, number)) for number, one in enumerate(value)]
    return value


def _tables(value: Any, place: Place) -> list[tuple[Place, Form]]:
    """Returns all forms inside a form, a table or a list, each with its place."""
    found = []
    if isinstance(value, Form):
        found.append((place, value))
        value = {field.alias or name: getattr(value, name) for name, field in type(value).model_fields.items()}
    for step, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, Form | dict | list):
            found += _tables(one, (*place, step))
    return found


def json_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a plan, which scripts/plan_schema.py generates from these forms."""
    written: dict[str, Any] = json.loads(Path(__file__).with_name("plan.schema.json").read_text(encoding="utf-8"))
    return written
