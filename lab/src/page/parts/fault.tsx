/** Explains why a run failed, and lets the user raise the limit that it exceeded. */

import type { JSX } from "preact";
import type { EngineError, Kind } from "../../engine/api.ts";
import { MOST_MEMORY } from "../../engine/limits.ts";
import { Faults } from "../run/editor.tsx";
import { limits } from "../state.ts";
import type { Failed } from "./experiment.ts";
import { bytes, number, shortened } from "./format.ts";
import { Notice } from "./parts.tsx";

/** If there is no fault or the user stopped the run, shows nothing. `onAgain` repeats the run with a higher limit. */
export function FaultNotice(props: {
  readonly fault: EngineError | null;
  /** Setting to which the fault belongs, if there are several settings. */
  readonly of?: string;
  readonly onAgain: () => void;
}): JSX.Element | null {
  const { fault, of = "" } = props;
  if (fault === null || fault.kind === "stopped") {
    return null;
  }
  return (
    <Notice sort="bad">
      <p>
        {of !== "" && <strong>{of}: </strong>}
        {fault.faults.length > 0 ? "The scenario has errors." : shortened(fault.message, MOST_MESSAGE)}
      </p>
      <Faults faults={fault.faults} />
      <Raise kind={fault.kind} onAgain={props.onAgain} />
    </Notice>
  );
}

/** Maximum length of a message, which may quote text from a link. */
const MOST_MESSAGE = 1000;

/** Shows the faults of several settings, each with the setting's name. */
export function FaultNotices(props: { readonly faults: readonly Failed[]; readonly onAgain: () => void }): JSX.Element {
  return (
    <>
      {props.faults.map(({ setting, fault }, i) => (
        <FaultNotice key={i} fault={fault} of={setting} onAgain={props.onAgain} />
      ))}
    </>
  );
}

/**
 * Shows the button that raises the exceeded limit. Shows nothing if no limit was exceeded or the limit is already at
 * its maximum.
 */
export function Raise(props: { readonly kind: Kind; readonly onAgain?: () => void }): JSX.Element | null {
  const now = limits.value;
  const raised = {
    too_long: { seconds: 10 * now.seconds },
    all_too_long: { together: 10 * now.together },
    check_too_long: { check: 10 * now.check },
    too_large: now.memory < MOST_MEMORY ? { memory: MOST_MEMORY } : null,
  };
  const words = {
    too_long: `Run it with a limit of ${span(10 * now.seconds)}`,
    all_too_long: `Continue for up to ${span(10 * now.together)}`,
    check_too_long: `Check it with a limit of ${span(10 * now.check)}`,
    too_large: `Allow it up to ${bytes(MOST_MEMORY)}`,
  };
  const { kind } = props;
  if (!isRaised(kind) || raised[kind] === null) {
    return null;
  }
  return (
    <button
      type="button"
      onClick={() => {
        limits.value = { ...now, ...raised[kind] };
        props.onAgain?.();
      }}
    >
      {words[kind]}
    </button>
  );
}

function isRaised(kind: Kind): kind is "too_long" | "all_too_long" | "check_too_long" | "too_large" {
  return ["too_long", "all_too_long", "check_too_long", "too_large"].includes(kind);
}

/** Formats a duration in a convenient unit. */
export function span(seconds: number): string {
  if (seconds < 120) {
    return `${number(Math.max(1, Math.round(seconds)))} s`;
  }
  return seconds < 7200 ? `${number(Math.round(seconds / 60))} minutes` : `${number(Math.round(seconds / 3600))} hours`;
}
