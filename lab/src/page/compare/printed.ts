/** The points that papers print, found for a scenario by what it is and not by its name. */

import type { Engine, PaperRow } from "../../engine/api.ts";

export interface Printed {
  readonly efficiency: number;
  readonly fairness: number;
  readonly where: string;
}

let index: Promise<ReadonlyMap<string, readonly Printed[]>> | null = null;

/** What papers print for exactly this scenario; the seed and the name do not matter. */
export async function printed(engine: Engine, rows: readonly PaperRow[], toml: string): Promise<readonly Printed[]> {
  index ??= build(engine, rows);
  const identity = await identify(engine, toml);
  return identity === null ? [] : ((await index).get(identity) ?? []);
}

async function build(engine: Engine, rows: readonly PaperRow[]): Promise<ReadonlyMap<string, readonly Printed[]>> {
  const partial = new Map<string, { efficiency?: number; fairness?: number; tables: Set<string> }>();
  const identities = new Map<string, Promise<string | null>>();
  for (const row of rows) {
    identities.set(row.toml, identities.get(row.toml) ?? identify(engine, row.toml));
    const identity = await identities.get(row.toml);
    if (identity === null || identity === undefined) {
      continue;
    }
    const { efficiency, fairness } = row.published;
    // Two tables may print one scenario with different numbers: then there are two points.
    const key = `${identity}\n${row.paper}`;
    const point = partial.get(key) ?? { tables: new Set<string>() };
    if (efficiency !== undefined) {
      point.efficiency ??= efficiency;
      point.tables.add(`${row.paper}, table ${row.table}`);
    }
    if (fairness !== undefined) {
      point.fairness ??= fairness;
      point.tables.add(`${row.paper}, table ${row.table}`);
    }
    partial.set(key, point);
  }
  const points = new Map<string, Printed[]>();
  for (const [key, { efficiency, fairness, tables }] of partial) {
    if (efficiency !== undefined && fairness !== undefined) {
      const identity = key.split("\n")[0] ?? "";
      points.set(identity, [
        ...(points.get(identity) ?? []),
        { efficiency, fairness, where: [...tables].join(" and ") },
      ]);
    }
  }
  return points;
}

/** A scenario with all its defaults as one text, keys in order; null where it has faults. */
async function identify(engine: Engine, toml: string): Promise<string | null> {
  const { defaults } = await engine.check(toml);
  if (defaults === null) {
    return null;
  }
  const { name: _name, seed: _seed, ...rest } = defaults;
  return JSON.stringify(sorted(rest));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  const table = value as { readonly [key: string]: unknown };
  return Object.fromEntries(
    Object.keys(table)
      .sort()
      .map((key) => [key, sorted(table[key])]),
  );
}
