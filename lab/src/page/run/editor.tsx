/** The scenario as TOML, with its faults at their lines. */

import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import type { Fault } from "../../engine/api.ts";
import { checkedNow, toml } from "../state.ts";

export function Editor(): JSX.Element {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const faults = checkedNow.value?.result.faults ?? [];
  const bad = new Set(faults.map((f) => f.line));
  const lines = toml.value.split("\n").length;
  const goTo = (line: number): void => {
    const text = toml.peek().split("\n");
    const start = text.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (text[line - 1]?.length ?? 0));
  };
  return (
    <div class="editor">
      <label for={id} class="unseen">
        Scenario as TOML
      </label>
      <div class="editor-box">
        <div class="editor-gutter" ref={gutter} aria-hidden="true">
          {Array.from({ length: lines }, (_, i) => (
            <div key={i} class={bad.has(i + 1) ? "bad" : ""}>
              {i + 1}
            </div>
          ))}
        </div>
        <textarea
          id={id}
          ref={area}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          rows={22}
          value={toml.value}
          aria-invalid={faults.length > 0}
          aria-describedby={`${id}-faults`}
          onInput={(event) => {
            toml.value = event.currentTarget.value;
          }}
          onScroll={(event) => {
            if (gutter.current !== null) {
              gutter.current.scrollTop = event.currentTarget.scrollTop;
            }
          }}
        />
      </div>
      <div id={`${id}-faults`} aria-live="polite">
        <Faults faults={faults} onLine={goTo} />
      </div>
    </div>
  );
}

/** The faults of a scenario, each with its line, key and what would be right. */
export function Faults(props: {
  readonly faults: readonly Fault[];
  readonly onLine?: (line: number) => void;
  /** Of one text alone: without its key. */
  readonly short?: boolean;
}): JSX.Element | null {
  if (props.faults.length === 0) {
    return null;
  }
  return (
    <ul class="faults">
      {props.faults.map((f, i) => (
        <li key={i}>
          {f.line !== null && props.onLine !== undefined && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                props.onLine?.(f.line ?? 1);
              }}
            >
              line {f.line}
            </button>
          )}{" "}
          <span>
            {props.short !== true && f.key !== "" && <code>{f.key}</code>}
            {props.short !== true && f.value !== "" && <code> = {f.value}</code>} {f.problem}
          </span>
          {f.excerpt.length > 0 && <pre>{f.excerpt.join("\n")}</pre>}
        </li>
      ))}
    </ul>
  );
}
