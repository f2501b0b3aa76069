import assert from "node:assert/strict";
import { test } from "node:test";
import { knobs } from "../../src/page/compare/knobs.ts";
import { printed } from "../../src/page/compare/printed.ts";
import type { Value } from "../../src/page/form/schema.ts";
import { local } from "../engine/local.ts";

const { engine } = await local();
const scenarios = await engine.scenarios();

test("every knob of every shipped scenario can be turned to both its ends", async () => {
  let turned = 0;
  for (const [name, text] of Object.entries(scenarios)) {
    const { root } = await engine.document(text);
    for (const knob of knobs(root as { [key: string]: Value })) {
      assert.ok(knob.min <= knob.value && knob.value <= knob.max, `${name}: ${knob.label}`);
      for (const value of [knob.min, knob.max]) {
        const after = await engine.edit(text, [...knob.path], knob.write(value));
        const again = knobs((await engine.document(after)).root as { [key: string]: Value });
        const same = again.find((k) => k.path.join(".") === knob.path.join("."));
        assert.equal(same?.value, value, `${name}: ${knob.label}`);
        turned += 1;
      }
    }
  }
  assert.ok(turned > 100);
});

test("a paper's printed point is found by what a scenario is, not by its name, seed or comments", async () => {
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
  // The paper prints FBA with R = 0.9 and Z = 0.8 twice, with different numbers: each is a point of its own.
  const policy = { fba: { threshold: 0.9, z: 0.8 } };
  const fba = await engine.edit(scenarios["lan-selective-drop"] ?? "", ["port", "bottleneck", "policy"], policy);
  assert.deepEqual(await printed(engine, rows, fba), [
    { efficiency: 0.88, fairness: 0.98, where: "af-96-1269, table 2 and af-96-1269, table 3" },
    { efficiency: 0.66, fairness: 0.93, where: "af-96-1269, table 5" },
  ]);
  const other = await engine.edit(text, ["port", "bottleneck", "policy", "epd", "threshold"], 801);
  assert.deepEqual(await printed(engine, rows, other), []);
});
