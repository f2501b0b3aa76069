import assert from "node:assert/strict";
import { test } from "node:test";
import { setBuffer, setSources, setTcp, type Edit } from "../../src/page/compare/for-all.ts";
import { knobs } from "../../src/page/compare/knobs.ts";
import { printed } from "../../src/page/compare/printed.ts";
import type { Value } from "../../src/page/form/schema.ts";
import { axis, labels } from "../../src/page/parts/plane.tsx";
import { local } from "../engine/local.ts";

const { engine } = await local();
const scenarios = await engine.scenarios();

test("every slider of every shipped scenario can be moved to both ends", async () => {
  let moved = 0;
  for (const [name, text] of Object.entries(scenarios)) {
    const { root } = await engine.document(text);
    for (const knob of knobs(root as { [key: string]: Value })) {
      assert.ok(knob.min <= knob.value && knob.value <= knob.max, `${name}: ${knob.label}`);
      for (const value of [knob.min, knob.max]) {
        const after = await engine.edit(text, [...knob.path], knob.write(value));
        const again = knobs((await engine.document(after)).root as { [key: string]: Value });
        const same = again.find((k) => k.path.join(".") === knob.path.join("."));
        assert.equal(same?.value, value, `${name}: ${knob.label}`);
        moved += 1;
      }
    }
  }
  assert.ok(moved > 100);
});

test("a published point is found by a scenario's contents, not by its name, seed or comments", async () => {
  const rows = await engine.papers();
  const text = (scenarios["lan-epd"] ?? "")
    .replace(/^#.*$/gm, "")
    .replace(/name = .*/, 'name = "x"\nseed = 7')
    .replace(/seed = 1\n/, "");
  const [point] = await printed(engine, rows, text);
  // 96-1269, Tables 2 and 3: LAN, 5 sources, 1000 cells, EPD.
  assert.equal(point?.efficiency, 0.49);
  assert.equal(point?.fairness, 0.57);
  assert.match(point?.where ?? "", /af-96-1269, table 2 and af-96-1269, table 3/);
  // The paper reports FBA with R = 0.9 and Z = 0.8 twice, with different numbers: each is a separate point.
  const policy = { fba: { threshold: 0.9, z: 0.8 } };
  const fba = await engine.edit(scenarios["lan-selective-drop"] ?? "", ["port", "bottleneck", "policy"], policy);
  assert.deepEqual(await printed(engine, rows, fba), [
    { efficiency: 0.88, fairness: 0.98, where: "af-96-1269, table 2 and af-96-1269, table 3" },
    { efficiency: 0.66, fairness: 0.93, where: "af-96-1269, table 5" },
  ]);
  const other = await engine.edit(text, ["port", "bottleneck", "policy", "epd", "threshold"], 801);
  assert.deepEqual(await printed(engine, rows, other), []);
});

test("a common buffer size scales thresholds in cells, and keeps thresholds given as fractions", async () => {
  const apply = async (name: string, edits: (root: { [key: string]: Value }) => readonly Edit[]): Promise<string> => {
    let text = scenarios[name] ?? "";
    const { root } = await engine.document(text);
    for (const { path, value } of edits(root as { [key: string]: Value })) {
      text = await engine.edit(text, [...path], value);
    }
    assert.deepEqual((await engine.check(text)).faults, []);
    return text;
  };
  assert.match(await apply("lan-epd", (root) => setBuffer(root, 500)), /buffer = 500[\s\S]*threshold = 400/);
  assert.match(await apply("lan-selective-drop", (root) => setBuffer(root, 500)), /buffer = 500[\s\S]*threshold = 0.9/);
  assert.match(await apply("lan-ppd", (root) => setSources(root, 15)), /sources = 15/);
  const sack = await apply("lan-epd", (root) => setTcp(root, "sack"));
  assert.match(sack, /sack[\s\S]*timer_granularity = "100ms"/);
  assert.doesNotMatch(sack, /vanilla/);
  const reno = await apply("lan-smoltcp", (root) => setTcp(root, "reno"));
  assert.match(reno, /^\[tcp\.reno\]$/m);
  assert.doesNotMatch(reno, /\[stack/);
});

test("labels stay inside the plot and overlap neither each other nor a data point", () => {
  const one = (name: string, x: number, y: number) => ({ name, whole: name, colour: "", x, y });
  for (const anchors of [
    ["lan-tail-drop", "lan-ppd", "lan-epd", "lan-selective-drop"].map((name) => one(name, 440, 20)),
    Array.from({ length: 8 }, (_, i) => one(`Z = ${String(i)}`, 250 + i, 14 + i)),
    Array.from({ length: 8 }, (_, i) => one("a policy of twenty-four l".slice(0, 24) + String(i), 60, 400)),
  ]) {
    const found = labels(anchors);
    for (const [i, l] of found.entries()) {
      assert.ok(l.left >= 50 && l.left + l.width <= 460 && l.top >= 0 && l.top <= 430, JSON.stringify(l));
      for (const other of found.slice(i + 1)) {
        const apart = Math.abs(l.top - other.top) >= 16 || l.left + l.width <= other.left || other.left + other.width <= l.left;
        assert.ok(apart, `${JSON.stringify(l)} ${JSON.stringify(other)}`);
      }
    }
  }
});

test("an axis starts at one half only if no value is lower", () => {
  assert.equal(axis([0.5, 0.9]).ticks[0], 0.5);
  assert.equal(axis([0.49, 0.9]).ticks[0], 0);
  assert.equal(axis([]).ticks[0], 0);
  assert.deepEqual([axis([0.75]).at(0.75), axis([0.25]).at(0.25)], [0.5, 0.25]);
});
