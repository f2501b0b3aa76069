"""When a run has settled, and how sure its own mean is: MSER-5 and batch means.

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

#: m: observations of which a mean is taken first, in MSER-5.
GROUPED = 5
#: Batches of a run: 10 to 30 are usual; with more their means hang together.
BATCHES = 20
#: A correlation of neighbouring batches from which they are too short: two standard errors of that of 20 independent ones.
MOST_CORRELATED = 2 / math.sqrt(BATCHES)
#: Fewer observations than this say nothing.
FEWEST = 100


@dataclass(frozen=True, kw_only=True)
class Steady:
    """From when on a run is like the rest of itself, and the mean from there."""

    from_s: float | None
    """Seconds that are best left out, by MSER-5; None where the run has not settled in its first half."""
    mean: float
    """The mean from there on (of the whole run where it has not settled), in the unit of what was asked for."""
    half: float
    """Half the width of its 95 % interval by batch means, Student's; NaN where there is none."""
    batches: int
    """How many batches of equal length it rests on."""
    correlation: float
    """Of neighbouring batch means: far above 0, they are too short, and the interval too narrow."""

    @property
    def doubtful(self) -> bool:
        """Whether batches hang together, so that the interval is too narrow; longer runs help, and more seeds."""
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
    """MSER-5: how many observations are best left out at the beginning; None where that is more than half.

    Of the means of five observations each, d are left out so that the squared standard error of the mean of the others,
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
    # Of the last k = n - d means: their sum of squared deviations, from the end.
    k = np.arange(1, n + 1, dtype=np.float64)
    from_the_end = means[::-1] - means.mean()
    deviations = np.cumsum(from_the_end**2) - np.cumsum(from_the_end) ** 2 / k
    # The last few vary little by chance, as the source says.
    error = (np.maximum(deviations, 0.0) / k**2)[GROUPED - 1 :][::-1]
    d = int(np.argmin(error))
    return d * GROUPED if 2 * d <= n else None


def batch_means(values: Floats) -> tuple[float, float, float]:
    """The mean, half its 95 % interval by the means of 20 batches of equal length, and the correlation of neighbours.

    What does not fill a batch is left out at the beginning, which is nearest to the warm-up.
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
    """When observations have settled, and their mean from there; each is of the time up to its instant."""
    discarded = mser(values)
    mean, half, correlation = batch_means(values[discarded or 0 :])
    from_s = None if discarded is None else float(times_s[discarded - 1]) if discarded else 0.0
    return Steady(from_s=from_s, mean=mean, half=half, batches=BATCHES, correlation=correlation)
