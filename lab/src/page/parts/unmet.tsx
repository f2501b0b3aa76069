/** Warnings about rules of links that lost or delayed less than they should. */

import type { JSX } from "preact";
import type { UnmetRule } from "../../engine/api.ts";
import { Notice } from "./parts.tsx";

/** The runs of a scenario; `name` is empty if there is only one scenario. */
export interface Ran {
  readonly name: string;
  readonly runs: readonly { readonly seed: number; readonly unmet: readonly UnmetRule[] }[];
}

/** Returns a warning for each rule of each scenario, without repetitions. Its numbers are those of the first run
 * concerned. */
export function unmetIn(scenarios: readonly Ran[]): string[] {
  const warnings = scenarios.flatMap(({ name, runs }) => {
    const first = new Map<number, { readonly text: string; readonly seed: number; readonly runs: number }>();
    for (const { seed, unmet } of runs) {
      for (const { rule, text } of unmet) {
        const known = first.get(rule) ?? { text, seed, runs: 0 };
        first.set(rule, { ...known, runs: known.runs + 1 });
      }
    }
    return [...first.values()].map((one) => {
      const share = `in ${String(one.runs)} of ${String(runs.length)} runs; the numbers are those of seed ${String(one.seed)}`;
      const text = name === "" ? one.text[0]?.toUpperCase() + one.text.slice(1) : `${name}: ${one.text}`;
      return `${text}${runs.length === 1 ? "" : ` (${share})`}.`;
    });
  });
  return [...new Set(warnings)];
}

export function Unmet(props: { readonly scenarios: readonly Ran[] }): JSX.Element | null {
  const warnings = unmetIn(props.scenarios);
  return warnings.length === 0 ? null : (
    <Notice sort="warn">
      {warnings.map((text) => (
        <p key={text}>{text}</p>
      ))}
    </Notice>
  );
}
