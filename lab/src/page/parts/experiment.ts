/** Runs several settings with the same seeds. Results are cached until the page is closed. */

import { signal, type Signal } from "@preact/signals";
import type { Engine, EngineError, Run } from "../../engine/api.ts";
import { asFault, limits, type Done, type Phase } from "../state.ts";

/** A named scenario to compare. */
export interface Setting {
  readonly name: string;
  readonly toml: string;
}

export interface Outcome {
  readonly setting: Setting;
  /** Completed runs, in the order of the seeds. */
  readonly runs: readonly Done[];
}

/** A failure of runs; `setting` is the name of the setting, empty if the failure affects all settings. */
export interface Failed {
  readonly setting: string;
  readonly fault: EngineError;
}

export interface State {
  readonly phase: Phase;
  readonly progress: number;
  readonly faults: readonly Failed[];
}

/** A run without its series and requests. */
type Kept = Pick<Run, "answer" | "unmet">;

const kept = new Map<string, Kept>();
/** Maximum number of cached answers, each of a few kilobytes. */
const MOST_KEPT = 5000;

const key = (toml: string, seed: number): string => `${String(seed)}\n${toml}`;

/** Runs settings with several seeds. State and cache are signals for the page. */
export class Experiment {
  readonly state: Signal<State> = signal({ phase: "idle", progress: 0, faults: [] });
  /** Number of answers received so far. */
  readonly came: Signal<number> = signal(0);
  #stopper: AbortController | null = null;

  outcomes(settings: readonly Setting[], seeds: readonly number[]): Outcome[] {
    // Reading this signal makes the caller render again when answers arrive.
    void this.came.value;
    return settings.map((setting) => ({
      setting,
      runs: seeds.flatMap((seed) => {
        const run = kept.get(key(setting.toml, seed));
        return run === undefined ? [] : [{ seed, ...run }];
      }),
    }));
  }

  stop(): void {
    this.#stopper?.abort();
  }

  /**
   * Runs everything that is not in the cache yet. If one setting fails, the others continue. Resolves when all runs
   * have ended.
   */
  async run(engine: Engine, settings: readonly Setting[], seeds: readonly number[]): Promise<void> {
    this.#stopper?.abort();
    const mine = new AbortController();
    this.#stopper = mine;
    const change = (by: Partial<State>): void => {
      if (this.#stopper === mine) {
        this.state.value = { ...this.state.peek(), ...by };
      }
    };
    const missing = seeds.filter((seed) => settings.some((s) => !kept.has(key(s.toml, seed))));
    const open = settings.filter((s) => missing.some((seed) => !kept.has(key(s.toml, seed))));
    const faults: Failed[] = [];
    this.state.value = { phase: "running", progress: 0, faults };
    try {
      if (open.length > 0) {
        await engine.compare(
          open.map((s) => s.toml),
          missing,
          {
            signal: mine.signal,
            limits: limits.peek(),
            onProgress: (progress) => {
              change({ progress });
            },
            onRun: (index, seed, run) => {
              const setting = open[index];
              if (setting !== undefined) {
                keep(key(setting.toml, seed), { answer: run.answer, unmet: run.unmet });
                this.came.value += 1;
              }
            },
            onFault: (index, _, fault) => {
              faults.push({ setting: open[index]?.name ?? "", fault });
              change({ faults: [...faults] });
            },
          },
        );
      }
      change({ phase: faults.length === 0 ? "done" : "failed", progress: 1 });
    } catch (error) {
      const fault = asFault(error);
      const isStopped = fault.kind === "stopped";
      change({
        phase: isStopped ? "stopped" : "failed",
        faults: isStopped ? [...faults] : [...faults, { setting: "", fault }],
      });
    }
  }
}

function keep(k: string, run: Kept): void {
  const oldest = kept.size >= MOST_KEPT ? kept.keys().next().value : undefined;
  if (oldest !== undefined) {
    kept.delete(oldest);
  }
  kept.set(k, run);
}
