"""What a plan varies: values in a list, exact ranges, and draws from an interval."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from celltrain.errors import MissingExtraError
from celltrain.model.grammar import AS_IS
from celltrain.model.paths import Key, choices
from celltrain.model.quantities import exact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Significant digits of values on a logarithmic scale and in a sample: powers differ in their last digits from machine
#: to machine, and no run may.
DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class Interval:
    """From one value to another, on a linear or a logarithmic scale, in the unit of the store's column."""

    low: Fraction
    high: Fraction
    log: bool = False

    def at(self, share: float) -> Fraction:
        """The value so far on the way, 0 to 1."""
        if not self.log:
            return self.low + (self.high - self.low) * Fraction(share)
        return exact(float(f"{float(self.low) * float(self.high / self.low) ** share:.{DIGITS}g}"))


class _Numbers(Sequence[Fraction]):
    """A sequence of numbers that are worked out when they are asked for."""

    @overload
    def __getitem__(self, index: int) -> Fraction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Fraction]: ...
    def __getitem__(self, index: int | slice) -> Fraction | Sequence[Fraction]:
        if isinstance(index, slice):
            return [self._number(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._number(index % len(self))

    @abstractmethod
    def _number(self, index: int) -> Fraction: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps(_Numbers):
    """So many values from one end of an interval, by a step or spread up to the other end."""

    interval: Interval
    length: int
    step: Fraction | None = None

    def __len__(self) -> int:
        return self.length

    def _number(self, index: int) -> Fraction:
        low, high = self.interval.low, self.interval.high
        if self.step is not None:
            return low + index * self.step
        if index in (0, self.length - 1):
            return low if index == 0 else high
        if self.interval.log:
            return self.interval.at(index / (self.length - 1))
        return low + (high - low) * Fraction(index, self.length - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn(_Numbers):
    """Values of an interval where a sample has drawn them."""

    interval: Interval
    shares: NDArray[np.float64]
    whole: bool

    def __len__(self) -> int:
        return len(self.shares)

    def _number(self, index: int) -> Fraction:
        share = float(self.shares[index])
        if self.whole and not self.interval.log:
            # Every whole number is as likely, both ends too.
            low, high = round(self.interval.low), round(self.interval.high)
            return Fraction(min(low + int(share * (high - low + 1)), high))
        return exact(float(f"{float(self.interval.at(share)):.{DIGITS}g}"))


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Something varied: a name, a path into the scenario, and values."""

    name: str
    """The column of the store."""
    path: str
    key: Key
    settings: tuple[Any, ...] = ()
    """What the scenario gets, where the values are listed."""
    labels: tuple[str, ...] | None = None
    numbers: Sequence[Fraction] | None = None
    """The values where they are a range or a sample."""

    def __len__(self) -> int:
        return len(self.settings) if self.numbers is None else len(self.numbers)

    def setting(self, index: int) -> Any:
        """What the scenario gets."""
        return self.settings[index] if self.numbers is None else written(self.numbers[index], self.key)

    def stays(self, index: int) -> bool:
        """Whether the scenario keeps what it has there."""
        return self.numbers is None and self.settings[index] == AS_IS and self._takes_tables

    @cached_property
    def _takes_tables(self) -> bool:
        return bool(choices(self.path))

    def column(self, index: int) -> float | str:
        """What the store says of it: a plain number as it is, a quantity in s, bit/s or B, a label as text."""
        if self.labels is not None:
            return self.labels[index]
        value = _column(self.setting(index), self.key)
        return value if self.is_number else _text(self.setting(index))

    @cached_property
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        if self.labels is not None:
            return False
        return self.numbers is not None or all(isinstance(_column(one, self.key), float) for one in self.settings)

    @property
    def unit(self) -> str:
        """Of the column; empty where it has none."""
        if not self.is_number:
            return ""
        if self.key.is_threshold and self.numbers is None:
            return "cells" if all(setting > 1 for setting in self.settings) else ""
        return self.key.unit if self.key.quantity is None else self.key.quantity.unit

    @property
    def meaning(self) -> str:
        """One line."""
        return f"{self.path}: {self.key.meaning}" if self.key.meaning else self.path


def draw(method: str, axes: int, points: int, seed: int) -> NDArray[np.float64]:
    """Points of the unit cube, one row each."""
    try:
        from scipy.stats import qmc
    except ImportError:
        raise MissingExtraError(
            f"plans with method = \"{method}\" need scipy: pip install 'celltrain[sweep]'"
        ) from None
    if method == "latin_hypercube":
        sample: NDArray[np.float64] = qmc.LatinHypercube(d=axes, seed=seed).random(points)
        return sample
    engine = qmc.Sobol(d=axes, scramble=True, seed=seed)
    # The sequence is balanced at powers of two; any first part of it is a sample all the same.
    whole: NDArray[np.float64] = engine.random_base2(max(points - 1, 0).bit_length())
    return whole[:points]


def written(number: Fraction, key: Key) -> Any:
    """A number as the scenario takes it: with its unit, whole, or plain."""
    if key.quantity is not None:
        return key.quantity.write(number)
    return round(number) if key.whole else float(number)


def _column(setting: Any, key: Key) -> float | str:
    if isinstance(setting, str) and key.quantity is not None:
        return float(key.quantity.read(setting))
    return float(setting) if isinstance(setting, int | float) and not isinstance(setting, bool) else _text(setting)


def _text(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)
