/** Reconstructs the buffer of a port after any step from the columns recorded by the core. */

import type { BufferHistory, BufferStep, CellView, FrameView, Judgement, Words } from "./api.ts";

/** Columns returned by the core; see `celltrain_run::buffer::History`. */
export interface BufferColumns {
  port: string;
  capacity: number | null;
  vcs: string[];
  sent_before: Float64Array;
  kinds: BufferStep[];
  cells: { vc: Int32Array; frame: Int32Array; index: Int32Array; last: Int8Array; from: Int32Array; until: Int32Array };
  frames: {
    vc: Int32Array;
    number: Int32Array;
    arrived_s: Float64Array;
    damaged_s: Float64Array;
    damaged_at: Words;
    fate: Words;
    sequence: Float64Array;
    length: Float64Array;
  };
  judgements: {
    frame: Int32Array;
    time_s: Float64Array;
    admitted: Int8Array;
    reason: Words;
    occupancy: Float64Array;
    vc_cells: Float64Array;
    active_vcs: Float64Array;
    threshold_cells: Float64Array;
    share_cells: Float64Array;
    held_cells: Float64Array;
    drop_probability: Float64Array;
    tagged: Int8Array;
  };
  steps: {
    time_s: Float64Array;
    kind: Int8Array;
    cell: Int32Array;
    vc: Int32Array;
    frame: Int32Array;
    occupancy: Int32Array;
    judgement: Int32Array;
    refusal: Int32Array;
  };
  memory: {
    name: string;
    cells: number;
    queues: string[];
    steps: Int32Array;
    held: Int32Array;
    most: Float64Array;
    refusals: RefusalColumns;
  } | null;
  cut_short: boolean;
}

interface RefusalColumns {
  queue: Int32Array;
  used: Int32Array;
  pool_cells: Int32Array;
  shared: Int32Array;
  threshold: Float64Array;
  reason: Words;
  queues: string[];
  pools: string[];
}

/** Number of steps between entries of the index of the oldest waiting cells. */
const BLOCK = 256;

export function history(columns: BufferColumns, from_s: number): BufferHistory {
  const { cells, frames, judgements, steps, memory } = columns;
  const length = steps.kind.length;
  const oldest = oldestByBlock(columns);
  const timeAfter = (step: number) => (step === 0 ? from_s : (steps.time_s[step - 1] ?? from_s));

  const alive = function* (step: number): Generator<number> {
    const first = oldest[Math.floor(step / BLOCK)] ?? 0;
    for (let cell = first; cell < cells.vc.length && (cells.from[cell] ?? 0) <= step; cell += 1) {
      if (step < (cells.until[cell] ?? 0)) {
        yield cell;
      }
    }
  };

  const view = (cell: number, now: number): CellView => {
    const frame = cells.frame[cell] ?? -1;
    return {
      vc: cells.vc[cell] ?? 0,
      frame,
      index: cells.index[cell] ?? -1,
      last: cells.last[cell] === 1,
      // An intact frame has NaN here, so the comparison is false.
      damaged: frame >= 0 && now >= (frames.damaged_s[frame] ?? NaN),
    };
  };

  const frameView = (_: unknown, frame: number): FrameView => ({
    vc: frames.vc[frame] ?? 0,
    number: frames.number[frame] ?? 0,
    arrived_s: frames.arrived_s[frame] ?? NaN,
    damaged_s: frames.damaged_s[frame] ?? NaN,
    damaged_at: word(frames.damaged_at, frame),
    fate: word(frames.fate, frame) as FrameView["fate"],
    sequence: frames.sequence[frame] ?? NaN,
    length: frames.length[frame] ?? NaN,
  });

  const judgement = (_: unknown, at: number): Judgement => {
    const fields = {
      frame: judgements.frame[at] ?? 0,
      time_s: judgements.time_s[at] ?? NaN,
      admitted: judgements.admitted[at] === 1,
      reason: word(judgements.reason, at),
      occupancy: judgements.occupancy[at] ?? NaN,
      vc_cells: judgements.vc_cells[at] ?? NaN,
      active_vcs: judgements.active_vcs[at] ?? NaN,
      threshold_cells: judgements.threshold_cells[at] ?? NaN,
      share_cells: judgements.share_cells[at] ?? NaN,
      held_cells: judgements.held_cells[at] ?? NaN,
      drop_probability: judgements.drop_probability[at] ?? NaN,
      tagged: judgements.tagged[at] === 1,
    };
    return { ...fields, sentence: sentence(fields) };
  };

  const kind = (name: BufferStep) => columns.kinds.indexOf(name);
  const losses = new Set(
    (["refused", "cut", "lost", "discarded", "pushed_out", "dropped"] as const).map((name) => kind(name)),
  );
  const departed = kind("departed");
  const isOf = {
    cell: () => true,
    frame: (step: number) => (steps.judgement[step] ?? -1) >= 0,
    loss: (step: number) => losses.has(steps.kind[step] ?? -1),
  };

  return {
    port: columns.port,
    capacity: columns.capacity ?? Infinity,
    vcs: columns.vcs,
    frames: Array.from(frames.vc, frameView),
    judgements: Array.from(judgements.frame, judgement),
    length,
    steps: {
      time_s: steps.time_s,
      kind: new Uint8Array(steps.kind),
      vc: steps.vc,
      frame: steps.frame,
      index: steps.cell.map((cell) => (cell < 0 ? -1 : (cells.index[cell] ?? -1))),
      occupancy: steps.occupancy,
      judgement: steps.judgement,
    },
    kinds: columns.kinds,
    cut_short: columns.cut_short,
    at(step) {
      const now = timeAfter(step);
      return Array.from(alive(step), (cell) => view(cell, now));
    },
    sent(step, most) {
      const now = timeAfter(step);
      const cells: CellView[] = [];
      for (let at = step - 1; at >= 0 && cells.length < most; at -= 1) {
        const cell = steps.cell[at] ?? -1;
        if (steps.kind[at] === departed && cell >= 0) {
          cells.push(view(cell, now));
        }
      }
      return cells;
    },
    numberSent(step, place) {
      const cell = [...alive(step)][place] ?? -1;
      const vc = cells.vc[cell];
      const leaves = (cells.until[cell] ?? Infinity) - 1;
      if (vc === undefined || (leaves < length && steps.kind[leaves] !== departed)) {
        return null;
      }
      let number = columns.sent_before[vc] ?? 0;
      for (let at = 0; at < Math.min(leaves, length); at += 1) {
        number += steps.kind[at] === departed && steps.vc[at] === vc ? 1 : 0;
      }
      // When the window ends, cells of the VC that arrived earlier are still waiting.
      const ahead = leaves < length ? [] : [...alive(length)].filter((one) => one < cell && cells.vc[one] === vc);
      return number + ahead.length;
    },
    perVc(step) {
      const counts = new Int32Array(columns.vcs.length);
      for (const cell of alive(step)) {
        const vc = cells.vc[cell] ?? 0;
        counts[vc] = (counts[vc] ?? 0) + 1;
      }
      return counts;
    },
    memory(step) {
      if (memory === null || memory.steps.length === 0) {
        return null;
      }
      const { name, cells: places, queues, held, most } = memory;
      const row = Math.min(countUpTo(memory.steps, step - 1), memory.steps.length - 1) * queues.length;
      return {
        name,
        cells: places,
        queues: queues.map((queue, i) => ({ name: queue, held: held[row + i] ?? 0, most: most[row + i] ?? NaN })),
      };
    },
    refusal(step) {
      const row = steps.refusal[step - 1] ?? -1;
      return memory === null || row < 0 ? "" : refusalSentence(memory.refusals, row);
    },
    stepAt: (time_s) => countUpTo(steps.time_s, time_s),
    next(step, sort, direction) {
      // Step n (1 to length) is the state after row n - 1.
      for (let at = step + direction; at >= 1 && at <= length; at += direction) {
        if (isOf[sort](at - 1)) {
          return at;
        }
      }
      return sort === "cell" && direction === -1 && step === 1 ? 0 : null;
    },
  };
}

/** Returns how many of the ascending values are at most `limit`. */
function countUpTo(values: Int32Array | Float64Array, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? Infinity) <= limit) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Returns for each block of steps the first cell that may still be waiting in this block or later. */
function oldestByBlock({ cells, steps }: BufferColumns): Int32Array {
  const blocks = Math.floor(steps.kind.length / BLOCK) + 1;
  const oldest = new Int32Array(blocks);
  let cell = 0;
  for (let block = 0; block < blocks; block += 1) {
    while (cell < cells.vc.length && (cells.until[cell] ?? 0) <= block * BLOCK) {
      cell += 1;
    }
    oldest[block] = cell;
  }
  return oldest;
}

function word(words: Words, row: number): string {
  return words.words[words.at[row] ?? -1] ?? "";
}

function number(value: number, digits = 4): string {
  return Number(value.toPrecision(digits)).toLocaleString("en-US");
}

function counted(value: number, what: string): string {
  return `${value.toLocaleString("en-US")} ${what}${value === 1 ? "" : "s"}`;
}

/** Returns the limit because of which a shared memory refused a cell, with the same wording as `celltrain why`. */
function refusalSentence(refusals: RefusalColumns, row: number): string {
  const queue = refusals.queue[row] ?? -1;
  const threshold = refusals.threshold[row] ?? NaN;
  const taken = `Q = ${(refusals.used[row] ?? 0).toLocaleString("en-US")} of B = ${counted(refusals.pool_cells[row] ?? 0, "cell")} were taken`;
  const own = `q_i = ${counted(refusals.shared[row] ?? 0, "cell")} of these were from ${refusals.queues[queue] ?? "?"}`;
  const numbers = Number.isNaN(threshold)
    ? `${taken}, and ${own}`
    : `${taken}, ${own}, and its threshold was ${number(threshold, 6)}`;
  return `The pool ${refusals.pools[queue] ?? "?"} refused the cell because ${word(refusals.reason, row)}: ${numbers}.`;
}

/** Returns the rule that decided, and the numbers it compared, with the same wording as `celltrain why`. */
export function sentence(judged: Omit<Judgement, "sentence">): string {
  const parts = [`X = ${counted(judged.occupancy, "cell")} ${judged.occupancy === 1 ? "was" : "were"} queued`];
  if (!Number.isNaN(judged.threshold_cells)) {
    parts.push(`the threshold was ${number(judged.threshold_cells, 6)}`);
  }
  parts.push(`Y_i = ${judged.vc_cells.toLocaleString("en-US")} of them were from its VC`);
  parts.push(`N_a = ${counted(judged.active_vcs, "VC")} had cells queued`);
  if (!Number.isNaN(judged.share_cells)) {
    parts.push(`its share was ${number(judged.share_cells)} cells`);
  }
  if (!Number.isNaN(judged.held_cells)) {
    parts.push(`its virtual queue held ${number(judged.held_cells)} cells`);
  }
  if (!Number.isNaN(judged.drop_probability)) {
    parts.push(`the probability of a refusal was ${number(judged.drop_probability, 3)}`);
  }
  if (judged.tagged) {
    parts.push("the frame was tagged");
  }
  const listed = `${parts.slice(0, -1).join(", ")}, and ${parts.at(-1) ?? ""}`;
  if (judged.admitted) {
    return `The policy let the frame begin: ${listed}.`;
  }
  return `The port refuses a frame if ${judged.reason}: ${listed}.`;
}
