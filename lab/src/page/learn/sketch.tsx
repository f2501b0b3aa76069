/** Drawing of a step's network before the run: senders, shared link and buffer. */

import type { JSX } from "preact";
import type { Network } from "../../engine/api.ts";
import { count } from "../parts/format.ts";
import { vcColour } from "../parts/parts.tsx";

const WIDTH = 640;
const MARGIN = 104;
/** Number of cells drawn in a buffer. */
const CELLS = 9;

export function Sketch(props: { readonly network: Network }): JSX.Element {
  const { network } = props;
  const { height, places, isNamed } = layout(network);
  const at = (node: number): readonly [number, number] => places[node] ?? [WIDTH / 2, height / 2];
  const data = new Set(network.vcs.filter((v) => v.is_data).flatMap((v) => v.links));
  const owner = new Map<number, number>();
  network.flows.forEach((flow, i) => {
    for (const end of [network.links[flow.links[0] ?? -1]?.from, network.links[flow.links.at(-1) ?? -1]?.to]) {
      if (end !== undefined && !owner.has(end)) {
        owner.set(end, i);
      }
    }
  });
  const buffers = network.links.flatMap((link, i) => (data.has(i) && link.buffer_cells !== null ? [{ link, i }] : []));
  const shared = network.links[network.bottleneck];
  return (
    <svg
      class="sketch"
      viewBox={`0 0 ${String(WIDTH)} ${String(height)}`}
      role="img"
      aria-label={`${count(network.flows.length)} connections through ${count(network.nodes.filter((n) => n.kind === "switch").length)} switches`}
    >
      {network.links.map((link, i) => {
        const [x1, y1] = at(link.from);
        const [x2, y2] = at(link.to);
        const wide = i === network.bottleneck ? " shared" : "";
        return data.has(i) ? <line key={i} class={`sketch-link${wide}`} x1={x1} y1={y1} x2={x2} y2={y2} /> : null;
      })}
      {network.nodes.map((node, i) => {
        const [x, y] = at(i);
        const flow = owner.get(i);
        const isEnd = x <= MARGIN || x >= WIDTH - MARGIN;
        return (
          <g key={i}>
            {node.kind === "host" ? (
              <circle class="sketch-host" cx={x} cy={y} r={7} style={flow === undefined ? {} : { fill: vcColour(flow) }} />
            ) : (
              <rect
                class={node.kind === "switch" ? "sketch-switch" : "sketch-edge"}
                x={x - 11}
                y={y - 11}
                width={22}
                height={22}
                rx={3}
              />
            )}
            {(node.kind === "host" ? isEnd : node.kind === "switch" && buffers.length === 1) && isNamed && (
              <text
                x={isEnd ? x + (x < WIDTH / 2 ? -14 : 14) : x}
                y={isEnd ? y + 5 : y + 29}
                text-anchor={isEnd ? (x < WIDTH / 2 ? "end" : "start") : "middle"}
              >
                {node.name.length <= 13 ? node.name : `${node.name.slice(0, 12)}…`}
              </text>
            )}
          </g>
        );
      })}
      {buffers.map(({ link, i }) => (
        <Buffer key={i} from={at(link.from)} to={at(link.to)} cells={link.buffer_cells ?? 0} hasLabel={buffers.length === 1} />
      ))}
      {shared !== undefined && buffers.length === 1 && <Rate from={at(shared.from)} to={at(shared.to)} rate={shared.rate_mbps} />}
    </svg>
  );
}

/** Returns the caption: "5 connections, 10 seconds." and a description of the shared links if there are several. */
export function summary(network: Network): string {
  const { flows, duration_s: seconds } = network;
  const data = new Set(network.vcs.filter((v) => v.is_data).flatMap((v) => v.links));
  const buffers = network.links.filter((link, i) => data.has(i) && link.buffer_cells !== null);
  const edges = network.nodes.some((n) => n.kind === "edge_device") ? " Hollow squares are edge devices." : "";
  const [cells, rate] = [buffers[0]?.buffer_cells ?? 0, `${String(Number((buffers[0]?.rate_mbps ?? 0).toFixed(2)))} Mb/s`];
  const where =
    buffers.length > 1
      ? ` ${String(buffers.length)} shared links of ${rate}, each with a buffer of ${count(cells)} cells.`
      : "";
  return `${count(flows.length)} connections, ${String(seconds)} seconds.${where}${edges}`;
}

interface Layout {
  readonly height: number;
  readonly places: readonly (readonly [number, number])[];
  /** True if there is space for names. */
  readonly isNamed: boolean;
}

function layout(network: Network): Layout {
  return chainLayout(network) ?? columnLayout(network);
}

/** Stretches the engine's positions to the height of the drawing. */
function columnLayout(network: Network): Layout {
  const columns = new Map<string, number>();
  for (const { x } of network.positions) {
    columns.set(x.toFixed(2), (columns.get(x.toFixed(2)) ?? 0) + 1);
  }
  const lanes = Math.max(1, ...columns.values());
  const height = Math.min(480, Math.max(190, 44 * lanes + 24));
  const rows = network.positions.map(({ y }) => y);
  const [top, bottom] = [Math.min(...rows), Math.max(...rows)];
  const places = network.positions.map(({ x, y }) => {
    const down = bottom > top ? (y - top) / (bottom - top) : 0.5;
    return [MARGIN + x * (WIDTH - 2 * MARGIN), 34 + down * (height - 68)] as const;
  });
  return { height, places, isNamed: lanes <= 12 };
}

/**
 * If there are at least three switches and a flow crosses all of them, places them in a row, with senders above and
 * receivers below.
 */
function chainLayout(network: Network): Layout | null {
  const nodesOf = (links: readonly number[]): number[] => [
    network.links[links[0] ?? -1]?.from ?? -1,
    ...links.map((i) => network.links[i]?.to ?? -1),
  ];
  const paths = network.flows.map((flow) => nodesOf(flow.links));
  const longest = paths.reduce((best, path) => (path.length > best.length ? path : best), []);
  const row = longest.filter((n) => network.nodes[n]?.kind === "switch");
  if (row.length < 3 || row.length !== network.nodes.filter((n) => n.kind !== "host").length) {
    return null;
  }
  const [height, middle, gap] = [230, 115, (WIDTH - 2 * MARGIN) / (row.length - 1)];
  const places = network.nodes.map((): readonly [number, number] => [WIDTH / 2, middle]);
  row.forEach((n, i) => {
    places[n] = [MARGIN + i * gap, middle];
  });
  const sides: readonly (readonly [Map<number, number[]>, number])[] = [
    [new Map(), middle - 78],
    [new Map(), middle + 78],
  ];
  for (const path of paths) {
    for (const [host, next, side] of [
      [path[0], path[1], 0],
      [path.at(-1), path.at(-2), 1],
    ] as const) {
      const group = sides[side]?.[0];
      if (host !== undefined && next !== undefined && group !== undefined) {
        group.set(next, [...(group.get(next) ?? []), host]);
      }
    }
  }
  for (const [groups, y] of sides) {
    for (const [near, hosts] of groups) {
      hosts.forEach((host, i) => {
        const x = (places[near]?.[0] ?? 0) + (i - (hosts.length - 1) / 2) * Math.min(24, (gap - 12) / hosts.length);
        places[host] = [x, y];
      });
    }
  }
  const [first, last] = [longest[0] ?? -1, longest.at(-1) ?? -1];
  places[first] = [MARGIN - 60, middle];
  places[last] = [WIDTH - MARGIN + 60, middle];
  return { height, places, isNamed: false };
}

/** Draws a row of cells at the start of a link. */
function Buffer(props: {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly cells: number;
  readonly hasLabel: boolean;
}): JSX.Element {
  const [x1, y1] = props.from;
  const [x2, y2] = props.to;
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const side = Math.max(3, Math.min(9, (length * 0.55 - 16) / CELLS));
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  return (
    <g transform={`translate(${String(x1)} ${String(y1)}) rotate(${String(angle)})`}>
      <rect class="sketch-buffer" x={14} y={-side / 2 - 3} width={CELLS * side + 6} height={side + 6} rx={2} />
      {Array.from({ length: CELLS }, (_, i) => (
        <rect
          key={i}
          x={17 + i * side}
          y={-side / 2}
          width={side - 1}
          height={side}
          style={{ fill: vcColour((i * 7) % 5) }}
          opacity={0.85}
        />
      ))}
      {props.hasLabel && (
        <text x={length / 2} y={-24} text-anchor="middle" class="sketch-note">
          {`buffer: ${count(props.cells)} cells`}
        </text>
      )}
    </g>
  );
}

function Rate(props: {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly rate: number;
}): JSX.Element {
  const [x1, y1] = props.from;
  const [x2, y2] = props.to;
  return (
    <text class="sketch-note" x={(x1 + x2) / 2} y={(y1 + y2) / 2 + 52} text-anchor="middle">
      {`${String(Number(props.rate.toFixed(2)))} Mb/s`}
    </text>
  );
}
