/** What happened at a step, in words. */

import type { BufferHistory } from "../../engine/api.ts";
import { count, time } from "../parts/format.ts";

export interface Told {
  /** When and what, in one sentence. */
  readonly what: string;
  /** Why the frame was refused or admitted, with its numbers; empty where nothing was judged. */
  readonly why: string;
  readonly bad: boolean;
}

/** Of the step that was done last; of none at 0. */
export function told(history: BufferHistory, step: number): Told {
  if (step === 0 || history.length === 0) {
    return { what: "Before the first event of the window.", why: "", bad: false };
  }
  const i = step - 1;
  const { steps } = history;
  const kind = history.kinds[steps.kind[i] ?? 0] ?? "admitted";
  const vc = history.vcs[steps.vc[i] ?? -1] ?? "?";
  const frame = history.frames[steps.frame[i] ?? -1];
  const cell =
    frame === undefined ? "an RM cell" : `cell ${String((steps.index[i] ?? 0) + 1)} of frame ${count(frame.number)}`;
  const number = frame === undefined ? "?" : count(frame.number);
  const of = `${cell} of ${vc}`;
  const occupancy = count(steps.occupancy[i] ?? 0);
  const what: Record<typeof kind, string> = {
    refused: `frame ${number} of ${vc} came and is refused`,
    admitted: `${of} came and waits`,
    cut: `frame ${number} of ${vc} finds no room for one of its cells: it is damaged from here on`,
    lost: `${of} came and is lost`,
    pushed_out: `${of} was pushed out to make room`,
    dropped: `${of} is dropped with its packet`,
    departed: `${of} leaves for the link`,
  };
  const judgement = history.judgements[steps.judgement[i] ?? -1];
  const carried =
    kind === "departed" && frame !== undefined && frame.damaged_s <= (steps.time_s[i] ?? 0)
      ? " in vain: its frame has lost a cell"
      : "";
  return {
    what: `${time(steps.time_s[i] ?? 0)}: ${what[kind]}${carried}. ${occupancy} cells wait.`,
    why: judgement === undefined ? "" : judgement.sentence,
    bad: kind !== "admitted" && kind !== "departed",
  };
}

/** A cell that waits, in words. */
export function toldCell(history: BufferHistory, step: number, place: number): string {
  const cell = history.at(step)[place];
  if (cell === undefined) {
    return "";
  }
  const vc = history.vcs[cell.vc] ?? "?";
  const frame = history.frames[cell.frame];
  if (frame === undefined) {
    return `Place ${count(place + 1)}: an RM cell of ${vc}.`;
  }
  const bytes = Number.isNaN(frame.sequence)
    ? ""
    : `, bytes ${count(frame.sequence)} to ${count(frame.sequence + frame.length - 1)}`;
  const where = frame.damaged_at === "" ? "" : ` at ${frame.damaged_at}`;
  const damage = cell.damaged
    ? ` Its frame lost a cell at ${time(frame.damaged_s)}${where}: it is carried in vain.`
    : "";
  return `Place ${count(place + 1)}: cell ${String(cell.index + 1)} of frame ${count(frame.number)} of ${vc}${bytes}.${damage}`;
}
