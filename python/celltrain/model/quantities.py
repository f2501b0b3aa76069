"""Numbers with units as in scenario files, in exact arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

#: Most digits of a number with a unit; longer numbers exceed every limit, and may exceed the range of a float.
MOST_DIGITS = 40


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A kind of number with a unit: its name in the schema, and its units."""

    kind: str
    unit: str
    """Unit of columns in a store."""
    units: dict[str, Fraction]
    """Units in terms of `unit`, the finest last: scenarios store whole numbers of the finest."""
    example: str

    def read(self, text: str) -> Fraction:
        """Returns the value in `unit`; raises `ValueError` with a clause that follows "is not"."""
        match = re.fullmatch(r"\s*([0-9_]*\.?[0-9_]+|[0-9_]+\.)\s*(\w+)\s*", text)
        if match is None or match[2] not in self.units:
            raise ValueError(self.expected)
        if len(match[1]) > MOST_DIGITS:
            raise ValueError(f"a {self.kind} of at most {MOST_DIGITS} digits")
        return Fraction(Decimal(match[1].replace("_", ""))) * self.units[match[2]]

    def write(self, value: Fraction) -> str:
        """Formats a value as in a scenario, rounded to the finest unit."""
        name, finest = list(self.units.items())[-1]
        return f"{round(value / finest)}{name}"

    @property
    def expected(self) -> str:
        """Description of a valid value."""
        return f'a {self.kind} such as "{self.example}", in {", ".join(self.units)}'


def _units(**units: int) -> dict[str, Fraction]:
    return {name: Fraction(10) ** power for name, power in units.items()}


#: Quantities by their names in the schema.
QUANTITIES = {
    "rate": Quantity(kind="rate", unit="bit/s", units=_units(Gbps=9, Mbps=6, kbps=3, bps=0), example="155.52Mbps"),
    "time": Quantity(kind="time", unit="s", units=_units(s=0, ms=-3, us=-6, ns=-9, ps=-12), example="5us"),
    "size": Quantity(kind="size", unit="B", units=_units(MB=6, kB=3, B=0), example="512B"),
}


def seconds(text: str) -> float:
    """Reads a time in seconds.

    >>> seconds("60s"), seconds("5us")
    (60.0, 5e-06)
    """
    return float(QUANTITIES["time"].read(text))


def exact(number: float) -> Fraction:
    """Converts a number by its decimal digits, so that 0.1 is exactly a tenth."""
    return Fraction(Decimal(repr(number)))
