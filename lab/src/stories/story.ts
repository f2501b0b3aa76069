/** What a story of the lessons is made of. Texts are data; the player in `page/learn` shows them. */

import type { Answer } from "../engine/api.ts";
import { differences, estimate, mean } from "../engine/statistics.ts";

/** A change of a scenario: a key and its value; undefined takes it out. */
export interface Change {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** A setting: a shipped scenario and what is changed in it. */
export interface Variant {
  readonly name: string;
  readonly base: string;
  readonly changes?: readonly Change[];
}

/** A measure of a run that a step shows. */
export interface Shown {
  readonly label: string;
  readonly value: (answer: Answer) => number;
  /** The end of its axis; 1 where nothing is said. */
  readonly most?: number;
  /** Digits behind the point; 2 where nothing is said. */
  readonly digits?: number;
}

/** Means of what is shown: by variant, by measure, in the order of the step. */
export type Means = readonly (readonly number[])[];

/** The same run by run: by variant, by measure, by seed, where all variants have run the same seeds. */
export type Values = readonly (readonly (readonly number[])[])[];

export type Guess =
  /** A number on a slider, about one measure of one variant. */
  | {
      readonly kind: "number";
      readonly question: string;
      readonly min: number;
      readonly max: number;
      readonly step: number;
      readonly variant: number;
      readonly measure: number;
    }
  /** One of some answers; which are right follows from the runs: several, where these do not tell them apart. */
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
      /** Whether the plane of efficiency and fairness is shown too, with what papers print. */
      readonly plane?: boolean;
      /** The answer, with the numbers that came out. */
      readonly answer: (means: Means, values: Values) => readonly string[];
      /** The variant to look into, with words for the link. */
      readonly look?: { readonly variant: number; readonly text: string };
    }
  | { readonly kind: "free"; readonly title: string; readonly text: readonly string[] };

export interface Story {
  readonly id: string;
  readonly title: string;
  /** One sentence for the card. */
  readonly lead: string;
  readonly steps: readonly Step[];
}

/** Minutes that a story takes: its words at 180 a minute, and 45 seconds to guess, run and read the answer. */
export function minutes(story: Story): number {
  const seconds = story.steps.map((step) => {
    const words = step.text.join(" ").split(/\s+/).length;
    const work = { read: 5, run: 45, free: 200 }[step.kind];
    return (60 * words) / 180 + work;
  });
  return Math.max(1, Math.round(seconds.reduce((sum, s) => sum + s, 0) / 60));
}

/** Efficiency and fairness, which most steps show. */
export const EFFICIENCY: Shown = { label: "Efficiency", value: (a) => a.efficiency };
export const FAIRNESS: Shown = { label: "Fairness", value: (a) => a.fairness ?? Number.NaN };

/** How often a connection's timer ran out. */
export const TIMEOUTS: Shown = {
  label: "Timeouts of a connection",
  value: (a) => a.flows.reduce((sum, f) => sum + Number(f["timeouts"]), 0) / Math.max(1, a.flows.length),
  most: 50,
  digits: 0,
};

/** A count with commas, for sentences. */
export const whole = (value: number | undefined): string => Math.round(value ?? Number.NaN).toLocaleString("en");
/** Two digits, for sentences. */
export const two = (value: number | undefined): string => (value ?? Number.NaN).toFixed(2);
/** A share as a percentage without digits behind the point. */
export const percent = (value: number | undefined): string => `${(100 * (value ?? Number.NaN)).toFixed(0)} %`;

/** Whether two variants differ in a measure: the 95 % interval of their difference, seed by seed, does not hold 0. */
export function differ(values: Values, one: number, other: number, measure: number): boolean {
  const { low, high } = estimate(differences(values[one]?.[measure] ?? [], values[other]?.[measure] ?? []));
  return low !== null && high !== null && (low > 0 || high < 0);
}

/** The variants with the largest mean of a measure (the least, for -1), and those that do not differ from it. */
export function best(values: Values, measure: number, sign: 1 | -1 = 1): readonly number[] {
  const means = values.map((of) => sign * mean(of[measure] ?? []));
  const first = means.indexOf(Math.max(...means));
  return means.flatMap((_, i) => (i === first || !differ(values, i, first, measure) ? [i] : []));
}

/** "A", "A and B", "A, B and C". */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`;
}

/** A measure of the bottleneck's row among the ports. */
export function atBottleneck(answer: Answer, measure: string): number {
  const port = answer.ports.find((p) => p.name === answer.bottleneck);
  return Number(port?.[measure] ?? Number.NaN);
}
