/** Several settings run with the same seeds; what has been run once is kept as long as the page is open. */

import { signal, type Signal } from "@preact/signals";
import type { Answer, Engine, EngineError } from "../../engine/api.ts";
import { asFault, limits, type Done, type Phase } from "../state.ts";

/** A setting with a name: what is compared. */
export interface Setting {
  readonly name: string;
  readonly toml: string;
}

export interface Outcome {
  readonly setting: Setting;
  /** In the order of the seeds, as far as they have ended. */
  readonly runs: readonly Done[];
}

/** Why runs did not come to their end; `setting` is its name, empty where it is of all of them. */
export interface Failed {
  readonly setting: string;
  readonly fault: EngineError;
}

export interface State {
  readonly phase: Phase;
  readonly progress: number;
  readonly faults: readonly Failed[];
}

const kept = new Map<string, Answer>();
/** What is kept at most: a run's answer takes some kilobytes. */
const MOST_KEPT = 5000;

const key = (toml: string, seed: number): string => `${String(seed)}\n${toml}`;

/** Runs settings, one set after the other; the state and what is kept are signals for the page. */
export class Experiment {
  readonly state: Signal<State> = signal({ phase: "idle", progress: 0, faults: [] });
  /** Counts answers as they come. */
  readonly came: Signal<number> = signal(0);
  #stopper: AbortController | null = null;

  outcomes(settings: readonly Setting[], seeds: readonly number[]): Outcome[] {
    // Whoever asks is drawn anew as answers come.
    void this.came.value;
    return settings.map((setting) => ({
      setting,
      runs: seeds.flatMap((seed) => {
        const answer = kept.get(key(setting.toml, seed));
        return answer === undefined ? [] : [{ seed, answer }];
      }),
    }));
  }

  stop(): void {
    this.#stopper?.abort();
  }

  /** Runs what has not been run yet; a setting that fails leaves the others be. Resolves when all has ended. */
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
                keep(key(setting.toml, seed), run.answer);
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

function keep(k: string, answer: Answer): void {
  const oldest = kept.size >= MOST_KEPT ? kept.keys().next().value : undefined;
  if (oldest !== undefined) {
    kept.delete(oldest);
  }
  kept.set(k, answer);
}
