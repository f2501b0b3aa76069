"""Warm-up of a run, and the interval of its own mean: MSER-5 and batch means.

Sources: K. P. White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69, 1997, and
K. P. White, M. J. Cobb and S. C. Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter
Simulation Conference 2000, whose n, m = 5 and d are kept; A. M. Law, Simulation Modeling and Analysis, chapter 9, for batch
means. Departures: none known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from celltrain.running import statistics
from celltrain.text import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: m: number of observations that MSER-5 averages first.
GROUPED = 5
#: Batches of a run: 10 to 30 are usual; the means of more are correlated.
BATCHES = 20
#: Correlation of neighbouring batches above which they are too short: two standard errors for 20 independent ones.
MOST_CORRELATED = 2 / math.sqrt(BATCHES)
#: Smallest number of observations.
FEWEST = 100


@dataclass(frozen=True, kw_only=True)
class Steady:
    """The end of a run's warm-up, and the mean from there."""

    from_s: float | None
    """Seconds that are best left out, by MSER-5; None if the run has not settled in its first half."""
    mean: float
    """The mean from there on (of the whole run if it has not settled), in the unit of the observations."""
    half: float
    """Half the width of its 95 % interval by batch means, Student's; NaN if there is none."""
    batches: int
    """Number of batches of equal length."""
    correlation: float
    """Correlation of neighbouring batch means: if it is far above 0, batches are too short and the interval too narrow."""

    @property
    def doubtful(self) -> bool:
        """True if batches are correlated, so that the interval is too narrow; longer runs help, and more seeds."""
        return not math.isnan(self.correlation) and self.correlation > MOST_CORRELATED

    def __str__(self) -> str:
        if self.from_s is None:
            return "not settled in the first half of the run: run it for longer"
        interval = "" if math.isnan(self.half) else f" ± {self.half:.3g}"
        doubt = ", but neighbouring batches hang together: run it for longer" if self.doubtful else ""
        return (
            f'settled after {self.from_s:.3g} s (MSER-5): measure = {{ from = "{shown(f"{self.from_s:.3g}")}s" }}; from there '
            f"{self.mean:.4g}{interval} ({self.batches} batches{doubt})"
        )


def mser(values: Floats) -> int | None:
    """Returns the number of observations that MSER-5 leaves out at the beginning; None if that is more than half.

    It leaves out d of the means of five observations each, so that the squared standard error of the mean of the others,
    (sum of squared deviations) / (n - d)^2, is least.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> climbs = np.concatenate([np.linspace(0, 10, 100), np.full(900, 10.0)]) + rng.normal(0, 0.5, 1000)
    >>> 80 <= mser(climbs) <= 120
    True
    """
    n = len(values) // GROUPED
    if n * GROUPED < FEWEST:
        return None
    means = values[: n * GROUPED].reshape(n, GROUPED).mean(axis=1)
    # Sums of squared deviations of the last k = n - d means, from the end.
    k = np.arange(1, n + 1, dtype=np.float64)
    from_the_end = means[::-1] - means.mean()
    deviations = np.cumsum(from_the_end**2) - np.cumsum(from_the_end) ** 2 / k
    # The last few vary little by chance, according to the source.
    error = (np.maximum(deviations, 0.0) / k**2)[GROUPED - 1 :][::-1]
    d = int(np.argmin(error))
    return d * GROUPED if 2 * d <= n else None


def batch_means(values: Floats) -> tuple[float, float, float]:
    """Returns the mean, half its 95 % interval by the means of 20 equal batches, and the correlation of neighbours.

    Observations that do not fill a batch are left out at the beginning, which is nearest to the warm-up.
    """
    length = len(values) // BATCHES
    if length == 0:
        return (float(values.mean()) if len(values) else math.nan), math.nan, math.nan
    means = values[len(values) - length * BATCHES :].reshape(BATCHES, length).mean(axis=1)
    around = means - means.mean()
    squares = float(around @ around)
    correlation = math.nan if squares == 0 else float(around[:-1] @ around[1:]) / squares
    half = statistics.half_width(BATCHES, float(means.std(ddof=1)))
    return float(means.mean()), half, correlation


def steady(times_s: Floats, values: Floats) -> Steady:
    """Finds when observations have settled, and their mean from there; each covers the time up to its own."""
    discarded = mser(values)
    mean, half, correlation = batch_means(values[discarded or 0 :])
    from_s = None if discarded is None else float(times_s[discarded - 1]) if discarded else 0.0
    return Steady(from_s=from_s, mean=mean, half=half, batches=BATCHES, correlation=correlation)
