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
  lead: "Refuse frames of connections that hold more than their share. But how much more?",
  steps: [
    {
      kind: "read",
      title: "Who is over the share",
      text: [
        "EPD refuses the next frame once the buffer is nearly full, whoever sent it. Selective Drop also considers the sender: X cells from N connections are waiting, so a fair share is X / N.",
        "Above the threshold a frame is refused if its connection holds more than Z times the fair share. Z is the setting to tune: 0.8 refuses slightly below the fair share, 1 exactly at the share, and 1.2 slightly above it.",
      ],
    },
    {
      kind: "run",
      title: "Tune Z",
      text: ["Five sources, a buffer of 1000 cells, a threshold of 90 % of the buffer, and six values of Z."],
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
          `The worst is Z = ${named(worst)}. The best is ${named(top)}${unsure}.`,
          "With Z exactly 1, all connections reach their shares together. All are refused at the same moment, and all five timers expire at the same instant, every time. With a slightly lower or higher Z, some connections continue while others wait. The paper reports the same dip, 0.13: the open diamonds in the plot.",
        ];
      },
    },
    {
      kind: "run",
      title: "A share that shrinks",
      text: [
        "Fair Buffer Allocation (FBA) is like Selective Drop, but the share it tolerates shrinks as the buffer fills: it becomes stricter.",
      ],
      guess: {
        kind: "choice",
        question: "Which has the better efficiency here with Z = 0.8, Selective Drop or FBA?",
        choices: ["Selective Drop", "FBA", "Ten seeds show no difference"],
        right: (m, v) => [!differ(v, 1, 0, 0) ? 2 : (m[1]?.[0] ?? 0) > (m[0]?.[0] ?? 0) ? 1 : 0],
      },
      variants: [selectiveDrop(0.8), fba(0.8), fba(0.5), fba(0.2)],
      shown: [EFFICIENCY, FAIRNESS],
      seeds: 10,
      plane: true,
      answer: (m, v) => {
        const same = [2, 3].filter((i) => !differ(v, i, 0, 0)).map((i) => ["0.5", "0.2"][i - 2] ?? "");
        const unsure = same.length === 0 ? "" : ` FBA with Z = ${listed(same)} cannot be distinguished from Selective Drop.`;
        const runs = v[1]?.[0] ?? [];
        return [
          `Selective Drop ${two(m[0]?.[0])}, FBA ${two(m[1]?.[0])} with the same Z, ${two(m[2]?.[0])} with 0.5 and ${two(m[3]?.[0])} with 0.2.${unsure}`,
          `The paper reports FBA with Z = 0.8 twice, one run each: efficiency 0.88 in table 2 and 0.66 in table 5. The runs here range from ${two(Math.min(...runs))} to ${two(Math.max(...runs))}. That is how little a single run proves.`,
        ];
      },
    },
  ],
};
