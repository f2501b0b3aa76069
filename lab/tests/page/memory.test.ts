import assert from "node:assert/strict";
import { test } from "node:test";
import { history, type BufferColumns } from "../../src/engine/buffer.ts";
import { describeMemory } from "../../src/page/see/sentence.ts";

/** Three steps at two instants: two at the first, one at the second. */
function columns(memory: BufferColumns["memory"]): BufferColumns {
  const none = new Proxy({}, { get: () => new Float64Array() });
  const steps = { time_s: Float64Array.of(1, 1, 2), kind: new Int8Array(3), cell: new Int32Array(3) };
  const empty = { cells: none, frames: none, judgements: none, steps: { ...steps, occupancy: new Int32Array(3) } };
  return { ...empty, port: "sw->a", capacity: 100, vcs: [], kinds: ["admitted"], memory, cut_short: false } as unknown as BufferColumns;
}

const shared = {
  cells: 1000,
  queues: ["sw/sw->a/0", "sw/sw->b/3"],
  steps: Int32Array.of(2, 3),
  held: Int32Array.of(400, 200, 401, 0),
  most: Float64Array.of(400.5, 400.5, 599, NaN),
};

test("a shared memory has the state after the instant of each step", () => {
  const of = history(columns(shared), 0);
  const first = { cells: 1000, queues: [{ name: "sw->a", held: 400, most: 400.5 }, { name: "sw->b/3", held: 200, most: 400.5 }] };
  assert.deepEqual([0, 1, 2].map((step) => of.memory(step)), [first, first, first]);
  assert.deepEqual(of.memory(3)?.queues.map(({ held }) => held), [401, 0]);
  assert.equal(history(columns(null), 0).memory(1), null);
});

test("a sentence names the queues that hold cells, with their thresholds", () => {
  const of = history(columns(shared), 0);
  const words = [2, 3].map((step) => describeMemory(of.memory(step) ?? { cells: 0, queues: [] }));
  assert.deepEqual(words, [
    "The shared memory: 600 of 1,000 cells; sw->a holds 400 of at most 400; sw->b/3 holds 200 of at most 400.",
    "The shared memory: 401 of 1,000 cells; sw->a holds 401 of at most 599.",
  ]);
});
