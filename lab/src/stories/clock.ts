import {
  EFFICIENCY,
  FAIRNESS,
  TIMEOUTS,
  best,
  listed,
  two,
  whole,
  type Story,
  type Values,
  type Variant,
} from "./story.ts";

const TICKS = [1, 10, 50, 100, 200, 500] as const;

function tick(ms: number): Variant {
  return {
    name: `${String(ms)} ms`,
    base: "lan-epd",
    changes: [{ path: ["tcp", "vanilla", "timer_granularity"], value: `${String(ms)}ms` }],
  };
}

const NAMES = ["no fast retransmit", "Tahoe", "Reno", "NewReno", "SACK"] as const;

/** Names the fairest variants, as far as the runs can distinguish variants. */
function top(values: Values): string {
  const found = best(values, 1).map((i) => NAMES[i] ?? "");
  return found.length === 1 ? `is ${listed(found)}` : `are ${listed(found)}, which these runs cannot tell apart`;
}

export const clock: Story = {
  id: "clock",
  title: "Waiting for a clock",
  lead: "A lost frame costs a connection three tenths of a second. What is it waiting for?",
  steps: [
    {
      kind: "read",
      title: "A long wait",
      text: [
        "A sender that misses an acknowledgement waits until its retransmission timer expires. The timer is a coarse clock that is checked once per tick. Here it waits three ticks of 100 ms: three tenths of a second.",
        "In this network a round trip takes about a tenth of a millisecond when no cell waits. A tick is a hundred milliseconds: time for the link to carry 37,000 cells.",
      ],
    },
    {
      kind: "run",
      title: "A finer clock",
      text: ["The same network under EPD. Only the tick of the senders' timers is changed, from 1 to 500 ms."],
      guess: {
        kind: "number",
        question: "With a tick of 100 ms the efficiency is below one half. What is it with a tick of 1 ms?",
        min: 0,
        max: 1,
        step: 0.01,
        variant: 0,
        measure: 0,
      },
      variants: TICKS.map(tick),
      shown: [EFFICIENCY, { ...TIMEOUTS, most: 500 }],
      seeds: 10,
      answer: (m) => [
        `1 ms gives ${two(m[0]?.[0])}, 100 ms ${two(m[3]?.[0])}, 500 ms ${two(m[5]?.[0])}. With 1 ms a connection loses more: its timer expires ${whole(m[0]?.[1])} times, and ${whole(m[3]?.[1])} times with 100 ms. But each wait is so short that it costs almost nothing.`,
        "So the timer caused most of the cost that seemed to be the buffer policy's. A study of one has to report the setting of the other.",
      ],
      look: { variant: 3, text: "See a connection wait for its clock: step by timeout" },
    },
    {
      kind: "run",
      title: "TCPs that do not wait",
      text: [
        "Later TCPs do not wait for the timer: three duplicate acknowledgements show that a segment is missing. Tahoe, Reno, NewReno and SACK react to that differently.",
      ],
      guess: {
        kind: "choice",
        question: "With such a TCP, a tick of 100 ms and EPD: what is the efficiency?",
        choices: ["Still about one half", "Above 0.9 for all of them", "Only SACK is above 0.9"],
        right: (m) => {
          const later = m.slice(1).map((v) => v[0] ?? 0);
          return [later.every((v) => v > 0.9) ? 1 : (later.at(-1) ?? 0) > 0.9 ? 2 : 0];
        },
      },
      variants: [
        { name: NAMES[0], base: "lan-epd" },
        { name: NAMES[1], base: "lan-epd", tcp: "tahoe" },
        { name: NAMES[2], base: "lan-epd", tcp: "reno" },
        { name: NAMES[3], base: "lan-epd", tcp: "newreno" },
        { name: NAMES[4], base: "lan-epd", tcp: "sack" },
      ],
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: (m, v) => [
        `Tahoe ${two(m[1]?.[0])}, Reno ${two(m[2]?.[0])}, NewReno ${two(m[3]?.[0])}, SACK ${two(m[4]?.[0])}, against ${two(m[0]?.[0])} without fast retransmit.`,
        `Fairest ${top(v)}. What is the buffer policy good for, then? It helps TCPs that wait for their timer, and it matters in other networks: try a wide area network (wan-epd) or many sources under “Compare”.`,
      ],
    },
  ],
};
