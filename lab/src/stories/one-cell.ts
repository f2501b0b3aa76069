import {
  EFFICIENCY,
  FAIRNESS,
  TIMEOUTS,
  atBottleneck,
  best,
  listed,
  percent,
  two,
  whole,
  type Shown,
  type Story,
} from "./story.ts";

const BUSY: Shown = { label: "Link busy", value: (a) => atBottleneck(a, "utilisation") };
const USELESS: Shown = {
  label: "Wasted part of that",
  value: (a) => 1 - a.efficiency / atBottleneck(a, "utilisation"),
};
const CUT: Shown = {
  label: "Frames that were cut",
  value: (a) => atBottleneck(a, "cut_frames"),
  most: 2500,
  digits: 0,
};

const THRESHOLDS = [100, 300, 500, 700, 800, 900, 980] as const;

export const oneCell: Story = {
  id: "one-cell",
  title: "One cell costs a frame",
  lead: "A full buffer loses a few single cells. Why is the link idle most of the time then?",
  steps: [
    {
      kind: "read",
      title: "A segment travels in twelve cells",
      text: [
        "An ATM network moves cells: packets of 53 bytes. A TCP segment of 512 bytes is put into a frame, and the frame is cut into twelve cells. The receiver puts the twelve together again.",
        "Lose one of them below and see what the receiver can do with the other eleven.",
      ],
      toy: "frame",
    },
    {
      kind: "run",
      title: "Five senders, one link, a full buffer",
      text: [
        "Five TCP connections share one link. The buffer in front of it has room for 1000 cells. When it is full, it loses every cell that arrives: that is tail drop.",
      ],
      guess: {
        kind: "number",
        question: "What fraction of the link's capacity delivers useful data? Guess the efficiency.",
        min: 0,
        max: 1,
        step: 0.01,
        variant: 0,
        measure: 0,
      },
      variants: [{ name: "tail drop", base: "lan-tail-drop" }],
      shown: [EFFICIENCY, BUSY, USELESS, TIMEOUTS],
      seeds: 10,
      answer: ([m]) => [
        `The efficiency is ${two(m?.[0])} on average. Damaged frames and retransmitted data are only ${percent(m?.[2])} of what the link carries. But the link carries little: it is idle ${percent(1 - (m?.[1] ?? 0))} of the time.`,
        `One cell costs a frame, and a lost frame makes its sender wait until its timer expires: ${(m?.[3] ?? 0).toFixed(0)} times in ten seconds. While the buffer overflows, all five connections lose cells, so most of them wait at the same time.`,
      ],
      look: { variant: 0, text: "See the buffer overflow: frames that have lost a cell are hatched" },
    },
    {
      kind: "run",
      title: "Stop carrying damaged frames",
      text: [
        "Partial packet discard (PPD): once a frame has lost a cell, the switch refuses the rest of it. Early packet discard (EPD): while more than 800 cells wait, no new frame may start, so that frames that have started stay intact.",
      ],
      guess: {
        kind: "choice",
        question: "Which change helps efficiency?",
        choices: ["Neither: lost cells are lost", "Only EPD", "Both, considerably"],
        right: (m) => {
          const [tail, ppd, epd] = m.map((v) => v[0] ?? 0);
          const helps = (v: number | undefined): boolean => (v ?? 0) > 1.15 * (tail ?? 0);
          return [helps(ppd) && helps(epd) ? 2 : helps(epd) ? 1 : 0];
        },
      },
      variants: [
        { name: "tail drop", base: "lan-tail-drop" },
        { name: "PPD", base: "lan-ppd" },
        { name: "EPD", base: "lan-epd" },
      ],
      shown: [EFFICIENCY, FAIRNESS, CUT],
      seeds: 10,
      answer: (m, v) => {
        const tail = v[0]?.[0] ?? [];
        const range = Math.max(...tail) - Math.min(...tail);
        const gain = (m[1]?.[0] ?? 0) - (m[0]?.[0] ?? 0);
        return [
          `Tail drop ${two(m[0]?.[0])}, PPD ${two(m[1]?.[0])}, EPD ${two(m[2]?.[0])}. The link time wasted on useless cells does not explain the difference. The buffer space they occupy does: a full buffer has no room for whole frames of other connections, so more connections lose frames at the same time.`,
          "When timers expire under tail drop, 3.6 of the five connections time out together (mean of seeds 1 to 10), and the link is almost unused. Under PPD and EPD the number is 2.2, and the others continue to send.",
          `PPD even cuts more frames than tail drop, ${whole(m[1]?.[2])} instead of ${whole(m[0]?.[2])}, because the link is busier. EPD cuts only ${whole(m[2]?.[2])}, because it refuses whole frames.`,
          `Single runs of tail drop differ by up to ${two(range)}, more than its mean differs from PPD's (${two(gain)}). A single run proves nothing.`,
        ];
      },
      look: { variant: 2, text: "See EPD refuse whole frames, with the numbers it compared" },
    },
    {
      kind: "run",
      title: "Where to put the threshold",
      text: [
        "Above EPD's threshold no frame may start. The room above the threshold is for the remaining cells of frames that have started. The buffer has 1000 places.",
      ],
      guess: {
        kind: "choice",
        question: "Which threshold gives the best efficiency?",
        choices: THRESHOLDS.map((t) => `${String(t)} cells`),
        right: (_, v) => best(v, 0),
      },
      variants: THRESHOLDS.map((t) => ({
        name: `R = ${String(t)}`,
        base: "lan-epd",
        // Small thresholds need a unit: the checker would warn that a plain 100 may be meant as a percentage.
        changes: [{ path: ["port", "bottleneck", "policy", "epd", "threshold"], value: t < 200 ? `${String(t)} cells` : t }],
      })),
      shown: [EFFICIENCY, CUT],
      seeds: 10,
      answer: (m, v) => {
        const top = best(v, 0).map((i) => String(THRESHOLDS[i]));
        return [
          `${listed(top)} cells ${top.length === 1 ? "are best here" : "are the best here, and these runs cannot tell them apart"}. A low threshold wastes the buffer: a threshold of 100 refuses frames while 900 places are free, and the efficiency is ${two(m[0]?.[0])}.`,
          `The room above the threshold is for the remaining cells of frames that have started. With five senders these are at most five frames of twelve cells: fewer than 60 cells. A threshold of 900 leaves more room than that, and ${whole(m[5]?.[1])} frames are cut. A threshold of 980 leaves less, and frames are cut again: ${(m[6]?.[1] ?? 0).toFixed(1)} in ten seconds, too few to affect the efficiency. More senders would need more room.`,
        ];
      },
    },
  ],
};
