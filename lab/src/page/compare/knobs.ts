/** Settings of a scenario that can be changed with a slider. */

import type { Value } from "../form/schema.ts";
import { shortened } from "../parts/format.ts";

export interface Knob {
  readonly path: readonly string[];
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** Converts a value to the scenario's notation, such as `"100ms"`. */
  readonly write: (value: number) => string | number;
  readonly text: (value: number) => string;
}

type Table = { readonly [key: string]: Value };

/** Maximum number of ports with sliders, since a scenario from a link may have thousands. */
const MOST_PORTS = 12;
/** Maximum number of groups of requests, and of incasts, with sliders. */
const MOST_GROUPS = 4;

/** Returns the adjustable settings of a scenario: sources, buffers, thresholds, Z, requests, timers. */
export function knobs(root: Table): Knob[] {
  const found: Knob[] = [];
  for (const [kind, topology] of Object.entries(table(root["topology"]))) {
    const sources = table(topology)["sources"];
    if (typeof sources === "number") {
      found.push(plain(["topology", kind, "sources"], "Sources", sources, 1, Math.max(30, 2 * sources), 1));
    }
  }
  for (const [name, port] of Object.entries(table(root["port"])).slice(0, MOST_PORTS)) {
    const buffer = table(port)["buffer"];
    const places = typeof buffer === "number" ? buffer : undefined;
    if (places !== undefined) {
      found.push(
        plain(
          ["port", name, "buffer"],
          "Buffer K, cells",
          places,
          round(places / 10),
          round(4 * places),
          round(places / 20),
        ),
      );
    }
    for (const [policy, settings] of Object.entries(table(table(port)["policy"]))) {
      const path = ["port", name, "policy", policy];
      const { threshold, z } = table(settings);
      if (typeof threshold === "number" && threshold <= 1) {
        found.push(plain([...path, "threshold"], "Threshold R, fraction of K", threshold, 0, 1, 0.05));
      } else if (typeof threshold === "number") {
        const most = Math.max(places ?? 0, threshold);
        const step = round(most / 50);
        // A threshold of 1 would mean the whole buffer.
        found.push(plain([...path, "threshold"], "Threshold R, cells", threshold, step === 1 ? 2 : 0, most, step));
      }
      if (typeof z === "number") {
        found.push(plain([...path, "z"], "Load ratio Z", z, 0, 2, 0.05));
      }
    }
  }
  for (const [name, requests] of Object.entries(table(root["requests"])).slice(0, MOST_GROUPS)) {
    const { load } = table(requests);
    if (typeof load === "number") {
      found.push(plain(["requests", name, "load"], `Load of ${shortened(name, 20)}`, load, 0.05, Math.max(1, load), 0.05));
    }
  }
  for (const [name, incast] of Object.entries(table(root["incast"])).slice(0, MOST_GROUPS)) {
    const { senders } = table(incast);
    if (typeof senders === "number") {
      found.push(plain(["incast", name, "senders"], `Senders of ${shortened(name, 20)}`, senders, 1, 2 * senders, 1));
    }
  }
  for (const [kind, tcp] of Object.entries(table(root["tcp"]))) {
    const granularity = milliseconds(table(tcp)["timer_granularity"]);
    if (granularity !== null) {
      found.push({
        ...plain(["tcp", kind, "timer_granularity"], "Timer tick", granularity, 1, 500, 1),
        write: (value) => `${String(value)}ms`,
        text: (value) => `${String(value)} ms`,
      });
    }
  }
  return found;
}

export function plain(path: readonly string[], label: string, value: number, min: number, max: number, step: number): Knob {
  return {
    path,
    label,
    value,
    min,
    max,
    step,
    write: (v) => Number(v.toFixed(6)),
    text: (v) => String(Number(v.toFixed(4))),
  };
}

/** Rounds to one, two or five times a power of ten. */
export function round(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  const lead = value / power;
  return Math.max(1, (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power);
}

function milliseconds(value: Value | undefined): number | null {
  const match = typeof value === "string" ? /^(\d+(?:\.\d+)?)\s*(ms|s)$/.exec(value) : null;
  return match === null ? null : Number(match[1]) * (match[2] === "s" ? 1000 : 1);
}

function table(value: unknown): Table {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Table) : {};
}
