/** The scenario of a policy of one's own. */

import type { Engine } from "../../engine/api.ts";
import type { Setting } from "../parts/experiment.ts";
import { shortened } from "../parts/format.ts";
import { scenarios } from "../state.ts";

/** Policies that a policy of one's own is compared with. */
export const CLASSICS = [
  { name: "tail drop", base: "lan-tail-drop" },
  { name: "EPD", base: "lan-epd" },
  { name: "Selective Drop", base: "lan-selective-drop" },
] as const;

/** Returns the classics as settings. */
export function classics(): Setting[] {
  return CLASSICS.map(({ name, base }) => ({ name, toml: scenarios.peek()[base] ?? "" }));
}

/** Puts a formula into the network of the classics, and names the scenario by the formula. */
export async function ownText(e: Engine, formula: string): Promise<string> {
  // The comment describes the policy that is replaced.
  const base = (scenarios.peek()["lan-tail-drop"] ?? "").replace(/^(#.*\n)+\n*/, "");
  const text = await e.edit(base, ["name"], `my policy: ${shortened(formula.replaceAll(/\s+/g, " "), 80)}`);
  return e.edit(text, ["port", "bottleneck", "policy"], { formula: { admit: formula } });
}
