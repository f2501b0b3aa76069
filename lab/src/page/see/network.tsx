/** The network with its queues at the current instant. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Network } from "../../engine/api.ts";
import { count } from "../parts/format.ts";
import { flowColour } from "./paint.ts";

/** Space for names on both sides. */
const MARGIN = 108;
/** Minimum fraction of the width used for the columns between the hosts, whose queues are the most important. */
const INNER = 0.62;

export interface NetworkProps {
  readonly network: Network;
  /** Returns the number of cells waiting at the port of a link; undefined if unknown. */
  readonly queues: (link: number) => number | undefined;
  /** Index of the selected port. */
  readonly port: number;
  readonly onPort: (link: number) => void;
  /** Returns the cells waiting at the selected port, by VC, with the CSS property of each colour. */
  readonly waiting: () => readonly { readonly cells: number; readonly colour: string }[];
  /** Returns the cells most recently sent by the selected port, newest first and at most `most`. */
  readonly sent: (most: number) => readonly { readonly colour: string; readonly damaged: boolean }[];
}

/** Maximum number of nodes to draw; more would be unreadable and slow. */
const MOST_NODES = 1000;

export function NetworkDrawing(props: NetworkProps): JSX.Element {
  const { network } = props;
  if (network.nodes.length > MOST_NODES) {
    return (
      <p>
        {count(network.nodes.length)} nodes and {count(network.flows.length)} connections are too many to draw.
      </p>
    );
  }
  return <Drawing {...props} />;
}

function Drawing(props: NetworkProps): JSX.Element {
  const { network } = props;
  const hosts = network.nodes.filter((n) => n.kind === "host").length;
  const many = network.nodes.length > 40;
  const lanes = Math.max(...laneCounts(network));
  const svg = useRef<SVGSVGElement>(null);
  const [room, setRoom] = useState({ width: 560, height: 300 });
  useEffect(() => {
    const element = svg.current?.parentElement;
    if (element == null) {
      return undefined;
    }
    const resized = new ResizeObserver(() => {
      setRoom({ width: element.clientWidth, height: element.clientHeight });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
    };
  }, []);
  // If the lanes need more space than available, scale down the whole drawing.
  const needed = Math.min(600, 22 * lanes + 70);
  const scale = Math.max(1, needed / Math.max(1, room.height), 340 / Math.max(1, room.width));
  const [width, height] = [room.width * scale, room.height * scale];
  const spread = inner(network);
  const at = (node: number): readonly [number, number] => {
    const p = network.positions[node] ?? { x: 0.5, y: 0.5 };
    return [MARGIN + spread(p.x) * (width - 2 * MARGIN), 24 + p.y * (height - 60)];
  };
  // Both directions share one line. The queue shown belongs to the direction that carries data.
  // VCs of requests have no flow.
  const data = new Set(network.vcs.filter((v) => v.is_data || v.flow === null).flatMap((v) => v.links));
  const switches = network.links
    .map((link, i) => ({ link, i }))
    .filter(({ link, i }) => data.has(i) && network.nodes[link.from]?.kind !== "host");
  const owner = ownColours(network);
  return (
    <svg
      id="network-svg"
      class="network"
      ref={svg}
      viewBox={`0 0 ${String(Math.round(width))} ${String(Math.round(height))}`}
      role="group"
      aria-label={`The network: ${String(network.nodes.length)} nodes, ${String(network.flows.length)} connections`}
    >
      {network.links.map((link, i) => {
        const [x1, y1] = at(link.from);
        const [x2, y2] = at(link.to);
        return data.has(i) ? <line key={i} class="net-link" x1={x1} y1={y1} x2={x2} y2={y2} /> : null;
      })}
      {network.nodes.map((node, i) => {
        const [x, y] = at(i);
        const side = many ? 5 : 9;
        return (
          <g key={i}>
            {node.kind === "host" ? (
              <circle
                class="net-host"
                cx={x}
                cy={y}
                r={many ? 3 : 6}
                style={owner.has(i) ? { fill: `var(${owner.get(i) ?? ""})` } : {}}
              />
            ) : (
              <rect
                class={node.kind === "switch" ? "net-switch" : "net-edge"}
                x={x - side}
                y={y - side}
                width={2 * side}
                height={2 * side}
                rx={2}
              />
            )}
            <title>{node.name}</title>
          </g>
        );
      })}
      {switches.map(({ link, i }) => (
        <Queue
          key={i}
          name={link.name}
          cells={props.queues(i)}
          places={link.buffer_cells}
          chosen={i === props.port}
          from={at(link.from)}
          to={at(link.to)}
          small={switches.length > (link.buffer_cells === null ? 12 : MOST_WIDE)}
          waiting={i === props.port ? props.waiting : null}
          sent={i === props.port ? props.sent : null}
          onChoose={() => {
            props.onPort(i);
          }}
        />
      ))}
      {network.nodes.map((node, i) => {
        const [x, y] = at(i);
        const named = node.kind === "switch" ? !many : node.kind === "host" && hosts <= 24 && outside(network, i);
        return named ? (
          <text key={i} class="net-name" {...namePosition(x, y, network.positions[i]?.x ?? 0.5)}>
            {short(node.name)}
          </text>
        ) : null;
      })}
    </svg>
  );
}

/** Maximum number of ports whose queues are drawn as wide bars. */
const MOST_WIDE = 48;

/** Width of a cell on a link, in pixels. */
const CELL = 4;

/** Shows a port's queue as a bar at the start of its link, which is filled according to the number of cells. */
function Queue(props: {
  readonly name: string;
  readonly cells: number | undefined;
  readonly places: number | null;
  readonly chosen: boolean;
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly small: boolean;
  readonly waiting: NetworkProps["waiting"] | null;
  readonly sent: NetworkProps["sent"] | null;
  readonly onChoose: () => void;
}): JSX.Element {
  const [x1, y1] = props.from;
  const [x2, y2] = props.to;
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  // The rest of the link shows cells that were sent.
  const bar = Math.min(props.places === null ? 34 : 110, length * 0.4);
  const thick = props.small ? 6 : props.places === null ? 8 : 20;
  const start = Math.min(16, length * 0.25);
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  const places = props.places ?? 50;
  const filled = Math.min(1, (props.cells ?? 0) / Math.max(1, places)) * bar;
  const room = Math.max(0, Math.floor((length - start - bar - CELL - 12) / CELL));
  const cells = props.sent?.(room) ?? [];
  const amount = props.cells === undefined ? "not recorded" : `${count(props.cells)} cells`;
  const label = `${props.name}: ${amount}${props.places === null ? "" : ` of ${count(props.places)}`}`;
  return (
    <g
      class={`net-queue${props.chosen ? " chosen" : ""}`}
      role="button"
      // SVG attributes are case-sensitive.
      tabindex={0}
      aria-label={`${label}. Look at this port.`}
      aria-pressed={props.chosen}
      transform={`translate(${String(x1)} ${String(y1)}) rotate(${String(angle)})`}
      onClick={props.onChoose}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          props.onChoose();
        }
      }}
    >
      <title>{label}</title>
      <rect class="net-room" x={start} y={-thick / 2} width={bar} height={thick} rx={2} />
      {/* Cells wait at the start of the link, so the bar fills from its far end. */}
      {props.waiting === null ? (
        <rect class="net-fill" x={start + bar - filled} y={-thick / 2} width={filled} height={thick} rx={2} />
      ) : (
        stacked(props.waiting(), start + bar, filled).map(({ x, width, colour }) => (
          <rect
            key={colour}
            class="net-fill"
            x={x}
            y={-thick / 2}
            width={width}
            height={thick}
            style={{ fill: `var(${colour})` }}
          />
        ))
      )}
      {/* Cells sent by the port, newest first. Their spacing shows only their order, not the length of the link. */}
      {cells.map((cell, i) => {
        const x = start + bar + CELL + i * CELL;
        return (
          <g key={i} class="net-cell">
            <rect x={x} y={-4} width={CELL - 1} height={8} style={{ fill: cell.colour }} />
            {cell.damaged && <path class="net-wasted" d={`M${String(x)} 4L${String(x + CELL - 1)} -4`} />}
          </g>
        );
      })}
    </g>
  );
}

/**
 * Returns a function from column position to drawing position. It separates inner columns that are close together.
 */
function inner(network: Network): (x: number) => number {
  const between = network.positions.map((p) => p.x).filter((x) => x > 0.02 && x < 0.98);
  const half = Math.max(0, ...between.map((x) => Math.abs(x - 0.5)));
  const by = half === 0 ? 1 : Math.max(1, INNER / 2 / half);
  return (x) => (x > 0.02 && x < 0.98 ? 0.5 + (x - 0.5) * by : x);
}

/** Divides the filled part of a bar, which ends at `end`, by colour. */
function stacked(
  waiting: readonly { readonly cells: number; readonly colour: string }[],
  end: number,
  filled: number,
): { x: number; width: number; colour: string }[] {
  const all = waiting.reduce((sum, w) => sum + w.cells, 0);
  const byColour = new Map<string, number>();
  for (const { cells, colour } of waiting) {
    byColour.set(colour, (byColour.get(colour) ?? 0) + cells);
  }
  let at = end;
  return [...byColour]
    .filter(([, cells]) => cells > 0)
    .map(([colour, cells]) => {
      const width = (cells / all) * filled;
      at -= width;
      return { x: at, width, colour };
    });
}

/** Returns the colour of each node at which exactly one connection begins or ends. */
function ownColours(network: Network): Map<number, string> {
  const found = new Map<number, string>();
  const shared = new Set<number>();
  network.flows.forEach((flow, n) => {
    const ends = [network.links[flow.links[0] ?? -1]?.from, network.links[flow.links.at(-1) ?? -1]?.to];
    for (const node of ends) {
      if (node === undefined || shared.has(node)) {
        continue;
      }
      if (found.delete(node)) {
        shared.add(node);
      } else {
        found.set(node, flowColour(n));
      }
    }
  });
  return found;
}

/** Returns whether a node is at the left or right end of the drawing, where there is space for its name. */
function outside(network: Network, node: number): boolean {
  const across = network.positions[node]?.x ?? 0.5;
  return across < 0.02 || across > 0.98;
}

/** Truncates a name to fit next to its node; its tooltip shows the whole name. */
function short(name: string): string {
  return name.length <= 13 ? name : `${name.slice(0, 12)}…`;
}

/** Returns the position of a node's name: to the left of the first nodes, to the right of the last nodes, and below
 * all others. */
function namePosition(
  x: number,
  y: number,
  across: number,
): { x: number; y: number; "text-anchor": "start" | "middle" | "end" } {
  if (across < 0.02) {
    return { x: x - 12, y: y + 5, "text-anchor": "end" };
  }
  return across > 0.98 ? { x: x + 12, y: y + 5, "text-anchor": "start" } : { x, y: y + 28, "text-anchor": "middle" };
}

/** Returns the number of nodes in each column of the drawing. */
function laneCounts(network: Network): number[] {
  const columns = new Map<string, number>();
  for (const p of network.positions) {
    const key = p.x.toFixed(2);
    columns.set(key, (columns.get(key) ?? 0) + 1);
  }
  return [1, ...columns.values()];
}
