/** The five settings that users usually change first, found in a scenario of any form. */

import type { Field, Shape, Value } from "./schema.ts";

export interface Essential {
  readonly field: Field;
  readonly path: readonly string[];
  readonly value: Value | undefined;
  /** Name of the port or of the group of requests; empty for the bottleneck or the only port. */
  readonly of?: string;
}

type Values = { readonly [key: string]: Value };

/**
 * Returns the main settings of a scenario: the load of requests or the sources (or the topology's first number), the
 * duration, the TCP or stack, the policy and the buffer.
 */
export function essentials(shape: Shape, values: Values): Essential[] {
  const root = shape.fields(shape.root);
  const named = (key: string): Field | undefined => root.find((f) => f.key === key);
  return [
    ...("requests" in values ? load(shape, named("requests"), values) : size(shape, named("topology"), values)),
    ...["duration", "stack" in values ? "stack" : "tcp"].flatMap((key) => {
      const field = named(key);
      return field === undefined ? [] : [{ field, path: [key], value: values[key] }];
    }),
    ...port(shape, named("port"), values),
  ];
}

/** Returns the number of sources, or the topology's first whole number. */
function size(shape: Shape, topology: Field | undefined, values: Values): Essential[] {
  const [kind, inner] = Object.entries(table(values["topology"]))[0] ?? [];
  const choice = topology?.kind === "choice" ? topology.choices.find((c) => c.name === kind) : undefined;
  if (kind === undefined || choice === undefined) {
    return [];
  }
  const whole = shape.fields(choice.schema).filter((f) => f.kind === "number" && f.whole);
  const field = whole.find((f) => f.key === "sources") ?? whole[0];
  return field === undefined ? [] : [{ field, path: ["topology", kind, field.key], value: table(inner)[field.key] }];
}

/** Returns the load of the first group of requests. */
function load(shape: Shape, requests: Field | undefined, values: Values): Essential[] {
  const [name, inner] = Object.entries(table(values["requests"]))[0] ?? [];
  const field = requests?.kind === "named" ? shape.fields(requests.schema).find((f) => f.key === "load") : undefined;
  return name === undefined || field === undefined
    ? []
    : [{ field, path: ["requests", name, "load"], value: table(inner)["load"], of: name }];
}

/** Returns the policy and buffer of the bottleneck, or of the first port that sets one of them. */
function port(shape: Shape, ports: Field | undefined, values: Values): Essential[] {
  const entries = Object.entries(table(values["port"]));
  const [name, inner] =
    entries.find(([key]) => key === "bottleneck") ??
    entries.find(([, one]) => ["buffer", "policy"].some((key) => key in table(one))) ??
    [];
  if (name === undefined || ports?.kind !== "named") {
    return [];
  }
  const fields = shape.fields(ports.schema);
  return ["policy", "buffer"].flatMap((key) => {
    const field = fields.find((f) => f.key === key);
    const of = name === "bottleneck" ? {} : { of: name };
    return field === undefined ? [] : [{ field, path: ["port", name, key], value: table(inner)[key], ...of }];
  });
}

function table(value: unknown): Values {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Values) : {};
}
