import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { close, closeBrowser, look, open, overflow, run, skip, typeSeeds } from "./browser.ts";

const PLACES = ["", "#/learn/one-cell/1", "#/learn/share/2", "#/learn/own/1", "#/run", "#/inside", "#/compare"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

after(closeBrowser);

/** Goes to a place as its link would, and waits until it is drawn. */
async function goTo(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, place);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.locator("main h1").first().waitFor();
}

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe finds of weight. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Finding[] }> } };
    return (await axe.run()).violations;
  });
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)} ${n.failureSummary.slice(0, 200)}`));
}

test("no place scrolls sideways, from a phone to a projector", { skip }, async () => {
  for (const width of [360, 768, 1280, 1920]) {
    const opened = await open("", { width });
    for (const place of PLACES) {
      await goTo(opened.page, place);
      assert.ok((await overflow(opened.page)) <= 0, `${place} at ${String(width)} px`);
    }
    await goTo(opened.page, "#/run");
    for (const name of ["Choose a scenario …", "Share and keep"]) {
      await opened.page.getByRole("button", { name }).click();
      const dialog = opened.page.locator("dialog[open]");
      const wider = await dialog.evaluate((element) => element.scrollWidth - element.clientWidth);
      assert.ok(wider <= 0, `“${name}” at ${String(width)} px`);
      await opened.page.keyboard.press("Escape");
    }
    await close(opened);
  }
});

test("no place has a serious finding of axe, in light and in dark", { skip }, async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const opened = await open("", { colorScheme });
    for (const place of PLACES) {
      await goTo(opened.page, place);
      assert.deepEqual(await findings(opened.page), [], `${place}, ${colorScheme}`);
    }
    await close(opened);
  }
});

test("results, the microscope and a comparison have no serious finding either", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await typeSeeds(page, 2);
  await run(page);
  assert.deepEqual(await findings(page), []);
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Share and keep" }).click();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  assert.deepEqual(await findings(page), []);
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await page.getByRole("button", { name: "Begin with four policies" }).click();
  await page.getByRole("button", { name: "Run them all" }).click();
  await page.getByRole("button", { name: "Run them all" }).waitFor();
  assert.deepEqual(await findings(page), []);
  assert.ok((await overflow(page)) <= 0);
  const cut = await page.getByRole("region", { name: "Comparison" }).evaluate((e) => e.scrollWidth - e.clientWidth);
  assert.ok(cut <= 0, "a laptop shows the whole table of differences");
  await close(opened);
});

test("the page can be gone through with the keyboard alone", { skip }, async () => {
  const opened = await open("");
  const { page } = opened;
  const focused = async (): Promise<string> => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "To the content");
  for (let i = 0; (await focused()) !== "Run"; i += 1) {
    assert.ok(i < 10, "Run is reached with Tab");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Set up and run" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
  const tabs = page.getByRole("tab", { name: "Form" });
  await tabs.focus();
  await page.keyboard.press("ArrowRight");
  await page.getByLabel("Scenario as TOML").waitFor();
  assert.equal(await focused(), "Text (TOML)");
  await page.locator("#run").focus();
  await page.keyboard.press("Enter");
  await page.locator('.results[data-phase="done"]').waitFor();
  await close(opened);
});

test("the colours can be chosen, and nothing is remembered outside the page", { skip }, async () => {
  const opened = await open("");
  const { page } = opened;
  const ground = async (): Promise<string> =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const press = page.getByRole("button", { name: /Colours/ });
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  assert.notEqual(dark, light, "without a choice the system's colours hold");
  await press.click();
  assert.deepEqual([await press.textContent(), await ground()], ["Colours: ● Dark", dark]);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await ground(), dark, "what is chosen stays");
  await press.click();
  assert.deepEqual([await press.textContent(), await ground()], ["Colours: ○ Light", light]);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await ground(), light);
  await press.click();
  assert.deepEqual([await press.textContent(), await ground()], ["Colours: ◐ Auto", dark]);
  await page.emulateMedia({ colorScheme: "light" });
  await press.click();
  assert.equal(await ground(), dark);
  const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie.length]);
  assert.deepEqual(kept, [0, 0, 0]);
  await page.reload();
  await page.getByRole("link", { name: "Run", exact: true }).waitFor();
  assert.equal(await ground(), light);
  await close(opened);
});

test("without WebAssembly the page says so in words", { skip }, async () => {
  const opened = await open("", { init: "delete globalThis.WebAssembly;" });
  assert.match(await opened.page.getByRole("alert").innerText(), /WebAssembly.*switched off/);
  await close(opened);
});
