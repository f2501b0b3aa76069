/** The state of the page: the current scenario, its seeds and its runs. Only a link can preserve it. */

import { computed, effect, signal } from "@preact/signals";
import {
  EngineError,
  type Answer,
  type Checked,
  type Document,
  type Engine,
  type Limits,
  type PaperRow,
  type Requests,
  type UnmetRule,
} from "../engine/api.ts";
import { STANDARD } from "../engine/limits.ts";
import { staysInFrame, type Embed } from "./link/embed.ts";
import { shortened } from "./parts/format.ts";

/** The engine; null until it has started. */
export const engine = signal<Engine | null>(null);
/** Message if the engine did not start. */
export const startFault = signal("");

export const scenarios = signal<Readonly<Record<string, string>>>({});
export const papers = signal<readonly PaperRow[]>([]);
export const schema = signal<Readonly<Record<string, unknown>> | null>(null);

/** Text of the current scenario. */
export const toml = signal("");
/** Formula of the user's own policy in a story. */
export const formula = signal("X <= 0.9 * K or Y * N / X <= 0.8");
/** First seed and number of seeds. */
export const firstSeed = signal(1);
export const seedCount = signal(10);
/** True to measure the delays of packets in the next runs. */
export const delays = signal(false);
export const seeds = computed(() => Array.from({ length: seedCount.value }, (_, i) => firstSeed.value + i));

/** Seed of the run to look into: the first seed until the user chooses another. */
export const seedInside = signal(1);
effect(() => {
  seedInside.value = firstSeed.value;
});

/** Result of the last check, and the text it applies to. */
export const checked = signal<{ readonly toml: string; readonly result: Checked; readonly document: Document } | null>(
  null,
);
/** Result of the check if it applies to the current text, otherwise null. */
export const checkedNow = computed(() => (checked.value?.toml === toml.value ? checked.value : null));
export const network = computed(() => checkedNow.value?.result.network ?? null);
/** Failure of the check itself, and the text it applies to. */
export const checkFault = signal<{ readonly toml: string; readonly fault: EngineError } | null>(null);

/** A completed run. */
export interface Done {
  readonly seed: number;
  readonly answer: Answer;
  readonly unmet: readonly UnmetRule[];
  /** Records of all requests, stored only for the first seed. */
  readonly requests?: Requests | null;
}

export type Phase = "idle" | "running" | "done" | "stopped" | "failed";

/** A set of runs of one scenario with several seeds. */
export interface Ensemble {
  readonly phase: Phase;
  readonly toml: string;
  readonly seeds: readonly number[];
  /** True if the delays of packets are measured. */
  readonly delays: boolean;
  readonly runs: readonly Done[];
  /** Completed fraction, 0 to 1. */
  readonly progress: number;
  readonly fault: EngineError | null;
}

const NONE: Ensemble = { phase: "idle", toml: "", seeds: [], delays: false, runs: [], progress: 0, fault: null };

export const ensemble = signal<Ensemble>(NONE);
/** True if the results on the screen do not belong to the current scenario and seeds. */
export const stale = computed(
  () =>
    ensemble.value.phase !== "idle" &&
    (ensemble.value.toml !== toml.value ||
      ensemble.value.seeds.join() !== seeds.value.join() ||
      (delays.value && !ensemble.value.delays)),
);

/** Limits of checks, runs and sets of runs, until the user raises them. */
export const limits = signal<{ readonly [limit in keyof typeof STANDARD]: number }>(STANDARD);

export type Scheme = "auto" | "light" | "dark";
export const scheme = signal<Scheme>("auto");
/** Counter of changes to the current colours; canvases redraw when it changes. */
export const colours = signal(0);

/** Current view of the page: the part of the URL after `#/`. */
export const place = signal("");
/** View from which the microscope was opened; empty if its own URL opened it. */
export const cameFrom = signal("");
/** Colours if another page embeds this one, otherwise null. */
export const embed = signal<Embed | null>(null);
/** Error in the link that was opened; empty if there is none. */
export const linkFault = signal("");

/** Message for the status line and screen readers. */
export const said = signal("");

export function shippedName(text: string): string | null {
  return Object.entries(scenarios.value).find(([, t]) => t === text)?.[0] ?? null;
}

/** Maximum length of a name, which may come from a link. */
const MOST_NAME = 120;

/** Marks the name of a shipped scenario whose text the user has changed. */
export function marked(name: string, text: string): string {
  const line = `name = ${JSON.stringify(name)}\n`;
  const isChanged = shippedName(text) === null && Object.values(scenarios.value).some((t) => t.includes(line));
  return isChanged ? `${name}, changed` : name;
}

/** Name of the current scenario. */
export const nameNow = computed(() => {
  const name = checked.value?.document.root?.["name"];
  const own = typeof name === "string" && name !== "" ? marked(name, toml.value) : "a scenario of your own";
  return shippedName(toml.value) ?? shortened(own, MOST_NAME);
});

let timer: ReturnType<typeof setTimeout> | undefined;

/** Checks the text shortly after each change. Returns a function that stops the checks. */
export function watchText(): () => void {
  return effect(() => {
    const text = toml.value;
    const e = engine.value;
    const { memory, check: seconds } = limits.value;
    clearTimeout(timer);
    checkFault.value = null;
    if (e === null) {
      return;
    }
    timer = setTimeout(() => void check(e, text, { memory, seconds }), 120);
  });
}

async function check(e: Engine, text: string, allowed: Limits): Promise<void> {
  try {
    const [result, document] = await Promise.all([e.check(text, allowed), e.document(text)]);
    if (toml.peek() === text) {
      checked.value = { toml: text, result, document };
      checkFault.value = null;
    }
  } catch (error) {
    if (toml.peek() === text) {
      checkFault.value = { toml: text, fault: asFault(error) };
    }
  }
}

/** Sets a value of the scenario; undefined removes the key. */
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

/** Runs the current scenario with all its seeds. `goOn` keeps the runs that are already complete. */
export async function run(goOn = false): Promise<void> {
  const e = engine.peek();
  if (e === null) {
    return;
  }
  stopper?.abort();
  const mine = new AbortController();
  stopper = mine;
  const text = toml.peek();
  const list = seeds.peek();
  const measured = delays.peek();
  const last = ensemble.peek();
  const before = goOn && last.toml === text && last.delays === measured ? last.runs : [];
  const kept = before.filter((r) => list.includes(r.seed));
  const left = list.filter((seed) => kept.every((r) => r.seed !== seed));
  ensemble.value = { ...NONE, phase: "running", toml: text, seeds: list, delays: measured, runs: kept };
  const change = (by: Partial<Ensemble>): void => {
    if (stopper === mine) {
      ensemble.value = { ...ensemble.peek(), ...by };
    }
  };
  try {
    await e.compare([text], left, {
      signal: mine.signal,
      limits: limits.peek(),
      requests: true,
      delays: measured,
      onProgress: (share) => {
        change({ progress: (kept.length + share * left.length) / Math.max(1, list.length) });
      },
      onRun: (_, seed, done) => {
        const requests = seed === list[0] ? done.requests : null;
        const { answer, unmet } = done;
        const runs = [...ensemble.peek().runs, { seed, answer, unmet, requests }].sort((a, b) => a.seed - b.seed);
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

/** Converts any error to an engine error, whose message can be shown to the user. */
export function asFault(error: unknown): EngineError {
  return error instanceof EngineError ? error : new EngineError("broken", message(error));
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Navigates to a view of the page, for example `learn/one-cell/2`. */
export function go(to: string): void {
  if (embed.peek() !== null && !staysInFrame(place.peek(), to)) {
    open(`${location.href.split(/[?#]/)[0] ?? ""}#/${to}`, "_blank", "noopener");
    return;
  }
  location.hash = `#/${to}`;
}
