import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { toFragment } from "../../../src/page/link/link.ts";
import { close, closeBrowser, open, run, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

const plain = { toml: "", seed: 1, seeds: 1, place: "run", settings: [], formula: "", view: null };

test("a link opened elsewhere gives the same scenario, seeds and fingerprints", { skip }, async () => {
  const first = await open("#/run");
  const text = await shipped(first.page, "lan-fba");
  await write(first.page, text.replace('"10s"', '"200ms"').replace("# Fair", "# My own: fair"));
  await typeSeeds(first.page, 3, 7);
  await run(first.page);
  const fingerprints = await first.page.locator(".results details code").allTextContents();
  assert.equal(fingerprints.length, 3);
  await first.page.getByRole("button", { name: "Share and keep" }).click();
  const link = first.page.getByLabel("link", { exact: true });
  await first.page.waitForFunction(() => document.querySelector(".keep pre")?.textContent?.includes("#v1."));
  const address = (await link.textContent()) ?? "";
  const said = await first.page.locator(".keep").innerText();
  assert.match(said, /celltrain run .*\.toml --seed 7 --seeds 3 --fingerprints/);
  assert.ok(said.includes(fingerprints[0] ?? "?"));
  await close(first);

  const second = await open(`#${address.split("#")[1] ?? ""}`);
  await run(second.page);
  assert.deepEqual(await second.page.locator(".results details code").allTextContents(), fingerprints);
  await second.page.getByRole("tab", { name: "Text (TOML)" }).click();
  assert.match(await second.page.getByLabel("Scenario as TOML").inputValue(), /# My own: fair/);
  await close(second);
});

test("a link to a place opens there", { skip }, async () => {
  const opened = await open(await toFragment({ ...plain, toml: "# nothing", place: "learn/tie/2" }));
  await opened.page.getByRole("heading", { name: "Always the first" }).waitFor();
  await close(opened);
});

test("a link cut short, one of another version and one that is none are told in words", { skip }, async () => {
  const whole = await toFragment({ ...plain, toml: "x".repeat(500) });
  for (const [fragment, words] of [
    [whole.slice(0, -8), /not complete/],
    ["#v9.abcd", /another version/],
    ["#something", /holds no scenario/],
  ] as const) {
    const opened = await open(fragment);
    assert.match(await opened.page.getByRole("alert").first().innerText(), words);
    // The page is usable all the same.
    await opened.page.locator("#run:not([disabled])").waitFor();
    // Whoever goes on has read it.
    await opened.page.getByRole("link", { name: "Learn", exact: true }).click();
    await opened.page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal(await opened.page.getByRole("alert").count(), 0);
    await close(opened);
  }
});

test("a link of a comparison and one of a policy of one's own hold them", { skip }, async () => {
  const first = await open("#/compare");
  const { page } = first;
  await page.getByRole("button", { name: "Remove lan-ppd" }).click();
  const address = async (...said: readonly string[]): Promise<string> => {
    await page.getByRole("button", { name: "Share and keep" }).click();
    await page.waitForFunction(() => document.querySelector(".keep pre")?.textContent?.includes("#v1."));
    const text = (await page.getByLabel("link", { exact: true }).textContent()) ?? "";
    const all = await page.locator(".keep").innerText();
    for (const words of said) {
      assert.ok(all.includes(words), `${words}: ${all}`);
    }
    assert.doesNotMatch(all, /celltrain run lan-epd/);
    await page.getByRole("button", { name: "Close" }).click();
    return `#${text.split("#")[1] ?? ""}`;
  };
  const comparison = await address(
    "celltrain compare lan-tail-drop lan-epd lan-selective-drop --seed 1 --seeds 10",
    'ct.compare(["lan-tail-drop", "lan-epd", "lan-selective-drop"], seeds=10)',
    "Shipped scenarios need no file.",
  );
  await page.evaluate(() => {
    location.hash = "#/learn/own/1";
  });
  await page.getByLabel("A frame may start when").fill("X < 0.123 * K");
  const own = await address(
    "celltrain compare lan-tail-drop lan-epd lan-selective-drop my-policy-x-0-123-k.toml --seed 1 --seeds 10",
  );
  await close(first);
  const second = await open(comparison);
  assert.deepEqual(await second.page.locator(".setting-card legend").allTextContents(), [
    "lan-tail-drop",
    "lan-epd",
    "lan-selective-drop",
  ]);
  await close(second);
  const third = await open(own);
  assert.equal(await third.page.getByLabel("A frame may start when").inputValue(), "X < 0.123 * K");
  await close(third);
});

test("a short link with thousands of lines or ports does not hold the page up", { skip }, async () => {
  const ports = Array.from({ length: 4900 }, (_, i) => `[port.p${String(i)}]\n`).join("\n");
  for (const toml of ["\n".repeat(9900), ports, `name = "${"n".repeat(150_000)}"\n`]) {
    const fragment = await toFragment({ ...plain, toml });
    const opened = await open(fragment);
    const { page } = opened;
    await page.waitForFunction(() => !document.body.textContent?.includes("checking …"));
    for (const tab of ["Text (TOML)", "Form"]) {
      await page.getByRole("tab", { name: tab }).click();
      // Two frames: the page draws and goes on.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const drawn = await page.evaluate(() => document.querySelectorAll("*").length);
      assert.ok(drawn < 6000, `${tab}: ${String(drawn)} elements`);
      const letters = await page.evaluate(() => document.querySelector("main")?.innerText.length ?? 0);
      assert.ok(letters < 60_000, `${tab}: ${String(letters)} letters`);
    }
    await close(opened);
  }
});

test("the scenario and the tables can be downloaded", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await typeSeeds(page, 2);
  await run(page);
  await page.getByRole("button", { name: "Share and keep" }).click();
  const take = async (name: string): Promise<{ name: string; text: string }> => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };
  const toml = await take("Scenario (TOML)");
  assert.equal(toml.name, "lan-epd.toml");
  assert.match(toml.text, /\[port\.bottleneck\.policy\.epd\]/);
  const csv = await take("Connections (CSV)");
  assert.equal(csv.name, "lan-epd-connections.csv");
  assert.equal(csv.text.trim().split("\r\n").length, 11);
  await close(opened);
});

test("pictures can be downloaded as SVG that stands alone and as PNG", { skip }, async () => {
  const opened = await open("#/compare");
  const { page } = opened;
  await page.getByRole("button", { name: "Run them all" }).click();
  await page.locator('.compare[data-phase="done"]').waitFor();
  const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
  const text = readFileSync(await svg.path(), "utf8");
  assert.match(text, /^<svg[^>]* xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.doesNotMatch(text, /var\(|class=/);
  assert.ok(text.includes(">lan-selective-drop<"), "a label names its cloud");
  const [png] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "PNG" }).click()]);
  assert.deepEqual([...readFileSync(await png.path()).subarray(1, 4)], [0x50, 0x4e, 0x47]);
  await close(opened);
});
