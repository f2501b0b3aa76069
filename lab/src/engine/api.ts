/**
 * What the page asks of the engine. The engine is the simulator compiled to WebAssembly, in workers: no call here
 * blocks the page. Names of columns and measures are those of `celltrain run --json` and of `docs/looking-inside.md`.
 *
 * Every call that can fail rejects with an {@link EngineError}, whose `message` can be shown as it is. Names and texts
 * of a scenario can hold anything, markup too: show them as text.
 */

/** A column of numbers; NaN where a row has none. */
export type Numbers = Float64Array;

/** A column of names or words: `words[at[row]]`, and none where `at[row]` is -1. */
export interface Words {
  at: Int32Array;
  words: string[];
}

/** A column of yes (1), no (0) and none (-1). */
export type Flags = Int8Array;

export type Column = Numbers | Words | Flags;

/** Rows of one kind of event, in the order in which they happened. */
export interface Table {
  rows: number;
  columns: Record<string, Column>;
}

/** One thing that is wrong with a scenario. */
export interface Fault {
  /** From 1; null where it is of the text as a whole. */
  line: number | null;
  /** Its full path, such as `port.bottleneck.buffer`; may be empty. */
  key: string;
  /** As written; empty where there is none. */
  value: string;
  /** What is wrong and what would be right: a clause that follows `key = value`. */
  problem: string;
  /** The whole line as the command line prints it. */
  message: string;
  /** Lines to show below it, in a fixed-width font: a formula with marks under the place. */
  excerpt: string[];
}

/** Something to look at before trusting a result. */
export interface Warning {
  key: string;
  message: string;
}

export type NodeKind = "host" | "switch" | "edge_device";

/** What there is to draw. Ports are named after their links, one port a link, at its start. */
export interface Network {
  name: string;
  nodes: { name: string; kind: NodeKind }[];
  /** `from` and `to` are places in `nodes`. */
  links: {
    name: string;
    from: number;
    to: number;
    rate: string;
    delay: string;
    rate_mbps: number;
    delay_s: number;
    /** Places for cells at its port; null where there is no limit. */
    buffer_cells: number | null;
    /** The policy of its port, such as `epd`. */
    policy: string;
    /** Whether its cells leave in the order in which they came: one queue, and no frames that wait to be whole. */
    in_order: boolean;
    /** Whether it has a controlled rate or packets instead of cells (ABR sources, edge devices). */
    shaped: boolean;
  }[];
  /** `flow` is a place in `flows`, null of none; `links` are places in `links`, in the order of the path. */
  vcs: { name: string; flow: number | null; is_data: boolean; links: number[] }[];
  /** `links`: the path of its data. `max_min_mbps`: its max-min fair goodput. */
  flows: { name: string; links: number[]; max_min_mbps: number }[];
  /** A place in `links`. */
  bottleneck: number;
  /** By node, 0 to 1 in both directions: a drawing from left to right along the data. */
  positions: { x: number; y: number }[];
  /** Simulated seconds. */
  duration_s: number;
}

export interface Checked {
  faults: Fault[];
  warnings: Warning[];
  /** Null where there is a fault. */
  network: Network | null;
  /** The scenario with every default filled in, as JSON has it; null where there is a fault. */
  defaults: Record<string, unknown> | null;
  /** What a run takes of memory, in bytes; null where there is a fault. */
  memory_bytes: number | null;
  /** Whether one of the faults is that it does not fit the memory: with a higher limit it may. */
  does_not_fit: boolean;
  /** About as many cell-hops as a run has at most; null where there is a fault. A core makes some ten million a second. */
  cell_hops: number | null;
}

/** A TOML text as values, whatever they mean: for the form. */
export interface Document {
  /** Null where the text is no TOML. */
  root: Record<string, unknown> | null;
  /** By full path of a key (`port.bottleneck.buffer`) its line, from 1. */
  lines: Record<string, number>;
  faults: Fault[];
}

/** What is recorded of a run, at a fixed step. */
export interface SeriesChoice {
  /** Of {@link Engine.measures}.series: queue, occupancy, cwnd, delivered, acr, edge. */
  names: string[];
  /** Of queue and occupancy: names of links, `bottleneck`, or all of them. The bottleneck where none is named. */
  ports?: string[] | "all";
  /** Such as `10ms`. A thousandth of the duration where none is named. */
  step?: string;
}

/** Recorded series. A measure's values are rows one behind the other: `values[sample * width + column]`. */
export interface Series {
  time_s: Float64Array;
  /** By measure (`queue_cells`, `occupancy_cells`, `cwnd_segments`, ...). `names`: of its columns;
   * `ports`: of `occupancy_cells` the port of each column, whose name is the connection's. */
  measures: Record<string, { values: Float64Array; names: string[]; ports: string[] | null }>;
}

/** What a run may take. Whoever passes a limit is told in words, and may raise it. */
export interface Limits {
  /** Seconds of real time; 60 where nothing is said. */
  seconds?: number;
  /** Bytes that the engine may have, of which a run may take three quarters: 1 GiB where nothing is said, 3.5 at most. */
  memory?: number;
  /** Seconds of real time for all runs of a comparison together; without end where nothing is said. */
  together?: number;
}

export interface Asked {
  /** Stops at once: the promise rejects with kind `stopped`. */
  signal?: AbortSignal;
  /** How much is done, 0 to 1, some twenty times a second. */
  onProgress?: (done: number) => void;
  limits?: Limits;
}

export interface RunOptions extends Asked {
  series?: SeriesChoice;
  /** `fast` where nothing is said. Both have one fingerprint. */
  engine?: "fast" | "reference";
}

/** A row of an answer: a name and measures. */
export type Row = { name: string } & Record<string, number | string | null>;

/** The object of `celltrain run --json`: `celltrain explain measures` has all of it, {@link Engine.measures} too. */
export interface Answer {
  scenario: string;
  seed: number;
  engine: "fast" | "reference";
  duration_s: number;
  efficiency: number;
  /** Null (undefined) if no flow received anything. */
  fairness: number | null;
  goodput_mbps: number;
  bottleneck: string;
  flows: Row[];
  ports: Row[];
  contracts: Record<string, number | string | null>[];
  abr: Record<string, number | string | null>[];
  cells: { offered: number; delivered: number; lost: number; discarded: number; in_flight: number };
  cell_hops: number;
  timing: { engine_seconds: number; cell_hops_per_second: number };
  fingerprint: string;
  build: { version: string; profile: string };
  [measure: string]: unknown;
}

export interface Run {
  answer: Answer;
  series: Series | null;
}

export type EventKind = "segments" | "timers" | "frames" | "cells" | "rates";

export interface EventsOptions extends Asked {
  /** All where none is named. frames, cells and rates take the reference engine: some thirty times slower. */
  kinds: EventKind[];
  /** Seconds since the start; the run goes no further than `to`. Whole run where nothing is said. */
  from?: number;
  to?: number;
  /** Of frames (all where none is named) and cells (the bottleneck's). `bottleneck` is one. */
  ports?: string[];
  flows?: string[];
  /** Rows of a kind that are kept, 2,000,000 where nothing is said: beyond them the run is stopped. */
  most_rows?: number;
}

export interface Events {
  /** By kind; those of a kind without rows have empty columns. */
  tables: Partial<Record<EventKind, Table>>;
  /** Whether `most_rows` stopped it: then there is nothing after the last row. */
  cut_short: boolean;
}

/** What can happen to the buffer of a port, in {@link BufferHistory.steps}. */
export type BufferStep =
  /** A frame's first cell came and all of the frame is refused; the cell's own loss follows as the next step. */
  | "refused"
  /** A frame loses its first cell, or one more, for want of room; the loss of the cell itself follows. */
  | "cut"
  /** A cell waits from now on. */
  | "admitted"
  /** An arriving cell finds no room. */
  | "lost"
  /** An arriving cell is discarded by the policy: with its frame, or as the rest of a damaged frame. */
  | "discarded"
  /** A cell that waited made room for another. */
  | "pushed_out"
  /** A cell that waited is dropped with its packet, as the rate fell (edge devices). */
  | "dropped"
  /** A cell's transmission begins: it leaves the buffer. */
  | "departed";

/** A cell as it waits. */
export interface CellView {
  /** A place in {@link BufferHistory.vcs}. */
  vc: number;
  /** A place in {@link BufferHistory.frames}; -1 of an RM cell. */
  frame: number;
  /** Which of the frame's cells that came to this port, from 0; -1 of an RM cell. */
  index: number;
  /** Whether it ends its frame. */
  last: boolean;
  /** True if the receiver will discard its frame: see {@link FrameView.damaged_s}. */
  damaged: boolean;
}

/** A frame that was at the port in the window. */
export interface FrameView {
  vc: number;
  /** Its number within its VC, as in the tables of events. */
  number: number;
  /** Its first cell came to the port then; NaN where that was before the window. */
  arrived_s: number;
  /** Time from which it cannot become whole: it was refused, lost a cell, or joins the frame before; NaN if it can. */
  damaged_s: number;
  /** Port that refused it or lost its cell; empty if it can become whole or joins the frame before. */
  damaged_at: string;
  fate: "admitted" | "refused" | "cut" | "joined" | "dropped";
  /** Bytes of the segment it carries; NaN where it carries none (an ACK). */
  sequence: number;
  length: number;
}

/** Why the port admitted or refused a frame, with the numbers it held against each other; NaN where it has none. */
export interface Judgement {
  /** A place in {@link BufferHistory.frames}. */
  frame: number;
  time_s: number;
  admitted: boolean;
  /** The policy's rule, such as "X is above R"; empty where it was admitted. */
  reason: string;
  /** X, Y_i, N_a. */
  occupancy: number;
  vc_cells: number;
  active_vcs: number;
  threshold_cells: number;
  share_cells: number;
  held_cells: number;
  drop_probability: number;
  tagged: boolean;
  /** All of it as a sentence of English. */
  sentence: string;
}

/** The buffer of a port from `from` to `to`, which can be looked at after any step, forwards and backwards. */
export interface BufferHistory {
  port: string;
  /** Places for cells; Infinity where there is no limit. */
  capacity: number;
  /** Names, as the port has them. */
  vcs: string[];
  frames: FrameView[];
  judgements: Judgement[];
  /** How many steps there are. */
  length: number;
  /** By step: when, what, of which cell. `frame` and `index` are -1 of RM cells. */
  steps: {
    time_s: Float64Array;
    kind: Uint8Array;
    vc: Int32Array;
    frame: Int32Array;
    /** Of a frame's step -1 too. */
    index: Int32Array;
    /** Cells waiting after it. */
    occupancy: Int32Array;
    /** The judgement that led to it, or -1. */
    judgement: Int32Array;
  };
  /** Names of `steps.kind`. */
  kinds: BufferStep[];
  /** Whether the most steps that are kept (400,000) were reached before `to`. */
  cut_short: boolean;
  /** What waits after so many steps (0: at `from`), oldest first; the first is the next to leave where cells are served
   * in the order of arrival. Fast in any order of asking. */
  at(step: number): CellView[];
  /** The cells whose transmission began last before so many steps, the newest first; `most` of them. */
  sent(step: number, most: number): CellView[];
  /** Cells of each VC after so many steps. */
  perVc(step: number): Int32Array;
  /** The step after which it is `time_s`: 0 to `length`. */
  stepAt(time_s: number): number;
  /** The next step that is of this sort after (direction 1) or before (-1) this one; null where there is none. */
  next(step: number, sort: "cell" | "frame" | "loss", direction: 1 | -1): number | null;
}

/** Mean and its 95 % interval (Student); the interval is null of one value. */
export interface Estimate {
  n: number;
  mean: number;
  low: number | null;
  high: number | null;
  min: number;
  max: number;
}

export interface EnsembleOptions extends Asked {
  series?: SeriesChoice;
  /** Called as runs end, in any order. */
  onRun?: (index: number, seed: number, run: Run) => void;
  /** Called with the first fault of a scenario, whose other seeds are left out; without it one fault ends all. */
  onFault?: (index: number, seed: number, fault: EngineError) => void;
  /** Workers at once; all there are where nothing is said. */
  workers?: number;
}

/** Runs of several scenarios with the same seeds. */
export interface Comparison {
  /** By scenario, by seed. */
  runs: Run[][];
  /** By scenario, by measure: efficiency, fairness, goodput_mbps. */
  estimates: Record<string, Estimate>[];
  /** By scenario, paired with the first by seed: this minus the first. */
  differences: Record<string, Estimate>[];
}

/** One printed number of a paper and the scenario that makes it. */
export interface PaperRow {
  /** Such as `af-96-1269`. */
  paper: string;
  /** Of the paper. */
  title: string;
  table: string;
  /** The table's number with its title. */
  heading: string;
  /** The keys of the row, such as {sources: 5, buffer_cells: 1000, policy: "epd"}. */
  keys: Record<string, string | number>;
  toml: string;
  /** By measure, what the paper has printed. */
  published: Record<string, number>;
}

/** One line of a table of measures. */
export interface Measure {
  name: string;
  kind: string;
  unit: string;
  meaning: string;
}

export interface Measures {
  run: Measure[];
  flows: Measure[];
  ports: Measure[];
  contracts: Measure[];
  abr: Measure[];
  series: { name: string; meaning: string; over: string; columns: Measure[] }[];
  events: { name: EventKind; meaning: string; engines: string[]; columns: Measure[] }[];
}

export type Kind =
  /** The scenario has faults: `faults` has them. */
  | "refused"
  /** A run's limit of real time has passed. */
  | "too_long"
  /** That of all runs of a comparison together; what had ended by then was told. */
  | "all_too_long"
  /** That of a check. */
  | "check_too_long"
  /** It would take more memory than it may, or than there is. */
  | "too_large"
  /** Its signal was given. */
  | "stopped"
  /** The browser lacks WebAssembly, workers or DecompressionStream, or they are switched off. */
  | "unsupported"
  /** A fault of ours. */
  | "broken";

export class EngineError extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
    readonly faults: Fault[] = [],
  ) {
    super(message);
    this.name = "EngineError";
  }
}

export interface Engine {
  /** Of celltrain, such as `0.2.0`. */
  version(): string;
  /** How many runs there are at once. */
  readonly workers: number;
  /** The JSON Schema of a scenario; descriptions, ranges, units and defaults are in it. */
  schema(): Promise<Record<string, unknown>>;
  /** Shipped scenarios by name, in alphabetical order. */
  scenarios(): Promise<Record<string, string>>;
  /** The rows of the papers' tables that have printed numbers. */
  papers(): Promise<PaperRow[]>;
  /** The first paragraphs of a model's page (`epd`, `reno`, `n_source`), as plain text; null where there is none. */
  help(model: string): Promise<string | null>;
  /** Every measure with unit and meaning. */
  measures(): Promise<Measures>;
  /** `seconds` are ten where nothing is said. */
  check(toml: string, limits?: Limits): Promise<Checked>;
  /** A text's values and lines, faults of form alone. */
  document(toml: string): Promise<Document>;
  /**
   * The text with this key set, or taken out where the value is undefined; all else, comments too, stays as it is.
   * `path` is by parts: ["port", "bottleneck", "policy", "epd", "threshold"]. A value may be a table.
   */
  edit(toml: string, path: string[], value: unknown): Promise<string>;
  run(toml: string, seed: number, options?: RunOptions): Promise<Run>;
  events(toml: string, seed: number, options: EventsOptions): Promise<Events>;
  buffer(toml: string, seed: number, port: string, from: number, to: number, asked?: Asked): Promise<BufferHistory>;
  /** Runs each scenario with each seed, as many at once as there are workers. */
  compare(tomls: string[], seeds: number[], options?: EnsembleOptions): Promise<Comparison>;
}

/** Reads the engine out of the page and starts its workers. */
export type Start = () => Promise<Engine>;
// `start` is in ./engine.ts, `estimate(values: number[]): Estimate` in ./statistics.ts.
