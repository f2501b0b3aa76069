/** The network with its queues at the instant looked at. */

import type { JSX } from "preact";
import type { Network } from "../../engine/api.ts";
import { count } from "../parts/format.ts";

const WIDTH = 640;
/** Room for names at both sides. */
const MARGIN = 108;

export interface NetworkProps {
  readonly network: Network;
  /** Cells waiting at a link's port, by its place; undefined where it is not known. */
  readonly queues: (link: number) => number | undefined;
  /** Place of the port that is looked at. */
  readonly port: number;
  readonly onPort: (link: number) => void;
  /** Cells that this port sent last, the newest first, as many as are asked for. */
  readonly sent: (most: number) => readonly { readonly colour: string; readonly damaged: boolean }[];
}

/** A drawing of more nodes than this would be a stain, and take the page's time. */
const MOST_NODES = 1000;

export function NetworkDrawing(props: NetworkProps): JSX.Element {
  const { network } = props;
  if (network.nodes.length > MOST_NODES) {
    return (
      <p>
        {count(network.nodes.length)} nodes and {count(network.flows.length)} connections are too many to be drawn.
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
  const height = Math.min(600, Math.max(200, 44 * lanes + 40));
  const at = (node: number): readonly [number, number] => {
    const p = network.positions[node] ?? { x: 0.5, y: 0.5 };
    return [MARGIN + p.x * (WIDTH - 2 * MARGIN), 30 + p.y * (height - 70)];
  };
  // Both directions are one line; the one that carries data has the queue.
  const data = new Set(network.vcs.filter((v) => v.is_data).flatMap((v) => v.links));
  const switches = network.links
    .map((link, i) => ({ link, i }))
    .filter(({ link, i }) => data.has(i) && network.nodes[link.from]?.kind !== "host");
  return (
    <svg
      id="network-svg"
      class="network"
      viewBox={`0 0 ${String(WIDTH)} ${String(height)}`}
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
              <circle class="net-host" cx={x} cy={y} r={many ? 3 : 6} />
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
            {(node.kind === "switch" ? !many : node.kind === "host" && hosts <= 24 && outside(network, i)) && (
              <text class="net-name" {...beside(x, y, network.positions[i]?.x ?? 0.5)}>
                {short(node.name)}
              </text>
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
          small={switches.length > 12 && link.buffer_cells === null}
          sent={i === props.port ? props.sent : null}
          onChoose={() => {
            props.onPort(i);
          }}
        />
      ))}
    </svg>
  );
}

/** Pixels of a cell on a link. */
const CELL = 4;

/** A port's queue as a bar that fills, at the beginning of its link. */
function Queue(props: {
  readonly name: string;
  readonly cells: number | undefined;
  readonly places: number | null;
  readonly chosen: boolean;
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly small: boolean;
  readonly sent: NetworkProps["sent"] | null;
  readonly onChoose: () => void;
}): JSX.Element {
  const [x1, y1] = props.from;
  const [x2, y2] = props.to;
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  // The rest is for what was sent.
  const bar = Math.min(props.places === null ? 34 : 90, length * 0.36);
  const thick = props.small ? 6 : props.places === null ? 8 : 16;
  const start = Math.min(16, length * 0.25);
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  const places = props.places ?? 50;
  const filled = Math.min(1, (props.cells ?? 0) / Math.max(1, places)) * bar;
  const room = Math.max(0, Math.floor((length - start - bar - CELL - 12) / CELL));
  const cells = props.sent?.(room) ?? [];
  const told = props.cells === undefined ? "not recorded" : `${count(props.cells)} cells`;
  const label = `${props.name}: ${told}${props.places === null ? "" : ` of ${count(props.places)}`}`;
  return (
    <g
      class={`net-queue${props.chosen ? " chosen" : ""}`}
      role="button"
      // Attributes of SVG keep their case.
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
      {/* Cells wait where the link begins: the bar fills from its far end. */}
      <rect class="net-fill" x={start + bar - filled} y={-thick / 2} width={filled} height={thick} rx={2} />
      {/* What the port has sent, the newest first: its distance is that of cells, not of the link. */}
      {cells.map((cell, i) => {
        const x = start + bar + CELL + i * CELL;
        return (
          <g key={i} class="net-cell">
            <rect x={x} y={-4} width={CELL - 1} height={8} style={{ fill: cell.colour }} />
            {cell.damaged && <path class="net-vain" d={`M${String(x)} 4L${String(x + CELL - 1)} -4`} />}
          </g>
        );
      })}
    </g>
  );
}

/** Whether a node stands at an end of the drawing, where its name has room. */
function outside(network: Network, node: number): boolean {
  const across = network.positions[node]?.x ?? 0.5;
  return across < 0.02 || across > 0.98;
}

/** A name that fits beside its node; all of it is in its title. */
function short(name: string): string {
  return name.length <= 13 ? name : `${name.slice(0, 12)}…`;
}

/** Where a name stands: outside at both ends of the drawing, below in its middle. */
function beside(
  x: number,
  y: number,
  across: number,
): { x: number; y: number; "text-anchor": "start" | "middle" | "end" } {
  if (across < 0.02) {
    return { x: x - 12, y: y + 5, "text-anchor": "end" };
  }
  return across > 0.98 ? { x: x + 12, y: y + 5, "text-anchor": "start" } : { x, y: y + 28, "text-anchor": "middle" };
}

/** How many nodes stand in each column of the drawing. */
function laneCounts(network: Network): number[] {
  const columns = new Map<string, number>();
  for (const p of network.positions) {
    const key = p.x.toFixed(2);
    columns.set(key, (columns.get(key) ?? 0) + 1);
  }
  return [1, ...columns.values()];
}
