import assert from "node:assert/strict";
import { test } from "node:test";
import { MEANINGS, parts, unbroken, type Term } from "../../src/page/parts/words.tsx";
import { STORIES } from "../../src/stories/index.ts";

/** Returns the terms explained in these paragraphs. */
function terms(texts: readonly string[]): Term[] {
  const seen = new Set<Term>();
  return texts.flatMap((text) => parts(text, seen).flatMap((part) => (typeof part === "string" ? [] : [part.term])));
}

test("a term is explained at its first occurrence, including plurals and the start of a sentence", () => {
  const seen = new Set<Term>();
  assert.deepEqual(parts("Cells make frames. A cell is small.", seen), [
    "",
    { term: "cell", text: "Cells" },
    " make ",
    { term: "frame", text: "frames" },
    ". A cell is small.",
  ]);
  assert.deepEqual(parts("A cell, a timeout.", seen), ["A cell, a ", { term: "timeout", text: "timeout" }, "."]);
});

test("parts of words are not terms, nor are single letters other than the symbols", () => {
  assert.deepEqual(terms(["excellent framework, ticks-and-such", "a n k x y", "a subcell"]), []);
  assert.deepEqual(terms(["X < 0.8 * K is EPD."]), ["X", "K", "EPD"]);
  assert.deepEqual(terms(["per-VC queuing"]), ["per-VC queuing"]);
});

test("a short formula does not break at its operators, and prose does", () => {
  assert.equal(unbroken("For example X < 0.8 * K is EPD."), "For example X\u00a0<\u00a00.8\u00a0*\u00a0K is EPD.");
  assert.equal(unbroken("X = 805 cells, Y_i = 204"), "X\u00a0=\u00a0805 cells, Y_i\u00a0=\u00a0204");
  assert.equal(unbroken("no formula - none"), "no formula - none");
});

test("splitting a text preserves every character", () => {
  for (const text of STORIES.flatMap((story) => story.steps.flatMap((step) => step.text))) {
    const whole = parts(text, new Set())
      .map((part) => (typeof part === "string" ? part : part.text))
      .join("");
    assert.equal(whole, text);
  }
});

test("each story explains its terms, and most terms are used", () => {
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
