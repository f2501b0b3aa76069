import assert from "node:assert/strict";
import { test } from "node:test";
import type { BufferHistory, Words } from "../../src/engine/api.ts";
import { local } from "./local.ts";

const { engine } = await local();
const scenario = (await engine.scenarios())["lan-epd"] ?? "";
const [from, to] = [2.1, 2.13];
const history = await engine.buffer(scenario, 18, "sw1->sw2", from, to);
const cells = await events("cells");
const frames = await events("frames");

async function events(kind: "cells" | "frames") {
  const kept = await engine.events(scenario, 18, { kinds: [kind], from, to, ports: ["sw1->sw2"] });
  const table = kept.tables[kind];
  assert.ok(table !== undefined && table.rows > 0);
  const word = (column: string, row: number) => {
    const { at, words } = table.columns[column] as Words;
    return words[at[row] ?? -1] ?? "";
  };
  const number = (column: string, row: number) => (table.columns[column] as Float64Array)[row] ?? NaN;
  return { rows: table.rows, word, number };
}

/** Replays the buffer step by step, in the simplest way. */
function* replayed(of: BufferHistory): Generator<{ vc: number; frame: number; index: number }[]> {
  let waiting = of.at(0).map(({ vc, frame, index }) => ({ vc, frame, index }));
  yield waiting;
  for (let row = 0; row < of.length; row += 1) {
    const step = of.kinds[of.steps.kind[row] ?? 0];
    const cell = { vc: of.steps.vc[row] ?? -1, frame: of.steps.frame[row] ?? -1, index: of.steps.index[row] ?? -1 };
    if (step === "admitted") {
      waiting = [...waiting, cell];
    } else if (step === "departed" || step === "pushed_out" || step === "dropped") {
      const at = waiting.findIndex((one) => one.frame === cell.frame && one.index === cell.index);
      assert.ok(at >= 0, `step ${row}: the cell that leaves was in the buffer`);
      waiting = waiting.filter((_, place) => place !== at);
    }
    yield waiting;
  }
}

test("the steps of the buffer history match the events of the port", () => {
  const known = new Set(["admitted", "lost", "departed"]);
  const expected = Array.from({ length: cells.rows }, (_, row) => row).filter((row) => known.has(cells.word("event", row)));
  const shown = Array.from(history.steps.kind, (kind, row) => ({ kind: history.kinds[kind], row })).filter(
    ({ kind }) => kind !== "refused" && kind !== "cut",
  );
  assert.equal(shown.length, expected.length);
  expected.forEach((event, at) => {
    const { kind, row } = shown[at] ?? { kind: undefined, row: -1 };
    const isDiscarded = /^its frame/.test(cells.word("reason", event));
    assert.equal(kind, isDiscarded ? "discarded" : cells.word("event", event));
    assert.equal(history.steps.time_s[row], cells.number("time_s", event));
    assert.equal(history.steps.index[row], cells.number("index", event));
    assert.equal(history.frames[history.steps.frame[row] ?? -1]?.number, cells.number("frame", event));
    assert.equal(history.vcs[history.steps.vc[row] ?? -1], cells.word("port_vc", event));
  });
});

test("the waiting cells after any step match a replay, in any order of calls", () => {
  const all = [...replayed(history)];
  assert.equal(all.length, history.length + 1);
  const order = Array.from({ length: 400 }, (_, n) => (n * 7919) % all.length);
  for (const step of [0, history.length, ...order]) {
    const waiting = history.at(step);
    assert.deepEqual(waiting.map(({ vc, frame, index }) => ({ vc, frame, index })), all[step], `after ${step} steps`);
    if (step > 0) {
      assert.equal(history.steps.occupancy[step - 1], waiting.length);
    }
    assert.equal(history.perVc(step).reduce((sum, of) => sum + of, 0), waiting.length);
  }
});

test("losing a cell by number loses the chosen cell, and the run before it is unchanged", async () => {
  const step = history.stepAt(2.11);
  const place = history.at(step).length - 1;
  const chosen = history.at(step)[place];
  const number = history.numberSent(step, place);
  assert.ok(chosen !== undefined && number !== null);
  const lossy = await engine.edit(scenario, ["link", "sw1->sw2", "lose"], [
    { vc: history.vcs[chosen.vc], cells: [number] },
  ]);
  const again = await engine.buffer(lossy, 18, "sw1->sw2", from, to);
  assert.deepEqual(again.at(step).map(({ vc, frame, index }) => ({ vc, frame, index })),
    history.at(step).map(({ vc, frame, index }) => ({ vc, frame, index })));
  const before = history.frames[chosen.frame];
  const after = again.frames[again.at(step)[place]?.frame ?? -1];
  assert.ok(Number.isNaN(before?.damaged_s), "it was intact");
  assert.equal(after?.damaged_at, "sw1->sw2");
  const left = again.steps.frame.findIndex((frame, row) =>
    again.kinds[again.steps.kind[row] ?? 0] === "departed" && frame === again.at(step)[place]?.frame
      && again.steps.index[row] === chosen.index);
  // The cell's loss is noticed when it should arrive, after its time on the link and the link's delay of 5 us.
  const late = after.damaged_s - (again.steps.time_s[left] ?? NaN);
  assert.ok(Math.abs(late - (53 * 8) / 155.52e6 - 5e-6) < 1e-9, String(late));
});

test("every decision matches the table of frames and has a sentence", () => {
  const rows = Array.from({ length: frames.rows }, (_, row) => row).filter((row) =>
    ["admitted", "refused"].includes(frames.word("event", row)),
  );
  assert.equal(history.judgements.length, rows.length);
  rows.forEach((row, at) => {
    const judgement = history.judgements[at];
    assert.equal(judgement?.admitted, frames.word("event", row) === "admitted");
    assert.equal(judgement?.occupancy, frames.number("occupancy", row));
    assert.equal(judgement?.threshold_cells, 800);
  });
  const refused = history.judgements.find(({ admitted }) => !admitted);
  assert.equal(
    refused?.sentence,
    "The port refuses a frame if X is above R: X = 805 cells were queued, the threshold was 800, " +
      "Y_i = 204 of them were from its VC, and N_a = 4 VCs had cells queued.",
  );
  const frame = history.frames[refused?.frame ?? -1];
  assert.deepEqual([frame?.number, frame?.fate, frame?.sequence, frame?.length], [627, "refused", 300032, 512]);
});

test("a frame that loses a cell is damaged from that time on, and not before", async () => {
  const tail = (await engine.scenarios())["lan-tail-drop"] ?? "";
  const of = await engine.buffer(tail, 1, "bottleneck", 0, 0.01);
  const cut = of.frames.findIndex(({ fate }) => fate === "cut");
  assert.ok(cut >= 0, "tail drop cuts frames");
  const { damaged_s, damaged_at } = of.frames[cut] ?? { damaged_s: NaN, damaged_at: "" };
  assert.equal(damaged_at, of.port);
  const when = of.stepAt(damaged_s);
  const seen = (step: number) => of.at(step).filter((cell) => cell.frame === cut);
  assert.ok(seen(when).length > 0 && seen(when).every((cell) => cell.damaged));
  const before = of.steps.time_s.findIndex((time) => time === damaged_s);
  assert.ok(seen(before).length > 0 && seen(before).every((cell) => !cell.damaged));
});

test("next() steps from loss to loss, forwards and backwards", () => {
  const forwards: number[] = [];
  for (let at = history.next(0, "loss", 1); at !== null; at = history.next(at, "loss", 1)) {
    forwards.push(at);
  }
  const backwards: number[] = [];
  for (let at = history.next(history.length + 1, "loss", -1); at !== null; at = history.next(at, "loss", -1)) {
    backwards.push(at);
  }
  assert.ok(forwards.length > 0);
  assert.deepEqual(backwards.reverse(), forwards);
  assert.equal(history.next(1, "cell", -1), 0);
  assert.equal(history.next(history.length, "cell", 1), null);
});
