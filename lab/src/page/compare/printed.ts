/** Published points for a scenario, which are found by the scenario's contents and not by its name. */

import type { Engine, PaperRow } from "../../engine/api.ts";

export interface Printed {
  readonly efficiency: number;
  readonly fairness: number;
  readonly where: string;
}

let index: Promise<ReadonlyMap<string, readonly Printed[]>> | null = null;

/** Returns the points published in papers for exactly this scenario. Name and seed are ignored. */
export async function printed(engine: Engine, rows: readonly PaperRow[], toml: string): Promise<readonly Printed[]> {
  index ??= build(engine, rows);
  const identity = await identify(engine, toml);
  return identity === null ? [] : ((await index).get(identity) ?? []);
}

/** A point that is not complete yet: a paper may print its two measures in different tables. */
interface Partial {
  readonly paper: string;
  efficiency: number | undefined;
  fairness: number | undefined;
  readonly tables: Set<string>;
}

async function build(engine: Engine, rows: readonly PaperRow[]): Promise<ReadonlyMap<string, readonly Printed[]>> {
  const partial = new Map<string, Partial[]>();
  const identities = new Map<string, Promise<string | null>>();
  for (const row of rows) {
    identities.set(row.toml, identities.get(row.toml) ?? identify(engine, row.toml));
    const identity = await identities.get(row.toml);
    const { efficiency, fairness } = row.published;
    if (identity === null || identity === undefined || (efficiency === undefined && fairness === undefined)) {
      continue;
    }
    const points = partial.get(identity) ?? [];
    // Two tables may print different numbers for one scenario, as 96-1269 does for FBA. They are separate points.
    let point = points.find(
      (p) => p.paper === row.paper && fits(p.efficiency, efficiency) && fits(p.fairness, fairness),
    );
    if (point === undefined) {
      point = { paper: row.paper, efficiency: undefined, fairness: undefined, tables: new Set() };
      points.push(point);
    }
    point.efficiency ??= efficiency;
    point.fairness ??= fairness;
    point.tables.add(`${row.paper}, table ${row.table}`);
    partial.set(identity, points);
  }
  const whole = ({ efficiency, fairness, tables }: Partial): Printed[] =>
    efficiency === undefined || fairness === undefined
      ? []
      : [{ efficiency, fairness, where: [...tables].join(" and ") }];
  return new Map([...partial].map(([identity, points]) => [identity, points.flatMap(whole)]));
}

function fits(known: number | undefined, printed: number | undefined): boolean {
  return known === undefined || printed === undefined || known === printed;
}

/** Returns a scenario with all defaults as canonical JSON; null if it has faults. */
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
