import type { Answer } from "../engine/api.ts";
import { EFFICIENCY, best, percent, two, type Shown, type Story, type Variant } from "./story.ts";

/** Goodput of the long connection as a fraction of its max-min fair share. */
const LONG: Shown = {
  label: "The long connection: fraction of its fair share",
  value: (a: Answer) => {
    const row = a.flows[0];
    return Number(row?.["goodput_mbps"] ?? 0) / Number(row?.["max_min_mbps"] ?? 1);
  },
};

/** Goodput of a far connection as a fraction of a near connection's. */
const FAR: Shown = {
  label: "A far connection: fraction of a near one's",
  value: (a: Answer) => {
    const goodput = a.flows.map((f) => Number(f["goodput_mbps"]));
    const sum = (list: readonly number[]): number => list.reduce((total, v) => total + v, 0);
    return sum(goodput.slice(5)) / sum(goodput.slice(0, 5));
  },
};

function distant(name: string, value: unknown): Variant {
  return {
    name,
    base: "unequal-rtt",
    changes: [
      { path: ["topology", "n_source", "access_delays"], value: { "source6-10": "2.8ms" } },
      { path: ["port", "bottleneck", "policy"], value },
    ],
  };
}

const EPD: Variant = { name: "EPD", base: "chain-epd" };

function policy(name: string, value: unknown, scheduler?: unknown): Variant {
  const port = ["port", "sw*->sw*"];
  return {
    name,
    base: "chain-epd",
    changes: [
      { path: [...port, "policy"], value },
      ...(scheduler === undefined ? [] : [{ path: [...port, "scheduler"], value: scheduler }]),
    ],
  };
}

export const far: Story = {
  id: "far",
  title: "Far away and through many switches",
  lead: "Some connections have a long way to go, or four busy links to cross. What is left for them?",
  steps: [
    {
      kind: "run",
      title: "Near and far",
      text: [
        "Ten connections share one link. Five of the senders are near: their round trip takes 0.06 ms. The other five are far away, behind links of 2.8 ms, and their round trip is a hundred times as long.",
        "A window grows once per round trip. So a far sender is slow to use a free link, and slow to recover after a loss.",
      ],
      guess: {
        kind: "number",
        question: "Under EPD, what fraction of a near connection's goodput does a far one get?",
        min: 0,
        max: 1,
        step: 0.01,
        variant: 0,
        measure: 0,
      },
      variants: [
        distant("EPD", { epd: { threshold: 800 } }),
        distant("FBA", { fba: { threshold: 0.9, z: 0.8 } }),
        distant("virtual queuing", { virtual_queuing: { threshold: 800 } }),
      ],
      shown: [FAR, EFFICIENCY],
      seeds: 5,
      answer: (m) => [
        `A far connection gets ${two(m[0]?.[0])} of a near one's goodput under EPD, ${two(m[1]?.[0])} with FBA and ${two(m[2]?.[0])} with virtual queuing.`,
        "EPD treats the frames of all connections alike. Virtual queuing counts the cells that each connection would have waiting if all were served in turn. It refuses frames of connections that hold more than their share.",
      ],
      look: { variant: 0, text: "See who holds the buffer" },
    },
    {
      kind: "read",
      title: "Four chances to be refused",
      text: [
        "Five switches stand in a row. One long connection crosses all four links between them. It shares each link with four short connections, which cross only that link.",
        "A fair share is a fifth of a link for each of them. But the policies along the path judge the long connection's frames four times. Its round trip is also longer, so it recovers more slowly.",
      ],
    },
    {
      kind: "run",
      title: "The long way under EPD",
      text: ["Every switch has EPD: above 800 of 1000 cells no frame may start, whoever sends it."],
      guess: {
        kind: "number",
        question: "What fraction of its fair share does the long connection get?",
        min: 0,
        max: 1,
        step: 0.01,
        variant: 0,
        measure: 0,
      },
      variants: [EPD],
      shown: [LONG, EFFICIENCY],
      seeds: 5,
      answer: ([m]) => [
        `It gets ${percent(m?.[0])} of its fair share, while the links work with an efficiency of ${two(m?.[1])}.`,
        "EPD does not distinguish connections, and four switches can refuse the frames of the long one.",
      ],
      look: { variant: 0, text: "See the queues along the way" },
    },
    {
      kind: "run",
      title: "Give it back",
      text: [
        "Selective Drop and virtual queuing count the cells of each connection. Per-VC queuing goes further: a queue for each connection, served in turns.",
      ],
      guess: {
        kind: "choice",
        question: "Which gives the long connection the largest part of its share?",
        choices: ["EPD", "Selective Drop", "Virtual queuing", "Per-VC queuing"],
        right: (_, v) => best(v, 0),
      },
      variants: [
        EPD,
        policy("Selective Drop", { selective_drop: { threshold: 0.8, z: 0.8 } }),
        policy("virtual queuing", { virtual_queuing: { threshold: 800 } }),
        policy("per-VC queuing", { per_vc_accounting: { threshold: 800 } }, { round_robin: {} }),
      ],
      shown: [LONG, EFFICIENCY],
      seeds: 5,
      answer: (m) => [
        `EPD gives it ${percent(m[0]?.[0])}, Selective Drop ${percent(m[1]?.[0])}, virtual queuing ${percent(m[2]?.[0])} and per-VC queuing ${percent(m[3]?.[0])} of its share.`,
        "This is not free. EPD keeps no state for each connection. Selective Drop keeps a count of cells, and virtual queuing the length of an imaginary queue. Per-VC queuing needs real queues and a scheduler. A switch with thousands of connections pays for each of them.",
      ],
      look: { variant: 3, text: "See the connections' queues being served in turn" },
    },
  ],
};
