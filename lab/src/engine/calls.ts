/** Implements the engine's calls on top of a request backend: workers in the page, the same thread in tests. */

import {
  EngineError,
  type Checked,
  type Comparison,
  type Document,
  type Engine,
  type Events,
  type Fault,
  type Limits,
  type Run,
} from "./api.ts";
import { history, type BufferColumns } from "./buffer.ts";
import { whole } from "./core.ts";
import { positions, type Described } from "./layout.ts";
import { MOST_MEMORY, STANDARD } from "./limits.ts";
import type { Data } from "./payload.ts";
import type { Backend } from "./pool.ts";
import { differences, estimate } from "./statistics.ts";

const MOST_ROWS = 2_000_000;
const MOST_STEPS = 400_000;
/** The measures that are compared. */
const COMPARED = ["efficiency", "fairness", "goodput_mbps"] as const;

/** @param quick Backend for requests that need no simulation, so that they never wait for a run. */
export function engineOver(runs: Backend, quick: Backend, data: Data): Engine {
  const run: Engine["run"] = async (toml, seed, options = {}) => {
    const { series = null, engine = null, requests = false, delays = false } = options;
    const chosen = series === null ? null : { ports: null, step: null, ...series };
    const asked = { engine, series: chosen, requests, delays, limits: limits(options.limits) };
    return (await runs.ask({ call: "run", toml, seed: validSeed(seed), ...asked }, options)) as Run;
  };

  const compare: Engine["compare"] = async (tomls, seeds, options = {}) => {
    const all: Run[][] = tomls.map(() => []);
    // If the caller does not handle the errors of each scenario, the first error cancels all other runs.
    const ended = new AbortController();
    const signal = options.signal === undefined ? ended.signal : linked(options.signal, ended);
    const failed = new Set<number>();
    let count = 0;
    let isOverTime = false;
    const together = options.limits?.together ?? Infinity;
    // Timers accept at most 31 bits of milliseconds.
    const timer = setTimeout(() => {
      isOverTime = together < Infinity;
      if (isOverTime) {
        ended.abort();
      }
    }, Math.min(1000 * together, 2 ** 31 - 1));
    const done = tomls.map((_, index) => seeds.map(() => index * 0));
    const report = (index: number, at: number, share: number) => {
      (done[index] ?? [])[at] = share;
      const sum = done.flat().reduce((total, one) => total + one, 0);
      options.onProgress?.(sum / Math.max(1, tomls.length * seeds.length));
    };
    const pairs = seeds.flatMap((seed, at) => tomls.map((toml, index) => ({ toml, index, seed, at })));
    const one = async ({ toml, index, seed, at }: (typeof pairs)[number]) => {
      if (failed.has(index)) {
        report(index, at, 1);
        return;
      }
      const onProgress = (share: number) => report(index, at, share);
      try {
        const done = await run(toml, seed, { ...options, signal, onProgress });
        (all[index] ?? [])[at] = done;
        count += 1;
        options.onRun?.(index, seed, done);
      } catch (error) {
        if (options.onFault === undefined || !concernsOneScenario(error)) {
          throw error;
        }
        if (!failed.has(index)) {
          failed.add(index);
          options.onFault(index, seed, error);
        }
      }
      report(index, at, 1);
    };
    const most = Math.max(1, Math.min(options.workers ?? runs.size, runs.size));
    try {
      await atOnce(pairs, most, one);
    } catch (error) {
      ended.abort();
      if (isOverTime) {
        const words = `The runs took longer than ${String(together)} s together: ${String(count)} of ${String(pairs.length)} have ended.`;
        throw new EngineError("all_too_long", words);
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
    return { runs: all, ...compared(all) };
  };

  return {
    version: () => data.version,
    workers: runs.size,
    schema: async () => JSON.parse(data.schema) as Record<string, unknown>,
    scenarios: async () => ({ ...data.scenarios }),
    papers: async () => data.papers,
    help: async (model) => (Object.hasOwn(data.help, model) ? (data.help[model] ?? null) : null),
    measures: async () => data.measures,
    async check(toml, given = {}) {
      const { seconds = STANDARD.check } = given;
      const request = { call: "check", toml, limits: limits({ ...given, seconds }) };
      const value = (await quick.ask(request).catch((error: unknown) => {
        if (error instanceof EngineError && error.kind === "too_long") {
          const words = `The check of this scenario took longer than ${String(seconds)} s, so it is not known whether it has faults.`;
          throw new EngineError("check_too_long", words);
        }
        throw error;
      })) as Omit<Checked, "network" | "cell_hops"> & { network: Described | null };
      const { network } = value;
      return {
        ...value,
        faults: value.faults.map(whole),
        network: network === null ? null : { ...network, positions: positions(network) },
        cell_hops: network === null ? null : cellHops(network),
      };
    },
    async document(toml) {
      const value = (await quick.ask({ call: "document", toml })) as Document;
      return { ...value, faults: (value.faults as Fault[]).map(whole) };
    },
    edit: async (toml, path, value) =>
      (await quick.ask({ call: "edit", toml, path, value: value === undefined ? null : value })) as string,
    run,
    async events(toml, seed, options) {
      const { kinds, from = null, to = null, ports = null, flows = null, most_rows = MOST_ROWS } = options;
      const chosen = { kinds, from, to, ports, flows, most_rows };
      const request = { call: "events", toml, seed: validSeed(seed), chosen, limits: limits(options.limits) };
      return (await runs.ask(request, options)) as Events;
    },
    async buffer(toml, seed, port, from, to, asked = {}) {
      const most = { most_steps: MOST_STEPS, limits: limits(asked.limits) };
      const request = { call: "buffer", toml, seed: validSeed(seed), port, from, to, ...most };
      return history((await runs.ask(request, asked)) as BufferColumns, from);
    },
    compare,
  };
}

/** Returns the estimates for every scenario, and for its differences from the first. */
export function compared(runs: Run[][]): Pick<Comparison, "estimates" | "differences"> {
  const values = (of: Run[], measure: (typeof COMPARED)[number]) => of.map((one) => one.answer[measure]);
  const each = <T>(make: (measure: (typeof COMPARED)[number]) => T) =>
    Object.fromEntries(COMPARED.map((measure) => [measure, make(measure)]));
  return {
    estimates: runs.map((of) => each((measure) => estimate(values(of, measure)))),
    differences: runs.map((of) =>
      each((measure) => estimate(differences(values(of, measure), values(runs[0] ?? [], measure)))),
    ),
  };
}

/** Processes the items in order, up to `most` at once. */
async function atOnce<T>(items: T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const one = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) {
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, one));
}

function linked(signal: AbortSignal, ended: AbortController): AbortSignal {
  if (signal.aborted) {
    ended.abort();
  } else {
    signal.addEventListener("abort", () => ended.abort(), { once: true, signal: ended.signal });
  }
  return ended.signal;
}

/** Returns whether an error affects only one scenario, so that the others can continue. */
function concernsOneScenario(error: unknown): error is EngineError {
  return error instanceof EngineError && ["refused", "too_long", "too_large", "broken"].includes(error.kind);
}

function limits({ seconds = STANDARD.seconds, memory = STANDARD.memory }: Limits = {}): Limits {
  return { seconds: Math.max(0, Math.min(seconds, 1e9)), memory: Math.round(Math.min(memory, MOST_MEMORY)) };
}

/** Returns the seed if JSON can represent the number exactly. */
function validSeed(seed: number): number {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new EngineError("refused", `${String(seed)} is not a seed: it must be a whole number from 0 to 2^53 - 1`);
  }
  return seed;
}

/** Estimates the maximum number of cell-hops in a run, in which every flow always sends at its fair share. */
function cellHops(network: Described): number {
  const hops = network.flows.map((flow) => (flow.max_min_mbps * 1e6 * network.duration_s * flow.links.length) / 384);
  return hops.reduce((sum, of) => sum + of, 0);
}
