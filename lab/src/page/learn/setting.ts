/** Scenarios of the stories' settings. */

import type { Engine } from "../../engine/api.ts";
import type { Variant } from "../../stories/story.ts";
import { setTcp } from "../compare/for-all.ts";
import type { Value } from "../form/schema.ts";
import type { Setting } from "../parts/experiment.ts";
import { scenarios as shipped } from "../state.ts";

export async function setting(e: Engine, variant: Variant): Promise<Setting> {
  return { name: variant.name, toml: await textOf(e, shipped.value, variant) };
}

/** Returns the text of a setting: the shipped scenario with the setting's TCP and changes. */
export async function textOf(
  e: Engine,
  scenarios: Readonly<Record<string, string>>,
  { base, tcp, changes = [] }: Variant,
): Promise<string> {
  let text = scenarios[base] ?? "";
  const root = tcp === undefined ? null : ((await e.document(text)).root as { readonly [key: string]: Value } | null);
  const edits = tcp === undefined || root === null ? [] : setTcp(root, tcp);
  for (const { path, value } of [...edits, ...changes]) {
    text = await e.edit(text, [...path], value);
  }
  return text;
}
