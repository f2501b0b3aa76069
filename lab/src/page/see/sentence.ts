/** Describes steps in words. */

import type { BufferHistory, Judgement, MemoryView } from "../../engine/api.ts";
import { count, shortened, time } from "../parts/format.ts";

export interface Description {
  /** Time and event, in one sentence. */
  readonly what: string;
  /** Reason why the frame was refused or admitted, with numbers; empty if nothing was decided. */
  readonly why: string;
  readonly bad: boolean;
}

/** Rules of a port that the history does not contain: the policy's key and, for a formula, its condition. */
export interface Rules {
  readonly policy: string;
  readonly formula: string;
}

/** Describes the last completed step; there is none at step 0. */
export function describe(history: BufferHistory, step: number, rules: Rules = { policy: "", formula: "" }): Description {
  if (step === 0 || history.length === 0) {
    return { what: "Before the first event of the window.", why: "", bad: false };
  }
  const i = step - 1;
  const { steps } = history;
  const kind = history.kinds[steps.kind[i] ?? 0] ?? "admitted";
  const vc = history.vcs[steps.vc[i] ?? -1] ?? "?";
  const frame = history.frames[steps.frame[i] ?? -1];
  const cell =
    frame === undefined
      ? `An RM cell of ${vc}`
      : `Cell ${String((steps.index[i] ?? 0) + 1)} of ${vc}’s frame ${count(frame.number)}`;
  const whole = `${vc}’s frame ${frame === undefined ? "?" : count(frame.number)}`;
  const waiting = steps.occupancy[i] ?? 0;
  const cells = waiting === 1 ? "1 cell" : `${count(waiting)} cells`;
  const were = `${cells} ${waiting === 1 ? "was" : "were"} waiting`;
  const now = `${cells} ${waiting === 1 ? "is" : "are"} waiting`;
  const refused = frame?.fate === "refused";
  const refusal = history.refusal(step);
  const what: Record<typeof kind, string> = {
    refused: `${whole} arrived and was discarded: ${were}`,
    admitted: `${cell} arrived and joined the queue: ${now}`,
    cut: `${whole} lost a cell ${refusal === "" ? "because the buffer was full " : ""}and is now damaged: ${were}`,
    lost: `${cell} arrived and was lost: ${were}`,
    discarded: `${cell} was discarded ${refused ? "with" : "as part of the rest of"} its frame: ${were}`,
    pushed_out: `${cell} was pushed out to make room: ${now}`,
    dropped: `${cell} was dropped with its packet: ${now}`,
    departed: `${cell} left for the link: ${now}`,
  };
  const bad = kind !== "admitted" && kind !== "departed";
  const judgement = history.judgements[steps.judgement[i] ?? -1];
  const explains = judgement !== undefined && !JUDGES_NOTHING.test(rules.policy);
  const wasted = kind === "departed" && frame !== undefined && frame.damaged_s <= (steps.time_s[i] ?? 0);
  return {
    what: `${time(steps.time_s[i] ?? 0)}: ${what[kind]}.${wasted ? ` ${frame.damaged_at === "" ? "The previous frame has lost its last cell" : "Its frame has lost a cell"}, so sending it is wasted.` : ""}`,
    why: refusal !== "" || !explains ? refusal : reason(judgement, bad, history.capacity, rules),
    bad,
  };
}

/** Policies that admit every frame. */
const JUDGES_NOTHING = /^(tail_drop|ppd|drop_from_front)$/;

/** Returns the sentence for a decision, with the formula itself in place of its key. */
function reason(judgement: Judgement, bad: boolean, places: number, { policy, formula }: Rules): string {
  const late = bad && judgement.admitted ? " But the buffer was full." : "";
  const sentence = judgement.sentence + late;
  if (policy !== "formula" || formula === "") {
    return sentence;
  }
  return sentence
    .replace("admit of the formula", () => shortened(formula, 200))
    .replace(": X =", `: K = ${count(places)} places, X =`)
    .replace("Y_i =", "Y =")
    .replace("N_a =", "N =");
}

/** Maximum number of queues of a memory in a sentence. */
const NAMED = 8;

export function describeMemory({ cells, queues }: MemoryView): string {
  const held = queues.reduce((sum, queue) => sum + queue.held, 0);
  const named = queues.filter((queue) => queue.held > 0).slice(0, NAMED);
  const parts = named.map(
    ({ name, held, most }) => `${name} holds ${count(held)}${Number.isNaN(most) ? "" : ` of at most ${count(Math.floor(most))}`}`,
  );
  return `The shared memory: ${[`${count(held)} of ${count(cells)} cells`, ...parts].join("; ")}.`;
}

export function describeCell(history: BufferHistory, step: number, place: number): string {
  const cell = history.at(step)[place];
  if (cell === undefined) {
    return "";
  }
  const vc = history.vcs[cell.vc] ?? "?";
  const frame = history.frames[cell.frame];
  if (frame === undefined) {
    return `Position ${count(place + 1)}: an RM cell of ${vc}.`;
  }
  const bytes = Number.isNaN(frame.sequence)
    ? ""
    : `, bytes ${count(frame.sequence)} to ${count(frame.sequence + frame.length - 1)}`;
  const why =
    frame.damaged_at === ""
      ? "The last cell of the previous frame was lost, so the receiver joins both frames and discards them"
      : `Its frame lost a cell at ${time(frame.damaged_s)} at ${frame.damaged_at}`;
  const damage = cell.damaged ? ` ${why}, so sending it is wasted.` : "";
  return `Position ${count(place + 1)}: cell ${String(cell.index + 1)} of ${vc}’s frame ${count(frame.number)}${bytes}.${damage}`;
}
