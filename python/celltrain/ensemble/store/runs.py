"""The runs of a store as arrays, each compared with its checksum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.store import checks
from celltrain.ensemble.store.database import Database, text_check, wrapped
from celltrain.ensemble.store.layout import axes_of

#: Rows that are read at a time.
_PIECE = 8192


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The runs by point and seed."""

    point: NDArray[np.int64]
    seed: NDArray[np.uint64]
    key: NDArray[np.uint32]
    """Runs by three: 12 bytes."""
    fingerprint: NDArray[np.uint64]
    printed: NDArray[np.bool_]
    """True for runs with a fingerprint."""
    values: NDArray[np.float64]
    """Runs by measures; NaN if there is none."""
    errors: Mapping[int, str]
    """Errors of failed runs, by place."""
    gaps: Mapping[tuple[int, int], str]
    """Reasons why a measure has no value, by the places of run and measure."""
    case: NDArray[np.int64]
    """The place of each run's point among the following."""
    points: NDArray[np.int64]
    configurations: Sequence[str]
    settings: Sequence[tuple[float | str, ...]]
    """The values of the axes, by point."""

    def __len__(self) -> int:
        return len(self.point)

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """True for runs that failed."""
        failed = np.zeros(len(self), np.bool_)
        failed[list(self.errors)] = True
        return failed

    @cached_property
    def keys(self) -> list[str]:
        """Keys as 24 hexadecimal digits."""
        text = self.key.tobytes().hex()
        return [text[place : place + 24] for place in range(0, len(text), 24)]

    @cached_property
    def fingerprints(self) -> list[str | None]:
        """Fingerprints as 16 hexadecimal digits."""
        both = zip(self.fingerprint.tolist(), self.printed.tolist(), strict=True)
        return [f"{number:016x}" if known else None for number, known in both]


def read(database: Database, manifest: Mapping[str, Any]) -> Runs:
    """Reads all runs; raises `StoreError` if one is not as it was written."""
    count = len(manifest["measures"])
    axes = axes_of(manifest)
    with database.snapshot() as query:
        totals = database.totals()
        found = _columns(query, count, totals.runs)
        number, point, seed, key, prints, printed, seconds, checked, values, told = found
        place_of = {int(run): place for place, run in enumerate(number.tolist())} if _has_gaps(query) else {}
        gaps = {
            (place_of[run], measure - 1): error
            for run, measure, error in query("SELECT run, measure, error FROM gaps")
            if run in place_of
        }
        columns = "".join(f", a{place + 1}" for place in range(len(axes)))
        cases = query(f"SELECT point, configuration, checked{columns} FROM cases ORDER BY point").fetchall()
        _compare_cases(cases)
        points = np.array([case[0] for case in cases], np.int64)
        texts = np.zeros(len(point), np.uint64)
        for run, error in told.items():
            texts[run] = text_check(error)
        for (run, measure), error in gaps.items():
            texts[run] += np.uint64(text_check(measure + 1, error))
        numbers = [point.view(np.uint64), seed, *key.T.astype(np.uint64), prints, seconds.view(np.uint64), texts]
        own = checks.of_runs(numbers, values)
        if not np.array_equal(own, checked):
            wrong = int(np.flatnonzero(own != checked)[0])
            raise ValueError(f"run {key[wrong].tobytes().hex()} is not what was written")
        if wrapped(int(own.sum())) != totals.checks or len(told) != totals.failed:
            raise ValueError("runs are missing or there twice")
        case = np.searchsorted(points, point)
        if len(point) and not np.array_equal(points[np.minimum(case, len(points) - 1)], point):
            raise ValueError("a run's case is missing")
    order = np.lexsort((seed, point))
    new = np.empty_like(order)
    new[order] = np.arange(len(order))
    return Runs(
        point=point[order],
        seed=seed[order],
        key=key[order],
        fingerprint=prints[order],
        printed=printed[order],
        values=values[order],
        errors={int(new[run]): error for run, error in told.items()},
        gaps={(int(new[run]), measure): error for (run, measure), error in gaps.items()},
        case=case[order],
        points=points,
        configurations=[case[1] for case in cases],
        settings=[tuple(case[3:]) for case in cases],
    )


def _columns(query: Any, count: int, runs: int) -> Any:
    """The columns of the table of runs as arrays, and the errors by place."""
    names = "".join(f", m{place + 1}" for place in range(count))
    rows = query(
        f"SELECT run, point, seed, run_key, fingerprint, seconds, checked, error{names} FROM runs ORDER BY run"
    )
    pieces: list[tuple[Any, ...]] = []
    told: dict[int, str] = {}
    done = 0
    while some := rows.fetchmany(_PIECE):
        run, point, seed, key, prints, seconds, checked, error, *values = zip(*some, strict=True)
        if any(len(one) != 12 for one in key):
            raise ValueError("a run's key is not 12 bytes")
        pieces.append(
            (
                np.array(run, np.int64),
                np.array(point, np.int64),
                np.array(seed, np.uint64),
                np.frombuffer(b"".join(key), np.uint32).reshape(-1, 3),
                np.array([one or 0 for one in prints], np.int64).view(np.uint64),
                np.array([one is not None for one in prints], np.bool_),
                np.array(seconds, np.float64),
                np.array(checked, np.int64),
                np.array(values, np.float64).reshape(count, len(some)).T,
            )
        )
        told |= {done + place: text for place, text in enumerate(error) if text is not None}
        done += len(some)
        if done > runs:
            break
    if done != runs:
        raise ValueError(f"it has {done:,} runs, and {runs:,} were written")
    if not pieces:
        empty = [np.array([], kind) for kind in (np.int64, np.int64, np.uint64)]
        rest = [np.array([], kind) for kind in (np.uint64, np.bool_, np.float64, np.int64)]
        return (*empty, np.zeros((0, 3), np.uint32), *rest, np.zeros((0, count)), told)
    return (*(np.concatenate(column) for column in zip(*pieces, strict=True)), told)


def _has_gaps(query: Any) -> bool:
    return query("SELECT 1 FROM gaps LIMIT 1").fetchone() is not None


def _compare_cases(cases: Sequence[tuple[Any, ...]]) -> None:
    for point, configuration, checked, *settings in cases:
        if checked != checks.of_texts(point, configuration, *settings):
            raise ValueError(f"point {point} is not what was written")
