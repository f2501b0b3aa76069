/** The time of the window: steps by cell, frame, loss and timeout, both ways, and a play button. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count, time } from "../parts/format.ts";
import { Word } from "../parts/words.tsx";
import { said } from "../state.ts";
import { move, now, step, type Closely, type Sort } from "./lens.ts";

const SORTS: readonly { readonly sort: Sort; readonly text: string }[] = [
  { sort: "cell", text: "cell" },
  { sort: "frame", text: "frame" },
  { sort: "loss", text: "loss" },
  { sort: "timeout", text: "timeout" },
];

/** Steps of play in a second. */
const SPEEDS = [10, 60, 600, 3000] as const;

function told(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

export function Timeline(props: { readonly looked: Closely }): JSX.Element {
  const { history, counts, timeouts } = props.looked;
  const [speed, setSpeed] = useState(0);
  useEffect(() => {
    if (speed === 0) {
      return undefined;
    }
    let last = performance.now();
    let owed = 0;
    let frame = 0;
    const tick = (at: number): void => {
      owed += ((at - last) / 1000) * speed;
      last = at;
      const whole = Math.floor(owed);
      owed -= whole;
      const next = Math.min(history.length, step.peek() + whole);
      step.value = next;
      if (next >= history.length) {
        setSpeed(0);
        return;
      }
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => {
      cancelAnimationFrame(frame);
    };
  }, [speed, history]);
  const go = (sort: Sort, direction: 1 | -1): void => {
    setSpeed(0);
    if (!move(sort, direction)) {
      said.value = `There is no ${direction === 1 ? "later" : "earlier"} ${sort} in this window.`;
    }
  };
  return (
    <div class="timeline">
      <div class="row">
        {SORTS.map(({ sort, text }) => (
          <span class="stepper" key={sort} role="group" aria-label={`Step by ${text}`}>
            <button
              type="button"
              aria-label={`Previous ${text}`}
              onClick={() => {
                go(sort, -1);
              }}
            >
              ‹
            </button>
            <span>{sort === "timeout" ? <Word of="timeout" /> : text}</span>
            <button
              type="button"
              aria-label={`Next ${text}`}
              onClick={() => {
                go(sort, 1);
              }}
            >
              ›
            </button>
          </span>
        ))}
        <label class="row">
          <span>Play</span>
          <select
            value={String(speed)}
            onChange={(event) => {
              setSpeed(Number(event.currentTarget.value));
            }}
          >
            <option value="0">stopped</option>
            {SPEEDS.map((s) => (
              <option key={s} value={String(s)}>
                {s} steps a second
              </option>
            ))}
          </select>
        </label>
        <output class="row-end number-small">{time(now.value)}</output>
      </div>
      <label class="unseen" for="scrub">
        Step of the window
      </label>
      <input
        id="scrub"
        type="range"
        min={0}
        max={history.length}
        step={1}
        value={step.value}
        aria-valuetext={time(now.value)}
        onInput={(event) => {
          setSpeed(0);
          step.value = event.currentTarget.valueAsNumber;
        }}
      />
      <p class="small soft">
        {history.length.toLocaleString("en")} steps from {time(props.looked.from)} to {time(props.looked.to)},{" "}
        {told(counts.cells, "cell")} lost, {told(counts.refused, "frame")} refused, {told(counts.cut, "frame")} cut,{" "}
        {told(timeouts.length, "timeout")}.
        {history.cut_short && " The window was too long to keep all of it: it ends where these steps end."}
      </p>
    </div>
  );
}
