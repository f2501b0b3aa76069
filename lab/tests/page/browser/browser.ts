/** The built page in Debian's chromium, from the file system. Every message on its console is a fault of a test. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const PAGE = resolve(process.env["CELLTRAIN_LAB"] ?? "../dist/lab.html");

/** Why the tests with a browser cannot be run, or false. */
export const skip: string | false = existsSync(CHROMIUM)
  ? existsSync(PAGE)
    ? false
    : `${PAGE} is not there: make lab`
  : `${CHROMIUM} is not there`;

/** A wait that is longer than anything here takes on a busy machine, not an assertion. */
const PATIENCE = 300_000;

export interface Opened {
  readonly page: Page;
  /** What was on the console so far. */
  readonly messages: string[];
}

let browser: Promise<Browser> | null = null;

export async function open(
  hash = "",
  options: {
    readonly width?: number;
    readonly height?: number;
    readonly colorScheme?: "light" | "dark";
    readonly init?: string;
  } = {},
): Promise<Opened> {
  browser ??= chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  const context = await (
    await browser
  ).newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    colorScheme: options.colorScheme ?? "light",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const messages: string[] = [];
  page.on("console", (m) => messages.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => messages.push(`error: ${e.message}`));
  page.on("request", (r) => {
    if (!/^(file|blob|data):/.test(r.url())) {
      messages.push(`request: ${r.url()}`);
    }
  });
  if (options.init !== undefined) {
    await page.addInitScript(options.init);
  }
  await page.goto(`${pathToFileURL(PAGE).href}${hash}`);
  await page.waitForFunction(() => {
    const text = document.querySelector("main")?.textContent ?? "The engine starts";
    return !text.includes("The engine starts");
  });
  return { page, messages };
}

/**
 * Makes limits small where a test says so (`divide`), so that they are passed in a blink: seconds by call, bytes of memory,
 * and the time that all runs of a press have together. Counts what workers are asked for.
 */
export const SMALL_LIMITS = `
  window.divide = {};
  window.asked = {};
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    const { call, limits } = message.request ?? {};
    window.asked[call] = (window.asked[call] ?? 0) + 1;
    if (limits !== undefined) {
      limits.seconds /= window.divide[call] ?? 1;
      limits.memory = Math.round(limits.memory / (window.divide.memory ?? 1));
    }
    return post.call(this, message, ...rest);
  };
  const later = window.setTimeout;
  window.setTimeout = (what, wait = 0, ...rest) =>
    later(what, wait >= 300_000 ? wait / (window.divide.together ?? 1) : wait, ...rest);
`;

/** By call, `memory` or `together`, what its limit is divided by. */
export async function divide(page: Page, by: Readonly<Record<string, number>>): Promise<void> {
  await page.evaluate((given) => {
    (window as unknown as { divide: unknown }).divide = given;
  }, by);
}

/** Presses what raises a limit until there is nothing to press any more; the words of each press. */
export async function raise(page: Page, words: RegExp, done: string): Promise<string[]> {
  const press = page.getByRole("button", { name: words });
  const pressed: string[] = [];
  for (;;) {
    await press.or(page.locator(done)).first().waitFor();
    if ((await press.count()) === 0) {
      return pressed;
    }
    pressed.push(await press.first().innerText());
    assert.ok(pressed.length < 12, pressed.join("; "));
    await press.first().click();
    await page.waitForTimeout(50);
  }
}

/** Closes a page, which must not have said anything. */
export async function close({ page, messages }: Opened): Promise<void> {
  await page.context().close();
  assert.deepEqual(messages, []);
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = null;
}

/** Puts a text into the editor of the bench and waits until it has been checked. */
export async function write(page: Page, toml: string): Promise<void> {
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  await page.getByLabel("Scenario as TOML").fill(toml);
  await page.waitForFunction(() => !document.body.textContent?.includes("checking …"));
}

/** Chooses a shipped scenario from the list. */
export async function choose(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Choose a scenario …" }).click();
  await page.getByLabel("Search", { exact: true }).fill(name);
  const exact = page.locator("strong").filter({ hasText: new RegExp(`^${name}$`) });
  await page.locator(".gallery-list button").filter({ has: exact }).click();
}

/** Removes the policies that Compare shows at first. */
export async function removeAll(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Remove all" }).click();
}

/** The text of a shipped scenario. */
export async function shipped(page: Page, name: string): Promise<string> {
  return (await page.evaluate(() => window.celltrain.scenarios()))[name] ?? "";
}

/** Types how many seeds there are, and from which on. */
export async function typeSeeds(page: Page, count: number, first?: number): Promise<void> {
  for (const [label, value] of [
    ["Seeds", count],
    ["First seed", first],
  ] as const) {
    if (value !== undefined) {
      await page.getByLabel(label, { exact: true }).fill(String(value));
      await page.getByLabel(label, { exact: true }).blur();
    }
  }
}

/** Runs what is on the bench and waits until it has ended well. */
export async function run(page: Page): Promise<void> {
  await page.locator("#run:not([disabled])").click();
  await page.locator('.results[data-phase="done"]').waitFor();
}

/** Runs what is looked into and waits for its buffer. */
export async function look(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Run and look" }).click();
  await page.locator(".stage").waitFor();
}

/** Takes the guess that a step of a story offers, and runs it. */
export async function guessAndRun(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^I guess/ }).click();
  await page.locator("#run-step").click();
}

/** Whether something is wider than the window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}
