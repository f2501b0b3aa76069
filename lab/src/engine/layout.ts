/** Positions of a network's nodes in a drawing, with data flowing from left to right. */

import type { Network } from "./api.ts";

/** The network as the core describes it. The rest of {@link Network} is computed here. */
export type Described = Omit<Network, "positions">;

/** Larger networks are not drawn, because computing their positions would block the page. */
const MOST_NODES = 5000;

/**
 * Computes positions from 0 to 1: columns by distance from the senders, each ordered to reduce crossings. If only
 * requests cross some switches, distances are those from the nearest host.
 */
export function positions(network: Described): Network["positions"] {
  const count = network.nodes.length;
  if (count > MOST_NODES) {
    return network.nodes.map(() => ({ x: 0.5, y: 0.5 }));
  }
  const paths = network.flows.map((flow) => nodesOf(network, flow.links));
  const crossed = new Set(paths.flat());
  const byHosts = network.nodes.some(({ kind }, node) => kind === "switch" && !crossed.has(node));
  const column = byHosts ? distances(network) : columns(count, paths);
  const width = Math.max(1, ...column);
  const rows: number[][] = Array.from({ length: width + 1 }, () => []);
  column.forEach((at, node) => rows[at]?.push(node));
  const height = new Float64Array(count);
  const spread = (nodes: number[]) =>
    nodes.forEach((node, place) => {
      height[node] = (place + 1) / (nodes.length + 1);
    });
  rows.forEach(spread);
  const neighbours: number[][] = Array.from({ length: count }, () => []);
  for (const path of byHosts ? network.links.map(({ from, to }) => [from, to]) : paths) {
    path.slice(1).forEach((node, place) => {
      const before = path[place] ?? node;
      neighbours[node]?.push(before);
      neighbours[before]?.push(node);
    });
  }
  // Repeatedly move each node towards the middle of its neighbours.
  for (let round = 0; round < 8; round += 1) {
    for (const nodes of round % 2 === 0 ? rows : [...rows].reverse()) {
      const target = new Map(
        nodes.map((node) => {
          const near = neighbours[node] ?? [];
          const sum = near.reduce((total, other) => total + (height[other] ?? 0.5), 0);
          return [node, near.length === 0 ? (height[node] ?? 0.5) : sum / near.length];
        }),
      );
      nodes.sort((a, b) => (target.get(a) ?? 0) - (target.get(b) ?? 0) || a - b);
      spread(nodes);
    }
  }
  return Array.from({ length: count }, (_, node) => ({ x: (column[node] ?? 0) / width, y: height[node] ?? 0.5 }));
}

function nodesOf(network: Described, links: readonly number[]): number[] {
  const first = network.links[links[0] ?? -1];
  return first === undefined ? [] : [first.from, ...links.map((link) => network.links[link]?.to ?? first.to)];
}

/** Returns the number of links from the nearest host to each node; 0 for an isolated node. */
function distances(network: Described): number[] {
  const next: number[][] = network.nodes.map(() => []);
  network.links.forEach(({ from, to }) => next[from]?.push(to));
  const found = new Map<number, number>();
  network.nodes.forEach(({ kind }, node) => kind === "host" && found.set(node, 0));
  // Traversing a map includes the entries added meanwhile.
  for (const [node, distance] of found) {
    for (const to of next[node] ?? []) {
      found.set(to, found.get(to) ?? distance + 1);
    }
  }
  return network.nodes.map((_, node) => found.get(node) ?? 0);
}

/**
 * Returns the column of each node. It is after the columns of all nodes that precede the node on a path, unless paths
 * form a cycle.
 */
function columns(count: number, paths: readonly number[][]): number[] {
  const column = new Array<number>(count).fill(0);
  // Without cycles, a path has no more nodes than the network.
  for (let round = 0; round < Math.min(count, 64); round += 1) {
    let changed = false;
    for (const path of paths) {
      path.slice(1).forEach((node, place) => {
        const least = (column[path[place] ?? node] ?? 0) + 1;
        if (node !== path[place] && (column[node] ?? 0) < least && least < count) {
          column[node] = least;
          changed = true;
        }
      });
    }
    if (!changed) {
      return column;
    }
  }
  // Paths form a cycle, so each node's place is determined by the first path that contains it.
  const once = new Array<number>(count).fill(-1);
  for (const path of paths) {
    const start = path.findIndex((node) => (once[node] ?? -1) >= 0);
    const offset = start < 0 ? 0 : (once[path[start] ?? 0] ?? 0) - start;
    const isForward = path.every((node, place) => once[node] === -1 || (once[node] ?? 0) >= offset + place);
    path.forEach((node, place) => {
      if (once[node] === -1) {
        once[node] = isForward ? offset + place : Math.max(0, (once[path[start] ?? 0] ?? 0) - (place - start));
      }
    });
  }
  const least = Math.min(...once);
  return once.map((at) => at - least);
}
