/**
 * Measures the built page in Chromium: `node lab/measure/measure.mjs [speed first pan memory paint]`, after `make lab`.
 *
 * speed   cell-hops per second in the page and on the command line, alternating, with the same seed
 * first   time from a click to the first result: "Run" and every run of the stories, each in a new page
 * pan     frames per second while a plot of a million points moves, and while the plots of a run move
 * memory  peak memory of the page and its workers while ten seeds of a shipped scenario run on eight workers and one
 *         run is opened in the microscope
 * paint   time from opening the file to the first paint, and to the first heading with the simulator ready
 *
 * Each figure is the median of several measurements in one session.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const lab = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(lab);
const file = pathToFileURL(join(root, "dist/lab.html")).href;
const native = join(root, ".venv/bin/celltrain");
const launched = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] };
/** Timeout in milliseconds, longer than any step needs. */
const PATIENCE = 300_000;

const parts = { speed, first, pan, memory, paint };
const chosen = process.argv.slice(2);
for (const name of chosen.length > 0 ? chosen : Object.keys(parts)) {
  await parts[name]();
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Opens the page in a new browser. */
async function opened(hash = "", init = "") {
  const browser = await chromium.launch(launched);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(PATIENCE);
  await page.addInitScript(init);
  await page.goto(file + hash);
  await page.locator("main h1").first().waitFor();
  return { browser, page };
}

async function speed() {
  const { browser, page } = await opened("#/run");
  const texts = await page.evaluate(() => window.celltrain.scenarios());
  for (const name of ["lan-epd", "wan-epd", "internetwork-abr-er"]) {
    const [there, here, seconds] = [[], [], []];
    for (let turn = 0; turn < 15; turn += 1) {
      const answer = await page.evaluate((toml) => window.celltrain.run(toml, 1), texts[name]);
      const expected = JSON.parse(execFileSync(native, ["run", name, "--seed", "1", "--json"], { encoding: "utf8" }));
      if (answer.fingerprint !== expected.fingerprint) {
        throw new Error(`${name}: ${answer.fingerprint} is not ${expected.fingerprint}`);
      }
      here.push(answer.timing.cell_hops_per_second);
      seconds.push(answer.timing.engine_seconds);
      there.push(expected.timing.cell_hops_per_second);
    }
    const million = (value) => (value / 1e6).toFixed(1);
    const share = (one, other) => `${((100 * one) / other).toFixed(0)} %`;
    // On a busy machine the fastest runs are the best measure, because nothing can make a run faster than it is.
    const [best, bestThere] = [Math.max(...here), Math.max(...there)];
    console.log(
      `speed ${name}: ${million(median(here))} million cell-hops/s in the page, ${million(median(there))} on the ` +
        `command line, ${share(median(here), median(there))} of it; fastest ${million(best)} and ` +
        `${million(bestThere)}, ${share(best, bestThere)}; a run takes ${median(seconds).toFixed(2)} s`,
    );
  }
  await browser.close();
}

/** Returns the milliseconds from the click until the first dot has been painted. */
async function untilDot(page, press) {
  await page.evaluate(() => {
    window.untilDot = new Promise((resolve) => {
      let pressed = 0;
      addEventListener("click", (event) => (pressed = event.timeStamp), { capture: true, once: true });
      const watch = new MutationObserver(() => {
        if (document.querySelector(".dots-cloud i") !== null) {
          watch.disconnect();
          // Two frames later, the first one has been on the screen.
          requestAnimationFrame(() => requestAnimationFrame((now) => resolve(now - pressed)));
        }
      });
      watch.observe(document.body, { childList: true, subtree: true });
    });
  });
  await press.click();
  return page.evaluate(() => window.untilDot);
}

async function first() {
  const times = [];
  for (let turn = 0; turn < 7; turn += 1) {
    const { browser, page } = await opened("#/run");
    times.push(await untilDot(page, page.locator("#run:not([disabled])")));
    await browser.close();
  }
  console.log(`first result under "Run", ten seeds: ${median(times).toFixed(0)} ms (${times.map(Math.round).join(", ")})`);
  const stories = await opened("#/learn");
  const links = await stories.page.locator('main a[href^="#/learn/"]').evaluateAll((all) => all.map((a) => a.hash));
  await stories.browser.close();
  for (const story of new Set(links.map((hash) => hash.split("/")[2]))) {
    const look = await opened(`#/learn/${story}/1`);
    const steps = await look.page.locator(".story-steps li").count();
    await look.browser.close();
    for (let step = 1; step <= steps; step += 1) {
      const taken = [];
      for (let turn = 0; turn < 3; turn += 1) {
        const { browser, page } = await opened(`#/learn/${story}/${step}`);
        const press = page.locator("#run-step");
        if ((await press.count()) > 0) {
          if ((await page.getByRole("radio").count()) > 0) {
            await page.getByRole("radio").last().check();
          } else {
            await page.getByRole("button", { name: /^I guess/ }).click();
          }
          taken.push(await untilDot(page, press));
        }
        await browser.close();
        if (taken.length === 0) {
          break;
        }
      }
      if (taken.length > 0) {
        console.log(`first result of story ${story}, step ${step}: ${median(taken).toFixed(0)} ms`);
      }
    }
  }
}

/** Describes the frame rate and the slowest frame, given the milliseconds between frames. */
function frames(gaps) {
  const rate = (1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0);
  return `${rate.toFixed(1)} frames per second, median ${median(gaps).toFixed(1)} ms, slowest ${Math.max(...gaps).toFixed(0)} ms`;
}

async function pan() {
  const folder = mkdtempSync(join(tmpdir(), "lab-pan-"));
  const built = join(folder, "pan.html");
  execFileSync("node", ["build.mjs", "--page", "measure/pan.tsx", "--out", built], { cwd: lab });
  const browser = await chromium.launch(launched);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(built).href);
  await page.locator("#million canvas").waitFor();
  await page.evaluate(() => window.pan(1));
  const { worked } = await renderers(browser);
  for (let turn = 0; turn < 3; turn += 1) {
    const before = worked();
    const { gaps, painted } = await page.evaluate(async () => {
      window.painted.length = 0;
      return { gaps: await window.pan(5), painted: window.painted };
    });
    // On a busy machine frames are late for other reasons. The processor time shows that.
    const frame = (worked() - before) / gaps.length;
    console.log(
      `pan a million points: ${frames(gaps)}; a frame takes ${frame.toFixed(1)} ms of a processor in the page's thread, ` +
        `thinning and drawing ${median(painted).toFixed(1)} ms`,
    );
  }
  await browser.close();
  rmSync(folder, { recursive: true });
  await panInside();
}

/** Measures the plots of a run, over as many steps as a port records. */
async function panInside() {
  const { browser, page } = await opened("#/inside");
  await page.getByRole("button", { name: "Run and look" }).click();
  await page.locator(".stage").waitFor();
  const before = await page.locator(".timeline p").innerText();
  const box = await page.locator("#plot-overall .u-over").boundingBox();
  await page.mouse.move(box.x + 0.1 * box.width, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.15 * box.width, box.y + 20);
  await page.mouse.move(box.x + 0.2 * box.width, box.y + 20);
  await page.mouse.up();
  await page.waitForFunction((old) => (document.querySelector(".timeline p")?.textContent ?? old) !== old, before);
  console.log(`pan inside looks at: ${await page.locator(".timeline p").innerText()}`);
  await page.locator("#plot-stack").focus();
  await page.keyboard.press("+");
  for (let turn = 0; turn < 3; turn += 1) {
    const gaps = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const plot = document.querySelector("#plot-stack");
          const found = [];
          let before = performance.now();
          const frame = (now) => {
            found.push(now - before);
            before = now;
            if (found.length === 120) {
              resolve(found.slice(1));
              return;
            }
            const key = found.length % 2 === 0 ? "ArrowRight" : "ArrowLeft";
            plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        }),
    );
    console.log(`pan inside, all plots of a run: ${frames(gaps)}`);
  }
  const steps = await stepTimes(page);
  console.log(`pan inside: a step of the microscope by the next cell is drawn within ${median(steps).toFixed(0)} ms`);
  await browser.close();
}

/** Returns the milliseconds of main thread from a click on "Next cell" to the next frame. */
async function stepTimes(page) {
  return page.evaluate(async () => {
    const press = [...document.querySelectorAll("button")].find((b) => b.getAttribute("aria-label") === "Next cell");
    const times = [];
    for (let i = 0; i < 20; i += 1) {
      const begun = performance.now();
      press.click();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - begun);
    }
    return times;
  });
}

/** Returns the kilobytes in a line of a /proc file. */
function kilobytes(path, name) {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? Number.NaN);
}

/** Measures the largest of a browser's renderers: the page runs in one of them, the others are spare and idle. */
async function renderers(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const ids = processInfo.filter((p) => p.type === "renderer" && existsSync(`/proc/${p.id}`)).map((p) => p.id);
  const most = (file, name) => Math.max(...ids.map((id) => kilobytes(`/proc/${id}/${file}`, name))) / 1024;
  /** Returns the milliseconds of work of the main threads: fields 14 and 15 of stat, in hundredths of a second. */
  const worked = () =>
    ids.reduce((sum, id) => {
      const fields = readFileSync(`/proc/${id}/task/${id}/stat`, "utf8").split(") ")[1].split(" ");
      return sum + 10 * (Number(fields[11]) + Number(fields[12]));
    }, 0);
  return { own: () => most("smaps_rollup", "Pss"), resident: () => most("status", "VmHWM"), worked };
}

async function memory() {
  const eight = "Object.defineProperty(Navigator.prototype, 'hardwareConcurrency', { get: () => 8 });";
  const list = await opened("#/run");
  const names = Object.keys(await list.page.evaluate(() => window.celltrain.scenarios()));
  await list.browser.close();
  const all = [];
  for (const name of names) {
    const { browser, page } = await opened("#/run", eight);
    const taken = await renderers(browser);
    let most = 0;
    const look = () => (most = Math.max(most, taken.own()));
    const watch = setInterval(look, 50);
    await page.getByRole("button", { name: "Choose a scenario …" }).click();
    await page.getByLabel("Search", { exact: true }).fill(name);
    const exact = page.locator("strong").filter({ hasText: new RegExp(`^${name}$`) });
    await page.locator(".gallery-list button").filter({ has: exact }).click();
    await page.locator("#run:not([disabled])").click();
    await page.locator('.results[data-phase="done"]').waitFor();
    look();
    const run = most;
    await page.getByRole("link", { name: "Look inside", exact: true }).click();
    await page.locator("#look:not([disabled])").click();
    await page.locator(".stage").waitFor();
    look();
    clearInterval(watch);
    all.push({ name, most });
    console.log(
      `memory ${name}: ten seeds ${run.toFixed(0)} MiB, then looked inside ${most.toFixed(0)} MiB ` +
        `(${taken.resident().toFixed(0)} MiB including memory shared between processes)`,
    );
    await browser.close();
  }
  const worst = all.reduce((a, b) => (a.most > b.most ? a : b));
  console.log(`memory: the largest is ${worst.most.toFixed(0)} MiB, by ${worst.name}`);
}

async function paint() {
  const [painted, ready] = [[], []];
  for (let turn = 0; turn < 9; turn += 1) {
    const { browser, page } = await opened("#/run");
    ready.push(await page.evaluate(() => performance.now()));
    painted.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
    await browser.close();
  }
  console.log(`paint: first ${median(painted).toFixed(0)} ms, ready ${median(ready).toFixed(0)} ms`);
}
