import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, estimate, student } from "../../src/engine/statistics.ts";

test("Student's quantiles match the tables", () => {
  // scipy.stats.t.ppf(0.975, n)
  const known: [number, number][] = [
    [1, 12.706204736174698],
    [2, 4.302652729749462],
    [4, 2.7764451051977934],
    [9, 2.262157162798205],
    [29, 2.045229642132703],
    [200, 1.9718962236316089],
  ];
  for (const [freedom, quantile] of known) {
    assert.ok(Math.abs(student(freedom) - quantile) < 1e-9, `${freedom}: ${student(freedom)}`);
  }
});

test("an estimate has mean, interval and extremes, but no interval for a single value", () => {
  const of = estimate([1, 2, 3, 4]);
  assert.equal(of.mean, 2.5);
  // 2.5 -+ 3.182446305284263 * 1.2909944487358056 / 2
  assert.ok(Math.abs((of.low ?? NaN) - 0.4457397432) < 1e-9);
  assert.ok(Math.abs((of.high ?? NaN) - 4.5542602567) < 1e-9);
  assert.deepEqual([of.n, of.min, of.max], [4, 1, 4]);
  assert.deepEqual(estimate([7]), { n: 1, mean: 7, low: null, high: null, min: 7, max: 7 });
  assert.equal(estimate([1, NaN, 3]).n, 2);
});

test("differences are paired by seed", () => {
  assert.deepEqual(differences([3, 5], [1, 1]), [2, 4]);
});
