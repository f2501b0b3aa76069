import assert from "node:assert/strict";
import { test } from "node:test";
import type { BufferHistory, Network } from "../../src/engine/api.ts";
import { kindName, tcpName } from "../../src/page/parts/names.ts";
import { counts, hasOwnTcp, unreported } from "../../src/page/see/lens.ts";
import { firstAt, thin } from "../../src/page/see/downsample.ts";
import { band, flowColour, line, valueAt, vcColours } from "../../src/page/see/paint.ts";
import { keyed, panned, zoomed, type Canvas } from "../../src/page/see/plot.tsx";
import { describe, describeCell } from "../../src/page/see/sentence.ts";
import { local } from "../engine/local.ts";

const { engine } = await local();

test("of a million points only as many are drawn as a screen can show, without losing peaks", () => {
  const n = 1_000_000;
  const times = Float64Array.from({ length: n }, (_, i) => i);
  const values = Float64Array.from({ length: n }, (_, i) => Math.sin(i / 1000));
  values[654_321] = 50;
  values[123_456] = -50;
  const kept = thin(times, values, 0, n, 800);
  assert.ok(kept.length <= 4 * 802);
  assert.ok(kept.includes(654_321) && kept.includes(123_456));
  assert.ok(kept.every((k, i) => i === 0 || k > (kept[i - 1] ?? 0)));
});

test("a plot of many points draws the first, smallest, largest and last of each pixel column", () => {
  const n = 50_000;
  // No point is at the edge of a column, where rounding would matter.
  const times = Float64Array.from({ length: n }, (_, i) => (i + 0.3 * Math.sin(i)) / 7);
  const values = Float64Array.from({ length: n }, (_, i) => ((i * 7919) % 1009) - (i % 13));
  for (const [from, to, columns] of [
    [0, n / 7, 100],
    [333.3, 6100.7, 313],
    [-500, n, 64],
  ] as const) {
    const width = (to - from) / columns;
    const expected = new Set<number>();
    const start = Math.max(0, firstAt(times, from) - 1);
    const end = Math.min(n, firstAt(times, to) + 1);
    for (let i = start; i < end; ) {
      const edge = from + (Math.floor(((times[i] ?? 0) - from) / width) + 1) * width;
      const column: number[] = [];
      for (; i < end && (column.length === 0 || (times[i] ?? 0) < edge); i += 1) {
        column.push(i);
      }
      const by = (sign: number) => column.reduce((a, b) => (sign * (values[b] ?? 0) > sign * (values[a] ?? 0) ? b : a));
      for (const one of [column[0], by(-1), by(1), column.at(-1)]) {
        expected.add(one ?? -1);
      }
    }
    assert.deepEqual(thin(times, values, from, to, columns), [...expected].sort((a, b) => a - b));
  }
});

test("a line of many points covers the range in each column, and continues across empty columns", () => {
  const filled: { x: number; top: number; bottom: number }[] = [];
  const lines: string[] = [];
  const context = {
    beginPath: () => undefined,
    stroke: () => undefined,
    fillRect: (x: number, y: number, _: number, height: number) => filled.push({ x, top: y, bottom: y + height }),
    moveTo: (x: number, y: number) => lines.push(`from ${x.toFixed(1)} ${y.toFixed(1)}`),
    lineTo: (x: number, y: number) => lines.push(`to ${x.toFixed(1)} ${y.toFixed(1)}`),
  } as unknown as CanvasRenderingContext2D;
  // A hundred columns: dense points up to 45 and from 60 to 99, and none between.
  const times = Float64Array.from({ length: 84_000 }, (_, i) => i / 1000 + (i < 45_000 ? 0 : 15));
  const values = Float64Array.from(times, (_, i) => (i === 44_999 ? 7 : i % 2));
  values[4321] = 9;
  const view = { from: 0, to: 100, columns: 100, top: 0, bottom: 100, scale: 1 };
  line({ ...view, context, x: (t) => t, y: (v) => 100 - v, colour: () => "" } as Canvas, times, values, "", true);
  assert.ok(filled.some(({ x, top }) => x === 3 || x === 4 ? top <= 91 : false), "the peak");
  assert.ok(filled.every(({ top, bottom }) => bottom > top));
  assert.ok(lines.join().includes("from 45.0 93.0,to 60.0 93.0,to 60.0 100.0"), lines.join());
  assert.ok(lines.join().endsWith(",to 100.0 99.0"), lines.join());
});

test("a band spans the extremes of every sample that overlaps a pixel column", () => {
  const drawn: { x: number; top: number; bottom: number }[] = [];
  const context = {
    fillRect: (x: number, top: number, _: number, height: number) => drawn.push({ x, top, bottom: top + height }),
  } as unknown as CanvasRenderingContext2D;
  // Samples at 0, 10, 20, 30: a burst up to 90 between 10 and 20, and a constant 5 cells elsewhere.
  const times = Float64Array.from([0, 10, 20, 30]);
  const low = Float64Array.from([5, 5, 2, 5]);
  const high = Float64Array.from([5, 5, 90, 5]);
  const paint = (from: number, to: number, columns: number): void => {
    const x = (t: number): number => ((t - from) / (to - from)) * columns;
    const view = { from, to, columns, top: 0, bottom: 100, scale: 1 };
    band({ ...view, context, x, y: (v) => 100 - v, colour: () => "" } as Canvas, times, low, high, "");
  };
  paint(0, 30, 30);
  assert.deepEqual([drawn[0]?.x, drawn.at(-1)?.x, drawn.length], [10, 19, 10]);
  assert.ok(drawn.every(({ top, bottom }) => top === 10 && bottom === 98));
  drawn.length = 0;
  // Three samples fall in one column.
  paint(0, 30, 1);
  assert.deepEqual(drawn, [{ x: 0, top: 10, bottom: 98 }]);
  drawn.length = 0;
  paint(12, 14, 4);
  assert.equal(drawn.length, 4, "a view within one sample");
});

test("a few points are all drawn, with one before and one after the view", () => {
  const times = Float64Array.from([0, 1, 2, 3, 4, 5]);
  assert.deepEqual(thin(times, times, 1.5, 3.5, 800), [1, 2, 3, 4]);
  assert.equal(firstAt(times, 2), 2);
  assert.equal(firstAt(times, 9), 6);
  assert.equal(valueAt(times, times, 2), 2);
  assert.equal(valueAt(times, times, 2.5), 2);
});

test("a view zooms around an instant and stays within the full range", () => {
  const all = [0, 10] as const;
  const [from, to] = zoomed({ view: [4, 6], all }, -1, 4);
  assert.ok(from === 4 && Math.abs(to - (4 + 2 / 1.5)) < 1e-12);
  assert.deepEqual(zoomed({ view: [1, 9], all }, 1, 5), [0, 10]);
  assert.deepEqual(panned({ view: [0, 2], all }, -1), [0, 2]);
  assert.deepEqual(panned({ view: [9, 10], all }, 1), [9, 10]);
});

test("keys move, shorten and lengthen a time range", () => {
  const all = [0, 10] as const;
  const of = { view: [4, 6], all } as const;
  const near = (key: string, from: number, to: number): void => {
    const view = keyed(key, of) ?? [NaN, NaN];
    assert.ok(Math.abs(view[0] - from) < 1e-9 && Math.abs(view[1] - to) < 1e-9, `${key}: ${String(view)}`);
  };
  near("ArrowRight", 4.3, 6.3);
  near("ArrowLeft", 3.7, 5.7);
  near("+", 5 - 2 / 3, 5 + 2 / 3);
  near("-", 3.5, 6.5);
  near("0", 0, 10);
  assert.equal(keyed("Enter", of), null);
  assert.equal(keyed("a", of), null);
});

test("cells lost for lack of room and cells discarded by the policy are counted separately", () => {
  const kinds = ["refused", "cut", "admitted", "lost", "discarded", "pushed_out", "dropped", "departed"] as const;
  const kind = Uint8Array.from([2, 0, 4, 4, 1, 3, 5, 6, 7, 7, 2]);
  const history = { kinds: [...kinds], steps: { kind } } as unknown as BufferHistory;
  assert.deepEqual(counts(history), { lost: 3, damaged: 1, discarded: 2, frames: 1 });
});

test("a connection has the same colour at every port", () => {
  const flows = [{ name: "a" }, { name: "b" }, { name: "c" }];
  const vcs = ["a", "b", "c"].flatMap((name, flow) => [
    { name, flow },
    { name: `${name}.ack`, flow },
  ]);
  const network = { vcs, flows } as unknown as Network;
  assert.deepEqual(vcColours(network, { vcs: ["c", "a"] }), [flowColour(2), flowColour(0)]);
  assert.deepEqual(vcColours(network, { vcs: ["b.ack"] }), [flowColour(1)]);
  assert.deepEqual(vcColours(network, { vcs: ["a", "merged"] }), [flowColour(0), flowColour(4)]);
});

test("a refused frame is described with the policy's numbers, and a cell with its frame", async () => {
  const toml = (await engine.scenarios())["lan-epd"] ?? "";
  const history = await engine.buffer(toml, 18, "sw1->sw2", 2.12, 2.1205);
  const refusal = history.judgements.find((j) => !j.admitted);
  assert.ok(refusal !== undefined);
  // The frame that `celltrain why` finds on the page docs/looking-inside.md.
  const i = Array.from(history.steps.frame).findIndex((frame, at) => {
    const number = history.frames[frame]?.number;
    return number === 627 && history.kinds[history.steps.kind[at] ?? 0] === "refused";
  });
  assert.ok(i >= 0);
  const words = describe(history, i + 1);
  assert.ok(words.bad);
  assert.match(words.what, /: tcp4’s frame 627 arrived and was discarded: 805 cells were waiting\./);
  assert.match(words.why, /X = 805/);
  assert.match(words.why, /threshold was 800/);
  assert.match(words.why, /Y_i = 204/);
  assert.match(describeCell(history, i + 1, 0), /^Position 1: cell \d+ of tcp\d’s frame [\d,]+, bytes [\d,]+ to [\d,]+\./);
  assert.match(describe(history, i + 2).what, /: Cell 1 of tcp4’s frame 627 was discarded with its frame: 805 cells/);
  assert.match(describe(history, 0).what, /Before the first/);
});

test("a policy that admits every frame has no sentence, and an admitted frame's sentence has the numbers", async () => {
  const all = await engine.scenarios();
  const of = async (name: string, from: string, to: string, policy: string): Promise<Set<string>> => {
    const toml = (all[name] ?? "").replace(from, to);
    const history = await engine.buffer(toml, 1, "bottleneck", 0, 0.01);
    const lost = Array.from(history.steps.kind, (kind, i) => (history.kinds[kind] === "lost" ? i + 1 : 0)).filter(Boolean);
    assert.ok(lost.length > 0, name);
    return new Set(lost.map((step) => describe(history, step, { policy, formula: "" }).why.replace(/: .*queued\./, ": ...")));
  };
  assert.deepEqual([...(await of("lan-tail-drop", "", "", "tail_drop"))], [""]);
  const epd = await of("lan-epd", "threshold = 800", "threshold = 1000", "epd");
  assert.ok(epd.has("The policy let the frame begin: ... But the buffer was full."), [...epd].join());
});

test("protocol stacks are named, and the page says which values the stacks do not report", async () => {
  const scenarios = await engine.scenarios();
  const words = "smoltcp does not report its congestion windows and timeouts.";
  for (const [name, tcp, own, silent] of [
    ["lan-smoltcp", "smoltcp", false, words],
    ["smoltcp-and-reno", "Reno, smoltcp (rules: paper)", true, words],
    ["lan-epd", `${kindName("vanilla")} (rules: paper)`, true, ""],
  ] as const) {
    const { network, defaults } = await engine.check(scenarios[name] ?? "");
    assert.ok(network !== null, name);
    assert.deepEqual([tcpName(defaults), hasOwnTcp(network), unreported(network)], [tcp, own, silent], name);
  }
});
