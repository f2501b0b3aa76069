/** Small components used in several places. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { count, shortened } from "./format.ts";

/** A row of choices, one of which is selected. Arrow keys move between them. */
export function Segments<T extends string>(props: {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly { readonly value: T; readonly text: string }[];
  readonly onChange: (value: T) => void;
  /** Id of the panel below, if the choices are tabs. */
  readonly controls?: string;
}): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const tabs = props.controls !== undefined;
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) {
      return;
    }
    event.preventDefault();
    const n = props.choices.length;
    const now = props.choices.findIndex((c) => c.value === props.value);
    const next = (now + step + n) % n;
    const choice = props.choices[next];
    if (choice !== undefined) {
      props.onChange(choice.value);
      list.current?.querySelectorAll("button")[next]?.focus();
    }
  };
  return (
    <div class="segments" role={tabs ? "tablist" : "group"} aria-label={props.label} ref={list} onKeyDown={move}>
      {props.choices.map((c) => {
        const on = c.value === props.value;
        const state = tabs
          ? ({ role: "tab", "aria-selected": on, "aria-controls": props.controls } as const)
          : ({ "aria-pressed": on } as const);
        return (
          <button
            type="button"
            key={c.value}
            {...state}
            tabIndex={on ? 0 : -1}
            onClick={() => {
              props.onChange(c.value);
            }}
          >
            {c.text}
          </button>
        );
      })}
    </div>
  );
}

export function Notice(props: { readonly sort?: "bad" | "warn"; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div class={`notice ${props.sort ?? ""}`} role={props.sort === "bad" ? "alert" : undefined}>
      {props.children}
    </div>
  );
}

export function Progress(props: { readonly done: number; readonly what: string }): JSX.Element {
  const percent = Math.round(100 * props.done);
  return (
    <div class="progress">
      <progress max={1} value={props.done} aria-label={props.what} />
      <span class="small soft">
        {props.what}: {percent} %
      </span>
    </div>
  );
}

/** A slider for a number, with its value in words next to its name. */
export function Slider(props: {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly text?: string;
  readonly onChange: (value: number) => void;
}): JSX.Element {
  const id = useId();
  const text = props.text ?? String(props.value);
  return (
    <div class="field slider">
      <label for={id} class="row">
        <span>{props.label}</span>
        <output class="row-end" for={id}>
          {text}
        </output>
      </label>
      <input
        id={id}
        type="range"
        min={props.min}
        max={props.max}
        step={props.step}
        value={props.value}
        aria-valuetext={text}
        onInput={(event) => {
          props.onChange(event.currentTarget.valueAsNumber);
        }}
      />
    </div>
  );
}

/** A field for a whole number. If a number is out of range, it shows a message and keeps the old value. */
export function WholeNumber(props: {
  readonly label: string;
  /** Noun for the counted objects, in messages such as "At most 200 seeds." */
  readonly unit?: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly onChange: (value: number) => void;
}): JSX.Element {
  const id = useId();
  const draft = useDraft(String(props.value));
  const [refused, setRefused] = useState("");
  return (
    <div class="field whole">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="number"
        min={props.min}
        max={props.max}
        step={1}
        value={draft.text}
        aria-describedby={refused === "" ? undefined : `${id}-refused`}
        onInput={(event) => {
          draft.type(event.currentTarget.value);
          // If the old value is typed again, nothing changes, so the message is cleared here.
          setRefused("");
        }}
        onChange={(event) => {
          const { valueAsNumber: value, value: text } = event.currentTarget;
          const fits = Number.isSafeInteger(value) && value >= props.min && value <= props.max;
          draft.rest();
          setRefused(fits ? "" : refusal(props, value, text));
          if (fits) {
            props.onChange(value);
          }
        }}
      />
      {refused !== "" && (
        <span id={`${id}-refused`} class="small bad-text" role="alert">
          {refused}
        </span>
      )}
    </div>
  );
}

/** Returns the message for a rejected number: "At most 200 seeds." */
function refusal(
  field: { readonly unit?: string; readonly min: number; readonly max: number },
  value: number,
  text: string,
): string {
  const { unit = "", min, max } = field;
  if (!Number.isInteger(value)) {
    return text === "" ? "Type a whole number." : `${shortened(text, 30)} is not a whole number.`;
  }
  const limit = value < min ? min : max;
  const counted = unit === "" ? "" : ` ${unit}${limit === 1 ? "" : "s"}`;
  return `At ${value < min ? "least" : "most"} ${count(limit)}${counted}.`;
}

/** Holds the text being typed, so that a re-render does not restore the old text. */
export function useDraft(value: string): {
  readonly text: string;
  readonly type: (text: string) => void;
  readonly rest: () => void;
} {
  const [draft, setDraft] = useState<string | null>(null);
  return {
    text: draft ?? value,
    type: setDraft,
    rest: () => {
      setDraft(null);
    },
  };
}

/** Returns the colour of the n-th VC, from 0. */
export function vcColour(n: number): string {
  return `var(--vc-${String((n % 8) + 1)})`;
}

export function Swatch(props: { readonly n: number }): JSX.Element {
  return <span class="swatch" style={{ background: vcColour(props.n) }} aria-hidden="true" />;
}

/** Scrolls results into view, but no further than necessary. On a laptop they would otherwise be below the screen. */
export function showSoon(results: Element | null | undefined): void {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  results?.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
}
