import type { Answer } from "../engine/api.ts";
import { EFFICIENCY, FAIRNESS, atBottleneck, best, two, whole, type Shown, type Story, type Variant } from "./story.ts";

const SWITCH_LOSS: Shown = {
  label: "Cells discarded or lost in the switch",
  value: (a) => atBottleneck(a, "lost_cells") + atBottleneck(a, "discarded_cells"),
  most: 15_000,
  digits: 0,
};
const EDGE_LOSS: Shown = {
  label: "Cells discarded or lost at the edge, all ports together",
  value: (a: Answer) =>
    a.ports
      .filter((p) => p.name.startsWith("edge"))
      .reduce((sum, p) => sum + Number(p["lost_cells"]) + Number(p["discarded_cells"]), 0),
  most: 15_000,
  digits: 0,
};
const QUEUE: Shown = {
  label: "Largest queue in the switch, cells",
  value: (a) => atBottleneck(a, "max_queue_cells"),
  most: 1000,
  digits: 0,
};

const UBR: Variant = { name: "UBR with EPD", base: "internetwork-ubr-epd" };
const ABR: Variant = { name: "ABR, explicit rates", base: "internetwork-abr-er" };
const ADA: Variant = { name: "ABR, adaptive discard", base: "internetwork-abr-ada" };

export const edge: Story = {
  id: "edge",
  title: "Moving the loss to the edge",
  lead: "Tell the sources how fast they may send, and the switch loses nothing. Where does the excess go?",
  steps: [
    {
      kind: "read",
      title: "An ATM network in the middle",
      text: [
        "Two IP networks are joined by an ATM network. At its border are edge devices, which receive whole packets and send them as cells.",
        "Under UBR an edge device sends as fast as it can, and the switch discards the excess. Under ABR the switch writes the rate at which each source may send into control cells. TCP does not know about these rates: it still sends until something is lost.",
      ],
    },
    {
      kind: "run",
      title: "Two ways to say no",
      text: ["The same five connections. First UBR, with EPD in the switch; then ABR, with explicit rates."],
      guess: {
        kind: "choice",
        question: "Under ABR with explicit rates, where are cells lost?",
        choices: ["In the switch, as before", "At the edge", "Nowhere: the rates prevent it"],
        right: (m) => {
          const [inSwitch = 0, atEdge = 0] = m[1] ?? [];
          return [inSwitch > atEdge ? 0 : atEdge > 0 ? 1 : 2];
        },
      },
      variants: [UBR, ABR],
      shown: [SWITCH_LOSS, EDGE_LOSS, QUEUE, EFFICIENCY, FAIRNESS],
      seeds: 5,
      answer: (m) => [
        `UBR: ${whole(m[0]?.[0])} cells in the switch, ${whole(m[0]?.[1])} at the edge. ABR: ${whole(m[1]?.[0])} in the switch, ${whole(m[1]?.[1])} at the edge; its largest queue in the switch is ${whole(m[1]?.[2])} cells instead of ${whole(m[0]?.[2])}.`,
        "TCP fills whatever is in front of it. ABR has not removed the loss. It has moved it to the edge, where memory is cheap.",
      ],
      look: { variant: 1, text: "See the switch's short queue under ABR" },
    },
    {
      kind: "run",
      title: "Drop early, at the edge",
      text: [
        "Adaptive discard drops single packets at the edge before the buffer there overflows. The further the rate has fallen, the more packets it drops.",
      ],
      guess: {
        kind: "choice",
        question: "Which of the three is the fairest?",
        choices: ["UBR with EPD", "ABR with a plain buffer at the edge", "ABR with adaptive discard"],
        right: (_, v) => best(v, 3),
      },
      variants: [UBR, ABR, ADA],
      shown: [SWITCH_LOSS, EDGE_LOSS, EFFICIENCY, FAIRNESS],
      seeds: 5,
      plane: true,
      answer: (m) => [
        `Fairness: UBR ${two(m[0]?.[3])}, ABR ${two(m[1]?.[3])}, with adaptive discard ${two(m[2]?.[3])}. Efficiency: ${two(m[0]?.[2])}, ${two(m[1]?.[2])} and ${two(m[2]?.[2])}.`,
        "Where would you put the memory: in one fast switch that all connections share, or in many slow edge devices? Change the two buffers under “Run” and see what each cell of memory buys.",
      ],
    },
  ],
};
