/** Texts around pictures of a run that leave the page. */

import type { Head } from "../keep/files.ts";
import { shortened, time } from "../parts/format.ts";
import { marked } from "../state.ts";
import type { Overview } from "./lens.ts";
import { flowColour } from "./paint.ts";

/** Names in a legend; the colours repeat after eight. */
export const LEGEND = 16;

/** A title, then the run: its scenario, seed, part of time and TCP. `names` are those of the colours. */
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
      ...(more > 0 ? [{ name: `and ${String(more)} more, with the same colours again`, colour: "--paper" }] : []),
    ],
  };
}
