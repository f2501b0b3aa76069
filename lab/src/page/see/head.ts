/** Title and description for exported pictures of a run. */

import type { Head } from "../keep/files.ts";
import { shortened, time } from "../parts/format.ts";
import { marked } from "../state.ts";
import type { Overview } from "./lens.ts";
import { flowColour } from "./paint.ts";

/** Maximum number of names in a legend; the colours repeat after eight. */
export const LEGEND = 16;

/**
 * Returns a title and a description of the run: scenario, seed, time range and TCP. `names` are the labels of the
 * colours.
 */
export function headOf(
  o: Overview,
  title: string,
  when: readonly [number, number] | number,
  names: readonly string[] = [],
  colours: readonly string[] = names.map((_, i) => flowColour(i)),
): Head {
  const at = typeof when === "number" ? `at ${time(when)}` : `${time(when[0])} to ${time(when[1])}`;
  const more = names.length - LEGEND;
  return {
    lines: [
      title,
      `${shortened(marked(o.network.name, o.toml), 80)}, seed ${String(o.seed)}, ${at}`,
      ...(o.tcp === "" ? [] : [`TCP: ${o.tcp}`]),
    ],
    legend: [
      ...names.slice(0, LEGEND).map((name, i) => ({ name: shortened(name, 40), colour: colours[i] ?? "--ink-soft" })),
      ...(more > 0 ? [{ name: `and ${String(more)} more in the same colours`, colour: "--paper" }] : []),
    ],
  };
}
