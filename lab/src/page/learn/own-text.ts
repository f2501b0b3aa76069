/** Scenario for a policy of the user's own. */

import type { Engine } from "../../engine/api.ts";
import type { Setting } from "../parts/experiment.ts";
import { shortened } from "../parts/format.ts";
import { scenarios } from "../state.ts";

/** Policies with which the user's policy is compared. */
export const CLASSICS = [
  { name: "tail drop", base: "lan-tail-drop" },
  { name: "EPD", base: "lan-epd" },
  { name: "Selective Drop", base: "lan-selective-drop" },
] as const;

export function classics(): Setting[] {
  return CLASSICS.map(({ name, base }) => ({ name, toml: scenarios.peek()[base] ?? "" }));
}

/** Returns the classic network with a formula as its policy, named after the formula. */
export async function ownText(e: Engine, formula: string): Promise<string> {
  // Remove the comment, which describes the replaced policy.
  const base = (scenarios.peek()["lan-tail-drop"] ?? "").replace(/^(#.*\n)+\n*/, "");
  const text = await e.edit(base, ["name"], `my policy: ${shortened(formula.replaceAll(/\s+/g, " "), 80)}`);
  return e.edit(text, ["port", "bottleneck", "policy"], { formula: { admit: formula } });
}
