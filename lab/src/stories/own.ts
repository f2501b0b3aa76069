import type { Story } from "./story.ts";

export const own: Story = {
  id: "own",
  title: "A policy of your own",
  lead: "Write a one-line formula and compare its results with the classic policies.",
  steps: [
    {
      kind: "free",
      title: "Which frames may start?",
      text: [
        "A frame may start if your condition holds. X cells are waiting, Y of them belong to the frame's own connection, N connections have cells waiting, and K is the size of the buffer. For example, X < 0.8 * K is EPD.",
        "Your policy runs with the same seeds as the classics. Can you beat all of them in both efficiency and fairness?",
      ],
    },
  ],
};
