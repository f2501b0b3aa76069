import type { Story } from "./story.ts";

export const own: Story = {
  id: "own",
  title: "A policy of your own",
  lead: "Write a line of formula and put it among the clouds of the classics.",
  steps: [
    {
      kind: "free",
      title: "Which frames may start?",
      text: [
        "A frame may start when your condition holds. X cells wait, Y of them are of the frame's own connection, N connections have some, and K is the room. For example X < 0.8 * K is EPD.",
        "It runs beside the classics with the same seeds. Can you be to the right of and above all of them?",
      ],
    },
  ],
};
