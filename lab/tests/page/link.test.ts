import assert from "node:assert/strict";
import { test } from "node:test";
import { LinkFault, MOST_CHARACTERS, MOST_LINES, fromFragment, toFragment } from "../../src/page/link/link.ts";

const shared = {
  toml: 'name = "<b>ü</b>"\n# …\n',
  seed: 18,
  seeds: 20,
  place: "learn/one-cell/2",
  settings: [],
  formula: "",
  view: null,
};

/** Packs any object into a fragment, like `toFragment`. */
async function packed(value: unknown): Promise<string> {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `#v1.${Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url")}`;
}

test("a link preserves the whole scenario, its seeds and its place", async () => {
  assert.deepEqual(await fromFragment(await toFragment(shared)), shared);
});

test("a link contains the settings of a comparison and the formula of a custom policy", async () => {
  const settings = [
    { name: "EPD", toml: "a = 1" },
    { name: "EPD (2)", toml: "a = 2" },
  ];
  const all = { ...shared, place: "compare", settings, formula: "X < 0.5 * K" };
  assert.deepEqual(await fromFragment(await toFragment(all)), all);
  for (const bad of [5, [5], [null], [{ name: "x" }], [{ name: 1, toml: "" }], Array(9).fill(settings[0])]) {
    await assert.rejects(fromFragment(await packed({ ...shared, settings: bad })), /does not contain a scenario/);
  }
  await assert.rejects(fromFragment(await packed({ ...shared, formula: 1 })), /does not contain a scenario/);
  const long = await fromFragment(await packed({ ...shared, settings: [{ name: "n".repeat(5000), toml: "" }] }));
  assert.equal(long.settings[0]?.name.length, 120);
});

test("a link to the microscope contains the port, the window and the step", async () => {
  const view = { port: "sw1->sw2", from: 2.12, to: 2.132, step: 4211 };
  const all = { ...shared, place: "inside", view };
  assert.deepEqual(await fromFragment(await toFragment(all)), all);
  for (const bad of [5, "x", [], {}, { port: 1 }, { from: -1 }, { to: 2 }, { to: "3" }, { step: -1 }, { step: 0.5 }]) {
    const whole = typeof bad === "object" && !Array.isArray(bad) && "port step from to".includes(Object.keys(bad)[0] ?? "?");
    await assert.rejects(fromFragment(await packed({ ...shared, view: whole ? { ...view, ...bad } : bad })), /does not contain a scenario/);
  }
});

test("a link with half a character gets a readable message", async () => {
  const half = "name = \"\ud83d\"";
  const settings = [{ name: "EPD", toml: half }];
  const view = { port: "sw1->\udc00", from: 0, to: 1, step: 0 };
  for (const bad of [{ toml: half }, { formula: half }, { settings }, { view }]) {
    await assert.rejects(fromFragment(await packed({ ...shared, ...bad })), /half a character.*Ask for it again/);
  }
  const whole = { ...shared, toml: 'name = "\ud83d\ude00"' };
  assert.deepEqual(await fromFragment(await toFragment(whole)), whole);
});

test("a link from before links contained settings is read", async () => {
  const { toml, seed, seeds, place } = shared;
  assert.deepEqual(await fromFragment(await packed({ toml, seed, seeds, place })), shared);
});

test("a link contains only characters that need no escaping in an address", async () => {
  const text = Array.from({ length: 3000 }, (_, i) => String.fromCharCode(33 + ((i * 7919) % 90))).join("");
  assert.match(await toFragment({ ...shared, toml: text }), /^#v1\.[A-Za-z0-9_-]+$/);
});

test("a link truncated at any position is reported as truncated", async () => {
  const whole = await toFragment(shared);
  for (let end = 5; end < whole.length; end += 3) {
    await assert.rejects(
      fromFragment(whole.slice(0, end)),
      (e) => e instanceof LinkFault && /truncated/.test(e.message),
    );
  }
});

test("a link of another version is distinguished from an unrelated fragment", async () => {
  await assert.rejects(fromFragment("#v2.abc"), /another version of the lab \(link format 2/);
  await assert.rejects(fromFragment("#chapter-3"), /contains no scenario/);
});

test("the contents of a link are validated field by field", async () => {
  await assert.rejects(fromFragment(await packed([1, 2])), /does not contain a scenario/);
  await assert.rejects(fromFragment(await packed({ ...shared, toml: 5 })), /does not contain a scenario/);
  for (const seeds of [0, 201, 1.5, "5", null]) {
    await assert.rejects(fromFragment(await packed({ ...shared, seeds })), /1 to 200/);
  }
  await assert.rejects(fromFragment(await packed({ ...shared, seed: -1 })), /seeds/);
  const most = Number.MAX_SAFE_INTEGER;
  await assert.rejects(
    fromFragment(await packed({ ...shared, seed: most, seeds: 2 })),
    /the last is larger than 2\^53 - 1/,
  );
  assert.equal((await fromFragment(await packed({ ...shared, seed: most, seeds: 1 }))).seed, most);
  const elsewhere = await fromFragment(await packed({ ...shared, place: "javascript:alert(1)" }));
  assert.equal(elsewhere.place, "");
});

test("a scenario too large for a link gets a message, and a small link cannot decompress without limit", async () => {
  await assert.rejects(toFragment({ ...shared, toml: "#".repeat(MOST_CHARACTERS + 1) }), /Download it as a file/);
  // Any link that can be created can be read, up to the last character and line.
  const full = { ...shared, toml: "é".repeat(MOST_CHARACTERS - 1) };
  assert.equal((await fromFragment(await toFragment({ ...full, formula: "" }))).toml, full.toml);
  const bomb = await packed({ ...shared, toml: " ".repeat(20 * MOST_CHARACTERS) });
  assert.ok(bomb.length < 30_000);
  const large = (e: unknown): boolean =>
    e instanceof LinkFault && /link is too large/.test(e.message);
  await assert.rejects(fromFragment(bomb), large);
  await assert.rejects(fromFragment(await packed({ ...shared, toml: " ".repeat(MOST_CHARACTERS + 1) })), large);
  await assert.rejects(fromFragment(`#v1.${"A".repeat(20 * MOST_CHARACTERS)}`), large);
});

// Regression: a link of 300 characters made the page draw 200,000 lines, which took minutes.
test("a short link cannot contain more lines than the page draws", async () => {
  const many = await packed({ ...shared, toml: "\n".repeat(MOST_LINES) });
  assert.ok(many.length < 500);
  await assert.rejects(fromFragment(many), /10,000 lines/);
  await assert.rejects(toFragment({ ...shared, toml: "\n".repeat(MOST_LINES) }), /10,000 lines/);
  const shares = Array.from({ length: 4 }, (_, i) => ({ name: String(i), toml: "\n".repeat(MOST_LINES / 4) }));
  await assert.rejects(fromFragment(await packed({ ...shared, settings: shares })), /10,000 lines/);
  assert.equal((await fromFragment(await packed({ ...shared, toml: "\n".repeat(9000) }))).toml.length, 9000);
});
