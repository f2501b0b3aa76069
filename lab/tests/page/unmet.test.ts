import assert from "node:assert/strict";
import { test } from "node:test";
import { unmetIn } from "../../src/page/parts/unmet.tsx";
import { local } from "../engine/local.ts";

const { engine } = await local();
const lan = ((await engine.scenarios())["lan-epd"] ?? "").replace(/^duration = .*$/m, 'duration = "50ms"');
const rule = (kind: string, packet: number): string =>
  `\n[[link."source1->sw1".${kind}]]\nflow = "tcp1"\npackets = [${String(packet)}]\n`;
const toml = `${lan}${rule("lose", 1)}${rule("lose", 90_000)}${rule("delay", 90_001)}by = "1ms"\n`;

test("a link rule that never applied is named once per scenario, with its number of runs", async () => {
  const of = async (text: string, seeds: readonly number[]) =>
    Promise.all(seeds.map(async (seed) => ({ seed, unmet: (await engine.run(text, seed)).unmet })));
  const [one, both, met] = [await of(toml, [1]), await of(toml, [1, 2]), await of(lan, [1])];
  const words = (text: string): string => text.replace(/ sent \d.*? to \d+/, " sent ...");
  assert.deepEqual(unmetIn([{ name: "", runs: one }]).map(words), [
    "A loss on source1->sw1 did not happen: packet 90000 of tcp1 was never sent over this link; tcp1 sent ....",
    "A delay on source1->sw1 did not happen: packet 90001 of tcp1 was never sent over this link; tcp1 sent ....",
  ]);
  const twice = await of(`${lan}${rule("lose", 90_000)}${rule("lose", 90_000)}`, [1]);
  assert.equal(unmetIn([{ name: "", runs: twice }]).length, 1, "equal rules have one warning");
  const two = unmetIn([
    { name: "lossy", runs: both },
    { name: "lan", runs: met },
  ]);
  assert.equal(two.length, 2);
  assert.match(two[0] ?? "", /^lossy: a loss .* \(in 2 of 2 runs; the numbers are those of seed 1\)\.$/);
  const some = unmetIn([{ name: "", runs: [{ seed: 1, unmet: [] }, ...both.slice(1)] }]);
  assert.match(some[0] ?? "", /\(in 1 of 2 runs; the numbers are those of seed 2\)\.$/);
});
