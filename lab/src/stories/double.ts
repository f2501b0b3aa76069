import { EFFICIENCY, listed, two, whole, type Change, type Shown, type Story } from "./story.ts";

/** Mean number of flows whose timers expire within one tick; undefined if no timer expires. */
const TOGETHER: Shown = {
  label: "Connections that time out together",
  value: (a) => a.timeouts_together ?? Number.NaN,
  most: 5,
  digits: 1,
};

const TIMEOUTS: Shown = {
  label: "Timeouts of all connections",
  value: (a) => a.flows.reduce((sum, f) => sum + Number(f["timeouts"]), 0),
  most: 15,
  digits: 1,
};

const SHORT: readonly Change[] = [{ path: ["duration"], value: "2s" }];

const POLICIES = ["tail drop", "PPD", "EPD"] as const;

export const double: Story = {
  id: "double",
  title: "Everybody doubles",
  lead: "A sender does not know how fast it may send, so it doubles. What if five senders double at once?",
  steps: [
    {
      kind: "read",
      title: "One, two, four, eight",
      text: [
        "A new connection sends one segment, and waits for its acknowledgement. Each acknowledgement enlarges the window by one segment, so the window doubles in every round trip. This is slow start.",
        "Across 15,000 km a round trip takes 30 ms, and nine doublings take the window from 1 to 512 segments in about 0.3 s. In a local network the first 5 ms look linear instead: the queue grows with the window, and the round trip with the queue.",
      ],
    },
    {
      kind: "run",
      title: "Five that double",
      text: [
        "Five senders start together across 15,000 km. Together their windows outgrow the buffer of 12,000 cells, and the switch refuses hundreds of frames of each sender in one round trip.",
        "Reno repairs one loss per round trip without its timer. It has lost hundreds.",
      ],
      guess: {
        kind: "number",
        question: "When timers of Reno expire, how many of the five connections time out together?",
        min: 1,
        max: 5,
        step: 0.1,
        variant: 1,
        measure: 0,
      },
      variants: [
        { name: "no fast retransmit", base: "wan-epd", changes: SHORT },
        { name: "Reno", base: "wan-epd", tcp: "reno", changes: SHORT },
        { name: "SACK", base: "wan-epd", tcp: "sack", changes: SHORT },
      ],
      shown: [TOGETHER, TIMEOUTS, EFFICIENCY],
      seeds: 5,
      answer: (m) => [
        `With Reno ${two(m[1]?.[0])}: all that overshoot together wait for the same tick, and the link is idle meanwhile. Without fast retransmit it is ${two(m[0]?.[0])}.`,
        `SACK tells the sender which segments are missing. It has ${whole(m[2]?.[1])} timeouts and an efficiency of ${two(m[2]?.[2])} in these two seconds, against ${two(m[1]?.[2])} with Reno.`,
      ],
      look: { variant: 1, text: "See five windows double, and collapse at one instant", window: [0, 1] },
    },
    {
      kind: "run",
      title: "A policy that breaks the step",
      text: [
        "Connections that lose in one round trip are synchronised: they fall silent together and start again together. In the local network, the buffer policy decides how many lose at once.",
      ],
      guess: {
        kind: "choice",
        question: "Under which policy do most of the five time out together?",
        choices: ["Tail drop", "PPD", "EPD"],
        right: (m) => [m.map((of) => of[0] ?? 0).reduce((top, v, i, all) => (v > (all[top] ?? 0) ? i : top), 0)],
      },
      variants: [
        { name: POLICIES[0], base: "lan-tail-drop" },
        { name: POLICIES[1], base: "lan-ppd" },
        { name: POLICIES[2], base: "lan-epd" },
      ],
      shown: [TOGETHER, EFFICIENCY],
      seeds: 10,
      plane: true,
      answer: (m) => [
        `Mean numbers for ${listed(POLICIES)}: ${two(m[0]?.[0])}, ${two(m[1]?.[0])} and ${two(m[2]?.[0])}. The useless cells of cut frames fill the buffer, so under tail drop more connections lose at the same time.`,
        `While one connection waits, the others use the link. Efficiency is ${two(m[0]?.[1])}, ${two(m[1]?.[1])} and ${two(m[2]?.[1])}.`,
      ],
    },
  ],
};
