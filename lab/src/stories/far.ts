import type { Answer } from "../engine/api.ts";
import { EFFICIENCY, best, percent, two, type Shown, type Story, type Variant } from "./story.ts";

/** What the long connection gets of its fair part of a link. */
const LONG: Shown = {
  label: "The long connection: part of its fair share",
  value: (a: Answer) => {
    const row = a.flows[0];
    return Number(row?.["goodput_mbps"] ?? 0) / Number(row?.["max_min_mbps"] ?? 1);
  },
};

/** What a far connection gets of what a near one gets. */
const FAR: Shown = {
  label: "A far connection: part of a near one's",
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
        "Ten connections share one link. Five of the senders are near: a round trip takes 0.06 ms. The other five are far away, behind links of 2.8 ms: their round trip is a hundred times as long.",
        "A window grows once per round trip. So a far sender is slow to use a free link, and slow to recover after a loss.",
      ],
      guess: {
        kind: "number",
        question: "Under EPD, what part of a near connection's goodput does a far one get?",
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
        `Under EPD ${two(m[0]?.[0])} of it, with FBA ${two(m[1]?.[0])}, with virtual queuing ${two(m[2]?.[0])}.`,
        "EPD refuses frames of every connection alike. Virtual queuing counts the cells that each connection would have waiting if all were served in turns, and refuses those that hold more than their share.",
      ],
      look: { variant: 0, text: "See who holds the buffer" },
    },
    {
      kind: "read",
      title: "Four chances to be refused",
      text: [
        "Five switches in a row. One long connection crosses all four links between them. On each link it meets four others, which cross only that one.",
        "By the fair rule all of them should have a fifth of a link. But the long one's frames are judged four times on their way, and its round trip is longer, so it is slower to recover.",
      ],
    },
    {
      kind: "run",
      title: "The long way under EPD",
      text: ["Every switch has EPD: above 800 of 1000 cells no frame may start, whoever sends it."],
      guess: {
        kind: "number",
        question: "What part of its fair share does the long connection get?",
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
        "EPD does not know whose frame it refuses, and the long connection is refused at four switches.",
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
        question: "Which gives the long connection most of its share?",
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
        `EPD leaves it ${percent(m[0]?.[0])}, Selective Drop ${percent(m[1]?.[0])}, virtual queuing ${percent(m[2]?.[0])} and per-VC queuing ${percent(m[3]?.[0])} of its share.`,
        "This is not free: EPD keeps no number for each connection, Selective Drop one count, virtual queuing the count of a queue that is not there, and per-VC queuing the real queues and the turn among them. A switch with thousands of connections pays for each.",
      ],
      look: { variant: 3, text: "See the queues of the connections in their turns" },
    },
  ],
};
