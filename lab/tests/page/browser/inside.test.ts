import assert from "node:assert/strict";
import { after, test } from "node:test";
import { SMALL_LIMITS, close, closeBrowser, divide, look, open, overflow, raise, skip } from "./browser.ts";

after(closeBrowser);

test(
  "the microscope steps by cell, frame and loss, forwards and backwards, and tells each refusal with its numbers",
  { skip },
  async () => {
    const opened = await open("#/inside");
    const { page } = opened;
    await look(page);
    const scrub = page.locator("#scrub");
    const at = async (): Promise<number> => Number(await scrub.inputValue());
    assert.match(
      await page.locator(".told").innerText(),
      /is refused.*X is above R: X = \d+ cells.*threshold was 800/s,
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
    const canvas = page.locator("#microscope");
    await canvas.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator(".microscope-cell").innerText(), /^Place 2: cell \d+ of frame \d+ of tcp\d/);
    await scrub.fill("0");
    assert.match(await page.locator(".told").innerText(), /Before the first event/);
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

test("dragging over the whole run looks closer there", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  const before = await page.locator(".timeline p").innerText();
  const box = await page.locator("#plot-overall .u-over").boundingBox();
  assert.ok(box !== null);
  await page.mouse.move(box.x + 0.06 * box.width, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.065 * box.width, box.y + 25);
  await page.mouse.move(box.x + 0.07 * box.width, box.y + 25);
  await page.mouse.up();
  await page.waitForFunction((old) => {
    const text = document.querySelector(".timeline p")?.textContent ?? old;
    return text !== old;
  }, before);
  assert.match(await page.locator(".timeline p").innerText(), /from \d{3}\.\d+ ms to \d{3}\.\d+ ms/);
  await close(opened);
});

test("plots zoom and move with the keyboard", { skip }, async () => {
  const opened = await open("#/inside", { width: 360 });
  const { page } = opened;
  await look(page);
  assert.ok((await overflow(page)) <= 0, "a phone has room for it");
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

test("keys over the whole run choose a stretch, and nothing runs until Enter", { skip }, async () => {
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

test("timeouts are stepped to, forwards and backwards, and where there is none it is told", { skip }, async () => {
  const opened = await open("#/inside");
  const { page } = opened;
  await look(page);
  const plot = page.locator("#plot-overall");
  await plot.focus();
  // The whole run, then its first fraction of a second: in it all have lost something and waited for their timers.
  await page.keyboard.press("0");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /to 10 s/.test(document.querySelector(".timeline p")?.textContent ?? ""));
  assert.match(
    await page.locator(".timeline p").innerText(),
    /[\d,]+ cells lost, [\d,]+ frames refused, \d+ frames? cut, \d{2,} timeouts/,
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
  await page.getByText("There is no earlier timeout in this window.").waitFor({ state: "attached" });
  assert.equal(await at(), 0);
  await close(opened);
});

test("a window that took too long is the one that is looked at with a higher limit", { skip }, async () => {
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

test("the cells on the link of the port looked at are those that it sent last", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  await page.evaluate(() => {
    location.hash = "#/run";
  });
  await page.getByLabel("Shipped scenario").selectOption("lan-tail-drop");
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
