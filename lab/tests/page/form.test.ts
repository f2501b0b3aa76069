import assert from "node:assert/strict";
import { test } from "node:test";
import { essentials } from "../../src/page/form/essentials.ts";
import { entryName, keyName, kindName } from "../../src/page/parts/names.ts";
import { about } from "../../src/page/run/gallery.tsx";
import { byTopic } from "../../src/page/run/topics.ts";
import { Shape, type Choice, type Schema, type Value } from "../../src/page/form/schema.ts";
import { local } from "../engine/local.ts";

const { engine } = await local();
const shape = new Shape((await engine.schema()) as Schema);
const scenarios = await engine.scenarios();

/** Walks through a scenario's values along the form's fields. Returns the keys without a field. */
function walked(schema: Schema, values: Record<string, unknown>, path: string): string[] {
  const fields = shape.fields(schema);
  return Object.entries(values).flatMap(([key, value]) => {
    const field = fields.find((f) => f.key === key);
    if (field === undefined) {
      return [`${path}.${key}`];
    }
    const inner = value as Record<string, unknown>;
    switch (field.kind) {
      case "table":
        return walked(field.schema, inner, `${path}.${key}`);
      case "named":
        return Object.entries(inner).flatMap(([name, one]) =>
          walked(field.schema, one as Record<string, unknown>, `${path}.${key}.${name}`),
        );
      case "choice":
        return Object.entries(inner).flatMap(([name, one]) => {
          const choice = field.choices.find((c) => c.name === name);
          return choice === undefined
            ? [`${path}.${key}.${name}`]
            : walked(choice.schema, one as Record<string, unknown>, `${path}.${key}.${name}`);
        });
      default:
        return [];
    }
  });
}

test("every key of every shipped scenario has a field in the form", async () => {
  for (const [name, text] of Object.entries(scenarios)) {
    const { root } = await engine.document(text);
    assert.ok(root !== null, name);
    assert.deepEqual(walked(shape.root, root, name), []);
  }
});

test("each form field has a unit, range and default, and shows whether it is required", () => {
  const port = shape.fields(shape.root).find((f) => f.key === "port");
  assert.ok(port?.kind === "named");
  const policy = shape.fields(port.schema).find((f) => f.key === "policy");
  assert.ok(policy?.kind === "choice" && policy.required);
  const selective = policy.choices.find((c) => c.name === "selective_drop");
  assert.ok(selective !== undefined);
  const z = shape.fields(selective.schema).find((f) => f.key === "z");
  assert.ok(z?.kind === "number" && z.least === 0 && z.initial === 0.8 && !z.required);
  const epd = policy.choices.find((c) => c.name === "epd");
  const threshold = epd === undefined ? undefined : shape.fields(epd.schema)[0];
  assert.ok(threshold?.kind === "number-or-text" && !threshold.required && threshold.initial === 0.8);
  assert.equal(threshold.hint, "for example 0.8, 80%, 800, buffer - 200 cells");
});

test("a field has a suitable example, unless its default is text and serves as one", () => {
  const hint = (of: Schema, key: string): string => {
    const field = shape.fields(of).find((f) => f.key === key);
    assert.ok(field?.kind === "text", key);
    return field.hint;
  };
  assert.equal(hint(shape.root, "duration"), "for example 10s");
  const tcp = shape.fields(shape.root).find((f) => f.key === "tcp");
  const reno = tcp?.kind === "choice" ? tcp.choices.find((c) => c.name === "reno") : undefined;
  assert.ok(reno !== undefined);
  assert.equal(hint(reno.schema, "timer_granularity"), "", "the default is 100ms");
});

test("a policy chosen in the form starts with values that the checker accepts", async () => {
  const port = shape.fields(shape.root).find((f) => f.key === "port");
  assert.ok(port?.kind === "named");
  const policy = shape.fields(port.schema).find((f) => f.key === "policy");
  assert.ok(policy?.kind === "choice");
  const path = ["port", "bottleneck", "policy"];
  for (const choice of policy.choices.filter((c) => c.name !== "python")) {
    const text = await engine.edit(scenarios["lan-epd"] ?? "", path, { [choice.name]: shape.start(choice) });
    const { faults } = await engine.check(text);
    const { root } = await engine.document(text);
    const port = (root?.["port"] as Record<string, Record<string, unknown>>)["bottleneck"];
    assert.deepEqual(Object.keys(port?.["policy"] as object), [choice.name]);
    // All faults are at keys of this policy whose values are still missing.
    assert.ok(
      faults.every((f) => f.key.startsWith(`port.bottleneck.policy.${choice.name}`)),
      `${choice.name}: ${faults.map((f) => f.message).join("; ")}`,
    );
  }
});

test("five settings come first in every shipped scenario: sources, duration, TCP or stack, policy and buffer", async () => {
  for (const [name, text] of Object.entries(scenarios)) {
    const { root } = await engine.document(text);
    const keys = essentials(shape, root as { [key: string]: Value }).map(({ field }) => field.key);
    // Ports without a table in a shared memory have no policy of their own.
    const transport = "stack" in (root as object) ? "stack" : "tcp";
    const expected = ["duration", transport, ...("port" in (root as object) ? ["policy"] : [])];
    assert.ok(expected.every((key) => keys.includes(key)), `${name}: ${keys.join()}`);
    assert.ok(keys.length <= 5, name);
  }
  const { root } = await engine.document(scenarios["lan-epd"] ?? "");
  assert.deepEqual(
    essentials(shape, root as { [key: string]: Value }).map(({ path }) => path.join(".")),
    ["topology.n_source.sources", "duration", "tcp", "port.bottleneck.policy", "port.bottleneck.buffer"],
  );
});

test("no label or option shows a key as it is written in the text", () => {
  const seen = new Set<Schema>();
  const walk = (schema: Schema): void => {
    if (seen.has(schema)) {
      return;
    }
    seen.add(schema);
    for (const field of shape.fields(schema)) {
      const label = keyName(field.key);
      assert.doesNotMatch(label, /_|^(Tcp|Mss|Abr|Vc|Gfr|Rto|[a-z])/, label);
      if (field.kind === "choice") {
        for (const choice of field.choices) {
          assert.doesNotMatch(kindName(choice.name), /_|^(?!smoltcp$)[a-z]/, choice.name);
          walk(choice.schema);
        }
      } else if (field.kind === "table" || field.kind === "named") {
        walk(field.schema);
      }
    }
  };
  walk(shape.root);
  assert.ok(seen.size > 40);
  assert.equal(entryName("edge"), "an edge device");
});

test("every shipped scenario has one topic, and no description refers to another scenario", () => {
  const names = Object.keys(scenarios);
  assert.deepEqual(
    byTopic(names)
      .flatMap((topic) => topic.names)
      .sort(),
    [...names].sort(),
  );
  assert.equal(byTopic(names)[0]?.names[0], "lan-tail-drop");
  for (const name of names) {
    const text = about(scenarios[name] ?? "");
    assert.match(text, /^[A-Z].*[.?]$/s, name);
    assert.doesNotMatch(text, /^The same|\.toml/, `${name}: ${text}`);
  }
});

test("choosing another TCP keeps the settings that both TCPs have; choosing another policy does not", async () => {
  const choices = (key: string): readonly Choice[] => {
    const field = shape.fields(shape.root).find((f) => f.key === key);
    return field?.kind === "choice" ? field.choices : [];
  };
  const { root } = await engine.document(scenarios["wan-epd"] ?? "");
  const settings = (root?.["tcp"] as { vanilla: Record<string, Value> }).vanilla;
  assert.equal(settings["rules"], "paper");
  for (const choice of choices("tcp")) {
    assert.deepEqual(shape.kept(choice, settings), { ...shape.start(choice), ...settings }, choice.name);
    assert.equal("no such key" in shape.kept(choice, { "no such key": 1 }), false);
  }
});
