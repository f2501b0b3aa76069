"""Checksums of runs and cases, which show whether a value is the one that was written. SQLite itself keeps none."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Constants of the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
#: Stands for a number that is missing.
_MISSING = np.uint64(0x7FF8000000000000)


def of_runs(numbers: Sequence[NDArray[np.uint64]], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the checksum of each run.

    Args:
        numbers: Whole numbers of the runs, one array each.
        values: Runs by measures; NaN if a run has no value.
    """
    # SQLite stores -0.0 as 0.0.
    bits = (values + 0.0).view(np.uint64)
    bits[np.isnan(values)] = _MISSING
    total = np.zeros(len(values), np.uint64)
    for column in (*numbers, *bits.T):
        total = (total ^ column) + _STEP
        total = (total ^ (total >> np.uint64(30))) * _FIRST
        total = (total ^ (total >> np.uint64(27))) * _SECOND
        total ^= total >> np.uint64(31)
    return total.view(np.int64)


def of_texts(*texts: object) -> int:
    """Returns the checksum of texts and numbers.

    >>> of_texts("a", 1.5)
    1688414130
    """
    return zlib.crc32(repr(texts).encode(errors="surrogatepass"))
