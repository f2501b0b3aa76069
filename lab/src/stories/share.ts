import { EFFICIENCY, FAIRNESS, best, differ, listed, two, type Story, type Variant } from "./story.ts";

const LOAD_RATIOS = [0.2, 0.5, 0.8, 0.95, 1, 1.2] as const;

function selectiveDrop(z: number): Variant {
  return {
    name: `Z = ${String(z)}`,
    base: "lan-selective-drop",
    changes: [{ path: ["port", "bottleneck", "policy", "selective_drop", "z"], value: z }],
  };
}

function fba(z: number): Variant {
  return {
    name: `FBA, Z = ${String(z)}`,
    base: "lan-selective-drop",
    changes: [{ path: ["port", "bottleneck", "policy"], value: { fba: { threshold: 0.9, z } } }],
  };
}

export const share: Story = {
  id: "share",
  title: "A fair share",
  lead: "Refuse frames of those who hold more than their share. How much more?",
  steps: [
    {
      kind: "read",
      title: "Who is over the share",
      text: [
        "EPD refuses whoever comes next once the buffer is nearly full. Selective Drop looks at who it is: X cells wait, N connections have some of them, so a fair share is X / N.",
        "Above the threshold a frame is refused if its connection holds more than Z times the fair share. Z is the knob: 0.8 refuses a little before the share is reached, 1 exactly at it, 1.2 a little later.",
      ],
    },
    {
      kind: "run",
      title: "Turn Z",
      text: ["Five sources, a buffer of 1000 cells, a threshold of 0.9 of it. Six values of Z."],
      guess: {
        kind: "choice",
        question: "Which value of Z is the worst for efficiency?",
        choices: LOAD_RATIOS.map((z) => `Z = ${String(z)}`),
        right: (_, v) => best(v, 0, -1),
      },
      variants: LOAD_RATIOS.map(selectiveDrop),
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: (m, v) => {
        const named = (places: readonly number[]): string =>
          listed(places.map((i) => `${String(LOAD_RATIOS[i])} (${two(m[i]?.[0])})`));
        const [worst, top] = [best(v, 0, -1), best(v, 0)];
        const unsure = top.length > 1 ? ", which these runs cannot tell apart" : "";
        return [
          `Worst is Z = ${named(worst)}; best is ${named(top)}${unsure}.`,
          "At exactly one, all connections stand at their shares together: all are refused at the same moment, and all five timers expire at the same instant, every time. A little below or above, some continue while others wait. The paper prints the same hole, 0.13: the open diamonds on the plane.",
        ];
      },
    },
    {
      kind: "run",
      title: "A share that shrinks",
      text: [
        "Fair Buffer Allocation (FBA) is like Selective Drop, but the share it tolerates shrinks as the buffer fills: it begins mildly and ends strictly.",
      ],
      guess: {
        kind: "choice",
        question: "Which has the better efficiency here, Selective Drop or FBA, both with Z = 0.8?",
        choices: ["Selective Drop", "FBA", "No difference that ten seeds can show"],
        right: (m, v) => [!differ(v, 1, 0, 0) ? 2 : (m[1]?.[0] ?? 0) > (m[0]?.[0] ?? 0) ? 1 : 0],
      },
      variants: [selectiveDrop(0.8), fba(0.8), fba(0.5), fba(0.2)],
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: (m, v) => {
        const same = [2, 3].filter((i) => !differ(v, i, 0, 0)).map((i) => ["0.5", "0.2"][i - 2] ?? "");
        const unsure = same.length === 0 ? "" : ` FBA with Z = ${listed(same)} cannot be told apart from Selective Drop.`;
        const runs = v[1]?.[0] ?? [];
        return [
          `Selective Drop ${two(m[0]?.[0])}, FBA ${two(m[1]?.[0])} with the same Z, ${two(m[2]?.[0])} with 0.5 and ${two(m[3]?.[0])} with 0.2.${unsure}`,
          `The paper prints FBA with Z = 0.8 twice, as one run each: efficiency 0.88 in its table 2, 0.66 in its table 5. Runs here lie between ${two(Math.min(...runs))} and ${two(Math.max(...runs))}. One run says as little as that.`,
        ];
      },
    },
  ],
};
