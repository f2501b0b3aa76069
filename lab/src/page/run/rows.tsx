/** Rows of results: their names, and their measures as means over the runs. */

import type { JSX } from "preact";
import type { Row } from "../../engine/api.ts";
import { mean } from "../../engine/statistics.ts";
import type { Done } from "../state.ts";

/** Maximum number of rows in a table. */
export const MOST_ROWS = 40;

type List = "flows" | "ports" | "queues";

export function rowNames(runs: readonly Done[], of: List): string[] {
  return (runs[0]?.answer[of] ?? []).map((r) => r.name);
}

export function row(run: Done | undefined, of: List, i: number): Row | undefined {
  return run?.answer[of][i];
}

/** Returns the mean of a measure in a row over all runs; NaN if the row does not have it in every run. */
export function over(runs: readonly Done[], of: List, i: number, measure: string): number {
  return mean(runs.map((r) => Number(row(r, of, i)?.[measure] ?? NaN)));
}

/** Returns the bottleneck, and ports with a finite buffer or losses. Others, such as host ports, rarely matter. */
export function busyPorts(runs: readonly Done[]): { readonly name: string; readonly i: number }[] {
  return rowNames(runs, "ports")
    .map((name, i) => ({ name, i }))
    .filter(
      ({ name, i }) =>
        name === runs[0]?.answer.bottleneck ||
        row(runs[0], "ports", i)?.["buffer_cells"] != null ||
        over(runs, "ports", i, "lost_cells") + over(runs, "ports", i, "discarded_cells") > 0,
    );
}

export function meansOver(runs: readonly Done[]): string {
  return runs.length === 1 ? "one run" : `means over ${String(runs.length)} seeds`;
}

/** Shows how many rows of a table were omitted. */
export function Rest(props: { readonly of: number }): JSX.Element | null {
  return props.of > MOST_ROWS ? <p class="small soft">{`… and ${String(props.of - MOST_ROWS)} more.`}</p> : null;
}
