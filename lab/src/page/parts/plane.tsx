/**
 * The plane of efficiency and fairness: a dot for each run, a labelled cross for each mean, a diamond for each
 * published point.
 */

import type { JSX } from "preact";
import { mean } from "../../engine/statistics.ts";
import { diamond } from "./dots.tsx";
import type { Outcome } from "./experiment.ts";
import { share, shortened } from "./format.ts";
import { vcColour } from "./parts.tsx";

export interface Point {
  readonly efficiency: number;
  readonly fairness: number;
}

export interface Cloud {
  readonly name: string;
  readonly colour: string;
  /** Runs with a defined fairness. */
  readonly runs: readonly Point[];
  /** Points published in papers for this setting. */
  readonly printed?: readonly (Point & { readonly where: string })[];
}

const WIDTH = 460;
const HEIGHT = 482;
const LEFT = 52;
const BOTTOM = 66;
const TOP = 12;
const RIGHT = 14;

export function Plane(props: { readonly clouds: readonly Cloud[]; readonly id?: string }): JSX.Element {
  const { clouds } = props;
  const points = clouds.flatMap((c) => [...c.runs, ...(c.printed ?? [])]);
  const across = axis(points.map((p) => p.efficiency));
  const up = axis(points.map((p) => p.fairness));
  const x = (efficiency: number): number => LEFT + across.at(efficiency) * (WIDTH - LEFT - RIGHT);
  const y = (fairness: number): number => HEIGHT - BOTTOM - up.at(fairness) * (HEIGHT - BOTTOM - TOP);
  const spoken = clouds
    .filter((c) => c.runs.length > 0)
    .map((c) => `${c.name}: efficiency ${share(middle(c, "efficiency"))}, fairness ${share(middle(c, "fairness"))}`);
  const anchors = clouds.flatMap((c) => {
    const at = c.runs.length > 0 ? { efficiency: middle(c, "efficiency"), fairness: middle(c, "fairness") } : c.printed?.[0];
    return at === undefined
      ? []
      : [{ name: shortened(c.name, MOST_LABEL), whole: c.name, colour: c.colour, x: x(at.efficiency), y: y(at.fairness) }];
  });
  const diamonds = clouds.flatMap((c) => (c.printed ?? []).map((p) => ({ x: x(p.efficiency), y: y(p.fairness) })));
  return (
    <figure class="plane">
      <svg
        id={props.id}
        viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`}
        role="img"
        aria-label={`Efficiency and fairness. ${spoken.join("; ")}`}
      >
        {across.ticks.map((t) => (
          <g key={t}>
            <line class="grid" x1={x(t)} x2={x(t)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text class="tick" x={x(t)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">
              {t}
            </text>
          </g>
        ))}
        {up.ticks.map((t) => (
          <g key={t}>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(t)} y2={y(t)} />
            <text class="tick" x={LEFT - 8} y={y(t) + 4} text-anchor="end">
              {t}
            </text>
          </g>
        ))}
        <text class="tick" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - BOTTOM + 37} text-anchor="middle">
          efficiency →
        </text>
        <text
          class="tick"
          x={0}
          y={0}
          text-anchor="middle"
          transform={`translate(14 ${String((TOP + HEIGHT - BOTTOM) / 2)}) rotate(-90)`}
        >
          fairness →
        </text>
        {clouds.map((c) => (
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
        {clouds.map((c) => (
          <g key={c.name}>
            {(c.printed ?? []).map((p) => (
              <path
                key={p.where}
                d={diamond(x(p.efficiency), y(p.fairness), 7)}
                class="printed"
                style={{ stroke: c.colour }}
              >
                <title>{`${c.name} as published, ${p.where}: ${share(p.efficiency)}, ${share(p.fairness)}`}</title>
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
        {labels(anchors, diamonds).map((l) => (
          <g key={l.whole} class="plane-label">
            {l.isFar && <line class="leader" x1={l.x} y1={l.y} x2={l.nearX} y2={l.top + LABEL / 2} />}
            <rect x={l.left} y={l.top + 3} width={9} height={9} rx={2} style={{ fill: l.colour }} />
            <text x={l.left + SWATCH} y={l.top + 12}>
              {l.name}
              <title>{l.whole}</title>
            </text>
          </g>
        ))}
        <Key runs={clouds.some((c) => c.runs.length > 0)} printed={clouds.some((c) => (c.printed ?? []).length > 0)} />
      </svg>
    </figure>
  );
}

/** Explains the markers. It is part of the drawing, so that exported pictures include it. */
function Key(props: { readonly runs: boolean; readonly printed: boolean }): JSX.Element {
  const y = HEIGHT - 9;
  return (
    <g class="plane-key">
      {props.runs && (
        <>
          <circle cx={LEFT + 6} cy={y - 4} r={4.5} class="run-dot" />
          <text class="tick" x={LEFT + 17} y={y}>
            one run
          </text>
          <path d={cross(LEFT + 96, y - 4, 7)} class="mean-cross" />
          <text class="tick" x={LEFT + 109} y={y}>
            mean
          </text>
        </>
      )}
      {props.printed && (
        <>
          <path d={diamond(LEFT + 176, y - 4, 6)} class="printed" />
          <text class="tick" x={LEFT + 189} y={y}>
            published in a paper, one run
          </text>
        </>
      )}
    </g>
  );
}

/** Returns a function that maps values to positions from 0 to 1. The axis starts at 0.5 unless a value is lower. */
export function axis(values: readonly number[]): {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
} {
  const low = values.length > 0 && values.every((v) => v >= 0.5) ? 0.5 : 0;
  return {
    at: (value) => Math.min(1, Math.max(0, (value - low) / (1 - low))),
    ticks: low === 0 ? [0, 0.2, 0.4, 0.6, 0.8, 1] : [0.5, 0.6, 0.7, 0.8, 0.9, 1],
  };
}

/** Longer names are truncated in the drawing; the tooltip shows the whole name. */
const MOST_LABEL = 24;
/** Height of a label, and widths of its swatch and of a letter. */
const LABEL = 16;
const SWATCH = 13;
const LETTER = 8.6;

interface Anchor {
  readonly name: string;
  readonly whole: string;
  readonly colour: string;
  readonly x: number;
  readonly y: number;
}

export interface Label extends Anchor {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  /** End of the line from the cross to the label. */
  readonly nearX: number;
  /** True if the label is far from its cross, so that a line must connect them. */
  readonly isFar: boolean;
}

/** Places a label next to each cross, inside the drawing, so that it overlaps no other label, cross or diamond. */
export function labels(
  anchors: readonly Anchor[],
  diamonds: readonly { readonly x: number; readonly y: number }[] = [],
): Label[] {
  const placed: Label[] = [];
  const crosses = [...anchors, ...diamonds].map((a) => ({ left: a.x - 8, top: a.y - 8, width: 16, height: 16 }));
  for (const a of [...anchors].sort((one, other) => one.y - other.y)) {
    const width = SWATCH + LETTER * a.name.length;
    const sides = [a.x + 13, a.x - 13 - width].filter((l) => l >= LEFT + 2 && l + width <= WIDTH - 2);
    const lefts = sides.length > 0 ? sides : [Math.max(LEFT + 2, WIDTH - 2 - width)];
    const tops = Array.from({ length: 48 }, (_, i) => a.y - LABEL / 2 + (i % 2 === 0 ? 1 : -1) * Math.ceil(i / 2) * 9);
    const places = tops.flatMap((top) => lefts.map((left) => ({ left, top })));
    const isFree = ({ left, top }: { readonly left: number; readonly top: number }): boolean =>
      top >= TOP &&
      top + LABEL <= HEIGHT - BOTTOM &&
      placed.every((p) => !overlap({ left, top, width, height: LABEL }, { ...p, height: LABEL })) &&
      crosses.every((c) => !overlap({ left, top, width, height: LABEL }, c));
    const { left, top } = places.find(isFree) ?? { left: lefts[0] ?? LEFT, top: a.y - LABEL / 2 };
    const nearX = left > a.x ? left - 2 : left + width + 2;
    placed.push({ ...a, left, top, width, nearX, isFar: Math.abs(top + LABEL / 2 - a.y) > LABEL });
  }
  return placed;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function overlap(one: Box, other: Box): boolean {
  return (
    one.left < other.left + other.width &&
    other.left < one.left + one.width &&
    one.top < other.top + other.height &&
    other.top < one.top + one.height
  );
}

/** Returns a cloud for each setting, with its published points. */
export function clouds(outcomes: readonly Outcome[], printed: readonly (Cloud["printed"] | undefined)[]): Cloud[] {
  return outcomes.map((o, i) => ({
    name: o.setting.name,
    colour: vcColour(i),
    runs: o.runs.flatMap(({ answer: { efficiency, fairness } }) =>
      fairness === null ? [] : [{ efficiency, fairness }],
    ),
    printed: printed[i] ?? [],
  }));
}

function middle(c: Cloud, of: "efficiency" | "fairness"): number {
  return mean(c.runs.map((r) => r[of]));
}

function cross(x: number, y: number, r: number): string {
  return `M${String(x - r)} ${String(y)}H${String(x + r)}M${String(x)} ${String(y - r)}V${String(y + r)}`;
}
