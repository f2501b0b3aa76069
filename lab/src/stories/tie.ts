import { EFFICIENCY, FAIRNESS, two, type Story, type Variant } from "./story.ts";

function order(name: string, value: string): Variant {
  return { name, base: "lan-tail-drop", changes: [{ path: ["switch", "tie_order"], value }] };
}

export const tie: Story = {
  id: "tie",
  title: "The tie that takes all",
  lead: "Five cells arrive at the same instant at a buffer with one free place. Who gets it?",
  steps: [
    {
      kind: "read",
      title: "Somebody has to be first",
      text: [
        "Links of equal speed are like synchronized clocks: cells from several sources reach the switch at the same instant, again and again. If only one place is free, one cell gets it and the others are lost.",
        "Switches and simulators must decide this somehow, and their documentation rarely says how. It looks like an implementation detail.",
      ],
    },
    {
      kind: "run",
      title: "Always the first",
      text: [
        "Let the first input always go first. The senders are otherwise identical. Fairness is 1 if all get the same, and 0.2 if one of five gets everything.",
      ],
      guess: {
        kind: "number",
        question: "What is the fairness if the same input always goes first?",
        min: 0.2,
        max: 1,
        step: 0.01,
        variant: 0,
        measure: 1,
      },
      variants: [order("always the first", "fixed")],
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: ([m]) => [
        `Efficiency ${two(m?.[0])}, fairness ${two(m?.[1])}: one source gets everything, and the link looks perfect.`,
        "Judged by efficiency alone, this would be the best policy of all. That is why two measures are needed.",
      ],
      look: { variant: 0, text: "See whose cells fill the buffer" },
    },
    {
      kind: "run",
      title: "In turns, or at random",
      text: ["Now the inputs take turns, or each tie is broken at random. Nothing else changes: the switch and TCP stay the same."],
      guess: {
        kind: "choice",
        question: "What happens to efficiency when the inputs share the wins?",
        choices: ["It stays as it is", "It falls to less than half", "It rises"],
        right: (m) => {
          const [fixed, turns, random] = m.map((v) => v[0] ?? 0);
          const after = ((turns ?? 0) + (random ?? 0)) / 2;
          return [after > 1.05 * (fixed ?? 0) ? 2 : after < 0.5 * (fixed ?? 0) ? 1 : 0];
        },
      },
      variants: [order("always the first", "fixed"), order("in turn", "rotating"), order("at random", "random")],
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: (m) => [
        `Efficiency and fairness are ${two(m[1]?.[0])} and ${two(m[1]?.[1])} in turn, and ${two(m[2]?.[0])} and ${two(m[2]?.[1])} at random. All five lose something while the buffer overflows, so all five wait until their timers expire, and the link is idle.`,
        "Taking turns leaves nothing to chance: ten seeds give the same run ten times.",
        "Breaking ties is a policy of its own. A result that does not report how ties are broken cannot be compared with another.",
      ],
    },
  ],
};
