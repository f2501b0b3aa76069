/** Controls that start runs: the number of seeds, the first seed, and the button that runs or stops. */

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

/** Shows the field for the first of several seeds. */
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

/** Shows the field for the seed whose run is examined. */
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

/** Shows a button that runs the current setup, or stops it while it runs. */
export function RunOrStop(props: {
  readonly id: string;
  readonly running: boolean;
  readonly disabled?: boolean;
  /** True if a different action is currently the main one. */
  readonly isSecondary?: boolean;
  readonly onRun: () => void;
  readonly onStop: () => void;
  /** Label of the button while nothing runs. */
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

/** Shows a button that loads a scenario under "Run" and goes there. */
export function ToBench(props: {
  readonly toml: string | null;
  readonly class: string;
  readonly children: ComponentChildren;
}): JSX.Element | null {
  if (embed.value !== null) {
    // An embedded page has space only for a story or a microscope.
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
