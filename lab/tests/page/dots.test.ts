import assert from "node:assert/strict";
import { test } from "node:test";
import { estimate } from "../../src/engine/statistics.ts";
import { spread } from "../../src/page/parts/dots.tsx";
import { count, share } from "../../src/page/parts/format.ts";

const words = (values: readonly (number | null)[], text = share): string =>
  spread({ label: "", values, estimate: estimate(values) }, text);

test("an interval is written out, unless all runs are equal", () => {
  assert.equal(words([0.2, 0.3, 0.4]), "95 %: 0.05 – 0.55");
  assert.equal(words([1, 1, 1]), "all equal");
  assert.equal(words([0, 0, 0], count), "all equal");
  assert.equal(words([0.5]), "");
});

test("runs without a value are excluded from the mean and its interval", () => {
  assert.equal(words([null, null]), "");
  const { n, mean } = estimate([null, 0.5, Number.NaN, 0.7]);
  assert.deepEqual([n, mean.toFixed(2)], [2, "0.60"]);
});
