import assert from "node:assert/strict";
import { after, test } from "node:test";
import { STORIES } from "../../../src/stories/index.ts";
import { close, closeBrowser, guessAndRun, look, open, overflow, skip } from "./browser.ts";

after(closeBrowser);

for (const story of STORIES) {
  test(`the story “${story.title}” can be completed: guess, run, answer`, { skip }, async () => {
    const opened = await open(`#/learn/${story.id}/1`);
    const { page } = opened;
    for (const [i, step] of story.steps.entries()) {
      await page.getByRole("heading", { name: step.title, level: 1 }).waitFor();
      if (step.kind === "run") {
        const press = page.locator("#run-step");
        await page.locator(".sketch").waitFor();
        assert.ok(await press.isDisabled(), "the guess comes first");
        if (step.guess.kind === "number") {
          await page.getByRole("button", { name: /^I guess/ }).click();
        } else {
          await page.getByRole("radio").last().check();
        }
        await press.click();
        await page.locator('[data-answered="true"] .answer').waitFor();
        const answer = await page.locator(".answer").innerText();
        assert.match(answer, step.guess.kind === "number" ? /Your guess was/ : /You guessed right|You may be right|The right answer is/);
        assert.doesNotMatch(answer, /NaN|undefined|Infinity/);
        assert.equal(await page.locator(".dots-row").count(), step.variants.length * step.shown.length);
        assert.ok((await overflow(page)) <= 0);
        // The link to the next step is the main action now.
        assert.equal(await page.locator(".answer .main-link").count(), 1);
        assert.equal(await page.locator("button.main").count(), 0);
      }
      if (i + 1 < story.steps.length) {
        await page.getByRole("link", { name: /^Next: / }).first().click();
      }
    }
    await close(opened);
  });
}

test("a story leads into the microscope, which opens its setting at once", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  await guessAndRun(page);
  await page.getByRole("button", { name: /See the buffer overflow/ }).click();
  await page.getByRole("heading", { name: "The buffer of sw1->sw2" }).waitFor();
  await page.getByRole("heading", { name: "Inside five sources, LAN, tail drop, seed 1" }).waitFor();
  await close(opened);
});

test("looking inside a story run shows its plots, and going back keeps guess, results and progress", { skip }, async () => {
  for (const [width, height] of [
    [1280, 800],
    [400, 860],
  ] as const) {
    const opened = await open("#/learn/double/2", { width, height });
    const { page } = opened;
    await guessAndRun(page);
    const answer = page.locator('[data-answered="true"] .answer');
    const results = await answer.locator(".verdict").innerText();
    const dots = await page.locator(".dots-value").allInnerTexts();
    assert.equal(dots[2], "undefined", "no timer of SACK expires");
    await page.getByRole("button", { name: /^See five windows/ }).click();
    await page.locator("#plot-cwnd").waitFor();
    await page.getByText("Showing 0 s to 1 s (shaded)").waitFor();
    await page.waitForFunction((most) => {
      const box = document.querySelector("#plot-cwnd")?.getBoundingClientRect();
      return box !== undefined && box.top >= 0 && box.bottom <= most;
    }, height);
    await page.getByText("TCP: Reno (rules: paper)").waitFor();
    assert.ok(await page.getByRole("button", { name: "Show the whole window" }).isDisabled(), "it is shown already");
    await page.getByRole("link", { name: /Back to the story/ }).click();
    await answer.waitFor();
    assert.equal(await answer.locator(".verdict").innerText(), results);
    assert.deepEqual(await page.locator(".dots-value").allInnerTexts(), dots);
    assert.equal(await page.getByRole("link", { name: /^Step 2: .*, finished$/ }).count(), 1);
    await close(opened);
  }
});

test("an unknown page address is reported above the nearest story or the start page", { skip }, async () => {
  const opened = await open("#/learn/duoble/2");
  const { page } = opened;
  await page.getByText("No story or step has the address #/learn/duoble/2").waitFor();
  await page.locator(".story-card").first().click();
  await page.locator(".story").waitFor();
  assert.equal(await page.getByText("No story or step has the address").count(), 0);
  await close(opened);
});

test("a click adds more seeds to the existing seeds", { skip }, async () => {
  const opened = await open("#/learn/one-cell/2");
  const { page } = opened;
  await guessAndRun(page);
  await page.locator('[data-answered="true"] .answer').waitFor();
  assert.equal(await page.locator(".dots-row").first().locator(".dots-cloud i").count(), 10);
  await page.getByRole("button", { name: "10 more seeds" }).click();
  await page.locator(".dots-row").first().locator(".dots-cloud i").nth(19).waitFor({ state: "attached" });
  await close(opened);
});

test(
  "a custom policy: a fault appears below the formula, and a valid formula runs with the classic policies",
  { skip },
  async () => {
    const opened = await open("#/learn/own/1");
    const { page } = opened;
    const formula = page.getByLabel("A frame may start if");
    await formula.fill("X < 0.8 * KK");
    await page.getByText("does not know KK").waitFor();
    assert.match(await page.locator(".formula-faults pre").innerText(), /X < 0\.8 \* KK\n\s+\^\^/);
    assert.ok(await page.locator("#run-own").isDisabled());
    await formula.fill("X < 0.8 * K and Y * N < 1.2 * X");
    await page.getByText("It refuses every frame while the buffer is empty").waitFor();
    assert.match(await page.locator(".formula-faults").innerText(), /Y \* N < 1\.2 \* X is 0 < 0; add "X <= \.\.\. or"/);
    // After the run, the warning is repeated.
    await page.locator("#run-own").click();
    await page.getByText(/carried nothing in any run.*It refuses every frame while the buffer is empty/).waitFor();
    await page.locator("#run-own").waitFor();
    // With <= instead of < the policy uses very little of the link, and the page warns before and after the run.
    await formula.fill("X < 0.8 * K and Y * N <= 1.2 * X");
    await page.getByText(/while one frame of it .* and a single cell of another VC wait/).waitFor();
    await page.locator("#run-own").click();
    await page.getByText(/uses only [\d.]+ % of the link\. Check the policy before you compare it\. It refuses/).waitFor();
    await page.locator("#run-own").waitFor();
    await formula.fill("X <= 0.9 * K or Y * N / X <= 0.8");
    await page.getByText("The formula is valid.").waitFor();
    await page.locator("#run-own").click();
    await page.locator("#run-own").waitFor();
    assert.doesNotMatch(await page.locator(".own-results").innerText(), /carried nothing|of the link/, "old warnings disappear");
    const rows = await page.locator("tbody tr").allInnerTexts();
    // The formula equals Selective Drop, so the results are equal too.
    const numbers = (name: string): string | undefined =>
      rows
        .find((r) => r.startsWith(name))
        ?.split("\t")
        .slice(1)
        .join();
    assert.ok(rows[0]?.startsWith("X <= 0.9"), "the custom policy comes first");
    assert.ok(numbers("Selective Drop") !== undefined);
    assert.equal(numbers("X <= 0.9"), numbers("Selective Drop"));
    // The user's policy never gets the name of a shipped policy.
    await page.getByRole("button", { name: "Change it under “Run”" }).click();
    await page.getByText("my policy: X <= 0.9 * K or Y * N / X <= 0.8", { exact: true }).waitFor();
    assert.equal(await page.locator(".about").innerText(), "");
    await page.getByRole("link", { name: "Look inside", exact: true }).click();
    await look(page);
    assert.match(await page.locator(".inside-bar").innerText(), /^Inside my policy: X <= 0\.9 /);
    const why = (await page.locator(".event .why").innerText()).replaceAll("\u00a0", " ");
    assert.match(why, /if X <= 0\.9 \* K or Y \* N \/ X <= 0\.8 does not hold: K = 1,000 places, X = 9\d\d cells/);
    await close(opened);
  },
);

test("the start page shows a simulated buffer, the length of stories, and which are finished", { skip }, async () => {
  const opened = await open("");
  const { page } = opened;
  await page.locator('.cell-field[data-ready="true"]').waitFor();
  const caption = page.locator(".cell-field figcaption span").first();
  await page.waitForFunction(() =>
    document.querySelector(".cell-field figcaption")?.textContent?.includes("from damaged frames"),
  );
  await page.getByRole("button", { name: "Pause the animation" }).click();
  await page.waitForTimeout(300);
  const still = await caption.innerText();
  await page.waitForTimeout(300);
  assert.equal(await caption.innerText(), still);
  const first = page.locator(".story-card").first();
  assert.match(await first.innerText(), /4 steps, 3 minutes/);
  await first.click();
  await page.getByRole("link", { name: /^Next: Five/ }).click();
  await guessAndRun(page);
  await page.locator('[data-answered="true"] .answer').waitFor();
  await page.getByRole("link", { name: "All stories" }).click();
  const finished = page.locator(".story-card").first().getByText("2 of 4 finished");
  await finished.waitFor();
  await page.reload();
  await finished.waitFor();
  assert.match((await first.getAttribute("href")) ?? "", /one-cell\/3$/);
  await page.getByRole("button", { name: "Delete it" }).click();
  await finished.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await close(opened);
});

test("the start page works without storage and with reduced motion", { skip }, async () => {
  const opened = await open("", {
    init: `Object.defineProperty(window, "localStorage", { get() { throw new DOMException("denied", "SecurityError"); } });
      const match = window.matchMedia;
      window.matchMedia = (q) => q.includes("reduced-motion") ? Object.assign(match("all"), {}) : match.call(window, q);`,
  });
  const { page } = opened;
  await page.locator('.cell-field[data-ready="true"]').waitFor();
  await page.getByText(/4\.2 ms: 1,000 cells wait, \d+ from damaged frames/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Pause the animation" }).count(), 0);
  await page.locator(".story-card").first().click();
  await page.getByRole("link", { name: "All stories" }).click();
  assert.match(await page.locator(".story-card").first().innerText(), /1 of 4 finished/);
  await close(opened);
});

test("equal runs are described as equal, and labels are to the left of their strips", { skip }, async () => {
  const opened = await open("#/learn/tie/2");
  const { page } = opened;
  await guessAndRun(page);
  await page.locator('[data-answered="true"] .answer').waitFor();
  const row = page.locator(".dots-row").first();
  assert.match(await row.innerText(), /1\.00\s+all equal/);
  const [label, plot] = await Promise.all([
    row.locator(".dots-label").boundingBox(),
    row.locator(".dots-plot").boundingBox(),
  ]);
  assert.ok(label !== null && plot !== null && label.x + label.width <= plot.x && plot.height < 40);
  await close(opened);
});
