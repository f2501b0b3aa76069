import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, test } from "node:test";
import type { Frame } from "playwright-core";
import { STORIES } from "../../../src/stories/index.ts";
import { PAGE, close, closeBrowser, look, open, overflow, skip } from "./browser.ts";

after(closeBrowser);

/** Parts of the page that an embedded story or microscope omits. */
const SHELL = ".masthead, .foot, .skip, .whole-run, #plots-title";

test("an embedded microscope starts automatically and fits into its frame", { skip }, async () => {
  for (const [address, width, height] of [
    ["?embed#/inside", 960, 540],
    ["#/inside&embed", 1280, 720],
    ["?embed=dark#/inside", 960, 540],
  ] as const) {
    const opened = await open(address, { width, height });
    const { page } = opened;
    await page.locator(".stage").waitFor();
    assert.equal(await page.locator(SHELL).count(), 0, address);
    const overhang = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
    assert.ok(overhang <= 0 && (await overflow(page)) <= 0, `${address}: ${String(overhang)} px`);
    const scheme = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    assert.equal(scheme, address.includes("dark") ? "dark" : "light");
    const before = await page.locator("#scrub").inputValue();
    await page.getByRole("button", { name: "Next loss", exact: true }).click();
    assert.notEqual(await page.locator("#scrub").inputValue(), before);
    await close(opened);
  }
});

test("an embedded story step is visible down to its button", { skip }, async () => {
  const opened = await open("?embed#/learn/one-cell/4", { width: 960, height: 540 });
  const box = await opened.page.locator("#run-step").boundingBox();
  assert.ok(box !== null && box.y + box.height <= 540, JSON.stringify(box));
  await close(opened);
});

test("the buttons below an embedded story step are visible", { skip }, async () => {
  for (const story of STORIES) {
    const opened = await open(`?embed#/learn/${story.id}/1`, { width: 960, height: 540 });
    const { page } = opened;
    for (const [i] of story.steps.entries()) {
      await page.getByRole("link", { name: new RegExp(`^Step ${String(i + 1)}:`) }).click();
      await page.locator(`.story-steps li:nth-child(${String(i + 1)}) [aria-current]`).waitFor();
      for (const button of await page.locator(".story-on a, .story-where a:visible").all()) {
        const box = await button.boundingBox();
        assert.ok(box !== null && box.y >= 0 && box.y + box.height <= 540, `${story.id}/${String(i + 1)}: ${JSON.stringify(box)}`);
      }
    }
    await close(opened);
  }
});

test("an embedded page of any size has no header, and does not scroll sideways", { skip }, async () => {
  for (const [width, height] of [
    [640, 480],
    [390, 700],
  ] as const) {
    const opened = await open("?embed#/inside", { width, height });
    await opened.page.locator(".stage").waitFor();
    assert.ok((await overflow(opened.page)) <= 0, String(width));
    assert.equal(await opened.page.locator(SHELL).count(), 0);
    await close(opened);
  }
});

test("an embedded story leads through its steps and into the microscope; other links open the lab", { skip }, async () => {
  const opened = await open("?embed#/learn/one-cell/1", { width: 960, height: 540 });
  const { page } = opened;
  await page.locator(".story").waitFor();
  assert.equal(await page.locator(SHELL).count(), 0);
  assert.equal(await page.getByRole("link", { name: "All stories" }).count(), 0);
  await page.getByRole("link", { name: /^Step 2/ }).click();
  await page.getByRole("button", { name: /^I guess/ }).click();
  await page.locator("#run-step").click();
  await page.getByRole("button", { name: /^See the buffer overflow/ }).click();
  await page.locator(".stage").waitFor();
  await page.getByRole("link", { name: /Back to the story/ }).click();
  await page.locator(".story").waitFor();
  const last = await page.locator(".story-steps li").count();
  await page.getByRole("link", { name: new RegExp(`^Step ${String(last)}`) }).click();
  const whole = page.context().waitForEvent("page");
  await page.getByRole("link", { name: /^Next story/ }).click();
  assert.match((await whole).url(), /lab\.html#\/learn\/tie\/1$/);
  assert.match(page.url(), /embed#\/learn\/one-cell/);
  await close(opened);
});

test("the embed code works from a file, in a frame of another page, with and without sandbox", { skip }, async () => {
  const first = await open("#/inside");
  await look(first.page);
  await first.page.locator("#scrub").fill("77");
  await first.page.getByRole("button", { name: "Share and keep" }).click();
  await first.page.getByLabel("embed code").waitFor();
  const code = (await first.page.getByLabel("embed code").textContent()) ?? "";
  assert.match(code, /^<iframe src="lab\.html\?embed#v1\.[^"]+" title="celltrain lab: lan-epd"\s+width="960" height="540"/);
  await close(first);
  const folder = mkdtempSync(join(tmpdir(), "celltrain-embed-"));
  try {
    symlinkSync(PAGE, join(folder, "lab.html"));
    const sandboxed = code.replace("<iframe", '<iframe sandbox="allow-scripts"');
    writeFileSync(join(folder, "slide.html"), `<!doctype html><title>slide</title><h1>Slide</h1>${code}${sandboxed}`);
    const opened = await open("");
    await opened.page.goto(pathToFileURL(join(folder, "slide.html")).href);
    const frames = opened.page.frames().slice(1);
    assert.equal(frames.length, 2);
    for (const frame of frames as Frame[]) {
      await frame.locator(".stage").waitFor();
      assert.equal(await frame.locator("#scrub").inputValue(), "77");
    }
    await close(opened);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
