/** Runs as dots on a line, with their mean and its confidence interval. */

import type { JSX } from "preact";
import type { Estimate } from "../../engine/api.ts";
import type { Value } from "../../engine/statistics.ts";
import { interval, share } from "./format.ts";

export interface Strip {
  readonly label: string;
  readonly values: readonly Value[];
  readonly estimate: Estimate | null;
  /** Value guessed before the run, if any. */
  readonly guess?: number;
  /** Published value for comparison. */
  readonly published?: number;
  readonly colour?: string;
}

const WIDTH = 640;
const LEFT = 8;
const RIGHT = 8;
const ROW = 30;

/** Shows several rows of dots below one another, on a common axis from 0 to `most`. */
export function Dots(props: {
  readonly title: string;
  readonly strips: readonly Strip[];
  readonly most?: number;
  readonly text?: (value: number) => string;
}): JSX.Element {
  const most = props.most ?? 1;
  const text = props.text ?? share;
  const x = (value: number): number => LEFT + (Math.min(value, most) / most) * (WIDTH - LEFT - RIGHT);
  return (
    <figure class="dots">
      <figcaption class="unseen">{props.title}</figcaption>
      {props.strips.map((s) => (
        <div class="dots-row" key={s.label}>
          <span class="dots-label">{s.label}</span>
          <div class="dots-plot">
            <svg
              viewBox={`0 0 ${String(WIDTH)} ${String(ROW)}`}
              preserveAspectRatio="none"
              role="img"
              aria-label={spoken(s, text)}
            >
              <line class="axis" x1={LEFT} x2={WIDTH - RIGHT} y1={ROW / 2} y2={ROW / 2} />
              {s.estimate?.low != null && s.estimate.high != null && (
                <rect
                  class="dots-interval"
                  x={x(Math.max(0, s.estimate.low))}
                  width={Math.max(2, x(s.estimate.high) - x(Math.max(0, s.estimate.low)))}
                  y={5}
                  height={ROW - 10}
                  rx={3}
                />
              )}
              {s.guess !== undefined && <line class="dots-guess" x1={x(s.guess)} x2={x(s.guess)} y1={1} y2={ROW - 1} />}
              {s.published !== undefined && <path class="dots-published" d={diamond(x(s.published), ROW / 2, 7)} />}
            </svg>
            <div class="dots-cloud" aria-hidden="true">
              {s.values.filter(isDefined).map((value, i) => (
                <i
                  key={i}
                  style={{ left: `${String((100 * x(value)) / WIDTH)}%`, background: s.colour ?? "var(--accent)" }}
                />
              ))}
              {s.estimate !== null && s.estimate.n > 0 && <b style={{ left: `${String((100 * x(s.estimate.mean)) / WIDTH)}%` }} />}
            </div>
          </div>
          <span class="dots-value">
            <strong class="number">
              {meanText(s, text)}
            </strong>
            <span class="small soft">{spread(s, text)}</span>
          </span>
        </div>
      ))}
      <div class="dots-scale small soft" aria-hidden="true">
        <span class="dots-ticks">
          <span>0</span>
          <span>{text(most / 2)}</span>
          <span>{text(most)}</span>
        </span>
      </div>
    </figure>
  );
}

/** Returns the 95 % interval in words: "all equal" if every run has the same value. */
export function spread(s: Strip, text: (value: number) => string): string {
  const { values, estimate } = s;
  if (estimate?.low == null || estimate.high == null) {
    return "";
  }
  const shown = new Set(values.filter(isDefined).map(text));
  if (shown.size === 1 && text(estimate.low) === text(estimate.high)) {
    return "all equal";
  }
  return `95 %: ${text(estimate.low)} – ${text(estimate.high)}`;
}

function isDefined(value: Value): value is number {
  return value !== null && Number.isFinite(value);
}

/** Formats the mean: "–" before the first run, "undefined" if every run lacks a value. */
function meanText(s: Strip, text: (value: number) => string): string {
  if (s.estimate === null || s.values.length === 0) {
    return "–";
  }
  return s.estimate.n === 0 ? "undefined" : text(s.estimate.mean);
}

function spoken(s: Strip, text: (value: number) => string): string {
  const isInterval = s.estimate !== null && s.estimate.n > 0 && text === share;
  const mean =
    s.values.length === 0
      ? "no runs yet"
      : `mean ${isInterval && s.estimate !== null ? interval(s.estimate) : meanText(s, text)}`;
  const parts = [`${s.label}: ${String(s.values.length)} runs, ${mean}`];
  if (s.guess !== undefined) {
    parts.push(`your guess ${text(s.guess)}`);
  }
  if (s.published !== undefined) {
    parts.push(`printed ${text(s.published)}`);
  }
  return parts.join(", ");
}

export function diamond(x: number, y: number, r: number): string {
  return `M${String(x)} ${String(y - r)}L${String(x + r)} ${String(y)}L${String(x)} ${String(y + r)}L${String(x - r)} ${String(y)}Z`;
}
