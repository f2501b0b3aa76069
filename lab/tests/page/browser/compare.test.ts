import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, closeBrowser, open, removeAll, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

test("a faulty setting is named with its error, and the others run", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = (await shipped(page, "lan-epd")).replace('"10s"', '"200ms"');
  await write(
    page,
    text.replace(/^name = .*$/m, 'name = "mine, with a slip"').replace("[tcp.vanilla]", "[tcp.vanila]"),
  );
  await page.locator(".faults li").first().waitFor();
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await removeAll(page);
  await page.getByRole("button", { name: "Add the scenario under “Run”" }).click();
  await page.getByLabel("Add a shipped scenario").selectOption("lan-epd");
  await page.getByLabel("Add a shipped scenario").selectOption("lan-fba");
  await typeSeeds(page, 3);
  await page.getByRole("button", { name: "Run all" }).click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /mine, with a slip: The scenario has errors.*vanila.*did you mean vanilla/s);
  await page.getByRole("button", { name: "Run all" }).waitFor();
  const rows = await page.locator("tbody tr").allInnerTexts();
  assert.deepEqual(
    rows.map((row) => row.split("\t").slice(0, 2)),
    [
      ["mine, with a slip", "0"],
      ["lan-epd", "3"],
      ["lan-fba", "3"],
    ],
  );
  await close(opened);
});

test("Compare starts with four policies, and one row sets buffer, sources and TCP of all", { skip }, async () => {
  const opened = await open("#/compare");
  const { page } = opened;
  assert.deepEqual(await page.locator(".setting-card legend").allTextContents(), [
    "lan-tail-drop",
    "lan-ppd",
    "lan-epd",
    "lan-selective-drop",
  ]);
  await typeSeeds(page, 2);
  // Clicking Run shows the plot, and moving a slider of the last scenario keeps it in view.
  await page.locator("#run-compare").click();
  await page.locator('.compare[data-phase="done"]').waitFor();
  await page.locator(".setting-card").last().getByRole("slider").last().scrollIntoViewIfNeeded();
  const box = await page.locator("#plane-svg").boundingBox();
  assert.ok(box !== null && box.y >= 0 && box.y + box.height <= 800, JSON.stringify(box));
  const forAll = page.getByRole("group", { name: "For all" });
  await forAll.getByLabel("Buffer K, cells").fill("2000");
  await page.waitForFunction(() => document.querySelectorAll(".mean-cross").length >= 5);
  const cards = page.locator(".setting-card");
  for (const card of await cards.all()) {
    await card.getByText("2000", { exact: true }).first().waitFor();
  }
  // 800 of 1000 cells becomes 1600 of 2000.
  assert.equal(await cards.nth(2).getByLabel("Threshold R, cells").inputValue(), "1600");
  await forAll.getByLabel("TCP").selectOption("sack");
  // With SACK every policy fills the link, so the plotted axes start at one half.
  await page.waitForFunction(() => document.querySelector(".plane .tick")?.textContent === "0.5");
  await page.waitForFunction(() => document.querySelectorAll(".plane-label").length === 4);
  const names = await page.locator(".plane-label text").allTextContents();
  assert.ok(names.some((n) => n.startsWith("lan-selective-drop")));
  await page.getByRole("button", { name: "Remove all" }).click();
  await page.getByRole("button", { name: "Start with four policies" }).waitFor();
  await close(opened);
});
