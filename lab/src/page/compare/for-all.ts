/** Settings shared by all compared scenarios, and the edits that change them everywhere. */

import type { Value } from "../form/schema.ts";

export interface Edit {
  readonly path: readonly string[];
  /** New value; undefined removes the key. */
  readonly value: Value | undefined;
}

type Table = { readonly [key: string]: Value };

/** Returns the number of sources, or null if the topology has no such setting. */
export function sourcesOf(root: Table): number | null {
  const [, topology] = Object.entries(table(root["topology"]))[0] ?? [];
  const sources = table(topology)["sources"];
  return typeof sources === "number" ? sources : null;
}

/** Returns the first finite buffer in cells, preferably the bottleneck's. */
export function bufferOf(root: Table): number | null {
  const ports = table(root["port"]);
  const first = [ports["bottleneck"], ...Object.values(ports)].find((p) => typeof table(p)["buffer"] === "number");
  const buffer = table(first)["buffer"];
  return typeof buffer === "number" ? buffer : null;
}

/** Returns the stack or the TCP of all flows, Vanilla by default. */
export function tcpOf(root: Table): string {
  return Object.keys(table(root["stack"] ?? root["tcp"]))[0] ?? "vanilla";
}

export function setSources(root: Table, sources: number): Edit[] {
  return Object.entries(table(root["topology"])).flatMap(([kind, topology]) =>
    typeof table(topology)["sources"] === "number" ? [{ path: ["topology", kind, "sources"], value: sources }] : [],
  );
}

/** Policy settings measured in cells. They scale with the buffer. */
const IN_CELLS = ["threshold", "tagged_threshold"] as const;

/** Sets every finite buffer, and scales thresholds given in cells: 800 of 1000 becomes 1600 of 2000. */
export function setBuffer(root: Table, buffer: number): Edit[] {
  return Object.entries(table(root["port"])).flatMap(([name, port]) => {
    const before = table(port)["buffer"];
    if (typeof before !== "number") {
      return [];
    }
    const thresholds = Object.entries(table(table(port)["policy"])).flatMap(([policy, settings]) =>
      IN_CELLS.flatMap((key) => {
        const cells = table(settings)[key];
        return typeof cells === "number" && cells > 1
          ? [{ path: ["port", name, "policy", policy, key], value: Math.round((cells * buffer) / before) }]
          : [];
      }),
    );
    return [{ path: ["port", name, "buffer"], value: buffer }, ...thresholds];
  });
}

/** Changes the TCP but keeps its settings, because all TCPs have the same keys. Replaces a stack. */
export function setTcp(root: Table, tcp: string): Edit[] {
  const [before] = Object.values(table(root["tcp"]));
  const stack = "stack" in root ? [{ path: ["stack"], value: undefined }] : [];
  return [...stack, { path: ["tcp"], value: { [tcp]: table(before) } }];
}

function table(value: unknown): Table {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Table) : {};
}
