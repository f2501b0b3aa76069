/**
 * Converts a scenario's JSON Schema to form fields. The schema is generated from the Rust types, and no key is
 * hard-coded here.
 */

/** A value in a scenario. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };

/** The subset of JSON Schema used by the scenario's schema. */
export interface Schema {
  readonly $ref?: string;
  readonly $defs?: { readonly [name: string]: Schema };
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: Value;
  readonly const?: Value;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly examples?: readonly Value[];
  readonly properties?: { readonly [key: string]: Schema };
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly "x-quantity"?: "time" | "rate" | "size";
  readonly "x-unit"?: string;
  readonly "x-threshold"?: boolean;
  readonly "x-expect"?: string;
  /** Default value by profile of rules. */
  readonly "x-rules"?: { readonly [profile: string]: Value };
}

interface Common {
  readonly key: string;
  readonly help: string;
  readonly required: boolean;
  /** Default value used if the scenario does not set the key. */
  readonly initial: Value | undefined;
}

export type Field = Common &
  (
    | { readonly kind: "text"; readonly hint: string; readonly long: boolean }
    | {
        readonly kind: "number";
        readonly whole: boolean;
        readonly least?: number;
        readonly most?: number;
        readonly unit: string;
      }
    | { readonly kind: "number-or-text"; readonly unit: string; readonly hint: string }
    | { readonly kind: "switch" }
    | { readonly kind: "word"; readonly words: readonly { readonly word: string; readonly help: string }[] }
    | { readonly kind: "choice"; readonly choices: readonly Choice[]; readonly optional: boolean }
    | { readonly kind: "table"; readonly schema: Schema }
    | { readonly kind: "named"; readonly schema: Schema; readonly names: string }
    | { readonly kind: "other" }
  );

export interface Choice {
  readonly name: string;
  readonly help: string;
  readonly schema: Schema;
}

/** Returns the schema to which a reference points, merged with the keys next to the reference. */
export class Shape {
  readonly root: Schema;

  constructor(root: Schema) {
    this.root = root;
  }

  /** Returns the schema that a reference points to, merged with the keys next to the reference. */
  resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) {
      return schema;
    }
    const { $ref, ...siblings } = schema;
    const target = this.root.$defs?.[$ref.replace("#/$defs/", "")] ?? {};
    return { ...this.resolve(target), ...siblings };
  }

  /** Returns the fields of a table, required ones first. */
  fields(table: Schema): Field[] {
    const resolved = this.resolve(table);
    const required = new Set(resolved.required ?? []);
    const fields = Object.entries(resolved.properties ?? {}).map(([key, schema]) =>
      this.field(key, schema, required.has(key)),
    );
    return [...fields.filter((f) => f.required), ...fields.filter((f) => !f.required)];
  }

  field(key: string, given: Schema, required: boolean): Field {
    const schema = this.resolve(given);
    const common = { key, help: sentence(schema.description ?? ""), required, initial: initial(given) ?? schema.default };
    const alternatives = (schema.anyOf ?? []).map((s) => this.resolve(s)).filter((s) => s.type !== "null");
    const optional = (schema.anyOf ?? []).some((s) => s.type === "null");
    const only = alternatives.length === 1 ? alternatives[0] : undefined;
    if (only !== undefined) {
      const rules = schema["x-rules"];
      const inner = this.field(key, rules === undefined ? only : { ...only, "x-rules": rules }, required);
      return { ...inner, ...common, ...(inner.kind === "choice" ? { optional } : {}) };
    }
    const choices = this.choices(schema);
    if (choices.length > 0) {
      return { ...common, kind: "choice", choices, optional };
    }
    const words = (schema.oneOf ?? []).filter((s) => typeof s.const === "string");
    if (words.length > 0) {
      return {
        ...common,
        kind: "word",
        words: words.map((s) => ({ word: String(s.const), help: sentence(s.description ?? "") })),
      };
    }
    if (alternatives.length > 0) {
      const numbers = alternatives.some((s) => isNumber(s));
      const texts = alternatives.filter((s) => s.type === "string" || s.oneOf !== undefined);
      const example = schema.examples?.[0] ?? texts.flatMap((s) => s.examples ?? [])[0];
      if (numbers && texts.length > 0) {
        return { ...common, kind: "number-or-text", unit: schema["x-unit"] ?? "", hint: hint(schema, example) };
      }
      return { ...common, kind: "other" };
    }
    if (isNumber(schema)) {
      const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
      return {
        ...common,
        kind: "number",
        whole: types.includes("integer"),
        ...(schema.minimum === undefined ? {} : { least: schema.minimum }),
        ...(schema.maximum === undefined ? {} : { most: schema.maximum }),
        unit: schema["x-unit"] ?? "",
      };
    }
    if (schema.type === "boolean") {
      return { ...common, kind: "switch" };
    }
    if (schema.type === "string" || (Array.isArray(schema.type) && schema.type.includes("string"))) {
      const long = (schema["x-expect"] ?? "").includes("formula");
      return { ...common, kind: "text", hint: hint(schema, schema.examples?.[0]), long };
    }
    if (schema.type === "object" && typeof schema.additionalProperties === "object") {
      const inner = this.resolve(schema.additionalProperties);
      return inner.properties === undefined
        ? { ...common, kind: "other" }
        : { ...common, kind: "named", schema: inner, names: key };
    }
    if (schema.type === "object" && schema.properties !== undefined) {
      return { ...common, kind: "table", schema };
    }
    return { ...common, kind: "other" };
  }

  /** Returns the choices of a table that must have exactly one of several keys. */
  choices(schema: Schema): Choice[] {
    return (schema.oneOf ?? []).flatMap((s) => {
      const [name, inner] = Object.entries(s.properties ?? {})[0] ?? [];
      if (name === undefined || inner === undefined) {
        return [];
      }
      const help = sentence(s.description ?? this.resolve(inner).description ?? "");
      return [{ name, help, schema: this.resolve(inner) }];
    });
  }

  /** Returns initial values for the required fields of a choice: their examples, or the smallest allowed values. */
  start(choice: Choice): { [key: string]: Value } {
    const values: { [key: string]: Value } = {};
    for (const field of this.fields(choice.schema).filter((f) => f.required)) {
      values[field.key] = this.startOf(field, choice.schema);
    }
    return values;
  }

  /** Returns the current settings that a choice also has, with initial values for its other required fields. */
  kept(choice: Choice, settings: { readonly [key: string]: Value }): { [key: string]: Value } {
    const keys = new Set(this.fields(choice.schema).map((field) => field.key));
    return { ...this.start(choice), ...Object.fromEntries(Object.entries(settings).filter(([key]) => keys.has(key))) };
  }

  private startOf(field: Field, table: Schema): Value {
    const schema = this.resolve(table.properties?.[field.key] ?? {});
    const texts = (schema.anyOf ?? []).flatMap((s) => this.resolve(s).examples ?? []);
    const example = schema.examples?.[0] ?? texts[0];
    if (example !== undefined) {
      return example;
    }
    if (field.kind === "number") {
      return field.least ?? 1;
    }
    if (field.kind === "word") {
      return field.words[0]?.word ?? "";
    }
    return field.kind === "text" && field.long ? "X < 0.8 * K" : "";
  }
}

/** Returns the default value of a rule that all profiles share. */
function initial(schema: Schema): Value | undefined {
  const [first, ...others] = Object.values(schema["x-rules"] ?? {});
  return others.every((value) => value === first) ? first : undefined;
}

/** Returns an example of valid input. A string default is already an example, with the right unit. */
function hint(schema: Schema, example: Value | undefined): string {
  if (schema["x-threshold"] === true) {
    return `for example ${(schema.examples ?? []).map(String).join(", ")}`;
  }
  const own = initial(schema) ?? schema.default;
  if (typeof own === "string" && own !== "") {
    return "";
  }
  return example === undefined ? (schema["x-expect"] ?? "") : `for example ${String(example)}`;
}

function isNumber(schema: Schema): boolean {
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  return types.includes("integer") || types.includes("number");
}

/** Returns the first paragraph of a description, which precedes its sources, on one line. */
function sentence(description: string): string {
  return (description.split("\n\n")[0] ?? "").replaceAll("\n", " ");
}
