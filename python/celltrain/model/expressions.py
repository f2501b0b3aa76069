"""Measure expressions: paths into a result, and arithmetic on them.

A *measure* is a path, or paths and plain numbers added, subtracted, multiplied and divided, with spaces around every
sign and parenthesis:

    efficiency
    file_delay_ms.mean
    ports.sw1->sw2.max_queue_cells
    ports.bottleneck.max_queue_cells
    flows.sum(tcp1-3).goodput_mbps / flows.sum(*).goodput_mbps
    ports.sum(edge*->sw1).lost_cells / ( cells.delivered + cells.lost )

A path follows the keys of the run's answer (`celltrain run --json`) step by step. A step into a list is the name of a
member, or the VC of a contract. `bottleneck` is the congested port, whatever its name. `sum`, `mean`, `least`,
`largest`, `variation` (standard deviation over mean) and `fairness` (Jain's index) combine the numbers of several
members: of a range of names such as `tcp1-3`, of all (`*`), or of a pattern such as `edge*->sw1`. A path that begins
with `scenario` reads the scenario of the run; one that begins with `series` reads a trace (see `SERIES`).
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.errors import CelltrainError, ScenarioError
from celltrain.model.cancel import current
from celltrain.model.measures import LISTS
from celltrain.text import nearest

Series = Mapping[str, Any]


#: Largest number of names among which to search for a similar one. A mesh has thousands of connections.
MOST_NEAR = 200
#: Other names under which users look for measures.
OTHERWISE = {
    "throughput": "goodput_mbps or flows.sum(*).throughput_mbps",
    "loss": "cells.lost",
    "losses": "cells.lost",
    "drops": "cells.discarded",
    "utilisation": "ports.bottleneck.utilisation",
    "utilization": "ports.bottleneck.utilisation",
    "queue": "ports.bottleneck.max_queue_cells",
    "timeouts": "flows.sum(*).timeouts",
    "jain": "fairness",
}


class MeasureError(CelltrainError, ValueError):
    """Raised if a text is not a valid measure, or if a run's answer has no such path."""


class TooFewError(MeasureError):
    """Raised if a run has too few values for a percentile."""


class NoValueError(MeasureError):
    """Raised if this run has no value but others may, such as a mean delay when no file was completed."""


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
#: A step that selects several members: a function, and the members whose values it combines.
_SEVERAL = re.compile(r"(\w+)\((.+)\)")
#: Time between two samples of a trace recorded for a measure.
STEP = "10ms"
#: Minimum length of a growth phase in seconds: several round trips, so that a recovery does not count as one.
SHORTEST_CLIMB = 0.4


def measure(text: str, answer: Mapping[str, Any], series: Series | None = None) -> float:
    """Returns the value of a measure in a run, given its answer (with the scenario under "scenario") and its trace.

    Without a trace, measures that need a trace are 0.
    """
    values: list[float] = []
    for step in _parsed(text):
        if isinstance(step, float):
            values.append(step)
        elif isinstance(step, list):
            values.append(_at(step, answer, series))
        elif step == "negative":
            values.append(-values.pop())
        else:
            right, left = values.pop(), values.pop()
            if step == "/" and right == 0:
                raise NoValueError(f"{text!r} has no value in this run: it divides by zero")
            values.append(_OPERATORS[step](left, right))
    return values.pop()


def note_on_open(text: str, answer: Mapping[str, Any]) -> str | None:
    """Returns a note if a measure depends on requests that were open at the end; otherwise None.

    A percentile may be only a lower bound, and a mean leaves them out. If there are several such values, the note names
    the one with the most open requests.
    """
    found = [note for path in _paths([text]) for note in _notes_on_open(path, answer)]
    return max(found, default=(0, None))[1]


def is_monotone(text: str) -> bool:
    """Returns whether a measure that reads a lower bound is itself a lower bound.

    It is if it is a single path, to one value or to several.

    >>> [is_monotone(text) for text in ("a.b_p99", "a.mean(*).b_p99", "a.fairness(*).b_p99", "a.b_p99 - 1")]
    [True, True, False, False]
    """
    path, *others = _parsed(text)
    combined = ("variation(", "fairness(")
    return isinstance(path, list) and not others and not any(step.startswith(combined) for step in path)


def outlined(scenario: _core.Scenario, table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the structure of a run's answer, with 1 in place of every number; `table` is the scenario.

    Raises `ScenarioError` if the scenario does not fit into the available memory.
    """
    try:
        outline = json.loads(scenario.outline(current()))
    except ValueError as error:
        raise ScenarioError.of_refusal(error) from None
    files = {} if (table.get("measure") or {}).get("file_size") else {"file_delay_ms": None}
    return {**outline, **files, "scenario": table}


def problem(text: str, outline: Mapping[str, Any]) -> str:
    """Returns why a measure does not exist in the answer of a run with this structure; empty if it does."""
    try:
        measure(text, outline)
    except NoValueError:
        # With placeholder numbers, a divisor may be zero or a value may be missing, even if neither happens in a real
        # run.
        return ""
    except MeasureError as error:
        return str(error)
    return ""


def check_syntax(text: str) -> None:
    """Raises `MeasureError` unless the text is paths and numbers joined by operators, with at least one path."""
    if not any(isinstance(step, list) for step in _parsed(text)):
        raise MeasureError(f"{text!r} names no measure")


@lru_cache(maxsize=1000)
def _parsed(text: str) -> Sequence[float | list[str] | str]:
    """Parses a measure; returns its terms in postfix order."""
    try:
        # Text from JSON may contain half of a surrogate pair, which no name does.
        return _core.parse_expression(text.encode(errors="replace").decode())
    except ValueError as error:
        raise MeasureError(f"{text!r:.200} {error}") from None


def _paths(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yields the paths in measures. Skips invalid texts, because evaluating the measure reports them."""
    for text in texts:
        with suppress(MeasureError):
            yield from (step for step in _parsed(text) if isinstance(step, list))


def wanted(texts: Iterable[str]) -> dict[str, list[str]]:
    """Returns the columns of a run's answer that these measures read, by list; `bottleneck` is the row of that port.

    >>> wanted(["efficiency", "flows.sum(*).timeouts", "ports.bottleneck.max_queue_cells"])
    {'flows': ['timeouts'], 'bottleneck': ['max_queue_cells']}
    """
    columns: dict[str, list[str]] = {}
    for path in _paths(texts):
        if len(path) > 2 and path[0] in LISTS:
            own = columns.setdefault("bottleneck" if path[:2] == ["ports", "bottleneck"] else path[0], [])
            own.extend({path[2]} - set(own))
    if "ports" in columns:
        columns["ports"] += columns.pop("bottleneck", [])
    return columns


def needs_series(text: str) -> bool:
    """Returns whether a measure needs a trace."""
    return any(path[0] == "series" and len(path) > 1 for path in _paths([text]))


def _number_of(answer: Any) -> float:
    if answer is None:
        raise NoValueError("this measure has no value")
    if isinstance(answer, Mapping | list):
        raise MeasureError("the path leads to a table or a list, not to a number: continue the path")
    try:
        return float(answer)
    except ValueError:
        raise MeasureError("the path leads to a text, not to a number") from None


def follow(answer: Any, path: Sequence[str]) -> float:
    """Returns the number at a path; raises `MeasureError` with a clause that states why there is no number."""
    if not path:
        return _number_of(answer)
    step, *rest = path
    if isinstance(answer, list) and all(isinstance(member, Mapping) for member in answer):
        answer = {member.get("name", member.get("vc")): member for member in answer}
    if not isinstance(answer, Mapping):
        problem = f"a number or a text has no {step!r}"
        if step.isdigit():
            problem += "; the names of percentiles have no decimal point: p999 is the 99.9th percentile"
        raise MeasureError(problem)
    members: Mapping[str, Any] = answer
    several = _SEVERAL.fullmatch(step)
    if several is None:
        if step not in members:
            # At the top level, suggests other names of known measures. At all levels, suggests similar spellings.
            others = OTHERWISE if "efficiency" in members else {}
            near = nearest(step, [*members, *others]) if len(members) <= MOST_NEAR else ""
            meant = others.get(step) or others.get(near, near)
            raise MeasureError(f"there is no {step!r}{f'; did you mean {meant}?' if meant else ''}")
        return follow(members[step], rest)
    combine, names = several.groups()
    if combine not in COMBINE:
        raise MeasureError(f"there is no {combine!r}; choose from {', '.join(COMBINE)}")
    values = [follow(members[name], rest) for name in named(names, list(members))]
    if not values and combine in ("mean", "least", "largest"):
        raise MeasureError(f"{step!r} has no values")
    return COMBINE[combine](np.array(values))


def named(text: str, known: Sequence[str]) -> list[str]:
    """Returns the known names that match a name, a range such as `tcp1-3`, all (`*`), or a pattern."""
    if text == "*":
        return list(known)
    if text in known:
        return [text]
    if "*" in text:
        # The asterisk is the only wildcard.
        pattern = re.sub(r"[?\[]", r"[\g<0>]", text)
        if fitting := [name for name in known if fnmatchcase(name, pattern)]:
            return fitting
        raise MeasureError(f"no name matches {text!r}")
    several = re.fullmatch(r"([^0-9]*)([0-9]{1,19})-([0-9]{1,19})", text)
    if several is None:
        raise MeasureError(f"{text!r} is neither a name nor a range of names")
    stem, first, last = several[1], int(several[2]), int(several[3])
    if first > last:
        raise MeasureError(f"{text!r} is an empty range: put the lower number first")
    # Check the length before expanding the range, which might not fit into memory.
    if last - first >= len(known):
        raise MeasureError(f"{text!r} is a range of {last - first + 1:,} names, but there are only {len(known):,}")
    there = set(known)
    names = [f"{stem}{number}" for number in range(first, last + 1)]
    if missing := next((name for name in names if name not in there), None):
        raise MeasureError(f"there is no {missing!r}")
    return names


def _variation(values: NDArray[np.float64]) -> float:
    """Returns the standard deviation over the mean; undefined if the mean is 0."""
    mean = float(values.mean())
    if mean == 0:
        raise NoValueError("the mean is 0")
    return float(values.std(ddof=1)) / mean if len(values) > 1 else 0.0


def _fairness(values: NDArray[np.float64]) -> float:
    """Returns Jain's index; undefined if all values are 0."""
    squares = float(values @ values)
    if squares == 0:
        raise NoValueError("all values are 0")
    return float(values.sum()) ** 2 / (len(values) * squares)


COMBINE: dict[str, Callable[[NDArray[np.float64]], float]] = {
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "least": lambda values: float(values.min()),
    "largest": lambda values: float(values.max()),
    "variation": _variation,
    "fairness": _fairness,
}


def climb(series: Series, flow: str) -> float:
    """Returns the linear growth of cwnd in segments per second: the mean over all long enough growth phases."""
    time, window = series["time_s"], _window(series, flow, "cwnd_segments")
    ssthresh = _window(series, flow, "ssthresh_segments")
    # A growth phase lasts while cwnd is at least ssthresh, ssthresh does not change and cwnd does not shrink.
    goes_on = (window[1:] >= ssthresh[1:]) & (np.diff(ssthresh) == 0) & (np.diff(window) >= 0)
    ends = np.flatnonzero(np.diff(np.concatenate(([False], goes_on, [False])).astype(np.int8)))
    climbs = [(first, last) for first, last in ends.reshape(-1, 2) if time[last] - time[first] >= SHORTEST_CLIMB]
    grown = sum(float(window[last] - window[first]) for first, last in climbs)
    lasted = sum(float(time[last] - time[first]) for first, last in climbs)
    return grown / lasted if climbs else 0.0


def mean_window(series: Series, flow: str) -> float:
    """Returns the mean of a flow's congestion window in its linear increase, in segments."""
    window = _window(series, flow, "cwnd_segments")
    linear = window >= _window(series, flow, "ssthresh_segments")
    return float(window[linear].mean()) if linear.any() else 0.0


#: Measures computed from a trace of the windows: `series.<name>.<flow>`.
SERIES: dict[str, Callable[[Series, str], float]] = {"climb": climb, "mean_window": mean_window}


def _at(path: list[str], answer: Mapping[str, Any], series: Series | None) -> float:
    try:
        if path[0] == "series":
            if len(path) < 3 or path[1] not in SERIES:
                raise MeasureError(f"series must be followed by {' or '.join(SERIES)}, and then a flow")
            if series is None:
                return follow({flow["name"]: 0.0 for flow in answer["flows"]}, path[2:])
            if path[2] in set(series.get("flows", ())) - set(series["window_flows"]):
                raise NoValueError
            return follow({name: SERIES[path[1]](series, name) for name in series["window_flows"]}, path[2:])
        if path[:2] == ["ports", "bottleneck"] and "bottleneck" in answer:
            return follow(answer, ["ports", answer["bottleneck"], *path[2:]])
        return follow(answer, path)
    except NoValueError:
        if too_few := _too_few(path, answer):
            raise TooFewError(f"{'.'.join(path)!r} {too_few}") from None
        raise NoValueError(f"{'.'.join(path)!r} has no value in this run") from None
    except MeasureError as error:
        if path[0] == "file_delay_ms" and answer.get("file_delay_ms", {}) is None:
            problem = (
                'has no value, because this scenario has no files; set their size, as in measure.file_size = "9180B"'
            )
            raise MeasureError(f"{'.'.join(path)!r} {problem}") from None
        problem = f"{'.'.join(path)!r} is not in the result of a run: {error}"
        if "did you mean" not in str(error):
            problem += "; to list all measures: celltrain list measures"
        raise MeasureError(problem) from None


#: Largest share of open requests for which the mean of the completed ones needs no note.
MOST_OPEN = 0.01
#: Text in the note about a percentile that is a lower bound.
BOUND = " is a lower bound: "
#: Number of requests that each statistic needs.
NEEDED = {"median": 2, "p95": 20, "p99": 100, "p999": 1000}


def _too_few(path: Sequence[str], answer: Mapping[str, Any]) -> str:
    """Returns why a percentile of requests or queries has no value, as a clause; empty for other paths."""
    needed = NEEDED.get(path[-1].rpartition("_")[2])
    if needed is None or len(path) != 4 or path[0] != "requests":
        return ""
    try:
        opened = int(follow(answer, [*path[:3], "asked" if path[2] == "queries" else "opened"]))
    except MeasureError:
        # The path selects several groups.
        return ""
    what = "queries" if path[2] == "queries" else "requests"
    return f"needs {needed:,} {what} of a run, but this run has only {opened:,}"


def is_lower_bound(note: str) -> bool:
    """Returns whether a note on open requests says that the value is a lower bound."""
    return BOUND in note


def _notes_on_open(path: Sequence[str], answer: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yields, for each group of requests whose open requests matter, their number and the note."""
    statistic = path[-1].rpartition("_")[2]
    if statistic not in (*NEEDED, "mean") or len(path) != 4 or path[0] != "requests":
        return
    groups = {group["name"]: group for group in answer["requests"]}
    several = _SEVERAL.fullmatch(path[1])
    names = [path[1]] if several is None or path[1] in groups else named(several[2], list(groups))
    what, opened = ("queries", "asked") if path[2] == "queries" else ("requests", "opened")
    for row in (groups[name][path[2]] for name in names):
        if row is None:
            continue
        of = f"{row['open']:,} of {row[opened]:,} {what} were open at the end"
        if statistic == "mean":
            if row["open"] > MOST_OPEN * row[opened]:
                yield row["open"], f"{'.'.join(path)!r} leaves out open {what}: {of}"
        elif row[f"{statistic}_censored"]:
            yield row["open"], f"{'.'.join(path)!r}{BOUND}{of}"


def _window(series: Series, flow: str, name: str) -> NDArray[np.float64]:
    window: NDArray[np.float64] = series[name][:, list(series["window_flows"]).index(flow)]
    return window
