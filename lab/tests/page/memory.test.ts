import assert from "node:assert/strict";
import { test } from "node:test";
import { history, type BufferColumns } from "../../src/engine/buffer.ts";
import { describe, describeMemory } from "../../src/page/see/sentence.ts";

/** Three steps at two instants: two at the first, one at the second. */
function columns(memory: BufferColumns["memory"]): BufferColumns {
  const none = new Proxy({}, { get: () => new Float64Array() });
  const refusal = Int32Array.of(-1, 0, -1);
  const steps = { time_s: Float64Array.of(1, 1, 2), kind: Int8Array.of(0, 1, 0), cell: new Int32Array(3) };
  const judgement = Int32Array.of(-1, -1, -1);
  const more = { vc: new Int32Array(3), frame: new Int32Array(3), occupancy: new Int32Array(3), judgement, refusal };
  const empty = { cells: none, frames: none, judgements: none, steps: { ...steps, ...more } };
  const kinds = ["admitted", "cut"];
  return { ...empty, port: "sw->a", capacity: 100, vcs: [], kinds, memory, cut_short: false } as unknown as BufferColumns;
}

const shared = {
  name: "sw",
  cells: 1000,
  queues: ["sw->a", "sw->b, priority 3"],
  steps: Int32Array.of(2, 3),
  held: Int32Array.of(400, 200, 401, 0),
  most: Float64Array.of(400.5, 400.5, 599, NaN),
  refusals: {
    queue: Int32Array.of(1),
    used: Int32Array.of(600),
    pool_cells: Int32Array.of(1000),
    shared: Int32Array.of(400),
    threshold: Float64Array.of(400.5),
    reason: { at: Int32Array.of(0), words: ["q_i would exceed alpha_i (B - Q)"] },
    queues: ["the queue of priority 3 at sw->b", "the queue of priority 0 at sw->a"],
    pools: ["sw/main", "sw/main"],
  },
};

test("each step shows the state of a shared memory after its instant", () => {
  const of = history(columns(shared), 0);
  const queues = [
    { name: "sw->a", held: 400, most: 400.5 },
    { name: "sw->b, priority 3", held: 200, most: 400.5 },
  ];
  const first = { name: "sw", cells: 1000, queues };
  assert.deepEqual([0, 1, 2].map((step) => of.memory(step)), [first, first, first]);
  assert.deepEqual(of.memory(3)?.queues.map(({ held }) => held), [401, 0]);
  assert.equal(history(columns(null), 0).memory(1), null);
});

test("the memory description names the queues that hold cells, with their thresholds", () => {
  const of = history(columns(shared), 0);
  const words = [2, 3].map((step) => of.memory(step)).map((memory) => memory && describeMemory(memory));
  assert.deepEqual(words, [
    "The shared memory: 600 of 1,000 cells; sw->a holds 400 of at most 400; sw->b, priority 3 holds 200 of at most 400.",
    "The shared memory: 401 of 1,000 cells; sw->a holds 401 of at most 599.",
  ]);
});

test("the reason for a lost cell names the exceeded memory limit with its numbers", () => {
  const of = history(columns(shared), 0);
  const [whole, lost, later] = [1, 2, 3].map((step) => describe(of, step, { policy: "ppd", formula: "" }).why);
  assert.deepEqual([whole, later], ["", ""]);
  assert.equal(
    lost,
    "The pool sw/main refused the cell because q_i would exceed alpha_i (B - Q): Q = 600 of B = 1,000 cells were " +
      "taken, q_i = 400 cells of these were from the queue of priority 0 at sw->a, and its threshold was 400.5.",
  );
});
