import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, closeBrowser, look, open, overflow, skip } from "./browser.ts";

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
