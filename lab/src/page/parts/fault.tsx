/** Why a run did not come to its end, in words, and what the user can allow it. */

import type { JSX } from "preact";
import type { EngineError } from "../../engine/api.ts";
import { Faults } from "../run/editor.tsx";
import { memoryLimit, secondsLimit } from "../state.ts";
import { bytes, number } from "./format.ts";
import { Notice } from "./parts.tsx";

/** What a browser can give at most. */
const MOST_MEMORY = 3.5 * 2 ** 30;

/** Nothing where there is no fault, or the user stopped it. `onAgain` runs it anew, with the limit raised. */
export function FaultNotice(props: {
  readonly fault: EngineError | null;
  readonly onAgain: () => void;
}): JSX.Element | null {
  const { fault } = props;
  if (fault === null || fault.kind === "stopped") {
    return null;
  }
  const seconds = 10 * secondsLimit.value;
  return (
    <Notice sort="bad">
      <p>{fault.message}</p>
      <Faults faults={fault.faults} />
      {fault.kind === "too_long" && (
        <button
          type="button"
          onClick={() => {
            secondsLimit.value = seconds;
            props.onAgain();
          }}
        >
          Run it with a limit of {span(seconds)}
        </button>
      )}
      {fault.kind === "too_large" && memoryLimit.value < MOST_MEMORY && (
        <button
          type="button"
          onClick={() => {
            memoryLimit.value = MOST_MEMORY;
            props.onAgain();
          }}
        >
          Allow it up to {bytes(MOST_MEMORY)}
        </button>
      )}
    </Notice>
  );
}

/** Seconds in a unit that a person would say. */
export function span(seconds: number): string {
  if (seconds < 120) {
    return `${number(Math.max(1, Math.round(seconds)))} s`;
  }
  return seconds < 7200 ? `${number(Math.round(seconds / 60))} minutes` : `${number(Math.round(seconds / 3600))} hours`;
}
