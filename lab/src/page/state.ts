/** What the page knows: the scenario on the bench, its seeds, its runs. Nothing of it outlives the page but a link. */

import { computed, effect, signal } from "@preact/signals";
import { EngineError, type Answer, type Checked, type Document, type Engine, type PaperRow } from "../engine/api.ts";

/** The engine, once it has started. */
export const engine = signal<Engine | null>(null);
/** Why it did not start, in words. */
export const startFault = signal("");

export const scenarios = signal<Readonly<Record<string, string>>>({});
export const papers = signal<readonly PaperRow[]>([]);
export const schema = signal<Readonly<Record<string, unknown>> | null>(null);

/** The text of the scenario that is being worked on. */
export const toml = signal("");
/** The first seed and how many. */
export const firstSeed = signal(1);
export const seedCount = signal(10);
export const seeds = computed(() => Array.from({ length: seedCount.value }, (_, i) => firstSeed.value + i));

/** What the checker said of a text, and of which. */
export const checked = signal<{ readonly toml: string; readonly result: Checked; readonly document: Document } | null>(
  null,
);
/** Whether what the checker said is of the text as it is now. */
export const checkedNow = computed(() => (checked.value?.toml === toml.value ? checked.value : null));
export const network = computed(() => checkedNow.value?.result.network ?? null);

/** A run that has ended. */
export interface Done {
  readonly seed: number;
  readonly answer: Answer;
}

export type Phase = "idle" | "running" | "done" | "stopped" | "failed";

/** A set of runs: one scenario, several seeds. */
export interface Ensemble {
  readonly phase: Phase;
  readonly toml: string;
  readonly seeds: readonly number[];
  readonly runs: readonly Done[];
  /** 0 to 1. */
  readonly progress: number;
  readonly fault: EngineError | null;
}

const NONE: Ensemble = { phase: "idle", toml: "", seeds: [], runs: [], progress: 0, fault: null };

export const ensemble = signal<Ensemble>(NONE);
/** Whether the results on the screen are of the scenario and seeds on the bench. */
export const stale = computed(
  () =>
    ensemble.value.phase !== "idle" &&
    (ensemble.value.toml !== toml.value || ensemble.value.seeds.join() !== seeds.value.join()),
);

/** Seconds of real time that a run may take, until the user raises it. */
export const secondsLimit = signal(60);
/** Bytes that the engine may have for a run. */
export const memoryLimit = signal(2 ** 30);

export function limits(): { seconds: number; memory: number } {
  return { seconds: secondsLimit.peek(), memory: memoryLimit.peek() };
}

export type Scheme = "auto" | "light" | "dark";
export const scheme = signal<Scheme>("auto");
/** Counts changes of the colours in effect, so that canvases are drawn anew. */
export const colours = signal(0);

/** The place in the page: what stands behind `#/`. */
export const place = signal("");
/** What is wrong with the link that was opened; empty where nothing is. */
export const linkFault = signal("");

/** Something to say once, to eyes and screen readers. */
export const said = signal("");

/** What the scenario on the bench is called. */
export const shippedNow = computed(() => {
  const shipped = Object.entries(scenarios.value).find(([, text]) => text === toml.value)?.[0];
  const name = checked.value?.document.root?.["name"];
  return shipped ?? (typeof name === "string" && name !== "" ? name : "a scenario of your own");
});

let timer: ReturnType<typeof setTimeout> | undefined;

/** Checks the text a moment after it last changed. Returns what ends it. */
export function watchText(): () => void {
  return effect(() => {
    const text = toml.value;
    const e = engine.value;
    clearTimeout(timer);
    if (e === null) {
      return;
    }
    timer = setTimeout(() => void check(e, text), 120);
  });
}

async function check(e: Engine, text: string): Promise<void> {
  try {
    const [result, document] = await Promise.all([e.check(text), e.document(text)]);
    if (toml.peek() === text) {
      checked.value = { toml: text, result, document };
    }
  } catch (error) {
    said.value = message(error);
  }
}

/** Sets one value of the scenario; undefined takes it out. */
export async function edit(path: readonly string[], value: unknown): Promise<void> {
  const e = engine.peek();
  if (e === null) {
    return;
  }
  const before = toml.peek();
  try {
    const after = await e.edit(before, [...path], value);
    if (toml.peek() === before) {
      toml.value = after;
    }
  } catch (error) {
    said.value = message(error);
  }
}

let stopper: AbortController | null = null;

/** Runs the scenario on the bench with all its seeds. */
export async function run(): Promise<void> {
  const e = engine.peek();
  if (e === null) {
    return;
  }
  stopper?.abort();
  const mine = new AbortController();
  stopper = mine;
  const text = toml.peek();
  const list = seeds.peek();
  ensemble.value = { ...NONE, phase: "running", toml: text, seeds: list };
  const change = (by: Partial<Ensemble>): void => {
    if (stopper === mine) {
      ensemble.value = { ...ensemble.peek(), ...by };
    }
  };
  try {
    await e.compare([text], list, {
      signal: mine.signal,
      limits: limits(),
      onProgress: (progress) => {
        change({ progress });
      },
      onRun: (_, seed, done) => {
        const runs = [...ensemble.peek().runs, { seed, answer: done.answer }].sort((a, b) => a.seed - b.seed);
        change({ runs });
      },
    });
    change({ phase: "done", progress: 1 });
    said.value = `Done: ${String(list.length)} runs.`;
  } catch (error) {
    const fault = asFault(error);
    change({ phase: fault.kind === "stopped" ? "stopped" : "failed", fault });
    said.value = fault.message;
  }
}

export function stop(): void {
  stopper?.abort();
}

/** Every error as one of the engine's, whose message can be shown. */
export function asFault(error: unknown): EngineError {
  return error instanceof EngineError ? error : new EngineError("broken", message(error));
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Goes to a place of the page, for example `learn/one-cell/2`. */
export function go(to: string): void {
  location.hash = `#/${to}`;
}
