import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
import { after, test } from "node:test";
import { choose, close, closeBrowser, look, open, overflow, removeAll, run, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

for (const width of [1280, 400]) {
  test(`requests have tables and a plot, and fit into ${String(width)} pixels`, { skip }, async () => {
    const opened = await open("#/run", { width });
    const { page } = opened;
    await choose(page, "leaf-spine-web-search");
    await page.getByText("40 nodes, 2 groups of requests").waitFor();
    await typeSeeds(page, 2);
    await run(page);
    assert.equal(await page.getByRole("region", { name: "Connections" }).count(), 0);
    const times = page.getByRole("region", { name: "Completion time" }).locator("tbody tr");
    assert.equal(await times.count(), 6);
    assert.match(await times.last().innerText(), /query, queries[\s\S]*needs 20, 100 and 1,000 queries, \d+ with seed [12]/);
    assert.equal(await page.locator(".request-dots").count(), 2);
    const box = await page.locator("#requests-svg").boundingBox();
    assert.ok(box !== null && box.width > 250 && box.x + box.width <= width, JSON.stringify(box));
    assert.ok((await overflow(page)) <= 0);
    const { violations } = await new AxeBuilder({ page }).include(".results").analyze();
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).join(" ")}`), []);
    await close(opened);
  });
}

test("the microscope draws a leaf-spine network and lists its requests", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await write(page, (await shipped(page, "leaf-spine-web-search")).replace('until = "finished"\n\n[measure]\nto = "20ms"\n', "").replace('"200ms"', '"3ms"'));
  await page.getByRole("link", { name: "Look inside" }).click();
  await look(page);
  assert.equal(await page.locator(".net-queue").count(), 64);
  const place = async (of: string): Promise<number> => Number(await page.locator(`.network ${of}`).first().getAttribute("x"));
  const host = Number(await page.locator(".net-host").first().getAttribute("cx"));
  assert.ok(host < (await place(".net-switch")));
  const names = await page.getByLabel("Connection", { exact: true }).locator("option").allTextContents();
  assert.ok(names.some((name) => /^web\d+$/.test(name)) && new Set(names).size === names.length, names.join());
  assert.ok(names.indexOf("query2") < names.indexOf("query10"), names.join());
  await close(opened);
});

test("Compare shows any statistic of requests, with differences, instead of fairness", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = await shipped(page, "leaf-spine-web-search");
  await write(page, text.replace("alpha = 1.0", "alpha = 0.1").replace(/^name = .*$/m, 'name = "small alpha"'));
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await removeAll(page);
  await page.getByLabel("Add a shipped scenario").selectOption("leaf-spine-web-search");
  await page.getByRole("button", { name: "Add the scenario under “Run”" }).click();
  await typeSeeds(page, 2);
  await page.locator("#run-compare").click();
  await page.locator('.compare[data-phase="done"]').waitFor();
  assert.equal(await page.locator("#plane-svg").count(), 0);
  const cells = page.locator("section[aria-labelledby=requests-title] tbody tr").last().locator("td");
  assert.match(await cells.last().innerText(), /^[+-]?[\d.]+\s\[/);
  await page.getByLabel("Group and size").selectOption("query, queries");
  await page.getByLabel("Measure", { exact: true }).selectOption("completion time in ms, 95th percentile");
  assert.match(await cells.nth(1).innerText(), /^needs 20 queries, \d+ with seed [12]$/);
  await page.getByLabel("Measure", { exact: true }).selectOption("completion time in ms, median");
  assert.match(await cells.nth(1).innerText(), /^[\d.]+\s\[/);
  assert.ok((await overflow(page)) <= 0);
  await close(opened);
});
