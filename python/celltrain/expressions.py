"""Where a run holds a number, and how one is made of several.

A *measure* is a path, or paths and plain numbers added, subtracted, multiplied and divided, with spaces around every sign
and parenthesis:

    efficiency
    file_delay_ms.mean
    ports.sw1->sw2.max_queue_cells
    ports.bottleneck.max_queue_cells
    flows.sum(tcp1-3).goodput_mbps / flows.sum(*).goodput_mbps
    ports.sum(edge*->sw1).lost_cells / ( cells.delivered + cells.lost )

A path goes into the run's answer (`celltrain run --json`) step by step; a list is entered by the name of its member, a
contract by that of its VC; `bottleneck` is the port that congests, whatever its name.
Several members are entered at once by what is made of their numbers: `sum`, `mean`, `least`, `largest`, `variation`
(standard deviation over mean) or `fairness` (Jain's index), of a name, of a range of names such as `tcp1-3`, of all (`*`), or of those that fit a
pattern in which `*` stands for any characters, such as `edge*->sw1`. A path that begins with
`scenario` goes into the scenario that was run. One that begins with `series` leads to a trace (see `SERIES`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.cancel import current
from celltrain.errors import CelltrainError, ScenarioError

Series = Mapping[str, Any]


class MeasureError(CelltrainError, ValueError):
    """A text is no measure, or leads nowhere in the answer of a run."""


class NoValueError(MeasureError):
    """A run has no such number, though others may: the mean of files of which none is complete."""


#: Time between two samples of a trace that is taken for a measure.
STEP = "10ms"
#: Seconds: several round trips, so that a climb is not all recovery.
SHORTEST_CLIMB = 0.4


def measure(text: str, answer: Mapping[str, Any], series: Series | None = None) -> float:
    """What a measure comes to in a run: its answer (with the scenario under "scenario"), and its trace."""
    tokens = text.split()
    value = _sum(tokens, text, lambda token: _factor(token, answer, series))
    if tokens:
        raise MeasureError(f"{text!r}: {tokens[0]!r} stands where a sign should")
    return value


def outlined(scenario: _core.Scenario, table: Mapping[str, Any]) -> dict[str, Any]:
    """What the answer of a run would have, every number 1, by the core's tables of measures; `table` is the scenario.

    Raises `ScenarioError` where the scenario does not fit the memory there is now.
    """
    try:
        outline = json.loads(scenario.outline(current()))
    except ValueError as error:
        raise ScenarioError.of_refusal(error) from None
    return {**outline, "scenario": table}


def problem(text: str, outline: Mapping[str, Any]) -> str:
    """Why a measure leads nowhere in the answer of a run with this outline; empty where it leads somewhere."""
    try:
        measure(text, outline, _empty_trace([flow["name"] for flow in outline["flows"]]))
    except NoValueError:
        # There is nothing yet to divide by, or no value yet.
        return ""
    except MeasureError as error:
        return str(error)
    return ""


def _empty_trace(flows: Sequence[str]) -> dict[str, Any]:
    """The trace that a measure may read, of one instant at which nothing was sent."""
    nothing = np.zeros((1, len(flows)))
    return {"flows": list(flows), "time_s": np.zeros(1), "cwnd_segments": nothing, "ssthresh_segments": nothing}


def check_syntax(text: str) -> None:
    """Raises `MeasureError` when a measure is not paths and numbers with signs between."""
    tokens = text.split()
    # Of no number, so that nothing is divided by zero.
    _sum(tokens, text, lambda token: math.nan)
    if tokens:
        raise MeasureError(f"{text!r}: {tokens[0]!r} stands where a sign should")


def wanted(texts: Iterable[str]) -> dict[str, list[str]]:
    """What of a run's answer these measures read: the columns by list, `bottleneck` being that port's row alone.

    >>> wanted(["efficiency", "flows.sum(*).timeouts", "ports.bottleneck.max_queue_cells"])
    {'flows': ['timeouts'], 'bottleneck': ['max_queue_cells']}
    """
    columns: dict[str, list[str]] = {}
    for path in (token.split(".") for text in texts for token in text.split()):
        if len(path) > 2 and path[0] in ("flows", "ports", "contracts", "abr"):
            own = columns.setdefault("bottleneck" if path[:2] == ["ports", "bottleneck"] else path[0], [])
            own.extend({path[2]} - set(own))
    if "ports" in columns:
        columns["ports"] += columns.pop("bottleneck", [])
    return columns


def needs_series(text: str) -> bool:
    """Whether a measure is read off a trace."""
    return any(token.startswith("series.") for token in text.split())


def follow(answer: Any, path: Sequence[str]) -> float:
    """The number at a path."""
    if not path:
        if answer is None:
            raise NoValueError("there is no value")
        return float(answer)
    step, *rest = path
    members = {m.get("name", m.get("vc")): m for m in answer} if isinstance(answer, list) else answer
    several = _several(step)
    if several is None:
        return follow(members[step], rest)
    combine, names = several
    if combine not in COMBINE:
        raise MeasureError(f"{step!r}: there is no {combine!r}; there are {', '.join(COMBINE)}")
    return COMBINE[combine](np.array([follow(members[name], rest) for name in named(names, list(members))]))


def named(text: str, known: Sequence[str]) -> list[str]:
    """Those of the known names that a text means: one, a range such as `tcp1-3`, all (`*`), those that fit a pattern."""
    if text == "*":
        return list(known)
    if text in known:
        return [text]
    if "*" in text:
        pattern = ".*".join(re.escape(part) for part in text.split("*"))
        if fitting := [name for name in known if re.fullmatch(pattern, name)]:
            return fitting
        raise MeasureError(f"no name fits {text!r}")
    several = re.fullmatch(r"(\D*)(\d+)-(\d+)", text)
    if several is None:
        raise MeasureError(f"{text!r} is neither a name nor a range of names")
    stem, first, last = several.groups()
    return [f"{stem}{number}" for number in range(int(first), int(last) + 1)]


@cache
def _several(step: str) -> tuple[str, str] | None:
    """What is made of several members, and which; None where the step leads to one."""
    match = re.fullmatch(r"(\w+)\((.+)\)", step)
    return None if match is None else (match[1], match[2])


@cache
def _is_number(token: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?(e-?\d+)?", token) is not None


def _variation(values: NDArray[np.float64]) -> float:
    mean = float(values.mean())
    return float(values.std(ddof=1)) / mean if len(values) > 1 and mean else 0.0


def _fairness(values: NDArray[np.float64]) -> float:
    """Jain's index; nobody has anything: all have the same."""
    squares = float(values @ values)
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else 1.0


COMBINE: dict[str, Callable[[NDArray[np.float64]], float]] = {
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "least": lambda values: float(values.min()),
    "largest": lambda values: float(values.max()),
    "variation": _variation,
    "fairness": _fairness,
}


def climb(series: Series, flow: str) -> float:
    """Segments a second that a flow's window grows by in its linear increase: the mean over all climbs that take a while."""
    time, window = series["time_s"], _window(series, flow, "cwnd_segments")
    ssthresh = _window(series, flow, "ssthresh_segments")
    # A climb goes on while the window is at ssthresh or above, and neither ssthresh moves nor the window shrinks.
    goes_on = (window[1:] >= ssthresh[1:]) & (np.diff(ssthresh) == 0) & (np.diff(window) >= 0)
    ends = np.flatnonzero(np.diff(np.concatenate(([False], goes_on, [False])).astype(np.int8)))
    climbs = [(first, last) for first, last in ends.reshape(-1, 2) if time[last] - time[first] >= SHORTEST_CLIMB]
    grown = sum(float(window[last] - window[first]) for first, last in climbs)
    lasted = sum(float(time[last] - time[first]) for first, last in climbs)
    return grown / lasted if climbs else 0.0


def mean_window(series: Series, flow: str) -> float:
    """The mean of a flow's congestion window in its linear increase, in segments."""
    window = _window(series, flow, "cwnd_segments")
    linear = window >= _window(series, flow, "ssthresh_segments")
    return float(window[linear].mean()) if linear.any() else 0.0


#: `series.<name>.<flow>`: what can be read off a trace of the windows.
SERIES: dict[str, Callable[[Series, str], float]] = {"climb": climb, "mean_window": mean_window}


def _sum(tokens: list[str], text: str, factor: Callable[[str], float]) -> float:
    """Takes a sum or difference of products off the front of the tokens."""
    value = _product(tokens, text, factor)
    while tokens and tokens[0] in ("+", "-"):
        sign = 1 if tokens.pop(0) == "+" else -1
        value += sign * _product(tokens, text, factor)
    return value


def _product(tokens: list[str], text: str, factor: Callable[[str], float]) -> float:
    value = _part(tokens, text, factor)
    while tokens and tokens[0] in ("*", "/"):
        divide = tokens.pop(0) == "/"
        part = _part(tokens, text, factor)
        if divide and part == 0:
            raise NoValueError(f"{text!r} has no value in this run: it divides by zero")
        value = value / part if divide else value * part
    return value


def _part(tokens: list[str], text: str, factor: Callable[[str], float]) -> float:
    if not tokens or tokens[0] in ("+", "-", "*", "/", ")"):
        raise MeasureError(f"{text!r} lacks a path or a number before {tokens[0] if tokens else 'its end'!r}")
    token = tokens.pop(0)
    if token != "(":
        return factor(token)
    value = _sum(tokens, text, factor)
    if not tokens or tokens.pop(0) != ")":
        raise MeasureError(f"{text!r} lacks a ')'")
    return value


def _factor(token: str, answer: Mapping[str, Any], series: Series | None) -> float:
    if _is_number(token):
        return float(token)
    path = token.split(".")
    try:
        if path[0] == "series":
            assert series is not None, "a run that is traced has a trace"
            readings = {name: SERIES[path[1]](series, name) for name in series["flows"]}
            return follow(readings, path[2:])
        if path[:2] == ["ports", "bottleneck"] and "bottleneck" in answer:
            path[1] = answer["bottleneck"]
        return follow(answer, path)
    except NoValueError:
        raise NoValueError(f"{token!r} has no value in this run") from None
    except (KeyError, TypeError, ValueError) as error:
        raise MeasureError(f"{token!r} leads nowhere in the answer of a run ({error!r})") from None


def _window(series: Series, flow: str, name: str) -> NDArray[np.float64]:
    window: NDArray[np.float64] = series[name][:, list(series["flows"]).index(flow)]
    return window
