/** State of the microscope: a run, a window of it, a port, and one instant shared by all views. */

import { batch, computed, signal } from "@preact/signals";
import type {
  BufferHistory,
  BufferStep,
  Checked,
  Column,
  Engine,
  EngineError,
  Limits,
  Network,
  Run,
  Table,
  Words,
} from "../../engine/api.ts";
import type { View } from "../link/link.ts";
import { time } from "../parts/format.ts";
import { kindName, tcpName } from "../parts/names.ts";
import { asFault, checkedNow, edit, engine, go, limits, network, said, seedInside, toml } from "../state.ts";

/** Recording of a whole run: queues and congestion windows, at a fixed sampling step. */
export interface Overview {
  readonly toml: string;
  readonly seed: number;
  readonly run: Run;
  readonly network: Network;
  /** Condition of the admission formula, if there is exactly one formula; otherwise empty. */
  readonly formula: string;
  /** Name of the TCP; empty if unknown. */
  readonly tcp: string;
}

/** Events in a port's buffer and in the connections during a window. */
export interface Detail {
  readonly port: string;
  readonly from: number;
  readonly to: number;
  readonly history: BufferHistory;
  readonly segments: Table;
  readonly timers: Table;
  /** Names of flows, then of requests with segments in the window. */
  readonly connections: readonly string[];
  /** Times of timeouts in order, and the connections concerned. */
  readonly timeouts: readonly { readonly time_s: number; readonly flow: string }[];
  /** Steps at which a frame was refused or a cell lost, in order. */
  readonly losses: readonly number[];
  readonly counts: Counts;
}

/** Loss counts in a window. */
export interface Counts {
  /** Cells lost because the buffer was full, and frames damaged by these losses. */
  readonly lost: number;
  readonly damaged: number;
  /** Cells that the policy discarded, and frames that it discarded completely. */
  readonly discarded: number;
  readonly frames: number;
}

export const overview = signal<Overview | null>(null);
export const detail = signal<Detail | null>(null);
/** Description of the work in progress; empty if there is none. */
export const busy = signal("");
export const progress = signal(0);
export const fault = signal<EngineError | null>(null);

/** Number of steps completed at the current instant. */
export const step = signal(0);
/** True while the steps play automatically. */
export const playing = signal(false);
/** The part of the window shown in the plots. */
export const zoom = signal<readonly [number, number]>([0, 1]);
export const flow = signal("");
/** True if the microscope opens the current scenario as soon as it has been checked. Links from stories set it. */
export const lookSoon = signal(false);
/** View requested by a link or a story, to be shown after the next run. Default: the bottleneck, the first loss. */
type Wanted = Pick<View, "from" | "to"> & Partial<View>;

export const wanted = signal<Wanted | null>(null);
/** True if the next stage must scroll into view. */
export const showStage = signal(false);
/** True if the next plots must scroll into view instead. */
export const showPlots = signal(false);

/** The current instant. */
export const now = computed(() => {
  const c = detail.value;
  if (c === null) {
    return Number.NaN;
  }
  return step.value === 0 ? c.from : (c.history.steps.time_s[step.value - 1] ?? c.to);
});

/** Number of samples of a whole run. */
const SAMPLES = 2000;

let stopper: AbortController | null = null;

export function stopLooking(): void {
  stopper?.abort();
}

/** Runs the current scenario once. Shows the view requested by a link, otherwise the first peak of the queue. */
export async function look(): Promise<void> {
  const e = engine.peek();
  const net = network.peek();
  if (e === null || net === null) {
    return;
  }
  const text = toml.peek();
  const seed = seedInside.peek();
  const view = wanted.peek();
  wanted.value = null;
  await work("Running it once", async (options) => {
    const few = net.links.length <= 60;
    const run = await e.run(text, seed, {
      ...options,
      series: {
        names: hasOwnTcp(net) ? ["queue", "cwnd"] : ["queue"],
        step: `${String(Math.max(1, Math.round((net.duration_s * 1e6) / SAMPLES)))}us`,
        ...(few ? { ports: "all" as const } : {}),
      },
    });
    const defaults = checkedNow.peek()?.result.defaults;
    const whole: Overview = { toml: text, seed, run, network: net, formula: formulaOf(defaults), tcp: tcpName(defaults) };
    const bottleneck = net.links[net.bottleneck]?.name ?? "bottleneck";
    const port = view?.port ?? bottleneck;
    const linked = view !== null && view.to <= net.duration_s && net.links.some((l) => l.name === port);
    const [from, to] = linked ? [view.from, view.to] : firstPeak(whole, bottleneck);
    try {
      await loadDetail(e, whole, linked ? port : bottleneck, from, to, options);
    } catch (error) {
      batch(() => {
        overview.value = whole;
        detail.value = null;
      });
      throw error;
    }
    batch(() => {
      showPlots.value = linked && view.step === undefined;
      showStage.value = !showPlots.value;
      if (linked && view.step !== undefined) {
        step.value = Math.min(view.step, detail.peek()?.history.length ?? 0);
      }
    });
  });
}

/** Returns whether the windows and timeouts of some connections are known. */
export function hasOwnTcp(net: Network): boolean {
  return net.flows.length === 0 || net.flows.some((f) => f.stack === "");
}

/** Returns a sentence on real stacks, which do not report windows and timeouts; empty if there are none. */
export function unreported(net: Network): string {
  const stacks = [...new Set(net.flows.flatMap((f) => (f.stack === "" ? [] : [kindName(f.stack)])))];
  return stacks.map((stack) => `${stack} does not report its congestion windows and timeouts.`).join(" ");
}

/** Loads a scenario, goes to the microscope and shows the run with this seed, in this window if it is given. */
export function lookInto(text: string, seed: number, window?: readonly [number, number]): void {
  batch(() => {
    toml.value = text;
    seedInside.value = seed;
    wanted.value = window === undefined ? null : { from: window[0], to: window[1] };
    lookSoon.value = true;
  });
  go("inside");
}

/** The original scenario, before cells were selected for loss, and the names of these cells; null if there are none. */
export const before = signal<{ readonly toml: string; readonly lost: readonly string[]; readonly after: string } | null>(null);

/** Returns the VC and number of a waiting cell, if the link of this port can lose the cell; otherwise null. */
export function losable(place: number): { readonly vc: string; readonly cell: number } | null {
  const [o, c] = [overview.peek(), detail.peek()];
  const link = o?.network.links.findIndex((l) => l.name === c?.port) ?? -1;
  const vc = c?.history.vcs[c.history.at(step.peek())[place]?.vc ?? -1];
  // The number is valid only in this run. A merged VC cannot have loss rules.
  const isOld = o?.toml !== toml.value || o.seed !== seedInside.value;
  if (o === null || c === null || isOld || !o.network.vcs.some((one) => one.name === vc && one.links.includes(link))) {
    return null;
  }
  const cell = o.network.links[link]?.shaped === true ? null : c.history.numberSent(step.peek(), place);
  return vc === undefined || cell === null ? null : { vc, cell };
}

/** Adds a rule by which the link of this port loses a cell, and shows the new run at the same instant. */
export async function lose({ vc, cell }: { readonly vc: string; readonly cell: number }): Promise<void> {
  const [c, known] = [detail.peek(), checkedNow.peek()];
  if (c === null || known === null) {
    return;
  }
  type Links = Readonly<Record<string, { readonly lose?: readonly unknown[] }>>;
  const links = known.document.root?.["link"] as Links | undefined;
  await edit(["link", c.port, "lose"], [...(links?.[c.port]?.lose ?? []), { vc, cells: [cell] }]);
  const earlier = before.peek()?.after === known.toml ? before.peek() : null;
  const lost = [...(earlier?.lost ?? []), `cell ${cell.toLocaleString("en-US")} of ${vc} on ${c.port}`];
  before.value = { toml: earlier?.toml ?? known.toml, lost, after: toml.peek() };
  lookAgain();
  said.value = `This run loses ${lost.join(", ")}.`;
}

/** Removes the rules that {@link lose} has added, and shows the run without these losses. */
export function loseNothing(): void {
  const found = before.peek();
  if (found !== null) {
    toml.value = found.toml;
    before.value = null;
    lookAgain();
  }
}

/** Runs the changed scenario as soon as it has been checked, and shows the same port, window and step. */
function lookAgain(): void {
  const c = detail.peek();
  if (c !== null) {
    wanted.value = { port: c.port, from: c.from, to: c.to, step: step.peek() };
    lookSoon.value = true;
  }
}

/** Shows a port in detail from `from` to `to`. */
export async function lookAt(port: string, from: number, to: number): Promise<void> {
  const e = engine.peek();
  const whole = overview.peek();
  if (e !== null && whole !== null) {
    await work(`Looking at ${port}`, (options) => loadDetail(e, whole, port, from, to, options));
  }
}

interface CallOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (done: number) => void;
  readonly limits: Limits;
}

/** The most recent request. */
let last: (() => Promise<void>) | null = null;

/** Repeats the most recent request with the same port and window. */
export async function again(): Promise<void> {
  await last?.();
}

async function work(what: string, task: (options: CallOptions) => Promise<void>): Promise<void> {
  last = () => work(what, task);
  stopper?.abort();
  const mine = new AbortController();
  stopper = mine;
  batch(() => {
    busy.value = what;
    progress.value = 0;
    fault.value = null;
  });
  try {
    await task({
      signal: mine.signal,
      limits: limits.peek(),
      onProgress: (done) => {
        if (stopper === mine) {
          progress.value = done;
        }
      },
    });
  } catch (error) {
    if (stopper === mine) {
      fault.value = asFault(error);
    }
  } finally {
    if (stopper === mine) {
      busy.value = "";
    }
  }
}

async function loadDetail(
  e: Engine,
  o: Overview,
  port: string,
  from: number,
  to: number,
  options: CallOptions,
): Promise<void> {
  busy.value = `Looking at ${port}`;
  const [history, events] = await Promise.all([
    e.buffer(o.toml, o.seed, port, from, to, options),
    e.events(o.toml, o.seed, { ...options, kinds: ["segments", "timers"], from, to }),
  ]);
  const segments = events.tables.segments ?? { rows: 0, columns: {} };
  const timers = events.tables.timers ?? { rows: 0, columns: {} };
  const losses = lossSteps(history);
  const named = segments.columns["flow"];
  const requests = (isWords(named) ? [...named.words] : []).sort(new Intl.Collator("en", { numeric: true }).compare);
  const connections = [...new Set([...o.network.flows.map((f) => f.name), ...requests])];
  batch(() => {
    overview.value = o;
    detail.value = {
      port,
      from,
      to,
      history,
      segments,
      timers,
      connections,
      timeouts: timeouts(timers),
      losses,
      counts: counts(history),
    };
    zoom.value = [from, to];
    step.value = beginning(history, losses);
    if (!connections.includes(flow.peek())) {
      flow.value = connections[0] ?? "";
    }
  });
}

function formulaOf(defaults: Checked["defaults"] | undefined): string {
  type Port = { readonly policy?: { readonly formula?: { readonly admit?: string } } };
  const ports = Object.values((defaults?.["port"] ?? {}) as Readonly<Record<string, Port>>);
  const formulas = new Set(ports.flatMap((port) => port.policy?.formula?.admit ?? []));
  return formulas.size === 1 ? ([...formulas][0] ?? "") : "";
}

/** Returns a window around the first time at which the queue reaches three quarters of its maximum. */
function firstPeak(o: Overview | null, port: string): [number, number] {
  const series = o?.run.series;
  const duration = o?.network.duration_s ?? 1;
  const width = Math.min(duration, 0.012);
  const queue = series?.measures["queue_cells_largest"];
  const column = queue?.names.findIndex((n) => n === port) ?? -1;
  if (series == null || queue === undefined || column < 0) {
    return [0, width];
  }
  const values = queue.values;
  const samples = series.time_s.length;
  const at = (i: number): number => values[i * queue.names.length + column] ?? 0;
  let most = 0;
  for (let i = 0; i < samples; i += 1) {
    most = Math.max(most, at(i));
  }
  for (let i = 0; i < samples; i += 1) {
    if (at(i) >= 0.75 * most && most > 0) {
      const from = Math.max(0, (series.time_s[i] ?? 0) - width / 2);
      return [from, Math.min(duration, from + width)];
    }
  }
  return [0, width];
}

/** Returns the step to show first: the first refusal. Without refusals, the middle loss; without losses, the longest
 * queue. */
function beginning(history: BufferHistory, losses: readonly number[]): number {
  const { judgement, occupancy } = history.steps;
  const refused = losses.find((i) => history.judgements[judgement[i] ?? -1]?.admitted === false);
  if (refused !== undefined) {
    return refused + 1;
  }
  const middle = losses[losses.length >> 1];
  return middle === undefined ? occupancy.indexOf(occupancy.reduce((a, b) => Math.max(a, b), 0)) + 1 : middle + 1;
}

/** Counts losses. Frames and cells have separate steps, so they are counted separately. */
export function counts(history: Pick<BufferHistory, "kinds" | "steps">): Counts {
  const of = new Map<BufferStep | undefined, number>();
  for (const kind of history.steps.kind) {
    const name = history.kinds[kind];
    of.set(name, (of.get(name) ?? 0) + 1);
  }
  const sum = (...names: BufferStep[]): number => names.reduce((total, name) => total + (of.get(name) ?? 0), 0);
  return {
    lost: sum("lost", "pushed_out", "dropped"),
    damaged: sum("cut"),
    discarded: sum("discarded"),
    frames: sum("refused"),
  };
}

function lossSteps(history: BufferHistory): number[] {
  const { kind } = history.steps;
  const bad = new Set(history.kinds.flatMap((k, i) => (k === "admitted" || k === "departed" ? [] : [i])));
  const steps: number[] = [];
  for (let i = 0; i < history.length; i += 1) {
    if (bad.has(kind[i] ?? -1)) {
      steps.push(i);
    }
  }
  return steps;
}

function timeouts(timers: Table): { time_s: number; flow: string }[] {
  const times = numbers(timers, "time_s");
  const found = [];
  for (let row = 0; row < timers.rows; row += 1) {
    if (word(timers, "event", row) === "expired" && word(timers, "timer", row) === "retransmission") {
      found.push({ time_s: times[row] ?? 0, flow: word(timers, "flow", row) });
    }
  }
  return found;
}

/** Returns a column of numbers; empty if the table is empty. */
export function numbers(table: Table, name: string): Float64Array {
  const column = table.columns[name];
  return column instanceof Float64Array ? column : new Float64Array(0);
}

/** Returns the word in a row; empty if there is none. */
export function word(table: Table, name: string, row: number): string {
  const column = table.columns[name];
  return isWords(column) ? (column.words[column.at[row] ?? -1] ?? "") : "";
}

export function isWords(column: Column | undefined): column is Words {
  return column !== undefined && "words" in column;
}

export type Sort = "cell" | "frame" | "loss" | "timeout";

/** Moves to the next step of this kind, forwards (1) or backwards (-1). Returns whether there was one. */
export function move(sort: Sort, direction: 1 | -1): boolean {
  const c = detail.peek();
  if (c === null) {
    return false;
  }
  const next = sort === "timeout" ? nextTimeout(c, direction) : c.history.next(step.peek(), sort, direction);
  if (next === null) {
    return false;
  }
  step.value = next;
  return true;
}

/** Returns the first step after an instant, because there may be no step exactly at the instant. */
export function stepAfter(history: BufferHistory, at: number): number {
  return Math.min(history.length, history.stepAt(at) + 1);
}

/** Names the connections whose timers expired just before a step; empty if there are none. */
export function ranOut({ timeouts: all, history }: Detail, at: number): string {
  const found = all.filter((t) => stepAfter(history, t.time_s) === at);
  const first = found[0];
  if (first === undefined) {
    return "";
  }
  const names = found.slice(0, 8).map((t) => t.flow);
  const more = found.length > names.length ? ` and ${String(found.length - names.length)} more` : "";
  return `Before that, at ${time(first.time_s)}, the retransmission timer ran out: ${names.join(", ")}${more}.`;
}

/** Cached timeouts, and the run to which they belong. */
let counted: { readonly of: Overview; readonly at: readonly number[] } | null = null;

/** Finds the next timeout outside the window; null if the run has none there, undefined if counting failed. */
export async function timeoutBeyond(direction: 1 | -1): Promise<number | null | undefined> {
  const [e, o, c] = [engine.peek(), overview.peek(), detail.peek()];
  if (e === null || o === null || c === null) {
    return undefined;
  }
  if (counted?.of !== o) {
    await work("Looking for timeouts", async (options) => {
      const { tables } = await e.events(o.toml, o.seed, { ...options, kinds: ["timers"] });
      const found = timeouts(tables.timers ?? { rows: 0, columns: {} });
      counted = { of: o, at: found.map(({ time_s }) => time_s) };
    });
  }
  if (counted?.of !== o) {
    return undefined;
  }
  const at = counted.at;
  return (direction === 1 ? at.find((t) => t > c.to) : at.findLast((t) => t < c.from)) ?? null;
}

/** Moves the window to a timeout and shows it. */
export async function showTimeout(at: number): Promise<void> {
  const c = detail.peek();
  if (c === null) {
    return;
  }
  const width = c.to - c.from;
  const from = Math.max(0, at - width / 4);
  await lookAt(c.port, from, from + width);
  const shown = detail.peek();
  if (shown !== null && shown.from === from) {
    step.value = stepAfter(shown.history, at);
  }
}

function nextTimeout(c: Detail, direction: 1 | -1): number | null {
  const steps = c.timeouts.map((t) => stepAfter(c.history, t.time_s));
  const here = step.peek();
  const found = direction === 1 ? steps.find((s) => s > here) : steps.findLast((s) => s < here);
  return found ?? null;
}
