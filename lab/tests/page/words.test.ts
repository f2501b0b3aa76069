import assert from "node:assert/strict";
import { test } from "node:test";
import { MEANINGS, parts, unbroken, type Term } from "../../src/page/parts/words.tsx";
import { STORIES } from "../../src/stories/index.ts";

/** The terms that a reader of these paragraphs is told the meaning of. */
function terms(texts: readonly string[]): Term[] {
  const met = new Set<Term>();
  return texts.flatMap((text) => parts(text, met).flatMap((part) => (typeof part === "string" ? [] : [part.term])));
}

test("a term has its meaning where it stands first, in the plural and at the start of a sentence too", () => {
  const met = new Set<Term>();
  assert.deepEqual(parts("Cells make frames. A cell is small.", met), [
    "",
    { term: "cell", text: "Cells" },
    " make ",
    { term: "frame", text: "frames" },
    ". A cell is small.",
  ]);
  assert.deepEqual(parts("A cell, a timeout.", met), ["A cell, a ", { term: "timeout", text: "timeout" }, "."]);
});

test("a part of a word is no term, nor is a letter within a sentence that is not one of the symbols", () => {
  assert.deepEqual(terms(["excellent framework, ticks-and-such", "a n k x y", "a subcell"]), []);
  assert.deepEqual(terms(["X < 0.8 * K is EPD."]), ["X", "K", "EPD"]);
  assert.deepEqual(terms(["per-VC queuing"]), ["per-VC queuing"]);
});

test("a short formula does not break at its operators, and prose does", () => {
  assert.equal(unbroken("For example X < 0.8 * K is EPD."), "For example X\u00a0<\u00a00.8\u00a0*\u00a0K is EPD.");
  assert.equal(unbroken("X = 805 cells, Y_i = 204"), "X\u00a0=\u00a0805 cells, Y_i\u00a0=\u00a0204");
  assert.equal(unbroken("no formula - none"), "no formula - none");
});

test("text is kept to the letter", () => {
  for (const text of STORIES.flatMap((story) => story.steps.flatMap((step) => step.text))) {
    const whole = parts(text, new Set())
      .map((part) => (typeof part === "string" ? part : part.text))
      .join("");
    assert.equal(whole, text);
  }
});

test("each story tells the meaning of its terms, and all meanings but a few are of use", () => {
  const used = new Set<Term>();
  for (const story of STORIES) {
    const found = terms(story.steps.flatMap((step) => step.text));
    assert.ok(found.length >= 2, `${story.id}: ${found.join(", ")}`);
    for (const term of found) {
      used.add(term);
    }
  }
  for (const term of ["cell", "frame", "tail drop", "PPD", "EPD", "tick", "round trip", "UBR", "ABR", "edge device"]) {
    assert.ok(used.has(term as Term) && term in MEANINGS, term);
  }
});
