import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { close, closeBrowser, look, open, overflow, run, skip, typeSeeds } from "./browser.ts";

const PLACES = ["", "#/learn/one-cell/1", "#/learn/share/2", "#/learn/own/1", "#/run", "#/inside", "#/compare"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

after(closeBrowser);

/** Opens a view as its link would, and waits until it is drawn. */
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

/** Returns axe's serious and critical findings. */
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

test("no view of the page scrolls sideways, from a phone to a projector", { skip }, async () => {
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
      const cut = await dialog.locator("button").evaluateAll((all) => all.filter((b) => b.scrollWidth > b.clientWidth).length);
      assert.equal(cut, 0, `buttons of “${name}” at ${String(width)} px`);
      await opened.page.keyboard.press("Escape");
    }
    await close(opened);
  }
});

test("axe reports no serious accessibility findings in any view, light or dark, on laptop and phone", { skip }, async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1280, 390]) {
      const opened = await open("", { colorScheme, width });
      const at = `${colorScheme}, ${String(width)} px`;
      for (const place of PLACES) {
        await goTo(opened.page, place);
        assert.deepEqual(await findings(opened.page), [], `${place}, ${at}`);
      }
      await goTo(opened.page, "#/inside");
      await look(opened.page);
      assert.deepEqual(await findings(opened.page), [], `the microscope, ${at}`);
      await opened.page.getByRole("button", { name: "Help for this page" }).click();
      assert.deepEqual(await findings(opened.page), [], `help, ${at}`);
      await close(opened);
    }
  }
});

test("on a phone the header is one row, and its links and buttons keep their names", { skip }, async () => {
  for (const width of [320, 360, 390]) {
    const opened = await open("", { width });
    const { page } = opened;
    const header = await page.locator(".masthead").boundingBox();
    assert.ok(header !== null && header.height <= 64, `${String(width)} px: ${String(header?.height)}`);
    assert.ok((await overflow(page)) <= 0, String(width));
    for (const name of ["Learn", "Run", "Look inside", "Compare"]) {
      await page.getByRole("link", { name, exact: true }).waitFor();
    }
    await page.getByRole("button", { name: "Share and keep" }).waitFor();
    await page.getByRole("button", { name: /^Colours: / }).waitFor();
    await close(opened);
  }
});

test("link names do not break across lines on a phone", { skip }, async () => {
  const opened = await open("#/inside", { width: 390 });
  const { page } = opened;
  await look(page);
  const rows = await page.locator(".name").evaluateAll((names) => names.map((n) => [n.textContent, n.getClientRects().length]));
  assert.ok(rows.length >= 2, JSON.stringify(rows));
  assert.deepEqual(
    rows.filter(([, lines]) => lines !== 1),
    [],
  );
  await close(opened);
});

test("axe reports no serious accessibility findings in results, the microscope and a comparison", { skip }, async () => {
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
  await page.getByRole("button", { name: "Run all" }).click();
  await page.getByRole("button", { name: "Run all" }).waitFor();
  assert.deepEqual(await findings(page), []);
  assert.ok((await overflow(page)) <= 0);
  const cut = await page.getByRole("region", { name: "Comparison" }).evaluate((e) => e.scrollWidth - e.clientWidth);
  assert.ok(cut <= 0, "a laptop shows the whole table of differences");
  await close(opened);
});

test("in print nothing is cut off, colours are kept, and there are no buttons", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  await page.emulateMedia({ media: "print" });
  // Use the width of A4 without margins, after the canvases were drawn for a window.
  const [right, presses, colour] = await page.evaluate(() => {
    document.body.style.width = "700px";
    const seen = (e: Element): boolean => e.getClientRects().length > 0;
    return [
      Math.max(...[...document.querySelectorAll("canvas, svg, .plot")].map((e) => e.getBoundingClientRect().right)),
      [...document.querySelectorAll("main button:not(.word), main input")].filter(seen).length,
      getComputedStyle(document.querySelector(".swatch") ?? document.body).printColorAdjust,
    ] as const;
  });
  assert.ok(right <= 700, String(right));
  assert.deepEqual([presses, colour], [0, "exact"]);
  await close(opened);
});

test("the page can be used with the keyboard alone", { skip }, async () => {
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

test("a story, the microscope and a comparison can be used with the keyboard alone", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  /** Presses Tab until the focused element has this text, then Enter. */
  const press = async (words: RegExp): Promise<void> => {
    const named = async (): Promise<string> =>
      page.evaluate(() => {
        const at = document.activeElement;
        return `${at?.getAttribute("aria-label") ?? ""} ${at?.textContent ?? ""}`.trim();
      });
    for (let i = 0; !words.test(await named()); i += 1) {
      assert.ok(i < 80, `${String(words)} is reached with Tab`);
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
  };
  await page.locator("main").focus();
  await press(/^I guess/);
  await press(/^Run it$/);
  await page.locator('[data-answered="true"] .answer').waitFor();
  await press(/^See the buffer overflow/);
  await page.locator(".stage").waitFor();
  await press(/^Next loss/);
  const step = page.locator("#scrub");
  const before = await step.inputValue();
  await page.keyboard.press("Enter");
  assert.notEqual(await step.inputValue(), before);
  await page.locator("header a").first().focus();
  await press(/^Compare$/);
  await page.getByRole("heading", { name: "Compare", level: 1 }).waitFor();
  await press(/^Run all$/);
  const means = async (): Promise<string> => page.locator("tbody").innerText();
  const ended = (): Promise<void> => page.locator('.compare[data-phase="done"]').waitFor();
  await ended();
  const first = await means();
  const slider = page.getByRole("slider").first();
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((old) => (document.querySelector("tbody") as HTMLElement).innerText !== old, first);
  await ended();
  assert.notEqual(await means(), first, "moving a slider runs its setting again");
  await close(opened);
});

test("the security policy blocks what injected code would try", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const tried = await page.evaluate(async () => {
    const broken = new Set<string>();
    document.addEventListener("securitypolicyviolation", (event) => broken.add(event.effectiveDirective));
    const marks = window as unknown as { done: string[] };
    marks.done = [];
    const rests = (): Promise<void> => new Promise((done) => setTimeout(done, 300));
    const failed = async (what: () => unknown): Promise<boolean> => {
      try {
        await what();
        return false;
      } catch {
        return true;
      }
    };
    const put = (html: string): void => {
      const box = document.createElement("div");
      box.innerHTML = html;
      document.body.append(box);
    };
    const script = document.createElement("script");
    script.textContent = 'window.done.push("script")';
    document.body.append(script);
    put(`<img src="data:,x" onerror="window.done.push('handler')"><p style="color: red">x</p>`);
    put('<iframe srcdoc="<script>parent.done.push(1)</script>"></iframe><object data="data:text/html,x"></object>');
    put('<form action="https://127.0.0.1:9/"><input name="a" value="b"></form>');
    document.querySelector("form[action]")?.dispatchEvent(new Event("submit"));
    (document.querySelector('form[action^="https"]') as HTMLFormElement).submit();
    put('<link rel="stylesheet" href="https://127.0.0.1:9/x.css"><img src="https://127.0.0.1:9/x.png">');
    const other = document.createElement("script");
    other.src = "https://127.0.0.1:9/x.js";
    document.body.append(other);
    const fetched = !(await failed(() => fetch("https://127.0.0.1:9/")));
    // Try to run text as code. `new Function` is not tried, because the debugger of the test allows it.
    await failed(() => setTimeout("window.done.push('timer')" as unknown as () => void, 0));
    navigator.sendBeacon?.("https://127.0.0.1:9/", "x");
    new Worker("data:text/javascript,postMessage(1)").onerror = (event) => event.preventDefault();
    const base = document.createElement("base");
    base.href = "https://127.0.0.1:9/";
    document.head.append(base);
    // On a busy machine the reports take a while to arrive.
    for (let i = 0; i < 40 && broken.size < 11; i += 1) {
      await rests();
    }
    const red = getComputedStyle(document.querySelector("p[style]") ?? document.body).color;
    return { broken: [...broken].sort(), done: marks.done, fetched, red, base: document.baseURI };
  });
  assert.deepEqual(tried.done, [], "nothing ran");
  assert.equal(tried.fetched, false);
  assert.notEqual(tried.red, "rgb(255, 0, 0)");
  assert.match(tried.base, /^file:/);
  const held = ["script-src", "script-src-elem", "script-src-attr", "style-src-attr", "style-src-elem", "worker-src"];
  for (const directive of [...held, "connect-src", "form-action", "base-uri", "img-src", "object-src"]) {
    assert.ok(tried.broken.includes(directive), `${directive} of ${tried.broken.join()}`);
  }
  // The console reports what was blocked; nothing left the machine.
  assert.deepEqual(
    opened.messages.filter(
      (m) => !/^error: .*(Content Security Policy|violates)/s.test(m) && !m.startsWith("request: https://127.0.0.1:9/"),
    ),
    [],
  );
  await page.context().close();
});

test("the colour scheme can be chosen, and is not stored", { skip }, async () => {
  const opened = await open("");
  const { page } = opened;
  const ground = async (): Promise<string> =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const press = page.getByRole("button", { name: /Colours/ });
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  assert.notEqual(dark, light, "by default the page follows the system's colours");
  await press.click();
  assert.deepEqual([await press.textContent(), await ground()], ["Colours: ● Dark", dark]);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await ground(), dark, "the choice takes precedence");
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

test("a browser whose DecompressionStream cannot read links gets a message", { skip }, async () => {
  const old = `globalThis.DecompressionStream = class { constructor(form) {
    if (form === "deflate-raw") { throw new TypeError("Unsupported compression format"); } } };`;
  const opened = await open("", { init: old });
  assert.match(await opened.page.getByRole("alert").innerText(), /lacks DecompressionStream.*Chromium 103/);
  await close(opened);
});

test("without WebAssembly the page shows a message", { skip }, async () => {
  const opened = await open("", { init: "delete globalThis.WebAssembly;" });
  assert.match(await opened.page.getByRole("alert").innerText(), /WebAssembly.*disabled/);
  await close(opened);
});
