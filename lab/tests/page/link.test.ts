import assert from "node:assert/strict";
import { test } from "node:test";
import { LinkFault, MOST_CHARACTERS, fromFragment, toFragment } from "../../src/page/link/link.ts";

const shared = { toml: 'name = "<b>ü</b>"\n# …\n', seed: 18, seeds: 20, place: "learn/one-cell/2" };

/** A fragment of any object, as `toFragment` packs its own. */
async function packed(value: unknown): Promise<string> {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `#v1.${Buffer.from(await new Response(stream).arrayBuffer()).toString("base64url")}`;
}

test("a link gives back the whole scenario, its seeds and its place", async () => {
  assert.deepEqual(await fromFragment(await toFragment(shared)), shared);
});

test("a link holds only letters that need no escape in an address", async () => {
  const text = Array.from({ length: 3000 }, (_, i) => String.fromCharCode(33 + ((i * 7919) % 90))).join("");
  assert.match(await toFragment({ ...shared, toml: text }), /^#v1\.[A-Za-z0-9_-]+$/);
});

test("a link cut short anywhere is told as such", async () => {
  const whole = await toFragment(shared);
  for (let end = 5; end < whole.length; end += 3) {
    await assert.rejects(
      fromFragment(whole.slice(0, end)),
      (e) => e instanceof LinkFault && /cut short/.test(e.message),
    );
  }
});

test("a link of another version, and what is no link of ours, are told apart", async () => {
  await assert.rejects(fromFragment("#v2.abc"), /another version of the lab \(its form is 2/);
  await assert.rejects(fromFragment("#chapter-3"), /holds no scenario/);
});

test("what a link holds is checked field by field", async () => {
  await assert.rejects(fromFragment(await packed([1, 2])), /something else/);
  await assert.rejects(fromFragment(await packed({ ...shared, toml: 5 })), /something else/);
  for (const seeds of [0, 201, 1.5, "5", null]) {
    await assert.rejects(fromFragment(await packed({ ...shared, seeds })), /1 to 200/);
  }
  await assert.rejects(fromFragment(await packed({ ...shared, seed: -1 })), /seeds/);
  const elsewhere = await fromFragment(await packed({ ...shared, place: "javascript:alert(1)" }));
  assert.equal(elsewhere.place, "");
});

test("a scenario that is too large for a link is told so, and a small link cannot unpack into memory without end", async () => {
  await assert.rejects(toFragment({ ...shared, toml: "#".repeat(MOST_CHARACTERS) }), /Download it as a file/);
  const bomb = await packed({ ...shared, toml: " ".repeat(20 * MOST_CHARACTERS) });
  assert.ok(bomb.length < 30_000);
  await assert.rejects(fromFragment(bomb), LinkFault);
});
