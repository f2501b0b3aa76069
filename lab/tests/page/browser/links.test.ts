import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { toFragment } from "../../../src/page/link/link.ts";
import { close, closeBrowser, look, open, run, shipped, skip, typeSeeds, write } from "./browser.ts";

after(closeBrowser);

const plain = { toml: "", seed: 1, seeds: 1, place: "run", settings: [], formula: "", view: null };

test("a link opened elsewhere gives the same scenario, seeds and fingerprints", { skip }, async () => {
  const first = await open("#/run");
  const toml = await shipped(first.page, "lan-fba");
  await write(first.page, toml.replace('"10s"', '"200ms"').replace("# Fair", "# My own: fair"));
  await typeSeeds(first.page, 3, 7);
  await run(first.page);
  const fingerprints = await first.page.locator(".results details code").allTextContents();
  assert.equal(fingerprints.length, 3);
  await first.page.getByRole("button", { name: "Share and keep" }).click();
  const link = first.page.getByLabel("link", { exact: true });
  await first.page.waitForFunction(() => document.querySelector(".keep pre")?.textContent?.includes("#v1."));
  const address = (await link.textContent()) ?? "";
  const text = await first.page.locator(".keep").innerText();
  assert.match(text, /celltrain run .*\.toml --seed 7 --seeds 3 --fingerprints/);
  assert.ok(text.includes(fingerprints[0] ?? "?"));
  await close(first);

  const second = await open(`#${address.split("#")[1] ?? ""}`);
  await run(second.page);
  assert.deepEqual(await second.page.locator(".results details code").allTextContents(), fingerprints);
  await second.page.getByRole("tab", { name: "Text (TOML)" }).click();
  assert.match(await second.page.getByLabel("Scenario as TOML").inputValue(), /# My own: fair/);
  await close(second);
});

test("a link to a view of the page opens that view", { skip }, async () => {
  const opened = await open(await toFragment({ ...plain, toml: "# nothing", place: "learn/tie/2" }));
  await opened.page.getByRole("heading", { name: "Always the first" }).waitFor();
  await close(opened);
});

test("a truncated link, a link of another version and an unrelated fragment each get a message", { skip }, async () => {
  const whole = await toFragment({ ...plain, toml: "x".repeat(500) });
  for (const [fragment, words] of [
    [whole.slice(0, -8), /is incomplete/],
    ["#v9.abcd", /another version/],
    ["#something", /contains no scenario/],
  ] as const) {
    const opened = await open(fragment);
    assert.match(await opened.page.getByRole("alert").first().innerText(), words);
    // The page is usable nevertheless.
    await opened.page.locator("#run:not([disabled])").waitFor();
    // Navigation dismisses the message.
    await opened.page.getByRole("link", { name: "Learn", exact: true }).click();
    await opened.page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal(await opened.page.getByRole("alert").count(), 0);
    await close(opened);
  }
});

test("links contain comparisons and custom policies", { skip }, async () => {
  const first = await open("#/compare");
  const { page } = first;
  await page.getByRole("button", { name: "Remove lan-ppd" }).click();
  const address = async (...expected: readonly string[]): Promise<string> => {
    await page.getByRole("button", { name: "Share and keep" }).click();
    await page.waitForFunction(() => document.querySelector(".keep pre")?.textContent?.includes("#v1."));
    const text = (await page.getByLabel("link", { exact: true }).textContent()) ?? "";
    const all = await page.locator(".keep").innerText();
    for (const words of expected) {
      assert.ok(all.includes(words), `${words}: ${all}`);
    }
    assert.doesNotMatch(all, /celltrain run lan-epd/);
    await page.getByRole("button", { name: "Close" }).click();
    return `#${text.split("#")[1] ?? ""}`;
  };
  const comparison = await address(
    "celltrain compare lan-tail-drop lan-epd lan-selective-drop --seed 1 --seeds 10",
    'ct.compare(["lan-tail-drop", "lan-epd", "lan-selective-drop"], seeds=10)',
    "Shipped scenarios do not need a file.",
  );
  await page.evaluate(() => {
    location.hash = "#/learn/own/1";
  });
  await page.getByLabel("A frame may start if").fill("X < 0.123 * K");
  const own = await address(
    "celltrain compare lan-tail-drop lan-epd lan-selective-drop my-policy-x-0-123-k.toml --seed 1 --seeds 10",
  );
  await close(first);
  const second = await open(comparison);
  assert.deepEqual(await second.page.locator(".setting-card legend").allTextContents(), [
    "lan-tail-drop",
    "lan-epd",
    "lan-selective-drop",
  ]);
  await close(second);
  const third = await open(own);
  assert.equal(await third.page.getByLabel("A frame may start if").inputValue(), "X < 0.123 * K");
  await close(third);
});

test("a short link with thousands of lines or ports does not block the page", { skip }, async () => {
  const ports = Array.from({ length: 4900 }, (_, i) => `[port.p${String(i)}]\n`).join("\n");
  for (const toml of ["\n".repeat(9900), ports, `name = "${"n".repeat(150_000)}"\n`]) {
    const fragment = await toFragment({ ...plain, toml });
    const opened = await open(fragment);
    const { page } = opened;
    await page.waitForFunction(() => !document.body.textContent?.includes("checking …"));
    for (const tab of ["Text (TOML)", "Form"]) {
      await page.getByRole("tab", { name: tab }).click();
      // Wait two frames for the page to draw.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const drawn = await page.evaluate(() => document.querySelectorAll("*").length);
      assert.ok(drawn < 6000, `${tab}: ${String(drawn)} elements`);
      const letters = await page.evaluate(() => document.querySelector("main")?.innerText.length ?? 0);
      assert.ok(letters < 60_000, `${tab}: ${String(letters)} letters`);
    }
    await close(opened);
  }
});

test("the scenario and the tables can be downloaded", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await typeSeeds(page, 2);
  await run(page);
  await page.getByRole("button", { name: "Share and keep" }).click();
  const take = async (name: string): Promise<{ name: string; text: string }> => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };
  const toml = await take("Scenario (TOML)");
  assert.equal(toml.name, "lan-epd.toml");
  assert.match(toml.text, /\[port\.bottleneck\.policy\.epd\]/);
  const csv = await take("Connections (CSV)");
  assert.equal(csv.name, "lan-epd-connections.csv");
  assert.equal(csv.text.trim().split("\r\n").length, 11);
  await close(opened);
});

test("a page from a file warns that others cannot open its link", { skip }, async () => {
  const opened = await open("#/run");
  await opened.page.getByRole("button", { name: "Share and keep" }).click();
  await opened.page.getByText(/others cannot open the link\. Give them the scenario file/).waitFor();
  await close(opened);
});

test("pictures can be downloaded as standalone SVG and as PNG", { skip }, async () => {
  const opened = await open("#/compare", { colorScheme: "dark" });
  const { page } = opened;
  await typeSeeds(page, 2);
  await page.getByRole("button", { name: "Run all" }).click();
  await page.locator('.compare[data-phase="done"]').waitFor();
  const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
  const text = readFileSync(await svg.path(), "utf8");
  assert.match(text, /^<svg[^>]* xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.doesNotMatch(text, /var\(|class=/);
  assert.ok(text.includes(">lan-selective-drop<"), "a label names its cloud");
  assert.ok(text.includes(">Seeds 1 to 2. TCP: Vanilla: no fast retransmit (rules: paper)<"), "seeds and TCP are in it");
  const { width, ground } = await taken(page, page.getByRole("button", { name: "PNG" }));
  assert.deepEqual(ground, WHITE);
  assert.ok(width >= 2 * 460, String(width));
  await close(opened);
});

test("pictures of a run are light, opaque and twice as large, with title and legend", { skip }, async () => {
  const opened = await open("#/inside", { colorScheme: "dark" });
  const { page } = opened;
  await look(page);
  const names: string[] = [];
  for (const press of await page.getByRole("button", { name: "PNG" }).all()) {
    const { name, width, ground, colours } = await taken(page, press);
    names.push(name);
    assert.deepEqual(ground, WHITE, name);
    assert.ok(width >= 2 * 420, `${name}: ${String(width)}`);
    // The blue of the first connection in the light scheme; the queue and the network use no connection's colour.
    assert.ok(/queue|sequence|network/.test(name) || colours.includes("0,114,178,255"), `${name} has the light colours`);
    assert.ok(!colours.includes("26,32,41,255"), `${name} has no dark ground`);
  }
  assert.deepEqual(names.sort(), ["buffer-by-vc.png", "buffer.png", "cwnd.png", "network.png", "queue.png", "sequence.png"]);
  const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
  const text = readFileSync(await svg.path(), "utf8");
  assert.match(text, />The network and its queues</);
  assert.match(text, />five sources, LAN, EPD, seed 1, at [\d.]+ m?s</);
  assert.match(text, />TCP: Vanilla: no fast retransmit \(rules: paper\)</);
  assert.match(text, />tcp5</);

  // For printing, the canvases are light. Afterwards they are dark again.
  const ink = (): Promise<number> =>
    page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("#plot-stack canvas");
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [canvas?.width ?? 1, canvas?.height ?? 1];
      const context = copy.getContext("2d", { willReadFrequently: true });
      if (canvas !== null) {
        context?.drawImage(canvas, 0, 0);
      }
      const { data = [] } = context?.getImageData(0, 0, copy.width, copy.height) ?? {};
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        found += Number(data[i] === 0 && data[i + 1] === 114 && data[i + 2] === 178);
      }
      return found;
    });
  assert.equal(await ink(), 0);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.ok((await ink()) > 100);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.waitForTimeout(500);
  assert.equal(await ink(), 0);
  await close(opened);
});

const WHITE = [255, 255, 255, 255];

/** Downloads a PNG. Returns its name, its width, the colour of a corner, and all colours of more than 20 pixels. */
async function taken(
  page: Page,
  press: Locator,
): Promise<{ name: string; width: number; ground: number[]; colours: string[] }> {
  const [download] = await Promise.all([page.waitForEvent("download"), press.click()]);
  const bytes = readFileSync(await download.path());
  const keep = process.env["CELLTRAIN_PICTURES"];
  if (keep !== undefined) {
    await download.saveAs(`${keep}/${download.suggestedFilename()}`);
  }
  const seen = await page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context?.drawImage(image, 0, 0);
    const { data = [] } = context?.getImageData(0, 0, canvas.width, canvas.height) ?? {};
    const counts = new Map<string, number>();
    for (let i = 0; i < data.length; i += 4) {
      const colour = [...data.slice(i, i + 4)].join();
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    const colours = [...counts].filter(([, n]) => n > 20).map(([colour]) => colour);
    return { width: image.width, ground: [...data.slice(0, 4)], colours };
  }, bytes.toString("base64"));
  return { name: download.suggestedFilename(), ...seen };
}
