/** Progress in the stories, stored in the browser if possible. */

import { signal } from "@preact/signals";
import type { Step, Story } from "../../stories/story.ts";

const KEY = "celltrain.lab.finished";

/** Identifiers of finished steps, such as `one-cell/2`. */
export const finished = signal<ReadonlySet<string>>(read());

export function finish(story: Story, step: number): void {
  const name = `${story.id}/${String(step)}`;
  if (!finished.peek().has(name)) {
    finished.value = new Set([...finished.peek(), name]);
    write(JSON.stringify([...finished.value]));
  }
}

/** A user's attempt at a step: the guess, whether the step has run, and the number of seeds added. */
export interface Attempt {
  readonly guess: number | null;
  readonly asked: boolean;
  readonly more: number;
}

/** Attempts at steps. They are kept until the page is closed, so that a visit to the microscope does not lose them. */
export const attempts = new Map<Step, Attempt>();

export function forget(): void {
  attempts.clear();
  finished.value = new Set();
  write(null);
}

export function finishedSteps(story: Story): number {
  return story.steps.filter((_, i) => finished.value.has(`${story.id}/${String(i + 1)}`)).length;
}

/**
 * Reads the stored progress; empty if storage is unavailable, for example if the page was opened from a file or is
 * embedded.
 */
function read(): ReadonlySet<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    const names = Array.isArray(kept) ? kept.filter((n): n is string => /^[a-z-]{1,40}\/\d{1,2}$/.test(String(n))) : [];
    return new Set(names);
  } catch {
    return new Set();
  }
}

function write(text: string | null): void {
  try {
    if (text === null) {
      localStorage.removeItem(KEY);
    } else {
      localStorage.setItem(KEY, text);
    }
  } catch {
    // Without storage, progress is kept only until the page is closed.
  }
}
