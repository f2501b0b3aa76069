"""Numbers with units, as scenario files write them, in exact arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

#: Of a number with a unit: more are beyond all that can be set, and may be beyond what a float holds.
MOST_DIGITS = 40


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A kind of number with a unit: its name in the schema, and what it is stored in."""

    kind: str
    unit: str
    """The unit of a store's column."""
    units: dict[str, Fraction]
    """In that unit, the finest last: a scenario takes whole numbers of it."""
    example: str

    def read(self, text: str) -> Fraction:
        """The value in `unit`; raises `ValueError` with a clause that follows "is not"."""
        match = re.fullmatch(r"\s*([0-9_]*\.?[0-9_]+|[0-9_]+\.)\s*(\w+)\s*", text)
        if match is None or match[2] not in self.units:
            raise ValueError(self.expected)
        if len(match[1]) > MOST_DIGITS:
            raise ValueError(f"a {self.kind} of at most {MOST_DIGITS} digits")
        return Fraction(Decimal(match[1].replace("_", ""))) * self.units[match[2]]

    def write(self, value: Fraction) -> str:
        """A value as a scenario writes it, rounded to the finest unit."""
        name, finest = list(self.units.items())[-1]
        return f"{round(value / finest)}{name}"

    @property
    def expected(self) -> str:
        """What a value should be."""
        return f'a {self.kind} such as "{self.example}", in {", ".join(self.units)}'


def _units(**units: int) -> dict[str, Fraction]:
    """By the power of ten each of them is."""
    return {name: Fraction(10) ** power for name, power in units.items()}


#: By the schema's word for it.
QUANTITIES = {
    "rate": Quantity(kind="rate", unit="bit/s", units=_units(Gbps=9, Mbps=6, kbps=3, bps=0), example="155.52Mbps"),
    "time": Quantity(kind="time", unit="s", units=_units(s=0, ms=-3, us=-6, ns=-9, ps=-12), example="5us"),
    "size": Quantity(kind="size", unit="B", units=_units(MB=6, kB=3, B=0), example="512B"),
}


def seconds(text: str) -> float:
    """A time in seconds.

    >>> seconds("60s"), seconds("5us")
    (60.0, 5e-06)
    """
    return float(QUANTITIES["time"].read(text))


def exact(number: float) -> Fraction:
    """A number as it is written in decimals: a tenth is a tenth."""
    return Fraction(Decimal(repr(number)))
