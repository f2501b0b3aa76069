import assert from "node:assert/strict";
import { after, test } from "node:test";
import { STORIES } from "../../../src/stories/index.ts";
import { close, closeBrowser, open, overflow, skip } from "./browser.ts";

after(closeBrowser);

test(
  "every term's tooltip is inside the window, on a phone and on a laptop",
  { skip },
  async () => {
    for (const width of [360, 1280]) {
      const opened = await open("", { width });
      const { page } = opened;
      for (const story of STORIES) {
        for (const [i, step] of story.steps.entries()) {
          await page.evaluate(
            (hash) => {
              if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
              location.hash = hash;
            },
            `#/learn/${story.id}/${String(i + 1)}`,
          );
          await page.getByRole("heading", { name: step.title, level: 1 }).waitFor();
          // The page moves the focus to the new step after drawing it.
          await page.waitForFunction(() => document.activeElement?.id === "main");
          for (const word of await page.locator(".word").all()) {
            await word.focus();
            const box = await word.locator(".word-meaning").boundingBox();
            assert.ok(box !== null && box.width > 100, `${story.id}: ${await word.innerText()}`);
            const at = `${story.id} ${String(i + 1)}, ${String(width)} px: ${JSON.stringify(box)}`;
            assert.ok(box.x >= 0 && box.x + box.width <= width, at);
            assert.ok((await overflow(page)) <= 0, at);
          }
        }
      }
      await close(opened);
    }
  },
);
