import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, test } from "node:test";
import { close, closeBrowser, look, open, overflow, run, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

/** By scenario what the native engine gave, as `scripts/lab_native.py` writes it. */
const NATIVE = process.env["CELLTRAIN_NATIVE"] ?? "";

test(
  "every gallery entry runs in the page, with the fingerprint of the native run",
  {
    skip: skip === false ? (existsSync(NATIVE) ? false : "CELLTRAIN_NATIVE names no file of native answers") : skip,
  },
  async () => {
    const native = JSON.parse(readFileSync(NATIVE, "utf8")) as Record<string, { seed: number; fingerprint: string }>;
    const opened = await open("#/run");
    const { page } = opened;
    const choice = page.getByLabel("Shipped scenario");
    const names = (await choice.locator("option").allInnerTexts()).filter((n) => !n.startsWith("a scenario"));
    assert.deepEqual(names.sort(), Object.keys(native).sort());
    await page.getByRole("tab", { name: "Text (TOML)" }).click();
    for (const name of names) {
      await choice.selectOption(name);
      await typeSeeds(page, 1, native[name]?.seed ?? 1);
      await page.locator("#run:not([disabled])").waitFor();
      await page.locator("#run").click();
      await page.locator('.results:is([data-phase="done"], [data-phase="failed"])').waitFor();
      assert.equal(await page.locator(".results .notice").count(), 0, name);
      const fingerprint = await page.locator(".results details code").first().textContent();
      assert.equal(fingerprint, native[name]?.fingerprint, name);
      assert.ok((await overflow(page)) <= 0, name);
    }
    await close(opened);
  },
);

test("the form and the text follow each other", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await page.getByLabel("Threshold, cells").fill("750");
  await page.getByLabel("Threshold, cells").blur();
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  const area = page.getByLabel("Scenario as TOML");
  const text = await area.inputValue();
  assert.match(text, /threshold = 750 +# cells/);
  assert.match(text, /^# Five TCP connections/, "comments stay");
  await area.fill(text.replace("threshold = 750", "threshold = 640"));
  await page.getByRole("tab", { name: "Form" }).click();
  await page.waitForFunction(() => Array.from(document.querySelectorAll("input")).some((i) => i.value === "640"));
  await page.locator("select").filter({ hasText: "selective_drop" }).selectOption("fba");
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes("policy.fba"));
  assert.doesNotMatch(await area.inputValue(), /policy\.epd/);
  await close(opened);
});

test("faults are shown at their lines, and a text with markup is shown as text", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const bad = '<img src=x onerror="document.title=1">';
  const toml = `name = ${JSON.stringify(bad)}\nduration = "1s"\n\n[topology.n_source]\nsources = 0\nlink_delay = "5us"\n\n[tcp.vanila]\n\n[port.bottleneck]\nbuffer = 1000\n[port.bottleneck.policy.epd]\nthreshold = 1900\n`;
  await write(page, toml);
  await page.locator(".faults li").first().waitFor();
  const faults = await page.locator(".faults li").allInnerTexts();
  assert.ok(faults.some((f) => /line 5/.test(f) && /sources/.test(f)));
  assert.ok(faults.some((f) => /line 8/.test(f) && /did you mean vanilla/.test(f)));
  assert.deepEqual(await page.locator(".editor-gutter .bad").allInnerTexts(), ["5", "8"]);
  assert.ok(await page.locator("#run").isDisabled());
  await page.getByRole("button", { name: "line 8" }).click();
  const selected = await page.evaluate(() => {
    const area = document.activeElement as HTMLTextAreaElement;
    return area.value.slice(area.selectionStart, area.selectionEnd);
  });
  assert.equal(selected, "[tcp.vanila]");
  await write(page, toml.replace("sources = 0", "sources = 2").replace("vanila", "vanilla").replace("1900", "800"));
  await run(page);
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok((await page.getByText(bad).count()) > 0, "it is shown as text");
  assert.equal(await page.title(), "celltrain lab");
  await close(opened);
});

test("a run can be stopped at once, and the page goes on", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = await shipped(page, "lan-epd");
  await write(page, text.replace('"10s"', '"10000s"'));
  await page.getByText(/This can take/).waitFor();
  await page.locator("#run:not([disabled])").click();
  await page.locator('.results[data-phase="running"]').getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped. The runs").waitFor();
  await write(page, text);
  await run(page);
  await close(opened);
});

test("a scenario larger than the memory is told in words", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = await shipped(page, "lan-epd");
  await write(page, text.replace("sources = 5", "sources = 1000000"));
  const press = page.locator("#run");
  await page.waitForFunction(
    () => document.querySelector(".faults li") !== null || document.querySelector("#run:not([disabled])") !== null,
  );
  if (await press.isDisabled()) {
    assert.match(await page.locator(".faults").innerText(), /memory|GiB|GB|large/i);
  } else {
    await press.click();
    assert.match(await page.getByRole("alert").first().innerText(), /memory|GiB|GB/i);
  }
  await close(opened);
});
