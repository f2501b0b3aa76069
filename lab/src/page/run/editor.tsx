/** An editor for the scenario as TOML, which marks the lines with faults. */

import type { JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Fault } from "../../engine/api.ts";
import { shortened } from "../parts/format.ts";
import { checkedNow, toml } from "../state.ts";

export function Editor(): JSX.Element {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [top, setTop] = useState(0);
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
        <Gutter lines={lines} bad={bad} area={area.current} top={top} />
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
            setTop(event.currentTarget.scrollTop);
          }}
        />
      </div>
      <div id={`${id}-faults`} aria-live="polite">
        <Faults faults={faults} onLine={goTo} />
      </div>
    </div>
  );
}

/** Shows numbers next to the visible lines only, since a text from a link may have thousands of lines. */
function Gutter(props: {
  readonly lines: number;
  readonly bad: ReadonlySet<number | null>;
  readonly area: HTMLTextAreaElement | null;
  /** Scroll position of the text, in pixels. */
  readonly top: number;
}): JSX.Element {
  const { lines, bad, area, top } = props;
  const height = (area === null ? 0 : Number.parseFloat(getComputedStyle(area).lineHeight)) || 21;
  const first = Math.max(0, Math.min(lines, Math.floor(top / height)) - 1);
  const shown = Math.min(lines - first, Math.ceil((area?.clientHeight ?? 600) / height) + 3);
  return (
    <div class="editor-gutter" aria-hidden="true">
      <div style={{ transform: `translateY(${String(first * height - top)}px)` }}>
        {Array.from({ length: shown }, (_, i) => first + i + 1).map((line) => (
          <div key={line} class={bad.has(line) ? "bad" : ""}>
            {line}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Maximum number of faults shown at once: fixing the first often fixes others. */
const MOST_FAULTS = 50;
/** Maximum length of keys and values shown; the text contains them in full. */
const MOST_TEXT = 200;

/** Lists the faults of a scenario, each with its line, key and description. */
export function Faults(props: {
  readonly faults: readonly Fault[];
  readonly onLine?: (line: number) => void;
  /** True to omit the key because all faults are about the same text. */
  readonly short?: boolean;
}): JSX.Element | null {
  if (props.faults.length === 0) {
    return null;
  }
  return (
    <ul class="faults">
      {props.faults.slice(0, MOST_FAULTS).map((f, i) => (
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
            {props.short !== true && f.key !== "" && <code>{shortened(f.key, MOST_TEXT)}</code>}
            {props.short !== true && f.value !== "" && <code> = {shortened(f.value, MOST_TEXT)}</code>}{" "}
            {shortened(f.problem, 5 * MOST_TEXT)}
          </span>
          {f.excerpt.length > 0 && <pre>{shortened(f.excerpt.join("\n"), 10 * MOST_TEXT)}</pre>}
        </li>
      ))}
      {props.faults.length > MOST_FAULTS && (
        <li>{`… and ${String(props.faults.length - MOST_FAULTS)} more errors.`}</li>
      )}
    </ul>
  );
}
