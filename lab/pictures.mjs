/** Takes the pictures for `docs/lab.md` from the built page: `node lab/pictures.mjs`, after `make lab`. */

import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const page = pathToFileURL(process.argv[2] ?? join(root, "dist/lab.html")).href;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

/** Opens a place, performs an action there and takes a screenshot. */
async function picture(name, hash, options, act) {
  const { width, height, scheme } = { width: 1280, height: 800, scheme: "light", ...options };
  const tab = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  await tab.goto(page + hash);
  await tab.locator("main h1").first().waitFor();
  await act(tab);
  await tab.waitForTimeout(300);
  await tab.screenshot({ path: join(root, "docs/images", `lab-${name}.png`) });
  await tab.close();
}

await picture("start", "#/learn", { height: 800 }, async (tab) => {
  // Some cells belong to intact frames, some to damaged ones.
  await tab.getByText(/1,000 cells wait, [34]\d\d from damaged frames/).waitFor();
  await tab.getByRole("button", { name: "Pause the animation" }).click();
});
await picture("bench", "#/run", { height: 760 }, async (tab) => {
  await tab.locator("#run:not([disabled])").click();
  await tab.locator('.results[data-phase="done"]').waitFor();
});
await picture("story", "#/learn/one-cell/2", { height: 860 }, async (tab) => {
  await tab.getByRole("button", { name: /^I guess/ }).click();
  await tab.locator("#run-step").click();
  await tab.locator('[data-answered="true"] .answer').waitFor();
});
await picture("microscope", "#/learn/one-cell/2", { height: 800 }, async (tab) => {
  await tab.getByRole("button", { name: /^I guess/ }).click();
  await tab.locator("#run-step").click();
  await tab.getByRole("button", { name: /See the buffer overflow/ }).click();
  await tab.locator(".stage").waitFor();
});
await picture("compare", "#/compare", { height: 980 }, async (tab) => {
  await tab.locator("#run-compare").click();
  await tab.locator('.compare[data-phase="done"]').waitFor();
});
await picture("phone", "#/learn", { width: 360, height: 740, scheme: "dark" }, async () => {});
await browser.close();
