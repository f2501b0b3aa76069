/** The built page in Debian's Chromium, opened from the file system. Any console message fails the test. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const PAGE = resolve(process.env["CELLTRAIN_LAB"] ?? "../dist/lab.html");

/** Reason why browser tests cannot run, or false. */
export const skip: string | false = existsSync(CHROMIUM)
  ? existsSync(PAGE)
    ? false
    : `${PAGE} is missing: run make lab`
  : `${CHROMIUM} is missing`;

/** Timeout in milliseconds, longer than anything needs on a busy machine. */
const PATIENCE = 300_000;

export interface Opened {
  readonly page: Page;
  /** Console messages so far. */
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
    const text = document.querySelector("main")?.textContent ?? "Starting the engine";
    return !text.includes("Starting the engine");
  });
  return { page, messages };
}

/**
 * Divides limits on request (`divide`), so that tests exceed them quickly: the time limit of each call, the memory
 * limit, and the total time limit of all runs started by a click. Counts the requests to workers as well.
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

/** Sets the divisor of each limit. Keys are calls, `memory` and `together`. */
export async function divide(page: Page, by: Readonly<Record<string, number>>): Promise<void> {
  await page.evaluate((given) => {
    (window as unknown as { divide: unknown }).divide = given;
  }, by);
}

/** Clicks the button that raises a limit until the button no longer appears. Returns the text of each click. */
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

/** Closes a page, and asserts that its console is empty. */
export async function close({ page, messages }: Opened): Promise<void> {
  await page.context().close();
  assert.deepEqual(messages, []);
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = null;
}

/** Enters text in the editor under "Run" and waits until it has been checked. */
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

/** Removes the policies that the view Compare shows initially. */
export async function removeAll(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Remove all" }).click();
}

/** Returns the text of a shipped scenario. */
export async function shipped(page: Page, name: string): Promise<string> {
  return (await page.evaluate(() => window.celltrain.scenarios()))[name] ?? "";
}

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

/** Runs the current scenario and waits until it has completed. */
export async function run(page: Page): Promise<void> {
  await page.locator("#run:not([disabled])").click();
  await page.locator('.results[data-phase="done"]').waitFor();
}

/** Runs the scenario in the microscope and waits for its buffer. */
export async function look(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Run and look" }).click();
  await page.locator(".stage").waitFor();
}

/** Accepts the suggested guess of a story step, and runs the step. */
export async function guessAndRun(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^I guess/ }).click();
  await page.locator("#run-step").click();
}

/** Returns the number of pixels by which the content is wider than the window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}
