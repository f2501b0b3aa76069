/** The page's workers in Chromium: native fingerprints, cancellation and limits. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { PAGE } from "../local.ts";

let browser: Browser;
let page: Page;
const messages: string[] = [];

before(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  page = await browser.newPage();
  page.on("console", (message) => messages.push(message.text()));
  page.on("pageerror", (error) => messages.push(error.message));
  await page.goto(pathToFileURL(PAGE).href);
});

after(() => browser.close());

const native = process.env["CELLTRAIN_NATIVE"];

test("every shipped scenario has the native fingerprint", {
  skip: native === undefined ? "CELLTRAIN_NATIVE is not set to a file of native results" : false,
}, async () => {
  const answers = JSON.parse(readFileSync(native ?? "", "utf8")) as Record<string, { seed: number; fingerprint: string }>;
  const seeds = Object.entries(answers).map(([name, { seed }]) => [name, seed] as const);
  const found = await page.evaluate(async (pairs) => {
    const scenarios = await window.celltrain.scenarios();
    const runs = pairs.map(async ([name, seed]) => {
      const answer = await window.celltrain.run(scenarios[name] ?? "", seed);
      return [name, answer.fingerprint] as const;
    });
    return Promise.all(runs);
  }, seeds);
  assert.deepEqual(Object.fromEntries(found), Object.fromEntries(Object.entries(answers).map(([name, { fingerprint }]) => [name, fingerprint])));
});

test("stopping a run ends it at once, and the workers remain usable", async () => {
  const result = await page.evaluate(async () => {
    const engine = await window.celltrain.engine;
    const toml = ((await engine.scenarios())["lan-epd"] ?? "").replace('"10s"', '"10000s"');
    const stop = new AbortController();
    let done = 0;
    const run = engine.run(toml, 1, {
      signal: stop.signal,
      limits: { seconds: 1000 },
      onProgress: (share) => {
        done = share;
        // On a busy machine the first report arrives before the first cell.
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
  assert.equal(result.error, "stopped");
  assert.ok(result.done > 0 && result.done < 1, String(result.done));
  assert.equal(result.next, 0.1);
});

test("an ensemble gives the same runs as single calls, and a faulty scenario ends the ensemble", async () => {
  const result = await page.evaluate(async () => {
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
  assert.deepEqual(result.together, result.alone);
  assert.deepEqual([result.last, result.refused], [1, "refused"]);
});

test("the runs of one call have a common limit, and completed runs are reported", async () => {
  const result = await page.evaluate(async () => {
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
  assert.equal(result.kind, "all_too_long");
  assert.equal(result.message, `The runs took longer than 2 s together: ${String(result.ended)} of 6 have ended.`);
  assert.ok(result.ended >= 1 && result.ended <= 3, String(result.ended));
  assert.equal(result.next, 2);
});

test("the page requests nothing from the network and writes nothing to the console", async () => {
  const resources = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  assert.deepEqual(resources.filter((name) => !name.startsWith("blob:") && !name.startsWith("data:")), []);
  assert.deepEqual(messages, []);
});
