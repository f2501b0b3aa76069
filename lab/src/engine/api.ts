/**
 * The interface between the page and the engine. The engine is the simulator compiled to WebAssembly, running in
 * workers, so no call here blocks the page. Columns and measures have the names used by `celltrain run --json` and
 * `docs/looking-inside.md`.
 *
 * Every call that can fail rejects with an {@link EngineError}, whose `message` can be shown unchanged. The names and
 * other strings in a scenario are untrusted and may contain markup, so always render them as text.
 */

/** Column of numbers; NaN if a row has no value. */
export type Numbers = Float64Array;

/** Column of names or words: `words[at[row]]`, or no value if `at[row]` is -1. */
export interface Words {
  at: Int32Array;
  words: string[];
}

/** Column of flags: yes (1), no (0) and unknown (-1). */
export type Flags = Int8Array;

export type Column = Numbers | Words | Flags;

/** Events of one kind, one per row, in time order. */
export interface Table {
  rows: number;
  columns: Record<string, Column>;
}

/** An error in a scenario. */
export interface Fault {
  /** Line number from 1; null if the error concerns the text as a whole. */
  line: number | null;
  /** Full path of the key, such as `port.bottleneck.buffer`; may be empty. */
  key: string;
  /** Value as written; empty if the fault has no value. */
  value: string;
  /** Description of the error and of valid values, as a clause that follows `key = value`. */
  problem: string;
  /** Full message, as the command line prints it. */
  message: string;
  /** Lines to show below the message in a fixed-width font, such as a formula with the error position marked. */
  excerpt: string[];
}

/** A doubtful setting, which the user should check before trusting the results. */
export interface Warning {
  key: string;
  message: string;
}

export type NodeKind = "host" | "switch" | "edge_device";

/** The network to draw. Each port has the name of its link and is at the start of that link. */
export interface Network {
  name: string;
  nodes: { name: string; kind: NodeKind }[];
  /** Links; `from` and `to` are indices into `nodes`. */
  links: {
    name: string;
    from: number;
    to: number;
    rate: string;
    delay: string;
    rate_mbps: number;
    delay_s: number;
    /** Capacity of the port's buffer in cells; null if unlimited. */
    buffer_cells: number | null;
    /** Policy of the port, such as `epd`. */
    policy: string;
    /** True if cells leave in order of arrival: one queue, and no frames held for reassembly. */
    in_order: boolean;
    /** True if the link has a controlled rate or carries packets instead of cells (ABR sources, edge devices). */
    shaped: boolean;
  }[];
  /** VCs; `flow` is an index into `flows` or null, and `links` are indices into `links` in path order. */
  vcs: { name: string; flow: number | null; is_data: boolean; links: number[] }[];
  /**
   * Flows; `links` is the path of the data, `max_min_mbps` the max-min fair goodput, and `stack` the real transport
   * stack, such as `smoltcp`, or empty.
   */
  flows: { name: string; links: number[]; max_min_mbps: number; stack: string }[];
  /** Index into `links`. */
  bottleneck: number;
  /** Node positions, from 0 to 1 in both directions; data flows from left to right. */
  positions: { x: number; y: number }[];
  /** Simulated duration in seconds. */
  duration_s: number;
}

export interface Checked {
  faults: Fault[];
  warnings: Warning[];
  /** The network; null if there are faults. */
  network: Network | null;
  /** The scenario as JSON with all defaults filled in; null if there are faults. */
  defaults: Record<string, unknown> | null;
  /** Estimated memory of a run in bytes; null if there are faults. */
  memory_bytes: number | null;
  /** True if one of the faults is that the run exceeds the memory limit. It may fit if the limit is raised. */
  does_not_fit: boolean;
  /**
   * Upper bound for a run's cell-hops; null if there are faults. A processor core simulates about ten million per
   * second.
   */
  cell_hops: number | null;
}

/** The uninterpreted values in a TOML text. Used by the form. */
export interface Document {
  /** Parsed values; null if the text is not valid TOML. */
  root: Record<string, unknown> | null;
  /** Line number of each full key path, such as `port.bottleneck.buffer`. Lines count from 1. */
  lines: Record<string, number>;
  faults: Fault[];
}

/** The series to record during a run, at a fixed sampling step. */
export interface SeriesChoice {
  /** Names from {@link Engine.measures}.series: queue, occupancy, cwnd, delivered, acr, edge, memory. */
  names: string[];
  /** Ports for queue and occupancy: link names, `bottleneck`, or "all". Default: the bottleneck. */
  ports?: string[] | "all";
  /** Sampling step, such as `10ms`. Default: a thousandth of the duration. */
  step?: string;
}

/** Recorded series. The values of a measure are stored row by row: `values[sample * width + column]`. */
export interface Series {
  time_s: Float64Array;
  /**
   * Series by measure (`queue_cells`, `occupancy_cells`, `cwnd_segments`, ...). `names` are the column names.
   * For `occupancy_cells` they are connections, and `ports` is the port of each column.
   */
  measures: Record<string, { values: Float64Array; names: string[]; ports: string[] | null }>;
}

/** Resource limits of a run. If a run exceeds one of them, the error names that limit, which the user may raise. */
export interface Limits {
  /** Seconds of real time. Default: 60. */
  seconds?: number;
  /** Memory of the engine in bytes, of which a run may use three quarters. Default: 1 GiB; maximum: 3.5 GiB. */
  memory?: number;
  /** Seconds of real time for all runs of a comparison together. Default: unlimited. */
  together?: number;
}

export interface Asked {
  /** Cancels the call: the promise rejects with kind `stopped`. */
  signal?: AbortSignal;
  /** Receives the completed fraction, 0 to 1, about twenty times per second. */
  onProgress?: (done: number) => void;
  limits?: Limits;
}

export interface RunOptions extends Asked {
  series?: SeriesChoice;
  /** True to return {@link Run.requests}. */
  requests?: boolean;
  /** True to measure the delays of packets. docs/measures.md states the cost. */
  delays?: boolean;
  /** Engine to use, `fast` by default. Both produce the same fingerprint. */
  engine?: "fast" | "reference";
}

/** A row of a result: a name and measures. */
export type Row = { name: string } & Record<string, number | string | null>;

/** Measures of the requests of a size class, such as `completed` or `slowdown_p99`; null if there are too few
 * requests. */
export type RequestStatistics = Readonly<Record<string, number | boolean | null>>;

/** Classes of requests by size. Their bounds are `short_requests` and `long_requests` of `[measure]`. */
export type SizeClass = "all" | "short" | "medium" | "long";

/** Measures of a group of requests; `queries` is null unless the group is an incast. */
export type RequestGroup = { name: string; queries: RequestStatistics | null } & Record<SizeClass, RequestStatistics> &
  Record<"opened" | "completed" | "open" | "goodput_mbps", number> &
  Record<"timeouts_per_request" | "retransmitted_per_request", number | null>;

/** The requests of a run that opened in the measured time, one per row. */
export interface Requests {
  group: Words;
  bytes: Numbers;
  /** Time until the last byte arrived at the receiver; NaN if it had not arrived at the end of the run. */
  completion_ms: Numbers;
  slowdown: Numbers;
}

/** The object printed by `celltrain run --json`. See `celltrain explain measures` and {@link Engine.measures}. */
export interface Answer {
  scenario: string;
  seed: number;
  engine: "fast" | "reference";
  duration_s: number;
  efficiency: number;
  /** Fairness; null (undefined) if no flow received data. */
  fairness: number | null;
  /** Mean number of flows whose timers expire within one tick; null if no timer expires. */
  timeouts_together: number | null;
  goodput_mbps: number;
  bottleneck: string;
  flows: Row[];
  ports: Row[];
  queues: Row[];
  requests: RequestGroup[];
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
  /** Every request, if the caller asks for them and the scenario has requests. */
  requests: Requests | null;
  /** Rules of links that never met what they should have lost or delayed. */
  unmet: UnmetRule[];
}

/** A link's rule that lost or delayed less than it should. */
export interface UnmetRule {
  /** Number of the rule in the scenario. It is the same in all runs of the scenario. */
  rule: number;
  /** The warning. */
  text: string;
}

export type EventKind = "segments" | "timers" | "frames" | "cells" | "rates";

export interface EventsOptions extends Asked {
  /**
   * Kinds to record; all if empty. The kinds frames, cells and rates need the reference engine, which is about thirty
   * times slower.
   */
  kinds: EventKind[];
  /** Start and end of recording in simulated seconds; the run stops at `to`. Default: the whole run. */
  from?: number;
  to?: number;
  /** Ports to record for frames (default: all) and cells (default: the bottleneck). `bottleneck` is a valid name. */
  ports?: string[];
  flows?: string[];
  /** Maximum number of rows per kind, 2,000,000 by default. The run stops when some kind exceeds it. */
  most_rows?: number;
}

export interface Events {
  /** Tables by kind; a kind without rows has empty columns. */
  tables: Partial<Record<EventKind, Table>>;
  /** True if `most_rows` stopped the run, so that later events are missing. */
  cut_short: boolean;
}

/** Events in the buffer of a port, see {@link BufferHistory.steps}. */
export type BufferStep =
  /**
   * The first cell of a frame arrives and the policy refuses the frame; the next step is the loss of the cell itself.
   */
  | "refused"
  /** A frame loses a cell because the buffer is full; the next step is the loss of the cell itself. */
  | "cut"
  /** A cell joins the queue. */
  | "admitted"
  /** An arriving cell finds the buffer full. */
  | "lost"
  /** The policy discards an arriving cell, with its whole frame or as part of a damaged frame. */
  | "discarded"
  /** A waiting cell is removed to make room for another. */
  | "pushed_out"
  /** A waiting cell is dropped with its packet because the rate fell (edge devices). */
  | "dropped"
  /** A cell leaves the buffer because its transmission begins. */
  | "departed";

/** A waiting cell. */
export interface CellView {
  /** Index into {@link BufferHistory.vcs}. */
  vc: number;
  /** Index into {@link BufferHistory.frames}; -1 for an RM cell. */
  frame: number;
  /** Position among the frame's cells that reached this port, from 0; -1 for an RM cell. */
  index: number;
  /** True if the cell is the last of its frame. */
  last: boolean;
  /** True if the receiver will discard the frame: see {@link FrameView.damaged_s}. */
  damaged: boolean;
}

/** A frame that was at the port in the window. */
export interface FrameView {
  vc: number;
  /** Number within the VC, as in the event tables. */
  number: number;
  /** Arrival time of the first cell at the port; NaN if it arrived before the window. */
  arrived_s: number;
  /** Time at which the frame was refused, lost a cell or was joined to the previous frame; NaN if intact. */
  damaged_s: number;
  /** Port that refused the frame or lost its cell; empty if the frame is intact or was joined to the previous frame. */
  damaged_at: string;
  fate: "admitted" | "refused" | "cut" | "joined" | "dropped";
  /** First byte of the segment in the frame, and the segment's length; NaN if the frame carries no data (an ACK). */
  sequence: number;
  length: number;
}

/** A port's decision to admit or refuse a frame, with the numbers it compared; NaN for numbers that do not apply. */
export interface Judgement {
  /** Index into {@link BufferHistory.frames}. */
  frame: number;
  time_s: number;
  admitted: boolean;
  /** The policy's reason, such as "X is above R"; empty if the frame was admitted. */
  reason: string;
  /** X, Y_i and N_a. */
  occupancy: number;
  vc_cells: number;
  active_vcs: number;
  threshold_cells: number;
  share_cells: number;
  held_cells: number;
  drop_probability: number;
  tagged: boolean;
  /** The decision as an English sentence. */
  sentence: string;
}

/** The buffer of a port from `from` to `to`. Its state can be read after any step, in any order. */
export interface BufferHistory {
  port: string;
  /** Capacity in cells; Infinity if unlimited. */
  capacity: number;
  /** VC names in the port's order. */
  vcs: string[];
  frames: FrameView[];
  judgements: Judgement[];
  /** Number of steps. */
  length: number;
  /** Steps as columns: time, kind and cell. `frame` and `index` are -1 for RM cells. */
  steps: {
    time_s: Float64Array;
    kind: Uint8Array;
    vc: Int32Array;
    frame: Int32Array;
    /** Position of the cell in its frame; also -1 if the step concerns a whole frame. */
    index: Int32Array;
    /** Number of cells waiting after the step. */
    occupancy: Int32Array;
    /** Index of the decision that caused the step, or -1. */
    judgement: Int32Array;
  };
  /** Names of the values of `steps.kind`. */
  kinds: BufferStep[];
  /** True if the maximum number of recorded steps (400,000) was reached before `to`. */
  cut_short: boolean;
  /**
   * Returns the cells waiting after `step` steps (0: at `from`), oldest first. If cells are served in order of arrival,
   * the first one is sent next. Fast for any order of calls.
   */
  at(step: number): CellView[];
  /** Returns the most recently sent cells before `step`, newest first and at most `most`. */
  sent(step: number, most: number): CellView[];
  /**
   * Returns the number of a waiting cell among the cells that its VC sends over the link, counted from 0, for a list of
   * losses; null if the cell is pushed out or dropped.
   */
  numberSent(step: number, place: number): number | null;
  /** Returns the number of waiting cells of each VC after `step` steps. */
  perVc(step: number): Int32Array;
  /** Returns the memory that the port shares, after the instant of the step; null if the port shares no memory. */
  memory(step: number): MemoryView | null;
  /** Returns a sentence about the shared memory's refusal that caused the step; empty if there was none. */
  refusal(step: number): string;
  /** Returns the number of steps that have happened by `time_s`: 0 to `length`. */
  stepAt(time_s: number): number;
  /** Returns the nearest step of this sort, after `step` (direction 1) or before it (-1); null if there is none. */
  next(step: number, sort: "cell" | "frame" | "loss", direction: 1 | -1): number | null;
}

/** A memory shared by ports, at one instant. */
export interface MemoryView {
  name: string;
  /** Capacity in cells. */
  cells: number;
  /** Its queues: link and priority, number of cells, and the current maximum (NaN without a threshold). */
  queues: { name: string; held: number; most: number }[];
}

/** Mean and 95 % interval (Student's t). The interval is null if there is only one value. */
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
  requests?: boolean;
  delays?: boolean;
  /** Called when a run ends; runs may end in any order. */
  onRun?: (index: number, seed: number, run: Run) => void;
  /**
   * Called with the first error of a scenario, whose other seeds are then skipped. Without it, an error stops all runs.
   */
  onFault?: (index: number, seed: number, fault: EngineError) => void;
  /** Number of workers to use at once. Default: all. */
  workers?: number;
}

/** Results of several scenarios with the same seeds. */
export interface Comparison {
  /** Runs by scenario and seed. */
  runs: Run[][];
  /** Estimates by scenario and measure: efficiency, fairness, goodput_mbps. */
  estimates: Record<string, Estimate>[];
  /** Differences from the first scenario, paired by seed: this scenario minus the first. */
  differences: Record<string, Estimate>[];
}

/** One published number and the scenario that reproduces it. */
export interface PaperRow {
  /** Paper identifier, such as `af-96-1269`. */
  paper: string;
  /** Title of the paper. */
  title: string;
  table: string;
  /** Number and title of the table. */
  heading: string;
  /** Keys of the row, such as {sources: 5, buffer_cells: 1000, policy: "epd"}. */
  keys: Record<string, string | number>;
  toml: string;
  /** Published value of each measure. */
  published: Record<string, number>;
}

/** A line of a table of measures. */
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
  /** The scenario has errors, listed in `faults`. */
  | "refused"
  /** A run exceeded its limit of real time. */
  | "too_long"
  /** The runs of a comparison exceeded their common limit of real time. Completed runs have already been reported. */
  | "all_too_long"
  /** A check exceeded its limit of real time. */
  | "check_too_long"
  /** The run needs more memory than it may use, or than is available. */
  | "too_large"
  /** The caller's signal cancelled the call. */
  | "stopped"
  /** WebAssembly, workers or DecompressionStream are missing or disabled in this browser. */
  | "unsupported"
  /** A bug in celltrain. */
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
  /** Returns the version of celltrain, such as `0.2.0`. */
  version(): string;
  /** Number of runs that can be in progress at once. */
  readonly workers: number;
  /** Returns the JSON Schema of scenarios, with descriptions, ranges, units and defaults. */
  schema(): Promise<Record<string, unknown>>;
  /** Returns the shipped scenarios by name, in alphabetical order. */
  scenarios(): Promise<Record<string, string>>;
  /** Returns the rows of the papers' tables that contain printed numbers. */
  papers(): Promise<PaperRow[]>;
  /**
   * Returns the first paragraphs of the page about a model (`epd`, `reno`, `n_source`) as plain text; null if there is
   * no such page.
   */
  help(model: string): Promise<string | null>;
  /** Returns every measure with its unit and meaning. */
  measures(): Promise<Measures>;
  /** Checks a scenario. The default time limit is ten seconds. */
  check(toml: string, limits?: Limits): Promise<Checked>;
  /** Parses a text into values and line numbers. Reports only syntax errors. */
  document(toml: string): Promise<Document>;
  /**
   * Returns the text with this key set, or removed if `value` is undefined. Everything else, including comments, is
   * preserved. `path` is the list of keys: ["port", "bottleneck", "policy", "epd", "threshold"]. A value may be a
   * table.
   */
  edit(toml: string, path: string[], value: unknown): Promise<string>;
  run(toml: string, seed: number, options?: RunOptions): Promise<Run>;
  events(toml: string, seed: number, options: EventsOptions): Promise<Events>;
  buffer(toml: string, seed: number, port: string, from: number, to: number, asked?: Asked): Promise<BufferHistory>;
  /** Runs each scenario with each seed, up to `workers` at a time. */
  compare(tomls: string[], seeds: number[], options?: EnsembleOptions): Promise<Comparison>;
}

/** Unpacks the engine embedded in the page and starts its workers. */
export type Start = () => Promise<Engine>;
// `start` is in ./engine.ts; `estimate(values: number[]): Estimate` is in ./statistics.ts.
