/** Means with confidence intervals. Tests compare them with the Python implementation. */

import type { Estimate } from "./api.ts";

/** Returns the mean; NaN if `values` is empty. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A measure of one run. Null and NaN mean undefined, such as the fairness of a run that delivered no data. */
export type Value = number | null;

/** Returns the mean of the defined values with its 95 % interval by Student's t. */
export function estimate(values: readonly Value[]): Estimate {
  const numbers = values.filter((value): value is number => Number.isFinite(value));
  const n = numbers.length;
  const middle = mean(numbers);
  const extremes = { min: Math.min(...numbers), max: Math.max(...numbers) };
  if (n < 2) {
    return { n, mean: middle, low: null, high: null, ...extremes };
  }
  const variance = numbers.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (n - 1);
  const half = student(n - 1) * Math.sqrt(variance / n);
  return { n, mean: middle, low: middle - half, high: middle + half, ...extremes };
}

/** Returns each value minus the value of the baseline for the same seed. */
export function differences(of: readonly Value[], baseline: readonly Value[]): number[] {
  return of.map((value, seed) => (value ?? NaN) - (baseline[seed] ?? NaN));
}

/** Returns the 97.5 % quantile of Student's t with `freedom` degrees of freedom. */
export function student(freedom: number): number {
  let [low, high] = [0, 1];
  while (below(high, freedom) < 0.975) {
    high *= 2;
  }
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (below(middle, freedom) < 0.975) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (low + high) / 2;
}

/** Returns the probability that Student's t is below `t`, for t >= 0 (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
function below(t: number, freedom: number): number {
  const angle = Math.atan(t / Math.sqrt(freedom));
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const isOdd = freedom % 2 === 1;
  let [term, sum] = [isOdd ? cosine : 1, 0];
  for (let k = isOdd ? 3 : 2; k <= freedom; k += 2) {
    sum += term;
    term *= (cosine * cosine * (k - 1)) / k;
  }
  const inside = isOdd ? (2 / Math.PI) * (angle + sine * sum) : sine * sum;
  return 0.5 + inside / 2;
}
