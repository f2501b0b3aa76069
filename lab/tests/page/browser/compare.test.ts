import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, closeBrowser, open, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

test("a setting that is refused is named with its fault, and the others run", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = (await shipped(page, "lan-epd")).replace('"10s"', '"200ms"');
  await write(
    page,
    text.replace(/^name = .*$/m, 'name = "mine, with a slip"').replace("[tcp.vanilla]", "[tcp.vanila]"),
  );
  await page.locator(".faults li").first().waitFor();
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await page.getByRole("button", { name: "Add the scenario of “Run”" }).click();
  await page.getByLabel("Add a shipped scenario").selectOption("lan-epd");
  await page.getByLabel("Add a shipped scenario").selectOption("lan-fba");
  await typeSeeds(page, 3);
  await page.getByRole("button", { name: "Run them all" }).click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /mine, with a slip: It was refused.*vanila.*did you mean vanilla/s);
  await page.getByRole("button", { name: "Run them all" }).waitFor();
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
