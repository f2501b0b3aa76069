import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import {
  SMALL_LIMITS,
  choose,
  close,
  closeBrowser,
  divide,
  guessAndRun,
  look,
  open,
  overflow,
  raise,
  run,
  shipped,
  skip,
  typeSeeds,
  write,
} from "./browser.ts";

after(closeBrowser);

test(
  "the microscope steps by cell, frame and loss, forwards and backwards, and explains each refusal with numbers",
  { skip },
  async () => {
    const opened = await open("#/inside");
    const { page } = opened;
    await look(page);
    const scrub = page.locator("#scrub");
    const at = async (): Promise<number> => Number(await scrub.inputValue());
    assert.match(
      await page.locator(".event").innerText(),
      /was discarded.*X is above R: X\s=\s\d+ cells.*threshold was 800/s,
    );
    const start = await at();
    for (const sort of ["cell", "frame", "loss"]) {
      await page.getByRole("button", { name: `Next ${sort}`, exact: true }).click();
      const next = await at();
      assert.ok(next > start, sort);
      await page.getByRole("button", { name: `Previous ${sort}`, exact: true }).click();
      assert.ok((await at()) < next, sort);
      await scrub.fill(String(start));
    }
    // The keyboard has the same effect, unless a field or the buffer has the focus.
    await page.locator("main").focus();
    for (const [forwards, back] of [
      ["ArrowRight", "ArrowLeft"],
      ["Shift+ArrowRight", "Shift+ArrowLeft"],
      ["l", "Shift+L"],
    ] as const) {
      await page.keyboard.press(forwards);
      const next = await at();
      assert.ok(next > start, forwards);
      await page.keyboard.press(back);
      assert.ok((await at()) < next, back);
      await scrub.fill(String(start));
      await page.locator("main").focus();
    }
    const canvas = page.locator("#microscope");
    await canvas.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator(".microscope-cell").innerText(), /^Position 2: cell \d+ of tcp\d’s frame \d+/);
    await scrub.fill("0");
    assert.match(await page.locator(".event").innerText(), /Before the first event/);
    await page
      .getByRole("button", { name: /^source1->sw1|^sw2->destination1/ })
      .first()
      .focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "The buffer of sw2->destination1" }).waitFor();
    assert.ok((await overflow(page)) <= 0);
    await close(opened);
  },
);

test("a timeout outside the time window is announced, and a click shows the timeout", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  await guessAndRun(page);
  await page.getByRole("button", { name: /See the buffer overflow/ }).click();
  await page.getByRole("button", { name: "Previous timeout" }).click();
  await page.getByText("There is no earlier timeout in this run.").waitFor();
  await page.getByRole("button", { name: "Next timeout" }).click();
  await page.getByText("There is no later timeout in this window.").waitFor();
  await page.getByRole("button", { name: "Show the next one, at 300 ms" }).click();
  await page.getByText(/at 300 ms, the retransmission timer ran out: tcp1, tcp2, tcp3, tcp4, tcp5\./).waitFor();
  assert.match(await page.locator(".timeline p").innerText(), /from 297 ms to 309 ms.* 5 timeouts/);
  await close(opened);
});

test("dragging over the whole run shows that range in detail", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  await page.locator("#plot-overall").scrollIntoViewIfNeeded();
  const box = await page.locator("#plot-overall .u-over").boundingBox();
  assert.ok(box !== null);
  await page.mouse.move(box.x + 0.06 * box.width, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.065 * box.width, box.y + 25);
  await page.mouse.move(box.x + 0.07 * box.width, box.y + 25);
  await page.mouse.up();
  const range = page.locator(".timeline p").filter({ hasText: /from \d{3}\.\d+ ms to \d{3}\.\d+ ms/ });
  await range.waitFor();
  assert.equal(await range.count(), 1);
  await close(opened);
});

test("on a phone, a large buffer covers no text", { skip }, async () => {
  const opened = await open("#/run", { width: 400, height: 700 });
  const { page } = opened;
  await choose(page, "wan-epd");
  await page.goto(page.url().replace(/#.*/, "#/inside"));
  await look(page);
  // 12,000 places need more than the height that the stage leaves.
  const end = (of: string, edge: "top" | "bottom"): Promise<number> =>
    page.locator(of).evaluate((element, side) => element.getBoundingClientRect()[side], edge);
  assert.ok((await end("#microscope", "bottom")) <= (await end(".microscope-count", "top")));
  assert.ok((await overflow(page)) <= 0);
  await close(opened);
});

test("plots zoom and move with the keyboard", { skip }, async () => {
  const opened = await open("#/inside", { width: 360 });
  const { page } = opened;
  await look(page);
  assert.ok((await overflow(page)) <= 0, "it fits on a phone");
  const plot = page.locator("#plot-stack");
  const label = async (): Promise<string> => (await plot.getAttribute("aria-label")) ?? "";
  const whole = await label();
  await plot.focus();
  await page.keyboard.press("+");
  assert.notEqual(await label(), whole);
  await page.keyboard.press("0");
  assert.equal(await label(), whole);
  await close(opened);
});

test("keys over the whole run select a range, and nothing runs until Enter", { skip }, async () => {
  const opened = await open("#/inside", { init: SMALL_LIMITS });
  const { page } = opened;
  await look(page);
  const asked = async (): Promise<number> =>
    page.evaluate(() => (window as unknown as { asked: Record<string, number> }).asked["buffer"] ?? 0);
  const stretch = async (): Promise<string> =>
    (await page.locator(".timeline p").innerText()).replace(/.*(from .* to [\d.]+ m?s).*/s, "$1");
  const [runs, before] = [await asked(), await stretch()];
  const plot = page.locator("#plot-overall");
  await plot.focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "-", "-"]) {
    await page.keyboard.press(key);
  }
  const over = await page.locator("#plot-overall .u-over").boundingBox();
  assert.ok(over !== null);
  await page.mouse.move(over.x + over.width / 2, over.y + 20);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 120);
  await page.keyboard.up("Control");
  const offered = await page.getByRole("button", { name: /^Look at \d/ }).innerText();
  assert.deepEqual([await asked(), await stretch()], [runs, before], "nothing has run");
  await plot.focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((old) => !document.querySelector(".timeline p")?.textContent?.includes(old), before);
  assert.equal(await stretch(), offered.replace("Look at", "from"));
  assert.equal(await asked(), runs + 1);
  await close(opened);
});

test("timeouts can be stepped to, forwards and backwards, and a message says if there is none", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  const plot = page.locator("#plot-overall");
  await plot.focus();
  // Select the whole run; the recorded part at its start includes losses and timeouts of all connections.
  await page.keyboard.press("0");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /to 10 s/.test(document.querySelector(".timeline p")?.textContent ?? ""));
  assert.match(
    await page.locator(".timeline p").innerText(),
    /[\d,]+ cells? lost, \d+ frames? damaged, [\d,]+ cells discarded \([\d,]+ whole frames\), \d{2,} timeouts/,
  );
  const scrub = page.locator("#scrub");
  const at = async (): Promise<number> => Number(await scrub.inputValue());
  await scrub.fill("0");
  const found: number[] = [];
  for (let i = 0; i < 3; i += 1) {
    await page.getByRole("button", { name: "Next timeout", exact: true }).click();
    found.push(await at());
  }
  assert.ok((found[0] ?? 0) > 0 && (found[1] ?? 0) >= (found[0] ?? 0), found.join());
  await page.getByRole("button", { name: "Previous timeout", exact: true }).click();
  assert.ok((await at()) < (found.at(-1) ?? 0));
  await scrub.fill("0");
  await page.getByRole("button", { name: "Previous timeout", exact: true }).click();
  await page.getByText("There is no earlier timeout in this run.").waitFor();
  assert.equal(await at(), 0);
  await close(opened);
});

test("a time window that took too long to simulate is shown after the limit is raised", { skip }, async () => {
  const opened = await open("#/inside", { init: SMALL_LIMITS });
  const { page } = opened;
  await look(page);
  const plot = page.locator("#plot-overall");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const offered = await page.getByRole("button", { name: /^Look at \d/ }).innerText();
  await divide(page, { buffer: 1e7 });
  await plot.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  const chosen = offered.replace("Look at", "from");
  await raise(page, /^Run it with a limit of/, `.timeline p:has-text("${chosen}")`);
  assert.ok((await page.locator(".timeline p").innerText()).includes(chosen));
  assert.equal(await page.getByRole("alert").count(), 0);
  await close(opened);
});

test("the cells on the link of the selected port are those it sent last", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  await page.evaluate(() => {
    location.hash = "#/run";
  });
  await choose(page, "lan-tail-drop");
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  const sent = page.locator(".net-queue.chosen .net-cell");
  await page.locator("#scrub").fill("0");
  assert.equal(await sent.count(), 0, "none of the window yet");
  const most = Number(await page.locator("#scrub").getAttribute("max"));
  await page.locator("#scrub").fill(String(most));
  const cells = await sent.count();
  assert.ok(cells >= 10, String(cells));
  await close(opened);
});

/** Returns the vertical extent of the sentence, the buffer and the controls in the window. */
async function stageInWindow(page: Page): Promise<{ top: number; bottom: number }> {
  return page.evaluate(() => {
    const boxes = [".event", "#microscope", ".player", "#scrub"].map((s) => document.querySelector(s)?.getBoundingClientRect());
    return {
      top: Math.min(...boxes.map((b) => b?.top ?? Number.NaN)),
      bottom: Math.max(...boxes.map((b) => b?.bottom ?? Number.NaN)),
    };
  });
}

// Regression: the microscope began at 1005 px in a window 800 px high.
test("a story leads to a fully visible stage: sentence, buffer and controls", { skip }, async () => {
  for (const [width, height] of [
    [1280, 800],
    [1280, 720],
    [1920, 1080],
    [390, 844],
  ] as const) {
    const opened = await open("#/learn/one-cell/2", { width, height });
    const { page } = opened;
    await guessAndRun(page);
    await page.getByRole("button", { name: /^See the buffer overflow/ }).click();
    await page.locator(".stage").waitFor();
    await page.waitForFunction(() => (document.querySelector("#microscope")?.clientWidth ?? 0) > 300);
    const { top, bottom } = await stageInWindow(page);
    assert.ok(top >= 0 && bottom <= height, `${String(width)} x ${String(height)}: ${String(top)} to ${String(bottom)}`);
    if (width >= 1280) {
      const stage = await page.locator(".stage").boundingBox();
      assert.ok(stage !== null && stage.y >= 0 && stage.y + stage.height <= height, JSON.stringify(stage));
      assert.equal(await page.evaluate(() => scrollY), 0, "nothing had to scroll");
    }
    assert.ok((await overflow(page)) <= 0);
    await page.getByRole("link", { name: /Back to the story/ }).click();
    await page.locator(".story").waitFor();
    await close(opened);
  }
});

test("the space bar plays and pauses, also after a click, but activates a button focused by keyboard", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  const at = async (): Promise<number> => Number(await page.locator("#scrub").inputValue());
  const playing = page.getByRole("button", { name: "Pause", exact: true });
  const paused = page.getByRole("button", { name: "Play", exact: true });
  await page.getByLabel("Speed").selectOption("600");
  await page.locator(".event").click();
  const start = await at();
  await page.keyboard.press(" ");
  await playing.waitFor();
  await page.waitForFunction((from) => Number(document.querySelector<HTMLInputElement>("#scrub")?.value) > from, start);
  await page.keyboard.press(" ");
  await paused.waitFor();
  // A frame that was already requested may still be drawn.
  await page.waitForTimeout(100);
  const rested = await at();
  await page.waitForTimeout(100);
  assert.equal(await at(), rested, "paused");
  await page.getByRole("button", { name: "Next loss", exact: true }).click();
  const stepped = await at();
  await page.keyboard.press(" ");
  await playing.waitFor();
  await page.keyboard.press(" ");
  await paused.waitFor();
  assert.ok((await at()) >= stepped);
  // When reached by keyboard, a focused button reacts to the space bar itself.
  await page.locator("#microscope").focus();
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Next frame", exact: true }).focus();
  const before = await at();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press(" ");
  assert.ok((await at()) > before);
  assert.equal(await playing.count(), 0);
  // If the window has ended, playing starts again from its beginning.
  await page.locator("#scrub").fill(String(await page.locator("#scrub").getAttribute("max")));
  await paused.click();
  await page.waitForFunction((end) => Number(document.querySelector<HTMLInputElement>("#scrub")?.value) < end, before);
  await close(opened);
});

test("a click on a cell loses it on the link, and undo brings it back", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  await page.locator("#microscope").click({ position: { x: 4, y: 4 } });
  const spoken = await page.locator(".microscope-cell").innerText();
  assert.match(spoken, /^Position 1: cell/);
  await page.getByRole("button", { name: "Lose it on the link" }).click();
  const notice = page.getByText(/^The scenario now loses cell [\d,]+ of tcp\d on sw1->sw2\./);
  await notice.waitFor();
  const undo = page.getByRole("button", { name: "Undo" });
  await page.waitForFunction(() => document.querySelector(".bar-progress") === null);
  await page.getByText("The scenario or the seed has changed").waitFor({ state: "detached" });
  await undo.click();
  await notice.waitFor({ state: "detached" });
  await close(opened);
});

test("a protocol stack runs, its cells can be lost, and the page says which values it does not report", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await write(page, (await shipped(page, "lan-smoltcp")).replace('"5s"', '"50ms"'));
  await page.getByRole("tab", { name: "Form" }).click();
  await page.locator(".form-stack").first().waitFor();
  await typeSeeds(page, 1);
  await run(page);
  const row = await page.getByRole("table", { name: "Connections" }).locator("tbody tr").first().innerText();
  assert.match(row, /^tcp1\s+\d+\.\d+\s+[\d,]+\s+\d+\s+–\s+–$/, "no timeouts and fast retransmits");
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  const silent = "smoltcp does not report its congestion windows and timeouts.";
  const note = page.locator(".timeline p");
  assert.match(await note.innerText(), new RegExp(`\\(\\d+ whole frames?\\)\\. ${silent}`));
  await page.getByRole("button", { name: "Next timeout", exact: true }).click();
  assert.equal(await note.innerText(), silent);
  assert.equal(await page.locator("#plot-cwnd").count(), 0);
  const scrub = page.locator("#scrub");
  const start = Number(await scrub.inputValue());
  await page.getByRole("button", { name: "Next frame", exact: true }).click();
  assert.ok(Number(await scrub.inputValue()) > start);
  await page.getByRole("button", { name: "Previous frame", exact: true }).click();
  const before = await page.locator(".event").innerText();
  await page.locator("#microscope").click({ position: { x: 4, y: 4 } });
  await page.getByRole("button", { name: "Lose it on the link" }).click();
  await page.getByText(/^The scenario now loses cell [\d,]+ of tcp\d on sw1->sw2\./).waitFor();
  await page.getByText("The scenario or the seed has changed").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("The scenario or the seed has changed").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector(".bar-progress") === null);
  assert.equal(await page.locator(".event").innerText(), before);
  await close(opened);
});

test("next to the simulator’s TCP, a real stack has no line in the plot of windows", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await choose(page, "smoltcp-and-reno");
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  assert.equal(await page.locator("#plot-cwnd").count(), 1);
  assert.match(await page.locator(".timeline p").innerText(), /\d+ timeouts?\. smoltcp does not report/);
  await close(opened);
});

test("each run under “Run” opens in the microscope with its seed", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await typeSeeds(page, 3, 5);
  await run(page);
  await page.locator("summary").filter({ hasText: "Each run" }).click();
  await page.getByRole("button", { name: "Look inside seed 6" }).click();
  await page.getByRole("heading", { name: /^Inside .*, seed 6$/, level: 1 }).waitFor();
  assert.equal(await page.getByLabel("Seed", { exact: true }).inputValue(), "6");
  await page.getByRole("link", { name: "Run", exact: true }).click();
  assert.equal(await page.getByLabel("First seed").inputValue(), "5", "the seeds under Run are unchanged");
  assert.equal(await page.locator(".results .notice").count(), 0, "the results are still current");
  await close(opened);
});

test("a link contains the instant that the microscope shows", { skip }, async () => {
  const first = await open("#/inside");
  await look(first.page);
  await first.page.getByRole("button", { name: /^sw2->destination1/ }).first().focus();
  await first.page.keyboard.press("Enter");
  await first.page.getByRole("heading", { name: "The buffer of sw2->destination1" }).waitFor();
  await first.page.locator("#scrub").fill("123");
  const sentence = await first.page.locator(".event").innerText();
  await first.page.getByRole("button", { name: "Share and keep" }).click();
  await first.page.waitForFunction(() => document.querySelector(".keep pre")?.textContent?.includes("#v1."));
  const address = (await first.page.getByLabel("link", { exact: true }).textContent()) ?? "";
  await close(first);
  const second = await open(`#${address.split("#")[1] ?? ""}`);
  await second.page.getByRole("heading", { name: "The buffer of sw2->destination1" }).waitFor();
  assert.equal(await second.page.locator("#scrub").inputValue(), "123");
  assert.equal(await second.page.locator(".event").innerText(), sentence);
  await close(second);
});

test("a shared memory is a block below the buffer, and a lost cell names its pool and threshold", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const toml = await shipped(page, "memory-dynamic-threshold");
  await write(page, toml.replace('"2s"', '"20ms"'));
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  const block = page.locator(".memory");
  assert.match((await block.getAttribute("aria-label")) ?? "", /^The shared memory: \d+ of 1,000 cells; /);
  const places = (): Promise<string[]> =>
    block.locator("b").evaluateAll((marks) => marks.map((mark) => (mark as HTMLElement).style.left));
  await page.locator("#scrub").fill("0");
  await page.getByRole("button", { name: "Next loss", exact: true }).click();
  const before = await places();
  assert.ok(before.length >= 2, "a mark for each queue");
  assert.match(
    await page.locator(".event").innerText(),
    /The pool sw\/main refused the cell because q_i would exceed .*Q\s=\s\d+ of B\s=\s1,000 cells.*its threshold was \d+/s,
  );
  await page.locator("#scrub").fill(String(Number(await page.locator("#scrub").getAttribute("max"))));
  assert.notDeepEqual(await places(), before, "thresholds move");
  assert.ok((await overflow(page)) <= 0);
  await close(opened);
});
