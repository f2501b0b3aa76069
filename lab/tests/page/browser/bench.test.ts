import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, test } from "node:test";
import {
  SMALL_LIMITS,
  choose,
  close,
  closeBrowser,
  divide,
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

/** File of native results by scenario, written by `scripts/lab_data.py`. */
const NATIVE = process.env["CELLTRAIN_NATIVE"] ?? "";

test(
  "every gallery entry runs in the page, with the fingerprint of the native run",
  {
    skip: skip === false ? (existsSync(NATIVE) ? false : "CELLTRAIN_NATIVE is not set to a file of native results") : skip,
  },
  async () => {
    const native = JSON.parse(readFileSync(NATIVE, "utf8")) as Record<string, { seed: number; fingerprint: string }>;
    const opened = await open("#/run");
    const { page } = opened;
    await page.getByRole("button", { name: "Choose a scenario …" }).click();
    const groups = page.locator(".gallery section").filter({ hasNotText: "published: " });
    const names = await groups.locator("strong").allInnerTexts();
    assert.ok(names[0]?.startsWith("lan-"), "the LAN comes first");
    assert.deepEqual(names.sort(), Object.keys(native).sort());
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Text (TOML)" }).click();
    for (const name of names) {
      await choose(page, name);
      await typeSeeds(page, 1, native[name]?.seed ?? 1);
      await page.locator("#run:not([disabled])").waitFor();
      await page.locator("#run").click();
      await page.locator('.results:is([data-phase="done"], [data-phase="failed"])').waitFor();
      assert.equal(await page.locator(".results .notice").count(), 0, name);
      const fingerprint = await page.locator(".results details code").first().textContent();
      assert.equal(fingerprint, native[name]?.fingerprint, name);
      assert.ok((await overflow(page)) <= 0, name);
    }
    await close(opened);
  },
);

for (const width of [1280, 400]) {
  test(`tables of packet delays appear on request, in ${String(width)} pixels`, { skip }, async () => {
    const opened = await open("#/run", { width });
    const { page } = opened;
    await choose(page, "lan-epd");
    await typeSeeds(page, 2);
    await run(page);
    assert.equal(await page.getByRole("region", { name: "Round-trip time" }).count(), 0);
    await page.getByLabel("Packet delays").check();
    await page.getByText("These runs did not measure the delays of packets").waitFor();
    await page.locator("#run").click();
    const delays = page.getByRole("region", { name: "Round-trip time" }).locator("tbody tr");
    await page.locator('.results[data-phase="done"]').waitFor();
    assert.match(await delays.first().innerText(), /RTT(\s+[\d.]+){5}/);
    assert.match(await page.getByRole("region", { name: "Queueing delay at ports" }).innerText(), /99\.9 %/);
    assert.equal(await page.locator(".results .notice").count(), 0);
    assert.ok((await overflow(page)) <= 0);
    await close(opened);
  });
}

test("editing the form updates the scenario text and vice versa", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  await page.getByLabel("Threshold", { exact: true }).fill("750");
  await page.getByLabel("Threshold", { exact: true }).blur();
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  const area = page.getByLabel("Scenario as TOML");
  const text = await area.inputValue();
  assert.match(text, /threshold = 750 +# cells/);
  assert.match(text, /^# Five TCP connections/, "comments stay");
  await area.fill(text.replace("threshold = 750", "threshold = 640"));
  await page.getByRole("tab", { name: "Form" }).click();
  await page.waitForFunction(() => Array.from(document.querySelectorAll("input")).some((i) => i.value === "640"));
  await page.locator("select").filter({ hasText: "Selective Drop" }).selectOption("fba");
  await page.getByRole("tab", { name: "Text (TOML)" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes("policy.fba"));
  assert.doesNotMatch(await area.inputValue(), /policy\.epd/);
  await close(opened);
});

test("scenario errors are shown at their lines, and markup is shown as text", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const bad = '<img src=x onerror="document.title=1">';
  const toml = `name = ${JSON.stringify(bad)}\nduration = "1s"\n\n[topology.n_source]\nsources = 0\nlink_delay = "5us"\n\n[tcp.vanila]\n\n[port.bottleneck]\nbuffer = 1000\n[port.bottleneck.policy.epd]\nthreshold = 1900\n`;
  await write(page, toml);
  await page.locator(".faults li").first().waitFor();
  const faults = await page.locator(".faults li").allInnerTexts();
  assert.ok(faults.some((f) => /line 5/.test(f) && /sources/.test(f)));
  assert.ok(faults.some((f) => /line 8/.test(f) && /did you mean vanilla/.test(f)));
  assert.deepEqual(await page.locator(".editor-gutter .bad").allInnerTexts(), ["5", "8"]);
  assert.ok(await page.locator("#run").isDisabled());
  await page.getByRole("button", { name: "line 8" }).click();
  const selected = await page.evaluate(() => {
    const area = document.activeElement as HTMLTextAreaElement;
    return area.value.slice(area.selectionStart, area.selectionEnd);
  });
  assert.equal(selected, "[tcp.vanila]");
  await write(page, toml.replace("sources = 0", "sources = 2").replace("vanila", "vanilla").replace("1900", "800"));
  await run(page);
  await page.getByRole("link", { name: "Look inside", exact: true }).click();
  await look(page);
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok((await page.getByText(bad).count()) > 0, "it is shown as text");
  assert.equal(await page.title(), "celltrain lab");
  await close(opened);
});

test("a run can be stopped at once, and the page remains usable", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  const text = await shipped(page, "lan-epd");
  await write(page, text.replace('"10s"', '"10000s"'));
  await page.getByText(/This can take/).waitFor();
  await page.locator("#run:not([disabled])").click();
  await page.locator('.results[data-phase="running"]').getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped. The completed runs").waitFor();
  await write(page, text);
  await run(page);
  await close(opened);
});

test("a scenario that exceeds the memory limit gets a message and a button that raises the limit", { skip }, async () => {
  const opened = await open("#/run", { init: SMALL_LIMITS });
  const { page } = opened;
  const text = await shipped(page, "lan-epd");
  const of = (sources: number): string => text.replace("sources = 5", `sources = ${String(sources)}`);
  const bytes = await page.evaluate(
    async (tomls) => {
      const engine = await window.celltrain.engine;
      return Promise.all(tomls.map(async (toml) => (await engine.check(toml)).memory_bytes ?? 0));
    },
    [of(5), of(1005)],
  );
  // The memory limit is 1 GiB, or 3.5 GiB if raised, and a run may use three quarters of it. Only the raised limit
  // suffices for this scenario. The checker's lower bound is about an eighth of the memory that the run reserves.
  const each = ((bytes[1] ?? 0) - (bytes[0] ?? 0)) / 1000;
  assert.ok(each > 100, String(bytes));
  const small = (bytes[0] ?? 0) / (0.6 * 2 ** 30);
  const fits = Math.round((8 * 1.5 * 2 ** 30 * small - (bytes[0] ?? 0)) / each);
  await divide(page, { memory: 1 / small });
  await write(page, of(fits));
  const alert = page.getByRole("alert").filter({ hasText: "needs more memory than the limit allows" });
  await alert.waitFor();
  assert.match(await alert.innerText(), /(does not fit|is too large): .* of memory/);
  assert.ok(await page.locator("#run").isDisabled());
  await alert.getByRole("button", { name: "Allow it up to 3.76 GB" }).click();
  await page.locator("#run:not([disabled])").waitFor();
  assert.equal(await alert.count(), 0);
  // If no browser can provide enough memory, the message appears without a button.
  await write(page, of(40 * fits));
  await alert.waitFor();
  assert.equal(await page.getByRole("button", { name: /Allow it/ }).count(), 0);
  assert.ok(await page.locator("#run").isDisabled());
  await write(page, text);
  await typeSeeds(page, 1);
  await run(page);
  await close(opened);
});

test("a run that takes too long gets a message, and completes with a higher limit", { skip }, async () => {
  const opened = await open("#/run", { init: SMALL_LIMITS });
  const { page } = opened;
  await write(page, (await shipped(page, "lan-epd")).replace('"10s"', '"60s"'));
  await typeSeeds(page, 1);
  await divide(page, { run: 6000 });
  await page.locator("#run:not([disabled])").click();
  const alert = page.getByRole("alert").filter({ hasText: "longer than" });
  await alert.waitFor();
  const pressed = await raise(page, /^Run it with a limit of/, '.results[data-phase="done"]');
  assert.deepEqual(pressed.slice(0, 2), ["Run it with a limit of 10 minutes", "Run it with a limit of 100 minutes"]);
  assert.equal(await alert.count(), 0);
  await close(opened);
});

test("the runs started by one click stop at a common time limit, and can be continued", { skip }, async () => {
  const opened = await open("#/run", { init: SMALL_LIMITS });
  const { page } = opened;
  await typeSeeds(page, 60);
  await divide(page, { together: 3000 });
  await page.locator("#run:not([disabled])").click();
  const alert = page
    .getByRole("alert")
    .filter({ hasText: /The runs took longer than 300 s together: \d+ of 60 have ended\./ });
  await alert.waitFor();
  const pressed = await raise(page, /^Continue for up to/, '.results[data-phase="done"]');
  assert.equal(pressed[0], "Continue for up to 50 minutes");
  const fingerprints = await page.locator(".results details code").allTextContents();
  assert.deepEqual([fingerprints.length, new Set(fingerprints).size], [60, 60]);
  const { requests, workers } = await page.evaluate(async () => ({
    requests: (window as unknown as { asked: Record<string, number> }).asked["run"] ?? 0,
    workers: (await window.celltrain.engine).workers,
  }));
  assert.ok(requests <= 60 + workers * pressed.length, `${String(requests)} runs were requested`);
  await close(opened);
});

test("a check that takes too long gets a message next to the scenario, and completes with a higher limit", { skip }, async () => {
  const opened = await open("#/run", { init: SMALL_LIMITS });
  const { page } = opened;
  await page.locator("#run:not([disabled])").waitFor();
  // A check of several thousand connections takes several milliseconds.
  await divide(page, { check: 1e4 });
  await write(page, (await shipped(page, "lan-epd")).replace("sources = 5", "sources = 4000"));
  const alert = page.getByRole("alert").filter({ hasText: "The check of this scenario took longer than 10 s" });
  await alert.waitFor();
  await page.getByText("not checked").waitFor();
  await alert.getByRole("button", { name: "Check it with a limit of 100 s" }).click();
  await raise(page, /^Check it with a limit of/, ".bench-side [role=status]");
  assert.match(await page.locator(".bench-side [role=status]").innerText(), /\d+ nodes, \d+ connections/);
  assert.equal(await page.getByRole("alert").count(), 0);
  await close(opened);
});

test("an invalid number of seeds is refused, and the message disappears when a number is typed", { skip }, async () => {
  const opened = await open("#/run");
  const { page } = opened;
  for (const [typed, message] of [
    ["500", "At most 200 seeds."],
    ["0", "At least 1 seed."],
    ["2.5", "2.5 is not a whole number."],
  ] as const) {
    await page.getByLabel("Seeds", { exact: true }).fill(typed);
    await page.getByLabel("Seeds", { exact: true }).blur();
    await page.getByText(message, { exact: true }).waitFor();
    assert.equal(await page.getByLabel("Seeds", { exact: true }).inputValue(), "10");
  }
  // Type the old number again.
  await page.getByLabel("Seeds", { exact: true }).fill("10");
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.getByRole("button", { name: "Run 10 seeds" }).waitFor();
  await typeSeeds(page, 3);
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.getByLabel("First seed").fill("9007199254740990");
  await page.getByLabel("First seed").blur();
  await page.getByText("At most 9,007,199,254,740,989.", { exact: true }).waitFor();
  await close(opened);
});
