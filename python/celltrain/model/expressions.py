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
with `scenario` reads the scenario of the run; one that begins with `series` reads a trace: `series.climb.tcp1` is the
linear growth of a congestion window, and `series.mean_window.tcp1` its mean.

The core evaluates measures (`crates/celltrain-run/src/expressions`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from celltrain import _core
from celltrain.errors import CelltrainError

#: Number of requests that each statistic needs.
NEEDED = dict(_core.REQUESTS_NEEDED)


class MeasureError(CelltrainError, ValueError):
    """Raised if a text is not a valid measure, or if a run's answer has no such path."""


class TooFewError(MeasureError):
    """Raised if a run has too few values for a percentile."""


class NoValueError(MeasureError):
    """Raised if this run has no value but others may, such as a mean delay when no file was completed."""


_ERRORS = {"undefined": NoValueError, "too_few": TooFewError, "wrong": MeasureError}


def measure(text: str, answer: Mapping[str, Any]) -> float:
    """Returns the value of a measure in an answer; measures that need a trace are 0.

    >>> measure("flows.sum(*).v / 2", {"flows": [{"name": "a", "v": 3}, {"name": "b", "v": 4}]})
    3.5
    """
    value, kind, message = _core.evaluate(encodable([text])[0], json.dumps(answer))
    if value is None:
        raise _ERRORS[kind](message)
    return value


def check_syntax(text: str) -> None:
    """Raises `MeasureError` unless the text is paths and numbers joined by operators, with at least one path."""
    has_path, _, _ = _parsed(text)
    if not has_path:
        raise MeasureError(f"{text!r} names no measure")


def needs_series(text: str) -> bool:
    """Returns whether a measure needs a trace."""
    try:
        return _parsed(text)[1]
    except MeasureError:
        return False


def is_lower_bound(text: str, note: str) -> bool:
    """Returns whether a note that a store keeps about a measure says that the value is a lower bound.

    A measure that is computed from a lower bound is none, unless it is a single path, to one value or to several.

    >>> note = "'a.b_p99' is a lower bound: 3 of 9 requests were open at the end"
    >>> [is_lower_bound(text, note) for text in ("a.b_p99", "a.mean(*).b_p99", "a.fairness(*).b_p99", "a.b_p99 - 1")]
    [True, True, False, False]
    """
    return " is a lower bound: " in note and _parsed(text)[2]


def named(text: str, known: Sequence[str]) -> list[str]:
    """Returns the known names that match a name, a range such as `tcp1-3`, all (`*`), or a pattern."""
    try:
        return _core.named(text, known)
    except ValueError as error:
        raise MeasureError(str(error)) from None


def encodable(texts: Iterable[str]) -> list[str]:
    """Replaces halves of surrogate pairs, which text from JSON may contain, but no name does."""
    return [text.encode(errors="replace").decode() for text in texts]


@lru_cache(maxsize=1000)
def _parsed(text: str) -> tuple[bool, bool, bool]:
    """Returns whether a measure has a path, needs a trace, and is a lower bound if what it reads is one."""
    try:
        return _core.parse_measure(encodable([text])[0])
    except ValueError as error:
        raise MeasureError(f"{text!r:.200} {error}") from None
