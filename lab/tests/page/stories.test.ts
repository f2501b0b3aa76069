import assert from "node:assert/strict";
import { test } from "node:test";
import { STORIES } from "../../src/stories/index.ts";
import type { Step } from "../../src/stories/story.ts";
import { local } from "../engine/local.ts";

const { engine } = await local();
const scenarios = await engine.scenarios();

type Run = Extract<Step, { kind: "run" }>;
const runs = STORIES.flatMap((story) =>
  story.steps.filter((s): s is Run => s.kind === "run").map((step) => ({ name: `${story.id}: ${step.title}`, step })),
);

test("there are seven stories and a free one, each with a unique name", () => {
  assert.equal(STORIES.length, 8);
  assert.equal(new Set(STORIES.map((s) => s.id)).size, 8);
  assert.equal(STORIES.filter((s) => s.steps.some((step) => step.kind === "free")).length, 1);
  for (const story of STORIES) {
    // Links only contain such names.
    assert.match(story.id, /^[a-z-]+$/);
    assert.equal(new Set(story.steps.map((s) => s.title)).size, story.steps.length);
  }
});

test("every setting of every story is a valid scenario, and no two of a step are equal", async () => {
  for (const { name, step } of runs) {
    const texts = new Set<string>();
    for (const variant of step.variants) {
      let text = scenarios[variant.base];
      assert.ok(text !== undefined, `${name}: ${variant.base} is not shipped`);
      for (const change of variant.changes ?? []) {
        text = await engine.edit(text, [...change.path], change.value);
      }
      const { faults } = await engine.check(text);
      assert.deepEqual(faults, [], `${name}, ${variant.name}`);
      texts.add(text);
    }
    assert.equal(texts.size, step.variants.length, name);
  }
});

test("guesses refer to existing runs, and their right answers are among the choices", () => {
  for (const { name, step } of runs) {
    const { guess } = step;
    if (guess.kind === "number") {
      assert.ok(step.variants[guess.variant] !== undefined && step.shown[guess.measure] !== undefined, name);
      assert.ok(guess.min < guess.max);
      continue;
    }
    for (const rising of [true, false]) {
      const means = step.variants.map((_, i) =>
        step.shown.map(() => (rising ? i + 1 : step.variants.length - i) / (step.variants.length + 1)),
      );
      const right = guess.right(
        means,
        means.map((of) => of.map((v) => [v, v, v])),
      );
      assert.ok(right.length > 0 && right.every((r) => guess.choices[r] !== undefined), name);
    }
  }
});

test("an answer contains the numbers of the runs", async () => {
  const first = runs[0];
  assert.ok(first !== undefined);
  const { answer } = await engine.run(scenarios["lan-tail-drop"] ?? "", 1);
  const means = [first.step.shown.map((s) => s.value(answer))];
  assert.ok(means[0]?.every((v) => Number.isFinite(v)));
  const values = means.map((of) => of.map((v) => [v]));
  assert.match(
    first.step.answer(means, values).join(" "),
    new RegExp(answer.efficiency.toFixed(2).replace(".", "\\.")),
  );
  const port = answer.ports.find((p) => p.name === answer.bottleneck);
  const busy = Number(port?.["utilisation"]);
  assert.ok(Math.abs((means[0]?.[2] ?? 0) - (1 - answer.efficiency / busy)) < 1e-12);
});
