/** The parts of a story. Stories are data, which the player in `page/learn` displays. */

import type { Answer } from "../engine/api.ts";
import { differences, estimate, mean } from "../engine/statistics.ts";

/** A change to a scenario: a key and its new value; undefined removes the key. */
export interface Change {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** A setting: a shipped scenario, optionally with another TCP and other changes. */
export interface Variant {
  readonly name: string;
  readonly base: string;
  /** TCP instead of the scenario's own, with the same settings, as `--set tcp=reno` does. */
  readonly tcp?: string;
  readonly changes?: readonly Change[];
}

/** A measure of a run that a story step shows. */
export interface Shown {
  readonly label: string;
  readonly value: (answer: Answer) => number;
  /** Upper end of the axis. Default: 1. */
  readonly most?: number;
  /** Digits after the decimal point. Default: 2. */
  readonly digits?: number;
}

/** Means of the shown measures, indexed by variant and measure in the order of the step. */
export type Means = readonly (readonly number[])[];

/** Values of the runs, indexed by variant, measure and seed, for the seeds that all variants have run. */
export type Values = readonly (readonly (readonly number[])[])[];

export type Guess =
  /** A guess of one measure for one variant, made with a slider. */
  | {
      readonly kind: "number";
      readonly question: string;
      readonly min: number;
      readonly max: number;
      readonly step: number;
      readonly variant: number;
      readonly measure: number;
    }
  /** One of several answers. The runs decide which answers are right. If runs cannot distinguish answers, several
   * are right. */
  | {
      readonly kind: "choice";
      readonly question: string;
      readonly choices: readonly string[];
      readonly right: (means: Means, values: Values) => readonly number[];
    };

export type Step =
  | {
      readonly kind: "read";
      readonly title: string;
      readonly text: readonly string[];
      readonly toy?: "frame";
    }
  | {
      readonly kind: "run";
      readonly title: string;
      readonly text: readonly string[];
      readonly guess: Guess;
      readonly variants: readonly Variant[];
      readonly shown: readonly Shown[];
      readonly seeds: number;
      /** True if the step also plots fairness against efficiency, with the papers' values. */
      readonly plane?: boolean;
      /** Returns the answer, with the numbers from the runs. */
      readonly answer: (means: Means, values: Values) => readonly string[];
      /** Variant to open in the microscope, and the text of the link. */
      readonly look?: {
        readonly variant: number;
        readonly text: string;
        /** Start and end in seconds. Default: around the first peak of the queue. */
        readonly window?: readonly [number, number];
      };
    }
  | { readonly kind: "free"; readonly title: string; readonly text: readonly string[] };

export interface Story {
  readonly id: string;
  readonly title: string;
  /** One sentence for the card in the overview. */
  readonly lead: string;
  readonly steps: readonly Step[];
}

/** Estimates the minutes a story takes: 180 words per minute, and 45 seconds to guess, run and read the answer. */
export function minutes(story: Story): number {
  const seconds = story.steps.map((step) => {
    const words = step.text.join(" ").split(/\s+/).length;
    const work = { read: 5, run: 45, free: 200 }[step.kind];
    return (60 * words) / 180 + work;
  });
  return Math.max(1, Math.round(seconds.reduce((sum, s) => sum + s, 0) / 60));
}

/** Efficiency and fairness, the measures that most steps show. */
export const EFFICIENCY: Shown = { label: "Efficiency", value: (a) => a.efficiency };
export const FAIRNESS: Shown = { label: "Fairness", value: (a) => a.fairness ?? Number.NaN };

/** Mean number of timeouts per connection. */
export const TIMEOUTS: Shown = {
  label: "Timeouts of a connection",
  value: (a) => a.flows.reduce((sum, f) => sum + Number(f["timeouts"]), 0) / Math.max(1, a.flows.length),
  most: 50,
  digits: 0,
};

/** Formats a count with thousands separators, for sentences. */
export const whole = (value: number | undefined): string => Math.round(value ?? Number.NaN).toLocaleString("en");
/** Formats a number with two decimals, for sentences. */
export const two = (value: number | undefined): string => (value ?? Number.NaN).toFixed(2);
/** Formats a fraction as a percentage without decimals. */
export const percent = (value: number | undefined): string => `${(100 * (value ?? Number.NaN)).toFixed(0)} %`;

/** Returns whether two variants differ in a measure: the 95 % interval of their paired differences excludes 0. */
export function differ(values: Values, one: number, other: number, measure: number): boolean {
  const { low, high } = estimate(differences(values[one]?.[measure] ?? [], values[other]?.[measure] ?? []));
  return low !== null && high !== null && (low > 0 || high < 0);
}

/** Returns the variant with the best mean (largest for 1, smallest for -1) and any not significantly different. */
export function best(values: Values, measure: number, sign: 1 | -1 = 1): readonly number[] {
  const means = values.map((of) => sign * mean(of[measure] ?? []));
  const first = means.indexOf(Math.max(...means));
  return means.flatMap((_, i) => (i === first || !differ(values, i, first, measure) ? [i] : []));
}

/** Joins words: "A", "A and B", "A, B and C". */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`;
}

export function atBottleneck(answer: Answer, measure: string): number {
  const port = answer.ports.find((p) => p.name === answer.bottleneck);
  return Number(port?.[measure] ?? Number.NaN);
}
