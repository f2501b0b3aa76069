/** Why a run did not come to its end, in words, and what the user can allow it. */

import type { JSX } from "preact";
import type { EngineError, Kind } from "../../engine/api.ts";
import { MOST_MEMORY } from "../../engine/limits.ts";
import { Faults } from "../run/editor.tsx";
import { limits } from "../state.ts";
import type { Failed } from "./experiment.ts";
import { bytes, number, shortened } from "./format.ts";
import { Notice } from "./parts.tsx";

/** Nothing where there is no fault, or the user stopped it. `onAgain` runs it anew, with the limit raised. */
export function FaultNotice(props: {
  readonly fault: EngineError | null;
  /** The setting that it is of, where there are several. */
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
        {fault.faults.length > 0 ? "It was refused." : shortened(fault.message, MOST_MESSAGE)}
      </p>
      <Faults faults={fault.faults} />
      <Raise kind={fault.kind} onAgain={props.onAgain} />
    </Notice>
  );
}

/** A message may quote what a link holds. */
const MOST_MESSAGE = 1000;

/** The faults of several settings, each with its name. */
export function FaultNotices(props: { readonly faults: readonly Failed[]; readonly onAgain: () => void }): JSX.Element {
  return (
    <>
      {props.faults.map(({ setting, fault }, i) => (
        <FaultNotice key={i} fault={fault} of={setting} onAgain={props.onAgain} />
      ))}
    </>
  );
}

/** The press that raises the limit that was passed; nothing where none was, or it cannot be higher. */
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
    all_too_long: `Go on for up to ${span(10 * now.together)}`,
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

/** Seconds in a unit that a person would say. */
export function span(seconds: number): string {
  if (seconds < 120) {
    return `${number(Math.max(1, Math.round(seconds)))} s`;
  }
  return seconds < 7200 ? `${number(Math.round(seconds / 60))} minutes` : `${number(Math.round(seconds / 3600))} hours`;
}
