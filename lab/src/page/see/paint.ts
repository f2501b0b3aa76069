/** Functions that draw plots: queues, windows, the buffer by VC, segments. */

import type { BufferHistory, Network, Series, Table } from "../../engine/api.ts";
import { firstAt, thin } from "./downsample.ts";
import { isWords, numbers, word, type Detail } from "./lens.ts";
import type { Canvas } from "./plot.tsx";

/** Returns the CSS property for the colour of the n-th connection. */
export function flowColour(n: number): string {
  return `--vc-${String((n % 8) + 1)}`;
}

/** Returns the CSS property for the colour of each VC. A connection has the same colour at every port. */
export function vcColours(network: Pick<Network, "vcs" | "flows">, history: Pick<BufferHistory, "vcs">): string[] {
  const flows = new Map(network.vcs.map((vc) => [vc.name, vc.flow]));
  return history.vcs.map((name, i) => flowColour(flows.get(name) ?? network.flows.length + i));
}

/** Returns one column of recorded series. */
export function column(series: Series, measure: string, name: string): Float64Array {
  const found = series.measures[measure];
  const at = found?.names.indexOf(name) ?? -1;
  if (found === undefined || at < 0) {
    return new Float64Array(series.time_s.length);
  }
  return Float64Array.from(series.time_s, (_, i) => found.values[i * found.names.length + at] ?? 0);
}

/** Line width in pixels. */
const LINE = 1.6;

/** Draws a line through points. With `steps`, the line keeps each value until the next. */
export function line(c: Canvas, times: Float64Array, values: Float64Array, colour: string, steps: boolean): void {
  const { context } = c;
  context.strokeStyle = c.colour(colour);
  context.fillStyle = c.colour(colour);
  context.lineWidth = LINE * c.scale;
  context.lineJoin = "round";
  context.beginPath();
  const kept = thin(times, values, c.from, c.to, c.columns);
  // If the line goes up and down in most columns, filling one bar per column is much faster than stroking a path.
  const dense = kept.length > 2 * c.columns;
  let [beforeX, before] = [Number.NaN, Number.NaN];
  let range: Range | null = null;
  for (const i of kept) {
    const x = c.x(times[i] ?? 0);
    const y = c.y(values[i] ?? 0);
    if (dense && x - beforeX < c.scale) {
      range = widened(c, range, x, y, before);
    } else if (Number.isNaN(beforeX)) {
      context.moveTo(x, y);
    } else {
      if (dense) {
        context.moveTo(beforeX, before);
      }
      if (steps) {
        context.lineTo(x, before);
      }
      context.lineTo(x, y);
    }
    [beforeX, before] = [x, y];
  }
  if (range !== null) {
    fill(c, range);
  }
  if (steps && !Number.isNaN(before)) {
    context.moveTo(beforeX, before);
    context.lineTo(c.x(c.to), before);
  }
  context.stroke();
}

/** Draws a band between the minimum and maximum since the previous sample, one pixel column at a time. */
export function band(
  c: Canvas,
  times: Float64Array,
  low: Float64Array,
  high: Float64Array,
  colour: string,
): void {
  const { context } = c;
  context.fillStyle = c.colour(colour);
  const width = (c.to - c.from) / c.columns;
  let sample = Math.max(1, firstAt(times, c.from));
  for (let x = 0; x < c.columns && sample < times.length; x += 1) {
    const [from, to] = [c.from + x * width, c.from + (x + 1) * width];
    let [least, largest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    // If a sample ends after this column, the sample covers only a part of the column.
    for (let i = sample; i < times.length && (times[i - 1] ?? 0) < to; i += 1) {
      least = Math.min(least, low[i] ?? 0);
      largest = Math.max(largest, high[i] ?? 0);
    }
    while (sample < times.length && (times[sample] ?? 0) <= to) {
      sample += 1;
    }
    if (largest > least) {
      const [top, bottom] = [c.y(largest), c.y(least)];
      context.fillRect(Math.floor(c.x(from)), top, Math.max(c.scale, c.x(to) - c.x(from) + 0.5), bottom - top);
    }
  }
}

/** Range of a line's values in one pixel column. */
interface Range {
  readonly column: number;
  readonly top: number;
  readonly bottom: number;
}

/**
 * Extends the range by a point; for a new column, first draws the old range and starts a new one at the line's last
 * value.
 */
function widened(c: Canvas, range: Range | null, x: number, y: number, before: number): Range {
  const column = Math.round(x);
  if (range !== null && range.column === column) {
    return { column, top: Math.min(range.top, y), bottom: Math.max(range.bottom, y) };
  }
  if (range !== null) {
    fill(c, range);
  }
  return { column, top: Math.min(y, before), bottom: Math.max(y, before) };
}

function fill(c: Canvas, range: Range): void {
  const width = Math.max(1, Math.round(LINE * c.scale));
  c.context.fillRect(range.column - (width >> 1), range.top - width / 2, width, range.bottom - range.top + width);
}

/** Draws the waiting cells stacked by VC, with one sample per pixel column. */
export function stack(c: Canvas, history: BufferHistory, colours: readonly string[]): void {
  const n = Math.min(c.columns, 900);
  const { context } = c;
  const width = (c.to - c.from) / n;
  const vcs = history.vcs.length;
  const counts: Int32Array[] = [];
  for (let k = 0; k <= n; k += 1) {
    counts.push(history.perVc(history.stepAt(c.from + k * width)));
  }
  const base = new Float64Array(n + 1);
  for (let vc = 0; vc < vcs; vc += 1) {
    context.fillStyle = c.colour(colours[vc] ?? "--ink-soft");
    context.beginPath();
    context.moveTo(c.x(c.from), c.y(base[0] ?? 0));
    for (let k = 0; k <= n; k += 1) {
      context.lineTo(c.x(c.from + k * width), c.y((base[k] ?? 0) + (counts[k]?.[vc] ?? 0)));
    }
    for (let k = n; k >= 0; k -= 1) {
      context.lineTo(c.x(c.from + k * width), c.y(base[k] ?? 0));
      base[k] = (base[k] ?? 0) + (counts[k]?.[vc] ?? 0);
    }
    context.fill();
  }
}

/** Draws a dashed horizontal line, such as a threshold. */
export function level(c: Canvas, value: number): void {
  const { context } = c;
  context.strokeStyle = c.colour("--ink");
  context.lineWidth = c.scale;
  context.setLineDash([6 * c.scale, 4 * c.scale]);
  context.beginPath();
  context.moveTo(c.x(c.from), c.y(value));
  context.lineTo(c.x(c.to), c.y(value));
  context.stroke();
  context.setLineDash([]);
}

/** Marks losses: a cross for a discarded frame or cell, a triangle for a cell lost because the buffer was full. */
export function marks(c: Canvas, looked: Detail): void {
  const { steps, kinds } = looked.history;
  const { context } = c;
  const size = 4 * c.scale;
  let lastX = Number.NEGATIVE_INFINITY;
  let lastKind = -1;
  for (const i of looked.losses) {
    const t = steps.time_s[i] ?? 0;
    if (t < c.from || t > c.to) {
      continue;
    }
    const x = c.x(t);
    const kind = steps.kind[i] ?? 0;
    // More than one mark of each kind per pixel would not be visible.
    if (kind === lastKind && x - lastX < c.scale) {
      continue;
    }
    lastX = x;
    lastKind = kind;
    const y = Math.max(c.y(steps.occupancy[i] ?? 0), c.top + size + c.scale);
    context.strokeStyle = c.colour("--ink");
    context.fillStyle = c.colour("--bad");
    context.lineWidth = 1.5 * c.scale;
    context.beginPath();
    if (kinds[kind] === "refused" || kinds[kind] === "discarded") {
      context.moveTo(x - size, y - size);
      context.lineTo(x + size, y + size);
      context.moveTo(x - size, y + size);
      context.lineTo(x + size, y - size);
      context.stroke();
    } else {
      context.moveTo(x, y + size);
      context.lineTo(x + size, y - size);
      context.lineTo(x - size, y - size);
      context.fill();
    }
  }
}

/** Draws dotted vertical lines at instants such as timeouts. */
export function bars(c: Canvas, times: readonly number[], colour: string): void {
  const { context } = c;
  context.strokeStyle = c.colour(colour);
  context.lineWidth = 1.5 * c.scale;
  context.setLineDash([2 * c.scale, 3 * c.scale]);
  context.beginPath();
  for (const t of times.slice(0, 2000)) {
    if (t >= c.from && t <= c.to) {
      context.moveTo(c.x(t), c.top);
      context.lineTo(c.x(t), c.bottom);
    }
  }
  context.stroke();
  context.setLineDash([]);
}

/**
 * Returns the times and congestion windows of one connection, from its segments and, before the first segment, from the
 * samples.
 */
export function windows(
  looked: Detail,
  series: Series | null,
  flow: string,
): { times: Float64Array; values: Float64Array } {
  const { segments, from } = looked;
  const rows = rowsOf(segments, flow);
  const time = numbers(segments, "time_s");
  const cwnd = numbers(segments, "cwnd");
  const known = rows.filter((r) => !Number.isNaN(cwnd[r] ?? Number.NaN));
  const times = known.map((r) => time[r] ?? 0);
  const values = known.map((r) => cwnd[r] ?? 0);
  if (series?.measures["cwnd_segments"]?.names.includes(flow) === true) {
    times.unshift(from);
    values.unshift(valueAt(series.time_s, column(series, "cwnd_segments", flow), from));
  }
  return { times: Float64Array.from(times), values: Float64Array.from(values) };
}

/** Segments of one connection for the time-sequence plot. */
export interface Sequence {
  readonly sent: readonly Bar[];
  /** The highest acknowledgement at the sender, as a step function. */
  readonly acked: { readonly times: Float64Array; readonly values: Float64Array };
  readonly least: number;
  readonly most: number;
}

interface Bar {
  readonly time: number;
  readonly from: number;
  readonly to: number;
  readonly again: boolean;
}

export function sequence(segments: Table, flow: string): Sequence {
  const time = numbers(segments, "time_s");
  const start = numbers(segments, "sequence");
  const length = numbers(segments, "length");
  const ack = numbers(segments, "acknowledgement");
  const sent: Bar[] = [];
  const times: number[] = [];
  const values: number[] = [];
  let highest = Number.NEGATIVE_INFINITY;
  for (const row of rowsOf(segments, flow)) {
    const event = word(segments, "event", row);
    if (event === "sent" || event === "retransmitted") {
      const from = start[row] ?? 0;
      sent.push({ time: time[row] ?? 0, from, to: from + (length[row] ?? 0), again: event === "retransmitted" });
    } else if (event === "acknowledged" && (ack[row] ?? 0) > highest) {
      highest = ack[row] ?? 0;
      times.push(time[row] ?? 0);
      values.push(highest);
    }
  }
  const ends = [...sent.map((s) => s.to), ...values];
  const starts = [...sent.map((s) => s.from), ...values];
  return {
    sent,
    acked: { times: Float64Array.from(times), values: Float64Array.from(values) },
    least: starts.length === 0 ? 0 : starts.reduce((a, b) => Math.min(a, b)),
    most: ends.reduce((a, b) => Math.max(a, b), 1),
  };
}

/** Draws a bar from the first to the last byte of each segment sent, and the acknowledgements as steps. */
export function sequencePlot(c: Canvas, s: Sequence): void {
  const { context } = c;
  for (const again of [false, true]) {
    context.strokeStyle = c.colour(again ? "--vc-2" : "--ink");
    context.lineWidth = (again ? 2.5 : 1.5) * c.scale;
    context.beginPath();
    let lastX = Number.NaN;
    let lastTo = Number.NaN;
    for (const bar of s.sent) {
      if (bar.again !== again || bar.time < c.from || bar.time > c.to) {
        continue;
      }
      const x = Math.round(c.x(bar.time));
      const to = Math.round(c.y(bar.to));
      if (x === lastX && to === lastTo) {
        continue;
      }
      lastX = x;
      lastTo = to;
      context.moveTo(x, Math.min(c.y(bar.from), to + c.scale * 400));
      context.lineTo(x, to - c.scale);
    }
    context.stroke();
  }
  line(c, s.acked.times, s.acked.values, "--good", true);
}

/** Returns the rows of one connection, in order. */
function rowsOf(table: Table, flow: string): number[] {
  const column = table.columns["flow"];
  if (!isWords(column)) {
    return [];
  }
  const code = column.words.indexOf(flow);
  const rows: number[] = [];
  column.at.forEach((word, row) => {
    if (word === code) {
      rows.push(row);
    }
  });
  return rows;
}

/** Returns the value of a step function at an instant. */
export function valueAt(times: Float64Array, values: Float64Array, t: number): number {
  const i = firstAt(times, t);
  return (times[i] === t ? values[i] : values[i - 1]) ?? 0;
}
