/** The page's workers in Chromium: the same numbers as this machine, and runs that stop. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { PAGE } from "../local.ts";

let browser: Browser;
let page: Page;
const said: string[] = [];

before(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  page = await browser.newPage();
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  await page.goto(pathToFileURL(PAGE).href);
});

after(() => browser.close());

const native = process.env["CELLTRAIN_NATIVE"];

test("every shipped scenario has the native fingerprint", {
  skip: native === undefined ? "CELLTRAIN_NATIVE names no file of native answers" : false,
}, async () => {
  const answers = JSON.parse(readFileSync(native ?? "", "utf8")) as Record<string, { seed: number; fingerprint: string }>;
  const seeds = Object.entries(answers).map(([name, { seed }]) => [name, seed] as const);
  const found = await page.evaluate(async (asked) => {
    const scenarios = await window.celltrain.scenarios();
    const runs = asked.map(async ([name, seed]) => {
      const answer = await window.celltrain.run(scenarios[name] ?? "", seed);
      return [name, answer.fingerprint] as const;
    });
    return Promise.all(runs);
  }, seeds);
  assert.deepEqual(Object.fromEntries(found), Object.fromEntries(Object.entries(answers).map(([name, { fingerprint }]) => [name, fingerprint])));
});

test("a run that is stopped ends at once, and the workers go on", async () => {
  const told = await page.evaluate(async () => {
    const engine = await window.celltrain.engine;
    const toml = ((await engine.scenarios())["lan-epd"] ?? "").replace('"10s"', '"10000s"');
    const stop = new AbortController();
    let done = 0;
    const run = engine.run(toml, 1, {
      signal: stop.signal,
      limits: { seconds: 1000 },
      onProgress: (share) => {
        done = share;
        // On a busy machine the first report comes before the first cell.
        if (share > 0) {
          stop.abort();
        }
      },
    });
    const error = await run.then(
      () => "no error",
      (reason: { kind: string }) => reason.kind,
    );
    const next = await engine.run(toml.replace('"10000s"', '"100ms"'), 1);
    return { error, done, next: next.answer.duration_s };
  });
  assert.equal(told.error, "stopped");
  assert.ok(told.done > 0 && told.done < 1, String(told.done));
  assert.equal(told.next, 0.1);
});

test("an ensemble is what its runs are one by one, and one refusal ends it", async () => {
  const told = await page.evaluate(async () => {
    const engine = await window.celltrain.engine;
    const short = (text = "") => text.replace('"10s"', '"300ms"');
    const scenarios = await engine.scenarios();
    const tomls = [short(scenarios["lan-tail-drop"]), short(scenarios["lan-epd"])];
    const shares: number[] = [];
    const onProgress = (share: number) => void shares.push(share);
    const { runs } = await engine.compare(tomls, [1, 2, 3, 4], { onProgress });
    const alone = await Promise.all(tomls.map((toml) => engine.run(toml, 4)));
    const refused = await engine.compare([tomls[0] ?? "", "name = "], [1, 2]).then(
      () => "",
      (reason: { kind: string }) => reason.kind,
    );
    return {
      together: runs.map((of) => of[3]?.answer.fingerprint),
      alone: alone.map(({ answer }) => answer.fingerprint),
      last: shares.at(-1),
      refused,
    };
  });
  assert.deepEqual(told.together, told.alone);
  assert.deepEqual([told.last, told.refused], [1, "refused"]);
});

test("runs of one press have a limit together, and what had ended was told", async () => {
  const told = await page.evaluate(async () => {
    const engine = await window.celltrain.engine;
    const toml = (await engine.scenarios())["lan-epd"] ?? "";
    const short = toml.replace('"10s"', '"50ms"');
    const long = toml.replace('"10s"', '"10000s"');
    let ended = 0;
    const limits = { seconds: 1000, together: 2 };
    const error = await engine.compare([short, long], [1, 2, 3], { limits, onRun: () => (ended += 1) }).then(
      () => ({ kind: "none", message: "" }),
      (reason: { kind: string; message: string }) => ({ kind: reason.kind, message: reason.message }),
    );
    const next = await engine.compare([short], [1, 2], { limits: { together: 1000 } });
    return { ...error, ended, next: next.runs[0]?.length };
  });
  assert.equal(told.kind, "all_too_long");
  assert.equal(told.message, `The runs took longer than 2 s together: ${String(told.ended)} of 6 have ended.`);
  assert.ok(told.ended >= 1 && told.ended <= 3, String(told.ended));
  assert.equal(told.next, 2);
});

test("the page asks the network for nothing and says nothing on the console", async () => {
  const resources = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  assert.deepEqual(resources.filter((name) => !name.startsWith("blob:") && !name.startsWith("data:")), []);
  assert.deepEqual(said, []);
});
