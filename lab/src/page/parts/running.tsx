/** What starts runs, wherever that is done: how many seeds, from which on, and the press that runs or stops. */

import type { ComponentChildren, JSX } from "preact";
import { MOST_SEEDS } from "../link/link.ts";
import { embed, firstSeed, go, seedCount, seedInside, toml } from "../state.ts";
import { WholeNumber } from "./parts.tsx";

export function SeedCount(): JSX.Element {
  return (
    <WholeNumber
      label="Seeds"
      unit="seed"
      value={seedCount.value}
      min={1}
      max={Math.min(MOST_SEEDS, Number.MAX_SAFE_INTEGER - firstSeed.value + 1)}
      onChange={(n) => {
        seedCount.value = n;
      }}
    />
  );
}

/** The first of several seeds. */
export function FirstSeed(props: { readonly label: string }): JSX.Element {
  return (
    <WholeNumber
      label={props.label}
      value={firstSeed.value}
      min={0}
      max={Number.MAX_SAFE_INTEGER - seedCount.value + 1}
      onChange={(n) => {
        firstSeed.value = n;
      }}
    />
  );
}

/** The seed of the run that is looked into. */
export function SeedInside(): JSX.Element {
  return (
    <WholeNumber
      label="Seed"
      value={seedInside.value}
      min={0}
      max={Number.MAX_SAFE_INTEGER - seedCount.value + 1}
      onChange={(n) => {
        seedInside.value = n;
      }}
    />
  );
}

/** Runs what is set up; while that goes on, the same place stops it. */
export function RunOrStop(props: {
  readonly id: string;
  readonly running: boolean;
  readonly disabled?: boolean;
  /** True if another action is the main one now. */
  readonly isSecondary?: boolean;
  readonly onRun: () => void;
  readonly onStop: () => void;
  /** The words on it when nothing runs. */
  readonly children: ComponentChildren;
}): JSX.Element {
  return props.running ? (
    <button type="button" class="main" onClick={props.onStop}>
      Stop
    </button>
  ) : (
    <button type="button" class={props.isSecondary === true ? "" : "main"} id={props.id} disabled={props.disabled} onClick={props.onRun}>
      {props.children}
    </button>
  );
}

/** Puts a scenario on the bench and goes there. */
export function ToBench(props: {
  readonly toml: string | null;
  readonly class: string;
  readonly children: ComponentChildren;
}): JSX.Element | null {
  if (embed.value !== null) {
    // A frame has room for a story or a microscope only.
    return null;
  }
  return (
    <button
      type="button"
      class={props.class}
      disabled={props.toml === null}
      onClick={() => {
        toml.value = props.toml ?? toml.value;
        go("run");
      }}
    >
      {props.children}
    </button>
  );
}
