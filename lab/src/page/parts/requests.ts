/** Statistics of requests: those available, and why some have no value. */

import type { RequestStatistics, SizeClass } from "../../engine/api.ts";
import type { Done } from "../state.ts";
import { count, shortened } from "./format.ts";

/** Statistics of completion times and slowdowns, each with the number of requests it needs. */
export const STATISTICS = [
  { key: "mean", name: "mean", long: "mean", needs: 1 },
  { key: "median", name: "median", long: "median", needs: 2 },
  { key: "p95", name: "95 %", long: "95th percentile", needs: 20 },
  { key: "p99", name: "99 %", long: "99th percentile", needs: 100 },
  { key: "p999", name: "99.9 %", long: "99.9th percentile", needs: 1000 },
] as const;

/** Requests of one size class of a group, or the queries of an incast. */
export interface Part {
  readonly group: string;
  readonly of: SizeClass | "queries";
}

/** Lists the parts that have requests. If all requests of a group are in one size class, that class is omitted. */
export function partsOf(runs: readonly Done[]): Part[] {
  const groups = new Set(runs.flatMap((run) => run.answer.requests.map((g) => g.name)));
  return [...groups].flatMap((group) => {
    const has = (of: Part["of"], measure: string): boolean =>
      runs.some((run) => Number(statisticsOf(run, { group, of })?.[measure] ?? 0) > 0);
    const classes = (["short", "medium", "long"] as const).filter((of) => has(of, "opened"));
    const parts = ["all", ...(classes.length > 1 ? classes : []), ...(has("queries", "asked") ? ["queries"] : [])];
    return parts.map((of) => ({ group, of }) as Part);
  });
}

/** Returns the name of a part: "web, short". */
export function partName({ group, of }: Part): string {
  return `${shortened(group, 40)}, ${of}`;
}

/** Returns the statistics of a part; null if the scenario has no such group. */
export function statisticsOf(run: Done, { group, of }: Part): RequestStatistics | null {
  return run.answer.requests.find((g) => g.name === group)?.[of] ?? null;
}

/** Returns a statistic of each run; null if a run has no value. */
export function valuesOf(runs: readonly Done[], part: Part, measure: string): (number | null)[] {
  return runs.map((run) => {
    const value = statisticsOf(run, part)?.[measure] ?? null;
    return value === null ? null : Number(value);
  });
}

/** Returns whether a statistic, such as `p99`, is only a lower bound in any of the runs. Means never are. */
export function isBound(runs: readonly Done[], part: Part, statistic: string): boolean {
  return valuesOf(runs, part, `${statistic}_censored`).some(Boolean);
}

/** Returns the numbers of open and of all requests, for the run with the most open ones: "22 of 230 requests". */
export function mostOpen(runs: readonly Done[], part: Part): string {
  const queries = part.of === "queries";
  const counts = runs.map((run) => {
    const of = statisticsOf(run, part);
    return { open: Number(of?.["open"] ?? 0), opened: Number(of?.[queries ? "asked" : "opened"] ?? 0) };
  });
  const most = counts.reduce((a, b) => (b.open > a.open ? b : a));
  return `${count(most.open)} of ${count(most.opened)} ${queries ? "queries" : "requests"}`;
}

/** Explains why statistics that need this number of requests have no value: "needs 100 requests, 37 opened". */
export function tooFew(runs: readonly Done[], part: Part, needs: readonly number[]): string {
  // The mean covers completed requests only. Percentiles cover all requests that opened.
  const opened = part.of === "queries" ? "asked" : "opened";
  const counted = needs.includes(1) ? "completed" : opened;
  const numbersOf = runs.map((run) => ({ seed: run.seed, n: Number(statisticsOf(run, part)?.[counted] ?? 0) }));
  const least = numbersOf.reduce((a, b) => (b.n < a.n ? b : a));
  if (least.n >= Math.min(...needs)) {
    // A request that would lose segments even without other traffic has no slowdown.
    return "unknown";
  }
  const what = part.of === "queries" ? "queries" : "requests";
  if (least.n === 0) {
    return `no ${what} completed${runs.length === 1 ? "" : ` with seed ${String(least.seed)}`}`;
  }
  const [numbers, last] = [needs.slice(0, -1).map(count).join(", "), count(needs.at(-1) ?? 0)];
  const where = runs.length === 1 ? counted : `with seed ${String(least.seed)}`;
  return `needs ${numbers === "" ? "" : `${numbers} and `}${last} ${what}, ${count(least.n)} ${where}`;
}
