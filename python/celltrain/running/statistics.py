"""Statistics of ensembles of seeds: means and their intervals, differences, main effects, the Pareto front.

Pure functions over numpy arrays. The 95 % interval of a mean is Student's: t sd / sqrt(n) to either side, where t is
the upper 2.5 % quantile of Student's distribution with n - 1 degrees of freedom. Undefined values, such as the interval
of a single value, are NaN.

MSER-5 determines the end of a run's warm-up; batch means give the interval of the mean of a single run. Sources: K. P.
White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69, 1997, and K. P. White,
M. J. Cobb and S. C. Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter Simulation
Conference 2000, whose n, m = 5 and d are kept; A. M. Law, Simulation Modeling and Analysis, chapter 9, for batch means.
Differences from the source: none known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celltrain.text import shown

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Seeds = NDArray[np.uint64] | NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Means, or differences of means, with their intervals."""

    mean: Floats
    half: Floats
    """Half the width of the 95 % interval of the mean; NaN if there is none."""

    @property
    def low(self) -> Floats:
        """Lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self) -> Floats:
        """Upper end of the interval."""
        return self.mean + self.half

    @property
    def beyond(self) -> Flags:
        """True if the interval excludes zero: the difference exceeds the seeds' spread. False without an interval."""
        return np.abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Means(Intervals):
    """Means of several groups, each with its interval."""

    n: Ints
    """Number of values in each group; for means of means, the number of independent values."""
    sd: Floats
    """Standard deviation, with n - 1 in the denominator; NaN for fewer than two values."""

    def of(self, groups: Ints) -> Means:
        """Selects groups by their indices."""
        return Means(**{name: column[groups] for name, column in vars(self).items()})


def student(freedom: Floats | Ints | float) -> Floats:
    """Returns the upper 2.5 % quantile of Student's t: half the width of a 95 % interval in standard errors.

    Args:
        freedom: Degrees of freedom, whole or fractional, of any shape. Below 1 the quantile is NaN.
    """
    degrees, places = np.unique(np.asarray(freedom, dtype=np.float64), return_inverse=True)
    quantiles = np.array([_student(degree) for degree in degrees.tolist()])
    return quantiles[places].reshape(np.shape(freedom))


#: The upper 2.5 % quantile of the normal distribution.
_NORMAL = 1.959963984540054
#: Above this limit, the expansion in 1 / freedom is exact to the last digit. Below it, `math.lgamma` is exact.
_MANY = 1000.0


@lru_cache(maxsize=1 << 16)
def _student(freedom: float) -> float:
    if math.isnan(freedom) or freedom < 1:
        return math.nan
    z = _NORMAL
    # Cornish-Fisher expansion: Abramowitz and Stegun, 26.7.5.
    t = z + (z**3 + z) / 4 / freedom + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / freedom**2
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / freedom**3
    t += (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160 / freedom**4
    if freedom > _MANY:
        return t
    # Newton's method on the upper tail, which is convex, so the steps approach the quantile from below.
    t = min(t, 12.0)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(log_scale) / math.sqrt(freedom * math.pi)
    for _ in range(50):
        density = scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (_upper_tail(t, freedom, log_scale) - 0.025) / density
        t += step
        if abs(step) < 1e-15 * t:
            break
    return t


def _upper_tail(t: float, freedom: float, log_scale: float) -> float:
    """Returns the probability that Student's t exceeds t > 0.

    It is half of I_x(freedom / 2, 1 / 2) at x = freedom / (freedom + t^2).
    Evaluates the continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8) by Lentz's method.
    """
    x, y = freedom / (freedom + t * t), t * t / (freedom + t * t)
    front = math.exp(log_scale - math.lgamma(0.5) + freedom / 2 * math.log(x)) * math.sqrt(y)
    a, b = freedom / 2, 0.5
    swapped = x > (a + 1) / (a + b + 2)
    if swapped:
        a, b, x = b, a, y
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    part = front * fraction / a
    return (1 - part if swapped else part) / 2


def half_width(n: int, sd: float) -> float:
    """Returns half the width of the 95 % interval of the mean of n values, two or more, with this standard deviation.

    >>> round(half_width(3, 0.1), 3)
    0.248
    """
    return _student(n - 1) * sd / math.sqrt(n)


def means(groups: Ints, values: Floats, count: int) -> Means:
    """Computes means of known values by group. Groups are numbered from 0 to `count` - 1; empty groups are NaN."""
    known = ~np.isnan(values)
    groups, values = groups[known], values[known]
    n = np.bincount(groups, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(groups, values, minlength=count) / n
        # Subtract the mean first, because squares of large numbers that differ little would cancel.
        squares = np.bincount(groups, (values - mean[groups]) ** 2, minlength=count)
        # A group of equal values has zero spread, even if its mean was rounded.
        first = np.zeros(count)
        first[groups[::-1]] = values[::-1]
        equal = np.bincount(groups, values != first[groups], minlength=count) == 0
        mean = np.where(equal & (n > 0), first, mean)
        sd = np.sqrt(np.where(equal, 0.0, squares) / np.where(n > 1, n - 1, np.nan))
        return Means(n=n, mean=mean, sd=sd, half=student(n - 1) * sd / np.sqrt(n))


def mean(values: Sequence[float] | Floats) -> Means:
    """Computes the mean of one group."""
    return means(np.zeros(len(values), np.int64), np.asarray(values, np.float64), 1)


def welch(first: Means, second: Means) -> Intervals:
    """Computes differences of independent means whose spreads may differ (Welch 1947)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        one, two = first.sd**2 / first.n, second.sd**2 / second.n
        # Welch-Satterthwaite degrees of freedom; without any spread, the difference is exact.
        freedom = (one + two) ** 2 / (one**2 / (first.n - 1) + two**2 / (second.n - 1))
        half = np.where(one + two == 0, 0.0, student(freedom) * np.sqrt(one + two))
    return Intervals(mean=second.mean - first.mean, half=half)


def effects(levels: Ints, points: Ints, seeds: Seeds, values: Floats, count: int) -> Means:
    """Computes the main effects of an axis: for each level the mean over its points, with equal weights.

    Args:
        levels: The axis's level in each run, from 0 to `count` - 1.
        points: The point of each run.
        seeds: The seed of each run.
        values: The value measured in each run.
        count: Number of levels.

    The interval reflects only the variation between seeds, because the plan sets the values of the other axes. Runs
    with the same seed may share random choices. So if all points of a level have the same seeds, each seed's mean over
    the points is one value. Otherwise seeds count as independent (Satterthwaite's degrees of freedom).
    """
    n, centre, sd, half = np.zeros(count, np.int64), *(np.full(count, np.nan) for _ in range(3))
    order = np.argsort(levels, kind="stable")
    edges = np.searchsorted(levels[order], np.arange(count + 1))
    for level in range(count):
        runs = order[edges[level] : edges[level + 1]]
        if not len(runs):
            continue
        known, point = np.unique(points[runs], return_inverse=True)
        drawn, seed = np.unique(seeds[runs], return_inverse=True)
        if len(runs) == len(known) * len(drawn) == len(np.unique(point * len(drawn) + seed)):
            by_seed = means(seed, values[runs], len(drawn))
            over = mean(by_seed.mean)
            n[level], centre[level], sd[level], half[level] = over.n[0], over.mean[0], over.sd[0], over.half[0]
            continue
        by_point = means(point, values[runs], len(known))
        shares = (by_point.sd / len(known)) ** 2 / by_point.n
        n[level], centre[level] = by_point.n.min(), by_point.mean.mean()
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = shares.sum() ** 2 / (shares**2 / (by_point.n - 1)).sum()
        half[level] = 0.0 if shares.sum() == 0 else student(freedom) * np.sqrt(shares.sum())
    return Means(n=n, mean=centre, sd=sd, half=half)


def explained(levels: Ints, values: Floats, count: int) -> float:
    """Returns the share of the variance that the levels explain, 0 to 1; 0 if nothing varies."""
    total = float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0
    if total == 0:
        return 0.0
    of_levels = means(levels, values, count)
    between = float(np.nansum(of_levels.n * (of_levels.mean - values.mean()) ** 2))
    return min(between / total, 1.0)


def pareto_front(x: Floats, y: Floats) -> Flags:
    """Marks the points on the Pareto front.

    A point is on it if no other point is as good in both measures and better in one.

    Larger is better. A point with NaN is never on the front.
    """
    front = np.zeros(len(x), dtype=np.bool_)
    good = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not len(good):
        return front
    # Points are sorted by falling x, then by falling y. A point is on the front if its y exceeds the y of all earlier
    # points.
    order = good[np.lexsort((-y[good], -x[good]))]
    highest = np.maximum.accumulate(np.concatenate(([-np.inf], y[order][:-1])))
    rises = y[order] > highest
    # Duplicates of a point on the front are also on the front.
    of = np.maximum.accumulate(np.where(rises, np.arange(len(order)), 0))
    front[order] = (x[order] == x[order[of]]) & (y[order] == y[order[of]])
    return front


def behind(x: Means, y: Means) -> Flags:
    """Marks points that another point clearly beats: both of its intervals lie above theirs.

    A point that is neither on the front nor clearly behind it may belong to it. False without intervals.
    """
    beaten = np.zeros(len(x.mean), dtype=np.bool_)
    best = pareto_front(x.low, y.low)
    if not best.any():
        return beaten
    order = np.argsort(x.low[best])
    low_x, low_y = x.low[best][order], y.low[best][order]
    # Find the points of the front with larger x. The first of them has the highest y.
    right = np.searchsorted(low_x, x.high, side="right")
    highest = np.append(np.maximum.accumulate(low_y[::-1])[::-1], -np.inf)
    with np.errstate(invalid="ignore"):
        beaten = highest[right] > y.high
    return beaten & ~np.isnan(x.high) & ~np.isnan(y.high)


def ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks values from 1; equal values share the mean of their ranks."""
    array = np.asarray(values, dtype=np.float64)
    below = (array[None, :] < array[:, None]).sum(axis=1)
    equal = (array[None, :] == array[:, None]).sum(axis=1)
    result: NDArray[np.float64] = below + (equal + 1) / 2
    return result


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Returns Spearman's rank correlation; None for fewer than three pairs or if one side does not vary."""
    return None if len(first) < 3 else rank_correlation(first, second)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Returns Spearman's rank correlation for any number of pairs; two suffice for the direction of a trend."""
    x, y = ranks(first), ranks(second)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else None


def ks(positions: Sequence[float]) -> float | None:
    """Returns the Kolmogorov-Smirnov distance from the uniform distribution on [0, 1], times sqrt(sample size)."""
    if not positions:
        return None
    u = np.sort(np.asarray(positions, dtype=np.float64))
    n = len(u)
    steps = np.arange(n, dtype=np.float64)
    distance = max(float(np.max((steps + 1) / n - u)), float(np.max(u - steps / n)))
    return distance * math.sqrt(n)


def ks_probability(scaled: float, n: int) -> float:
    """Returns the probability that `ks` of n independent uniform draws is at least this large.

    The result is exact (Smirnov) for distances of 0.5 or more, which only one side can reach. For smaller distances it
    is Kolmogorov's limit with the correction of Stephens (1970). The error of this limit is below 0.005 for results
    below 0.2, and below 0.04 for others.

    >>> round(ks_probability(1.36, 50), 3)
    0.043
    """
    distance, root = scaled / math.sqrt(n), math.sqrt(n)
    if distance >= 0.5:
        return 2 * _one_sided(n, min(distance, 1.0))
    x = distance * (root + 0.12 + 0.11 / root)
    if x < 0.2:
        return 1.0
    # Kolmogorov's limit; for x above 0.2, thirty terms are more than enough.
    return float(2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 31)))


def _one_sided(n: int, distance: float) -> float:
    """Returns the probability that a sample of n exceeds the uniform distribution by this somewhere (Smirnov 1944)."""
    if distance == 1:
        return 0.0
    total = 0.0
    for j in range(math.floor(n * (1 - distance)) + 1):
        rest = 1 - distance - j / n
        if rest <= 0:
            continue
        log_choices = math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1)
        total += math.exp(log_choices + (j - 1) * math.log(distance + j / n) + (n - j) * math.log(rest))
    return distance * total


#: Number of observations that MSER-5 averages first (m in the source).
GROUPED = 5
#: Number of batches in a run. 10 to 30 are usual; with more batches, their means would be correlated.
BATCHES = 20
#: Correlation of adjacent batches above which batches are too short: two standard errors for 20 independent batches.
MOST_CORRELATED = 2 / math.sqrt(BATCHES)
#: Smallest number of observations.
FEWEST_SAMPLES = 100


@dataclass(frozen=True, kw_only=True)
class Steady:
    """The end of a run's warm-up, and the mean after the warm-up."""

    from_s: float | None
    """Warm-up to exclude, in seconds, by MSER-5; None if the run has not settled in its first half."""
    mean: float
    """The mean after the warm-up, in the unit of the observations. If the run has not settled, the mean of the whole
    run."""
    half: float
    """Half the width of the mean's 95 % interval, by batch means and Student's distribution; NaN if there is none."""
    batches: int
    """Number of batches of equal length."""
    correlation: float
    """Correlation of adjacent batch means. If it is far above 0, batches are too short and the interval is too
    narrow."""

    @property
    def doubtful(self) -> bool:
        """True if batches are correlated, so that the interval is too narrow. Longer runs or more seeds help."""
        return not math.isnan(self.correlation) and self.correlation > MOST_CORRELATED

    def __str__(self) -> str:
        if self.from_s is None:
            return "not settled in the first half of the run: use a longer run"
        interval = "" if math.isnan(self.half) else f" ± {self.half:.3g}"
        doubt = ", but neighbouring batches are correlated: use a longer run" if self.doubtful else ""
        return (
            f'settled after {self.from_s:.3g} s (MSER-5): measure = {{ from = "{shown(f"{self.from_s:.3g}")}s" }}; from there '
            f"{self.mean:.4g}{interval} ({self.batches} batches{doubt})"
        )


def mser(values: Floats) -> int | None:
    """Returns how many observations MSER-5 removes at the beginning; None if that is more than half.

    It removes the first d of n means of five observations each. d minimises the squared standard error of the mean of
    the rest, (sum of squared deviations) / (n - d)^2.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> climbs = np.concatenate([np.linspace(0, 10, 100), np.full(900, 10.0)]) + rng.normal(0, 0.5, 1000)
    >>> 80 <= mser(climbs) <= 120
    True
    """
    n = len(values) // GROUPED
    if n * GROUPED < FEWEST_SAMPLES:
        return None
    means = values[: n * GROUPED].reshape(n, GROUPED).mean(axis=1)
    # Sums of squared deviations of the last k = n - d means, for k from 1 to n.
    k = np.arange(1, n + 1, dtype=np.float64)
    from_the_end = means[::-1] - means.mean()
    deviations = np.cumsum(from_the_end**2) - np.cumsum(from_the_end) ** 2 / k
    # The last few means are not candidates, because they may vary little by chance, according to the source.
    error = (np.maximum(deviations, 0.0) / k**2)[GROUPED - 1 :][::-1]
    d = int(np.argmin(error))
    return d * GROUPED if 2 * d <= n else None


def batch_means(values: Floats) -> tuple[float, float, float]:
    """Returns the mean, half its 95 % interval by the means of 20 equal batches, and adjacent batches' correlation.

    Observations left over are dropped at the beginning, where the warm-up is.
    """
    length = len(values) // BATCHES
    if length == 0:
        return (float(values.mean()) if len(values) else math.nan), math.nan, math.nan
    means = values[len(values) - length * BATCHES :].reshape(BATCHES, length).mean(axis=1)
    around = means - means.mean()
    squares = float(around @ around)
    correlation = math.nan if squares == 0 else float(around[:-1] @ around[1:]) / squares
    half = half_width(BATCHES, float(means.std(ddof=1)))
    return float(means.mean()), half, correlation


def steady(times_s: Floats, values: Floats) -> Steady:
    """Finds when observations have settled, and the mean from then on.

    Each observation covers the time up to its timestamp.
    """
    discarded = mser(values)
    mean, half, correlation = batch_means(values[discarded or 0 :])
    from_s = None if discarded is None else float(times_s[discarded - 1]) if discarded else 0.0
    return Steady(from_s=from_s, mean=mean, half=half, batches=BATCHES, correlation=correlation)
