import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { STORIES } from "../../src/stories/index.ts";
import { setTcp } from "../../src/page/compare/for-all.ts";
import { found } from "../../src/page/learn/learn.tsx";
import { textOf } from "../../src/page/learn/setting.ts";
import { tcpName } from "../../src/page/parts/names.ts";
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
    // Links contain only names of this kind.
    assert.match(story.id, /^[a-z-]+$/);
    assert.equal(new Set(story.steps.map((s) => s.title)).size, story.steps.length);
  }
});

test("every setting of every story is a valid scenario, and no two of a step are equal", async () => {
  for (const { name, step } of runs) {
    const texts = new Set<string>();
    for (const variant of step.variants) {
      assert.ok(variant.base in scenarios, `${name}: ${variant.base} is not shipped`);
      const text = await textOf(engine, scenarios, variant);
      const { faults } = await engine.check(text);
      assert.deepEqual(faults, [], `${name}, ${variant.name}`);
      texts.add(text);
    }
    assert.equal(texts.size, step.variants.length, name);
  }
});

test("a setting differs from the shipped scenario only in its changes, and keeps the settings and rules of its TCP", async () => {
  for (const { name, step } of runs) {
    for (const variant of step.variants) {
      const text = await textOf(engine, scenarios, variant);
      const { root: mine } = await engine.document(text);
      const { root: shipped } = await engine.document(scenarios[variant.base] ?? "");
      assert.ok(mine !== null && shipped !== null);
      const expected = structuredClone(shipped) as Record<string, unknown>;
      const edits = variant.tcp === undefined ? [] : setTcp(expected as never, variant.tcp);
      for (const { path, value } of [...edits, ...(variant.changes ?? [])]) {
        const parents = path.slice(0, -1);
        const table = parents.reduce((at, key) => (at[key] ??= {}) as Record<string, unknown>, expected);
        table[path.at(-1) ?? ""] = value;
      }
      assert.deepEqual(mine, expected, `${name}, ${variant.name}`);
      // A change of the whole table of a TCP would lose its rules.
      const [tcp, before] = [mine, shipped].map((root) => Object.values((root["tcp"] ?? {}) as object)[0] as Settings);
      const isChanged = (key: string): boolean => (variant.changes ?? []).some((c) => c.path[0] === "tcp" && c.path.at(-1) === key);
      for (const [key, value] of Object.entries(before ?? {})) {
        assert.ok(isChanged(key) || tcp?.[key] === value, `${name}, ${variant.name}: tcp.${key}`);
      }
    }
  }
});

type Settings = Readonly<Record<string, unknown>> | undefined;

test("the network of a step names the TCPs of all its settings, and their rules", async () => {
  const of = async (id: string, title: string): Promise<string> => {
    const step = runs.find(({ name }) => name === `${id}: ${title}`)?.step;
    const texts = await Promise.all((step?.variants ?? []).map((v) => textOf(engine, scenarios, v)));
    return tcpName(...(await Promise.all(texts.map((text) => engine.check(text)))).map(({ defaults }) => defaults));
  };
  assert.equal(await of("double", "Five that double"), "Vanilla: no fast retransmit, Reno, SACK (rules: paper)");
  assert.equal(await of("tie", "In turns, or at random"), "Vanilla: no fast retransmit (rules: paper)");
});

test("an unknown story address opens the nearest story and step, and is reported", () => {
  const at = (address: string): unknown[] => {
    const { story, step, isKnown } = found(address);
    return [story?.id, step, isKnown];
  };
  for (const address of ["", "learn", "learn/"]) {
    assert.deepEqual(at(address), [undefined, 1, true], address);
  }
  assert.deepEqual(at("learn/double"), ["double", 1, true]);
  assert.deepEqual(at("learn/double/2"), ["double", 2, true]);
  assert.deepEqual(at("learn/double/9"), ["double", 3, false]);
  assert.deepEqual(at("learn/double/x"), ["double", 1, false]);
  assert.deepEqual(at("learn/double/2/1"), ["double", 2, false]);
  for (const address of ["learn/duoble/2", "lern", "double/2"]) {
    assert.deepEqual(at(address).slice(0, 3).toSpliced(1, 1), [undefined, false], address);
  }
});

test("each story's address is on the page of its lesson", () => {
  const folder = "../docs/lessons";
  const text = readdirSync(folder).map((page) => readFileSync(`${folder}/${page}`, "utf8")).join("\n");
  const named = [...text.matchAll(/`lab\.html#\/(learn\/[^`]*)`/g)].map(([, address]) => found(address ?? ""));
  assert.ok(named.every(({ isKnown }) => isKnown));
  assert.deepEqual(named.map(({ story }) => story?.id).sort(), STORIES.flatMap(({ id }) => (id === "own" ? [] : [id])).sort());
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
