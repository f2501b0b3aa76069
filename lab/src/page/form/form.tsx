/**
 * The scenario as a form, generated from its JSON Schema. It shows the five settings that users change first, and all
 * other settings on request. Edits in the form change the text, and edits in the text change the form.
 */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { Fault } from "../../engine/api.ts";
import { shortened } from "../parts/format.ts";
import { entryName, keyName, kindName } from "../parts/names.ts";
import { useDraft } from "../parts/parts.tsx";
import { checkFault, checkedNow, checked, edit, engine, schema, toml } from "../state.ts";
import { essentials } from "./essentials.ts";
import { Shape, type Choice, type Field, type Schema, type Value } from "./schema.ts";

type Path = readonly string[];

interface Context {
  readonly shape: Shape;
  /** Faults by the full path of the key. */
  readonly faults: ReadonlyMap<string, readonly Fault[]>;
}

/** Groups that most scenarios use, in display order. Other groups follow. */
const FIRST = ["name", "duration", "topology", "port", "tcp", "seed"];

export function Form(): JSX.Element {
  const root = (checkedNow.value ?? checked.value)?.document.root;
  if (schema.value === null || root === undefined) {
    return <p class="soft">Reading the scenario …</p>;
  }
  if (checkFault.value?.toml === toml.value) {
    return <p>The text has not been checked yet.</p>;
  }
  if (root === null) {
    return <p>The text is not valid TOML yet. Fix the marked lines in the text; then the form works again.</p>;
  }
  const shape = new Shape(schema.value as Schema);
  const faults = new Map<string, Fault[]>();
  for (const fault of checkedNow.value?.result.faults ?? []) {
    faults.set(fault.key, [...(faults.get(fault.key) ?? []), fault]);
  }
  const context = { shape, faults };
  const values = root as { readonly [key: string]: Value };
  return (
    <div class="form">
      <Essentials values={values} context={context} />
      <AllSettings values={values} context={context} />
    </div>
  );
}

interface FormProps {
  readonly values: { readonly [key: string]: Value };
  readonly context: Context;
}

/** Shows the settings that most experiments change: sources, buffer, policy, TCP and duration. */
function Essentials(props: FormProps): JSX.Element {
  const { context, values } = props;
  const found = essentials(context.shape, values);
  return (
    <div class="form-essentials">
      {found.map(({ field, path, value, of }) => {
        const common = { key: path.join("."), path, value, context, of };
        return field.kind === "choice" ? (
          <Kinds {...common} field={field} label={keyName(field.key)} />
        ) : (
          <Simple {...common} field={field} isBrief />
        );
      })}
      {found.map(({ field, path, value }) =>
        field.kind === "choice" ? (
          <KindFields key={path.join(".")} field={field} path={path} value={value} context={context} />
        ) : null,
      )}
    </div>
  );
}

/** Shows those settings of the chosen kind that are set or required, such as a threshold. */
function KindFields(props: {
  readonly field: Field & { readonly kind: "choice" };
  readonly path: Path;
  readonly value: Value | undefined;
  readonly context: Context;
}): JSX.Element | null {
  const { field, path, value, context } = props;
  const name = Object.keys(table(value))[0] ?? "";
  const chosen = field.choices.find((c) => c.name === name);
  // A TCP has about thirty settings, whereas a policy has only a few, and all of them matter.
  if (chosen === undefined || field.key !== "policy") {
    return null;
  }
  const values = table(table(value)[name]);
  const fields = context.shape
    .fields(chosen.schema)
    .filter((f) => !["choice", "table", "named", "other"].includes(f.kind) && (f.required || f.key in values));
  return (
    <>
      {fields.map((f) => (
        <Simple key={f.key} field={f} path={[...path, name, f.key]} value={values[f.key]} context={context} isBrief />
      ))}
    </>
  );
}

/** Shows all settings by group. They are rendered when first opened. */
function AllSettings(props: FormProps): JSX.Element {
  const { values, context } = props;
  const [open, setOpen] = useState(false);
  const fields = context.shape.fields(context.shape.root);
  const rank = (f: Field): number => (FIRST.includes(f.key) ? FIRST.indexOf(f.key) : FIRST.length);
  const sorted = [...fields].sort((a, b) => rank(a) - rank(b));
  return (
    <details
      class="form-all"
      open={open}
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>All settings</summary>
      {open &&
        sorted.map((f) => (
          <Part key={f.key} field={f} path={[f.key]} value={values[f.key]} context={context} open={false} />
        ))}
    </details>
  );
}

interface PartProps {
  readonly field: Field;
  readonly path: Path;
  readonly value: Value | undefined;
  readonly context: Context;
  readonly open: boolean;
}

function Part(props: PartProps): JSX.Element {
  const { field, path, value, context } = props;
  switch (field.kind) {
    case "table":
      return (
        <Group title={keyName(field.key)} help={field.help} open={props.open}>
          <Fields schema={field.schema} path={path} values={table(value)} context={context} />
        </Group>
      );
    case "choice":
      return <ChoicePart {...props} choices={field.choices} optional={field.optional || !field.required} />;
    case "named":
      return <NamedPart {...props} schema={field.schema} />;
    default:
      return <Simple field={field} path={path} value={value} context={context} />;
  }
}

/** Shows the fields of a table. Fields that are set or required come first; the rest are behind a disclosure. */
function Fields(props: {
  readonly schema: Schema;
  readonly path: Path;
  readonly values: { readonly [key: string]: Value };
  readonly context: Context;
}): JSX.Element {
  const fields = props.context.shape.fields(props.schema);
  const shown = fields.filter((f) => f.required || f.key in props.values);
  // Show all fields if there are only a few.
  const all = fields.length <= 5 ? fields : shown;
  const rest = fields.filter((f) => !all.includes(f));
  const part = (f: Field): JSX.Element => (
    <Part
      key={f.key}
      field={f}
      path={[...props.path, f.key]}
      value={props.values[f.key]}
      context={props.context}
      open={f.key in props.values}
    />
  );
  return (
    <>
      <div class="form-fields">{all.map(part)}</div>
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more with default values</summary>
          <div class="form-fields">{rest.map(part)}</div>
        </details>
      )}
    </>
  );
}

function Group(props: {
  readonly title: string;
  readonly help: string;
  readonly open: boolean;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <details class="form-group" open={props.open}>
      <summary>{props.title}</summary>
      <p class="small soft">
        <Description text={props.help} />
      </p>
      {props.children}
    </details>
  );
}

function ChoicePart(
  props: PartProps & { readonly choices: readonly Choice[]; readonly optional: boolean },
): JSX.Element {
  const { path, value, context, choices, field } = props;
  const values = table(value);
  const name = Object.keys(values)[0] ?? "";
  const chosen = choices.find((c) => c.name === name);
  return (
    <Group title={keyName(field.key)} help={field.help} open={props.open}>
      {field.kind === "choice" && <Kinds field={field} path={path} value={value} context={context} label="Kind" />}
      {chosen !== undefined && (
        <p class="small soft">
          <Description text={chosen.help} />
        </p>
      )}
      {chosen === undefined ? null : (
        <>
          <Help model={chosen.name} />
          <Fields
            schema={chosen.schema}
            path={[...path, chosen.name]}
            values={table(values[chosen.name])}
            context={context}
          />
        </>
      )}
    </Group>
  );
}

/** Shows a choice between kinds. A new TCP keeps the settings. Any other kind starts with only its required
 * settings. */
function Kinds(props: {
  readonly field: Field & { readonly kind: "choice" };
  readonly path: Path;
  readonly value: Value | undefined;
  readonly context: Context;
  readonly label: string;
  /** Port to which the setting belongs. */
  readonly of?: string | undefined;
}): JSX.Element {
  const id = useId();
  const { field, path, value, context } = props;
  const name = Object.keys(table(value))[0] ?? "";
  const chosen = field.choices.find((c) => c.name === name);
  const standard = Object.keys(table(field.initial))[0];
  return (
    <div class={`field form-${field.key}`}>
      <label for={id}>
        {props.label}
        <Of name={props.of} path={path} />
      </label>
      <select
        id={id}
        value={name}
        onChange={(event) => {
          const choice = field.choices.find((c) => c.name === event.currentTarget.value);
          // All TCPs have the same settings, but thresholds have a different meaning in each policy.
          const settings = field.key === "tcp" ? table(table(value)[name]) : {};
          void edit(path, choice === undefined ? undefined : { [choice.name]: context.shape.kept(choice, settings) });
        }}
      >
        {(field.optional || !field.required || chosen === undefined) && (
          <option value="">{standard === undefined ? "None" : `${kindName(standard)} (default)`}</option>
        )}
        {field.choices.map((c) => (
          <option key={c.name} value={c.name}>
            {kindName(c.name)}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Shows the port or group to which a setting belongs, after the setting's label. */
function Of(props: { readonly name: string | undefined; readonly path: Path }): JSX.Element | null {
  const { name, path } = props;
  return name === undefined ? null : (
    <span class="soft small">
      {" "}
      {path[0] === "port" ? "at" : "of"} {shortened(name, 40)}
    </span>
  );
}

/** Shows the first paragraphs of a model's page on request. */
function Help(props: { readonly model: string }): JSX.Element {
  const [text, setText] = useState<string | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    let current = true;
    setText(null);
    if (open) {
      void engine.value?.help(props.model).then((t) => {
        if (current) {
          setText(t ?? "No description available.");
        }
      });
    }
    return () => {
      current = false;
    };
  }, [props.model, open]);
  return (
    <details
      class="form-help"
      open={open}
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary class="small">About {kindName(props.model)}</summary>
      <div class="small">
        {(text ?? "…").split("\n\n").map((p, i) => (
          <p key={i}>
            <Description text={p} />
          </p>
        ))}
      </div>
    </details>
  );
}

/**
 * Number of entries shown at first and added by each "Show more", since a scenario from a link may contain thousands.
 */
const MOST_NAMED = 12;

/** Shows a table whose keys are names, such as ports: a group for each entry, and a field to add one. */
function NamedPart(props: PartProps & { readonly schema: Schema }): JSX.Element {
  const { path, value, context, field } = props;
  const [name, setName] = useState("");
  const id = useId();
  const [most, setMost] = useState(MOST_NAMED);
  const values = table(value);
  const entries = Object.entries(values);
  return (
    <Group title={keyName(field.key)} help={field.help} open={props.open}>
      <>
        {entries.slice(0, most).map(([key, inner]) => (
          <fieldset key={key} class="form-named">
            <legend>
              <code>{key}</code>
            </legend>
            <Fields schema={props.schema} path={[...path, key]} values={table(inner)} context={context} />
            <button type="button" class="quiet" onClick={() => void edit([...path, key], undefined)}>
              Remove {key}
            </button>
          </fieldset>
        ))}
        {entries.length > most && (
          <p class="row small">
            {`${String(most)} of ${String(entries.length)} are shown.`}
            <button
              type="button"
              class="small"
              onClick={() => {
                setMost(most + MOST_NAMED);
              }}
            >
              Show more
            </button>
          </p>
        )}
      </>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== "" && !Object.hasOwn(values, name)) {
            const start = context.shape.start({ name: "", help: "", schema: props.schema });
            void edit([...path, name], start);
            setName("");
          }
        }}
      >
        <label for={id} class="small">
          Add {entryName(field.key)}
        </label>
        <input
          id={id}
          value={name}
          placeholder="name"
          onInput={(event) => {
            setName(event.currentTarget.value);
          }}
        />
        <button type="submit" disabled={name === ""}>
          Add
        </button>
      </form>
    </Group>
  );
}

function Simple(props: {
  readonly field: Field;
  readonly path: Path;
  readonly value: Value | undefined;
  readonly context: Context;
  /** Shows the description as a tooltip only. */
  readonly isBrief?: boolean;
  /** Port or group of requests to which the setting belongs. */
  readonly of?: string | undefined;
}): JSX.Element {
  const { field, path, value, context } = props;
  const id = useId();
  const key = path.join(".");
  const faults = context.faults.get(key)?.slice(0, 5) ?? [];
  const unit = "unit" in field && field.unit !== "" ? `, ${field.unit}` : "";
  const initial = field.initial === undefined || field.initial === null ? "" : String(field.initial as unknown);
  const change = (text: string): void => void edit(path, text === "" ? undefined : written(field, text));
  const common = {
    id,
    "aria-invalid": faults.length > 0,
    "aria-describedby": `${id}-help`,
    ...(props.isBrief === true ? { title: field.help } : {}),
  } as const;
  const shown = value === undefined || value === null ? "" : typeof value === "object" ? "" : String(value);
  const draft = useDraft(shown);
  // The draft has become the value, or another scenario was loaded.
  useEffect(() => {
    if (!(field.kind === "text" && field.long)) {
      draft.rest();
    }
  }, [shown]);
  return (
    <div class="field form-field">
      <label for={id}>
        {keyName(field.key)}
        <span class="soft small">{unit}</span>
        <Of name={props.of} path={path} />
      </label>
      {field.kind === "word" ? (
        <select
          {...common}
          value={shown}
          onChange={(event) => {
            change(event.currentTarget.value);
          }}
        >
          {!field.required && (
            <option value="">{initial === "" ? "default" : `${spaced(initial)} (default)`}</option>
          )}
          {field.words.map((w) => (
            <option key={w.word} value={w.word}>
              {spaced(w.word)}
            </option>
          ))}
        </select>
      ) : field.kind === "switch" ? (
        <select
          {...common}
          value={shown}
          onChange={(event) => {
            change(event.currentTarget.value);
          }}
        >
          <option value="">{initial === "true" ? "yes" : "no"} (default)</option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      ) : field.kind === "other" && typeof value !== "string" ? (
        <input
          {...common}
          readOnly
          value={value === undefined ? "" : shortened(JSON.stringify(value), 1000)}
          placeholder="set it in the text"
        />
      ) : field.kind === "text" && field.long ? (
        <textarea
          {...common}
          rows={3}
          class="mono"
          spellcheck={false}
          value={draft.text}
          onInput={(event) => {
            draft.type(event.currentTarget.value);
            change(event.currentTarget.value);
          }}
          onBlur={draft.rest}
        />
      ) : (
        <input
          {...common}
          value={draft.text}
          inputMode={field.kind === "number" ? "decimal" : "text"}
          placeholder={initial}
          onInput={(event) => {
            draft.type(event.currentTarget.value);
          }}
          onChange={(event) => {
            const text = event.currentTarget.value.trim();
            if (text === shown) {
              draft.rest();
            } else {
              change(text);
            }
          }}
        />
      )}
      <span id={`${id}-help`} class="small soft">
        {props.isBrief !== true && (
          <>
            <Description text={field.help} /> {range(field)}
          </>
        )}
        {faults.map((f, i) => (
          <span key={i} class="form-fault">
            {" "}
            {f.key.split(".").at(-1)} {f.problem}
            {f.excerpt.length > 0 && <span class="pre">{f.excerpt.join("\n")}</span>}
          </span>
        ))}
      </span>
    </div>
  );
}

/** Converts input to a value of the field: a number if possible, otherwise a string, which the checker judges. */
function written(field: Field, text: string): Value {
  if (field.kind === "switch") {
    return text === "true";
  }
  const numeric = field.kind === "number" || field.kind === "number-or-text";
  return numeric && text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Renders text from the schema, with parts in backticks as code. */
function Description(props: { readonly text: string }): JSX.Element {
  return <>{props.text.split("`").map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

function range(field: Field): string {
  if (field.kind === "number") {
    const parts = [
      field.least === undefined ? "" : `at least ${String(field.least)}`,
      field.most === undefined ? "" : `at most ${String(field.most)}`,
    ].filter((p) => p !== "");
    return parts.length === 0 ? "" : `(${parts.join(", ")})`;
  }
  return "hint" in field && field.hint !== "" ? `(${field.hint})` : "";
}

function table(value: unknown): { readonly [key: string]: Value } {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as { [key: string]: Value })
    : {};
}

function spaced(word: string): string {
  return word.replaceAll("_", " ");
}
