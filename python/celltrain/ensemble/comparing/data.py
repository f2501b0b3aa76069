"""A comparison as data: runs, means and paired differences; whether its measures can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.words import called, counted, valued
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import CENSORED, SUMMARY, Measured, arrow, axis_columns, by_measure
from celltrain.ensemble.plan import Axis, Plan
from celltrain.errors import Fault, InputError
from celltrain.model.paths import seconds
from celltrain.running.statistics import Means, means
from celltrain.running.tables import Column
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

#: Name of the compared axis if scenarios are compared, or of the condition if policies are compared in each scenario.
SCENARIO = "scenario"

SEED = Column("seed", "uint64", "1", "seed of every random choice of the run")
PRINT = Column("fingerprint", "string", "", "16 hexadecimal digits that identify the exact times of all segments")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without a result; `name` is one of `Comparison.names`."""

    name: str
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """The data of a comparison; `celltrain.Compared` describes the attributes."""

    what: str
    scenario: str
    names: tuple[str, ...]
    conditions: tuple[Axis, ...]
    settings: tuple[dict[str, float | str], ...]
    axis_labels: Mapping[str, str]
    fixed: tuple[Axis, ...]
    only_where: dict[str, str]
    configurations: tuple[tuple[str, ...], ...]
    tcp: tuple[tuple[str, ...], ...]
    measures: tuple[Measured, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    censored: NDArray[np.bool_]
    fingerprints: NDArray[Any]
    ties_only: NDArray[np.bool_]
    failures: tuple[Failure, ...]
    delivered: NDArray[np.float64]
    rivals: NDArray[np.int64]
    of_check: tuple[str, ...]
    of_plan: tuple[str, ...]

    @property
    def carried_nothing(self) -> NDArray[np.bool_]:
        """True if no flow delivered anything, by name, combination and seed. False if a run failed."""
        return np.asarray(self.delivered == 0)

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """For each measure, the means of all cases, by name and combination."""
        return tuple(self.means_of(self.values[..., i]) for i in range(len(self.measures)))

    def means_of(self, values: NDArray[np.float64]) -> Means:
        """Returns the means of all cases from values by name, combination and seed."""
        cases = len(self.names) * len(self.settings)
        return means(np.repeat(np.arange(cases), len(self.seeds)), values.reshape(-1), cases)

    @cached_property
    def differences(self) -> tuple[Means, ...]:
        """For each measure and case, the mean difference from the first compared name with the same settings and seed.

        Seeds are left out if either value is missing. The differences of the first name from itself are NaN.
        """
        more = self.values - self.values[:1]
        more[0] = np.nan
        return tuple(self.means_of(more[..., i]) for i in range(len(self.measures)))

    def bounds(self, measure: int) -> NDArray[np.bool_]:
        """By name and combination: whether the mean of a measure is only a lower bound."""
        return np.asarray(self.censored[..., measure].any(axis=2))

    @cached_property
    def table(self) -> pa.Table:
        """One row per name, combination and measure: mean, interval, and the paired difference from the first name.

        `low` and `high` are the ends of the mean's 95 % interval (Student's t); `difference_low` and `difference_high`
        are the ends of the interval of the difference. Missing numbers are null. `censored` is the number of values that
        are only lower bounds.
        """
        cases = np.arange(len(self.names) * len(self.settings))
        more = f"mean excess over {self.names[0]}, compared seed by seed"
        columns = {
            "mean": Column("difference", "float64", "", more),
            "low": Column("difference_low", "float64", "", "lower end of the mean's 95 % interval"),
            "high": Column("difference_high", "float64", "", "its upper end"),
        }
        measures = [measure.name for measure in self.measures] * len(cases)
        return arrow(
            [
                *self._case_columns(np.repeat(cases, len(self.measures))),
                (Column("measure", "string", "", "name of the measure"), measures),
                *by_measure({name: SUMMARY[name] for name in ("n", "mean", "sd", "low", "high")}, self.means, cases),
                *by_measure(columns, self.differences, cases),
                (CENSORED, self.censored.sum(axis=2).reshape(-1)),
            ]
        )

    @cached_property
    def runs(self) -> pa.Table:
        """One row per run: name, combination, seed, fingerprint, and a column for each measure."""
        prints = self.fingerprints.reshape(-1, len(self.seeds))
        case, seed = np.nonzero(prints != "")
        values = self.values.reshape(*prints.shape, -1)[case, seed]
        of_run = {SEED: np.array(self.seeds, np.uint64)[seed], PRINT: prints[case, seed].tolist()}
        return arrow([*self._case_columns(case), *of_run.items(), *zip(self.measures, values.T, strict=True)])

    @property
    def fixed_line(self) -> str:
        """The settings for all cases, in words."""
        return plan_warnings.fixed_line(self.fixed, self.only_where)

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yields the index of the name and of the combination of each case."""
        yield from np.ndindex(len(self.names), len(self.settings))

    def _case_columns(self, cases: NDArray[np.int64]) -> Iterator[tuple[Column, list[Any]]]:
        names, places = (part.tolist() for part in np.divmod(cases, len(self.settings)))
        yield Column("name", "string", "", "compared case"), [self.names[name] for name in names]
        for column in axis_columns(self.conditions, "string"):
            yield column, [self.settings[place][column.name] for place in places]


#: Measures that count formula results that were not numbers.
REPLACED = tuple(f"{rows}.sum(*).replaced_results" for rows in ("ports", "flows", "memories"))
#: Measures that count the decisions by which the policies of memories change a run.
DECIDED = tuple(f"memories.sum(*).{count}" for count in ("refused_cells", "pushed_out_cells", "pauses"))
#: Measures that are added to the requested measures in any case.
ADDITIONAL = (*REPLACED, *DECIDED, plan_warnings.DELIVERED)
#: With fewer seeds, an interval can be so wide that it includes impossible values, such as a fraction above 1.
FEWEST_SEEDS = 5
#: Measures that lie between 0 and 1.
SHARES = ("efficiency", "fairness", "fairness_max_min")

# Before the runs.


def check_comparable(sides: Sequence[tuple[str, Plan]], *, within: bool = False) -> list[str]:
    """Returns warnings about scenarios that are hard to compare. The first scenario is the baseline.

    Args:
        sides: Scenarios by name.
        within: True if policies are compared within each scenario, so that the networks may differ.

    Raises:
        InputError: If a measure has different meanings in two scenarios.
    """
    (name, plan), *others = sides
    varied = [axis for axis in plan.axes if len(axis) > 1]
    warnings = []
    if not others and varied and varied[0].path == "duration":
        warnings.append(
            "runs of different lengths are compared: counts, such as lost cells, grow with the length of a run"
        )
    faults: list[Fault] = []
    first = _settings(plan)
    for other, own in others:
        second = _settings(own)
        faults.extend(_faults((name, first), (other, second), plan.measures))
        if not within and first["topology"] != second["topology"]:
            warnings.append(
                f"{other} and {name} are different networks: their shares are not comparable, and a difference "
                "between them is not due to the policy alone"
            )
    if faults:
        raise InputError(faults)
    return warnings


def _settings(plan: Plan) -> dict[str, Any]:
    """Returns the scenario of a plan's first point, with all defaults filled in."""
    settings: dict[str, Any] = json.loads(plan.reading(0).canonical)
    return settings


def _faults(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]], measures: Sequence[str]
) -> Iterator[Fault]:
    """Yields a fault for each setting that gives measures different meanings in two scenarios."""
    (first, of_first), (second, of_second) = one, other
    durations = [str(settings["duration"]) for settings in (of_first, of_second)]
    if seconds(durations[0]) != seconds(durations[1]):
        problem = (
            f"lasts {durations[1]}, but {first} lasts {durations[0]}: rates and counts would cover different times. "
            f"Give all scenarios the same length, such as --vary duration={durations[0]}"
        )
        yield Fault.of_option(second, "", problem)
    options = [settings.get("measure", {}) for settings in (of_first, of_second)]
    for key in sorted(options[0].keys() | options[1].keys()):
        values = [one.get(key) for one in options]
        # The file size affects only the delays of files. All other settings affect all measures.
        wanted = [text for text in measures if text not in ADDITIONAL]
        concerned = [text for text in wanted if key != "file_size" or "file_delay" in text]
        if values[0] != values[1] and concerned:
            written = [json.dumps(value) if value is not None else "nothing" for value in values]
            problem = (
                f"has measure.{key} = {written[1]}, but {first} {written[0]}: {', '.join(concerned)} would not mean the same. "
                f"Give all the same value, such as --vary measure.{key}=..."
            )
            yield Fault.of_option(second, "", problem)


# After the runs.


def not_numbers(names: Sequence[str], replaced: NDArray[np.float64]) -> Iterator[str]:
    """Yields a warning for each name whose formulas had results that were not numbers."""
    for name, counts in zip(names, replaced, strict=True):
        if (count := np.nansum(counts)) > 0:
            yield (
                f"{shown(name)}: {counted(int(count), 'result')} of its formulas had to be replaced, because they were not numbers "
                "(for example after a division by zero); docs/models/formula.md lists the replacements"
            )


def doubts(compared: Comparison) -> Iterator[str]:
    """Yields the warnings that more seeds would not remove."""
    for name, empty in zip(compared.names, compared.carried_nothing, strict=True):
        if count := int(empty.sum()):
            yield plan_warnings.carried_nothing(shown(name), count, empty.size)
    yield from _little(compared)
    yield from compared.of_check
    yield from compared.of_plan
    yield from _without_effect(compared)
    yield from _indistinct(compared)


def too_few(compared: Comparison) -> Iterator[str]:
    """Yields a warning if, with few seeds, an interval includes impossible values: Student's interval is unbounded."""
    if not 1 < len(compared.seeds) < FEWEST_SEEDS:
        return
    wide = []
    for place, (measure, known) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[..., place]
        below = bool((values >= 0).any() and not (values < 0).any() and (known.low < 0).any())
        if below or (measure.name in SHARES and bool((known.high > 1).any())):
            wide.append(called(measure, unit=False))
    if wide:
        yield f"{few(len(compared.seeds))} ({', '.join(wide)}). Use {FEWEST_SEEDS} seeds or more"


def few(seeds: int) -> str:
    """Returns the beginning of a warning about few seeds."""
    return f"{seeds} seeds are few: 95 % intervals extend beyond possible values"


def _little(compared: Comparison) -> Iterator[str]:
    """Yields a warning for each name that carries much less than another in the same network, at its worst setting."""
    carried = compared.means_of(compared.delivered).mean
    worst: dict[int, tuple[float, int, int]] = {}
    for case, (share, best) in plan_warnings.little(carried, compared.rivals.reshape(-1)).items():
        name, setting = divmod(case, len(compared.settings))
        worst[name] = min(worst.get(name, (1.0, 0, 0)), (share, best, setting))
    for name, (share, best, setting) in sorted(worst.items()):
        rival, elsewhere = divmod(best, len(compared.settings))
        other = shown(compared.names[rival])
        own, at = shown(compared.names[name]), _at(compared, setting)
        yield plan_warnings.carries_little(
            f"{own} at {at}" if at else own,
            share,
            other if elsewhere == setting else f"{other} at {_at(compared, elsewhere)}",
        )


def _at(compared: Comparison, setting: int) -> str:
    """Returns a setting in words."""
    own = compared.settings[setting]
    return ", ".join(f"{shown(axis.name)} = {valued(own[axis.name], axis.unit)}" for axis in compared.conditions)


def _without_effect(compared: Comparison) -> Iterator[str]:
    """Yields a warning for names and axes that changed nothing: the fingerprints of all their runs are equal.

    Names are also equal if they are so in one of the compared scenarios.
    """
    prints, dead = compared.fingerprints, compared.carried_nothing
    if not (prints != "").all():
        return
    scenarios = np.array([str(one.get(SCENARIO, "")) for one in compared.settings])
    places = {one: scenarios == one for one in dict.fromkeys(scenarios.tolist())}
    for place, name in enumerate(compared.names):
        said = set[str]()
        for other in range(place):
            equal = (prints[place] == prints[other]).all(axis=-1)
            new = [one for one, here in places.items() if equal[here].all() and not dead[place][here].all()]
            new = [one for one in new if one not in said]
            said.update(new)
            if new:
                where = f" in {', '.join(map(shown, new))}" if len(new) < len(places) else ""
                yield (
                    f"{shown(name)} and {shown(compared.names[other])} give the same runs with every seed{where}: the "
                    "differences between their settings have no effect here"
                )
    codes = np.unique(prints.astype(str), return_inverse=True)[1].reshape(prints.shape).astype(np.int64)
    seeds = np.arange(len(compared.seeds))
    for axis in compared.conditions:
        # Cases that differ only in this axis have the same number.
        rest = [tuple(value for name, value in one.items() if name != axis.name) for one in compared.settings]
        group = np.array([rest.index(one) for one in rest])[:, None] * len(seeds) + seeds
        pairs = [plan_warnings.equal_pairs(group[~empty], own[~empty]) for own, empty in zip(codes, dead, strict=True)]
        if all(pairs):
            yield plan_warnings.without_effect(shown(axis.name), sum(pairs))
            continue
        for name, count in zip(compared.names, pairs, strict=True):
            if count:
                yield f"{shown(name)}: {plan_warnings.without_effect(shown(axis.name), count)}"


def idle_memories(
    names: Sequence[str], cases: Sequence[str], policies: NDArray[Any], decided: NDArray[np.float64]
) -> Iterator[str]:
    """Yields a warning for each condition under which compared policies of memories decided nothing.

    Args:
        names: The compared settings.
        cases: The conditions in words; an empty text if there is only one.
        policies: The policies of all memories of each scenario as text, by name and condition.
        decided: Cells that memories refused or pushed out and pauses, by name, condition and seed.
    """
    for place, case in enumerate(cases):
        idle = [name for name, own in zip(names, decided[:, place], strict=True) if own.size and (own == 0).all()]
        if len(set(policies[:, place])) == 1 or not idle:
            continue
        where = f"at {case}: " if case else ""
        who = "" if len(idle) == len(names) else f" of {', '.join(map(shown, idle))}"
        yield (
            f"{where}the memory refused nothing and pushed nothing out in any run{who}, so its policy had no effect; "
            "use a smaller memory or more load"
        )


def _indistinct(compared: Comparison) -> Iterator[str]:
    """Yields a warning about cases in which seeds hardly differ, so that their intervals mean little."""
    if len(compared.seeds) < plan_warnings.LEAST_SEEDS:
        return
    distinct = np.array([[len(set(runs) - {""}) for runs in row] for row in compared.fingerprints])
    mean, sd = (np.array([getattr(means, name) for means in compared.means]) for name in ("mean", "sd"))
    narrow = plan_warnings.narrow([one.name for one in compared.measures], mean, sd).reshape(distinct.shape)
    indistinct = ((distinct == 1) | (compared.ties_only & narrow)) & ~compared.carried_nothing.all(axis=2)
    if not indistinct.any():
        return
    name, setting = (int(one) for one in np.argwhere(indistinct)[0])
    own = compared.settings[setting]
    words = [compared.names[name], *(valued(own[axis.name], axis.unit) for axis in compared.conditions)]
    tcps = [tcp for own_tcps in compared.tcp for tcp in own_tcps]
    yield plan_warnings.seeds_hardly_matter(
        len(compared.seeds), int(indistinct.sum()), indistinct.size, shown(", ".join(words)), tcps
    )
