/** The plane of efficiency and fairness: a dot for each run, a cross for each mean, a diamond for each printed point. */

import type { JSX } from "preact";
import { mean } from "../../engine/statistics.ts";
import { diamond } from "./dots.tsx";
import type { Outcome } from "./experiment.ts";
import { share } from "./format.ts";
import { vcColour } from "./parts.tsx";

export interface Cloud {
  readonly name: string;
  readonly colour: string;
  readonly runs: readonly { readonly efficiency: number; readonly fairness: number }[];
  /** What a paper prints, with where. */
  readonly printed?: readonly { readonly efficiency: number; readonly fairness: number; readonly where: string }[];
}

const SIZE = 460;
const LEFT = 52;
const BOTTOM = 44;
const TOP = 12;
const RIGHT = 14;
const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];

export function Plane(props: { readonly clouds: readonly Cloud[]; readonly id?: string }): JSX.Element {
  const x = (efficiency: number): number => LEFT + clip(efficiency) * (SIZE - LEFT - RIGHT);
  const y = (fairness: number): number => SIZE - BOTTOM - clip(fairness) * (SIZE - BOTTOM - TOP);
  const spoken = props.clouds
    .filter((c) => c.runs.length > 0)
    .map((c) => `${c.name}: efficiency ${share(middle(c, "efficiency"))}, fairness ${share(middle(c, "fairness"))}`);
  return (
    <figure class="plane">
      <svg
        id={props.id}
        viewBox={`0 0 ${String(SIZE)} ${String(SIZE)}`}
        role="img"
        aria-label={`Efficiency and fairness. ${spoken.join("; ")}`}
      >
        {TICKS.map((t) => (
          <g key={t}>
            <line class="grid" x1={x(t)} x2={x(t)} y1={y(0)} y2={y(1)} />
            <line class="grid" x1={x(0)} x2={x(1)} y1={y(t)} y2={y(t)} />
            <text class="tick" x={x(t)} y={SIZE - BOTTOM + 18} text-anchor="middle">
              {t}
            </text>
            <text class="tick" x={LEFT - 8} y={y(t) + 4} text-anchor="end">
              {t}
            </text>
          </g>
        ))}
        <text class="tick" x={x(0.5)} y={SIZE - 8} text-anchor="middle">
          efficiency →
        </text>
        <text class="tick" x={0} y={0} text-anchor="middle" transform={`translate(14 ${String(y(0.5))}) rotate(-90)`}>
          fairness →
        </text>
        {props.clouds.map((c) => (
          <g key={c.name}>
            {c.runs.map((r, i) => (
              <circle
                key={i}
                cx={x(r.efficiency)}
                cy={y(r.fairness)}
                r={4.5}
                class="run-dot"
                style={{ fill: c.colour }}
              >
                <title>{`${c.name}: ${share(r.efficiency)}, ${share(r.fairness)}`}</title>
              </circle>
            ))}
          </g>
        ))}
        {props.clouds.map((c) => (
          <g key={c.name}>
            {(c.printed ?? []).map((p) => (
              <path
                key={p.where}
                d={diamond(x(p.efficiency), y(p.fairness), 7)}
                class="printed"
                style={{ stroke: c.colour }}
              >
                <title>{`${c.name} as printed, ${p.where}: ${share(p.efficiency)}, ${share(p.fairness)}`}</title>
              </path>
            ))}
            {c.runs.length > 0 && (
              <path
                d={cross(x(middle(c, "efficiency")), y(middle(c, "fairness")), 9)}
                class="mean-cross"
                style={{ stroke: c.colour }}
              />
            )}
          </g>
        ))}
      </svg>
    </figure>
  );
}

/** A cloud for each setting, and what a paper prints for it. */
export function clouds(outcomes: readonly Outcome[], printed: readonly (Cloud["printed"] | undefined)[]): Cloud[] {
  return outcomes.map((o, i) => ({
    name: o.setting.name,
    colour: vcColour(i),
    runs: o.runs.map((r) => ({ efficiency: r.answer.efficiency, fairness: r.answer.fairness })),
    printed: printed[i] ?? [],
  }));
}

function clip(value: number): number {
  return Math.min(1, Math.max(0, value));
}

function middle(c: Cloud, of: "efficiency" | "fairness"): number {
  return mean(c.runs.map((r) => r[of]));
}

function cross(x: number, y: number, r: number): string {
  return `M${String(x - r)} ${String(y)}H${String(x + r)}M${String(x)} ${String(y - r)}V${String(y + r)}`;
}
