/** Playback controls of the window: play, steps by cell, frame, loss and timeout in both directions, and a slider. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Network } from "../../engine/api.ts";
import { count, time } from "../parts/format.ts";
import { Word } from "../parts/words.tsx";
import {
  hasOwnTcp,
  move,
  now,
  playing as isPlaying,
  showTimeout,
  step,
  timeoutBeyond,
  unreported,
  type Detail,
  type Sort,
} from "./lens.ts";

const SORTS: readonly { readonly sort: Sort; readonly text: string }[] = [
  { sort: "cell", text: "cell" },
  { sort: "frame", text: "frame" },
  { sort: "loss", text: "loss" },
  { sort: "timeout", text: "timeout" },
];

/** Keys that move between steps: Shift with an arrow moves by frame, and Shift with a letter moves backwards. */
const KEYS: Readonly<Record<string, Sort>> = { arrowright: "cell", arrowleft: "cell", l: "loss", t: "timeout" };

/** Playback speeds in steps per second. */
const SPEEDS = [10, 60, 600, 3000] as const;

/** Elements that react to the space bar while they have the focus. */
const TYPED = "input:not([type=range]), textarea, select, [contenteditable]";
const PRESSED = "button, summary, a, [role=button]";

function counted(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

export function Timeline(props: { readonly looked: Detail; readonly network: Network }): JSX.Element {
  const { history, counts, timeouts } = props.looked;
  const silent = unreported(props.network);
  const [speed, setSpeed] = useState<number>(SPEEDS[1]);
  /** Message shown instead of the window's counts; `at` is the time of a timeout outside the window. */
  const [note, setNote] = useState<{ readonly of: object; readonly text: string; readonly at: number | null } | null>(null);
  const playing = isPlaying.value;
  const setPlaying = (on: boolean): void => {
    isPlaying.value = on;
  };
  useEffect(() => {
    if (!playing) {
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
        setPlaying(false);
        return;
      }
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => {
      cancelAnimationFrame(frame);
    };
  }, [playing, speed, history]);
  const toggle = (): void => {
    if (!playing && step.peek() >= history.length) {
      step.value = 0;
    }
    setPlaying(!playing);
  };
  const go = (sort: Sort, direction: 1 | -1): void => {
    setPlaying(false);
    setNote(null);
    if (move(sort, direction)) {
      return;
    }
    if (sort === "timeout" && !hasOwnTcp(props.network)) {
      setNote({ of: history, text: silent, at: null });
      return;
    }
    const order = direction === 1 ? "later" : "earlier";
    const text = `There is no ${order} ${sort} in this window.`;
    setNote({ of: history, text, at: null });
    if (sort === "timeout") {
      void timeoutBeyond(direction).then((at) => {
        if (at !== undefined) {
          setNote({ of: history, text: at === null ? `There is no ${order} timeout in this run. ${silent}` : text, at });
        }
      });
    }
  };
  const latest = useRef({ toggle, go });
  latest.current = { toggle, go };
  useEffect(() => {
    // A button keeps the focus after a click. Only a button reached with the keyboard handles the space bar itself.
    let clicked = false;
    const down = (): void => {
      clicked = true;
    };
    const key = (event: KeyboardEvent): void => {
      const target = event.target instanceof Element ? event.target : document.body;
      const sort = KEYS[event.key.toLowerCase()];
      const isFree = !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (sort !== undefined && isFree && target.closest("input, textarea, select, dialog, [contenteditable]") === null) {
        const isArrow = sort === "cell";
        const isBack = isArrow ? event.key === "ArrowLeft" : event.shiftKey;
        event.preventDefault();
        latest.current.go(isArrow && event.shiftKey ? "frame" : sort, isBack ? -1 : 1);
        return;
      }
      if (event.key !== " ") {
        clicked &&= event.key !== "Tab";
        return;
      }
      const own = target.closest(PRESSED);
      if (event.repeat || target.closest(`${TYPED}, dialog`) !== null || (own !== null && !clicked)) {
        return;
      }
      event.preventDefault();
      if (own instanceof HTMLElement) {
        own.blur();
      }
      latest.current.toggle();
    };
    addEventListener("pointerdown", down);
    addEventListener("keydown", key);
    return () => {
      isPlaying.value = false;
      removeEventListener("pointerdown", down);
      removeEventListener("keydown", key);
    };
  }, []);
  return (
    <div class="timeline">
      <div class="row">
        <span class="row player">
          <button
            type="button"
            class="main play"
            aria-label={playing ? "Pause" : "Play"}
            title={playing ? "Pause (space bar)" : "Play (space bar)"}
            onClick={toggle}
          >
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d={playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 1.5v13l10-6.5z"} />
            </svg>
          </button>
          <select
            aria-label="Speed"
            value={String(speed)}
            onChange={(event) => {
              setSpeed(Number(event.currentTarget.value));
            }}
          >
            {SPEEDS.map((s) => (
              <option key={s} value={String(s)}>
                {s.toLocaleString("en")} steps/s
              </option>
            ))}
          </select>
        </span>
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
          setPlaying(false);
          step.value = event.currentTarget.valueAsNumber;
        }}
      />
      {note?.of === history ? (
        <p class="small timeline-note" role="status">
          <span class="warn-text">{note.text}</span>
          {note.at !== null && (
            <button
              type="button"
              class="quiet in-row"
              onClick={() => {
                void showTimeout(note.at ?? 0);
              }}
            >
              Show the {note.at > now.value ? "next" : "previous"} one, at {time(note.at)}
            </button>
          )}
        </p>
      ) : (
        <p class="small soft">
          {counted(history.length, "step")} from {time(props.looked.from)} to {time(props.looked.to)}:{" "}
          {counted(counts.lost, "cell")} lost, {counted(counts.damaged, "frame")} damaged, {counted(counts.discarded, "cell")}{" "}
          discarded ({counted(counts.frames, "whole frame")}){hasOwnTcp(props.network) && `, ${counted(timeouts.length, "timeout")}`}. {silent}
          {history.cut_short && " The window was too long to record completely; it ends with these steps."}
        </p>
      )}
    </div>
  );
}
