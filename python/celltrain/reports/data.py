"""What a report is made of: the runs of a store as arrays of small numbers, whatever the sweep was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import statistics

if TYPE_CHECKING:
    import pyarrow as pa

#: Largest over smallest value from which an axis is drawn on a logarithmic scale, unless its values are evenly spaced.
WIDE = 20.0


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A parameter of the sweep."""

    name: str
    unit: str
    """Empty where the values are words; `1` for pure numbers."""
    meaning: str
    """What it sets: the path into the scenario."""
    values: tuple[float | str, ...]
    """Its different values: numbers from the smallest, words in the order of the plan."""
    sampled: bool = False
    """Whether its values were drawn, so that there is no grid."""

    @property
    def words(self) -> bool:
        """Whether its values are words."""
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def logarithmic(self) -> bool:
        """Whether its values are spread better by their ratios than by their differences."""
        values = np.array([] if self.words else self.values, dtype=np.float64)
        if len(values) < 3 or values[0] <= 0 or values[-1] < WIDE * values[0]:
            return False
        steps, ratios = np.diff(values), np.diff(np.log(values))
        return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What was measured in every run."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that has no values."""

    point: int
    """Its place among the points of the report."""
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Data:
    """The runs of one store.

    Runs are rows of `point`, `seed` and `values`; a run that failed is not among them.
    """

    name: str
    """The plan's name."""
    version: str
    profile: str
    plan: str
    """The plan as given, TOML."""
    axes: tuple[Axis, ...]
    measures: tuple[Measure, ...]
    points: NDArray[np.int64]
    """The plan's number of each point."""
    levels: NDArray[np.int64]
    """Points by axes: the place of the point's value among `Axis.values`."""
    point: NDArray[np.int64]
    """For each run its place in `points`."""
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    """Runs by measures; NaN where a run lacks one."""
    failures: tuple[Failure, ...]
    missing: int = 0
    """Runs the plan asks for that the store does not have yet."""

    def value(self, point: int, axis: int) -> float | str:
        """A point's value on an axis."""
        return self.axes[axis].values[self.levels[point, axis]]

    @cached_property
    def means(self) -> tuple[statistics.Means, ...]:
        """For each measure the means of the points."""
        return tuple(
            statistics.means(self.point[known], self.values[known, i], len(self.points))
            for i, known in enumerate(~np.isnan(self.values.T))
        )

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The axes with more than one value."""
        return tuple(i for i, axis in enumerate(self.axes) if len(axis.values) > 1)

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most seeds of a point, failed runs not counted."""
        counts = np.bincount(self.point, minlength=len(self.points))
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)


def from_table(
    rows: pa.Table,
    *,
    axes: Sequence[str],
    measures: Mapping[str, Measure],
    sampled: Sequence[str] = (),
    **about: Any,
) -> Data:
    """The data of a long table, one row for each run and measure, as in a store's parts.

    Args:
        rows: Columns `point`, one for each axis, `seed`, `measure`, `value`, `error`; an axis's unit and meaning are in its
            field's metadata.
        axes: The axes' names, in the order of the plan.
        measures: The measures wanted, in their order; rows of others are left out.
        sampled: The axes whose values were drawn.
        about: The other fields of `Data`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    point_ids = _numpy(rows["point"], np.int64)
    points, first, place = np.unique(point_ids, return_index=True, return_inverse=True)
    found, levels = [], np.zeros((len(points), len(axes)), np.int64)
    of_points = rows.select(list(axes)).take(pa.array(first))
    for i, name in enumerate(axes):
        metadata = {key.decode(): text.decode() for key, text in (rows.schema.field(name).metadata or {}).items()}
        column = of_points[name].to_pylist()
        known = list(dict.fromkeys(column))
        if all(isinstance(value, int | float) for value in known):
            known = sorted(map(float, known))
        places = {value: at for at, value in enumerate(known)}
        levels[:, i] = [places[value] for value in column]
        found.append(
            Axis(
                name=name,
                unit=metadata.get("unit", ""),
                meaning=metadata.get("meaning", ""),
                values=tuple(known),
                sampled=name in sampled,
            )
        )
    wanted = pc.index_in(_words(rows["measure"]), pa.array(list(measures), pa.string()))
    code = _numpy(pc.fill_null(wanted, -1), np.int64)
    seeds = _numpy(rows["seed"], np.uint64)
    # A run is a point and a seed, wherever its rows stand.
    drawn, seed_place = np.unique(seeds, return_inverse=True)
    good = code >= 0
    runs, run = np.unique(place[good] * len(drawn) + seed_place[good], return_inverse=True)
    values = np.full((len(runs), len(measures)), np.nan)
    values[run, code[good]] = _numpy(pc.fill_null(rows["value"], np.nan), np.float64)[good]
    failed = np.flatnonzero(~_numpy(pc.is_null(rows["error"]), np.bool_))
    errors = _words(rows["error"].take(pa.array(failed))).to_pylist()
    return Data(
        axes=tuple(found),
        measures=tuple(measures.values()),
        points=points,
        levels=levels,
        point=runs // max(len(drawn), 1),
        seed=drawn[runs % max(len(drawn), 1)],
        values=values,
        failures=tuple(
            Failure(point=int(place[row]), seed=int(seeds[row]), error=error)
            for row, error in zip(failed, errors, strict=True)
        ),
        **about,
    )


def _numpy(column: pa.ChunkedArray, kind: type) -> NDArray[Any]:
    array: NDArray[Any] = column.to_numpy().astype(kind, copy=False)
    return array


def _words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(pa.string())
