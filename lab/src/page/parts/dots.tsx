/** Runs as dots on a line, with their mean and its interval: never one curve. */

import type { JSX } from "preact";
import type { Estimate } from "../../engine/api.ts";
import { interval, share } from "./format.ts";

export interface Strip {
  readonly label: string;
  readonly values: readonly number[];
  readonly estimate: Estimate | null;
  /** What was guessed before the run, if anything was. */
  readonly guess?: number;
  /** A printed number to compare with. */
  readonly published?: number;
  readonly colour?: string;
}

const WIDTH = 640;
const LEFT = 8;
const RIGHT = 8;
const ROW = 30;

/** Strips on one axis from 0 to `most`, one under the other. */
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
          <div class="dots-label">
            <span>{s.label}</span>
            <strong class="number">{s.estimate === null ? "–" : text(s.estimate.mean)}</strong>
            {s.estimate?.low != null && s.estimate.high != null && (
              <span class="small soft">
                95 %: {text(s.estimate.low)} – {text(s.estimate.high)}
              </span>
            )}
          </div>
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
            {s.values.map((value, i) => (
              <i
                key={i}
                style={{ left: `${String((100 * x(value)) / WIDTH)}%`, background: s.colour ?? "var(--accent)" }}
              />
            ))}
            {s.estimate !== null && <b style={{ left: `${String((100 * x(s.estimate.mean)) / WIDTH)}%` }} />}
          </div>
        </div>
      ))}
      <div class="dots-scale small soft" aria-hidden="true">
        <span>0</span>
        <span>{text(most / 2)}</span>
        <span>{text(most)}</span>
      </div>
    </figure>
  );
}

function spoken(s: Strip, text: (value: number) => string): string {
  const mean =
    s.estimate === null ? "no runs yet" : `mean ${text === share ? interval(s.estimate) : text(s.estimate.mean)}`;
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
