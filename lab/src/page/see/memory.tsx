/** A memory that ports share: one block divided by queue, with a mark at the threshold of each queue. */

import type { JSX } from "preact";
import type { MemoryView } from "../../engine/api.ts";
import { flowColour } from "./paint.ts";
import { describeMemory } from "./sentence.ts";

export function Memory(props: { readonly memory: MemoryView | null }): JSX.Element | null {
  const { memory } = props;
  if (memory === null) {
    return null;
  }
  const share = (cells: number): string => `${String((100 * cells) / memory.cells)}%`;
  let end = 0;
  const parts = memory.queues.map(({ name, held, most }, i) => {
    const start = end;
    end += held;
    const colour = `var(${flowColour(i)})`;
    return { name, colour, left: share(start), width: share(held), mark: share(Math.min(start + most, memory.cells)) };
  });
  const text = describeMemory(memory);
  return (
    <>
      <div class="memory" role="img" aria-label={text}>
        {parts.map(({ name, colour, left, width }) => (
          <i key={name} title={name} style={{ left, width, background: colour }} />
        ))}
        {parts.map(({ name, colour, width, mark }) =>
          // An empty queue has no place in the block.
          mark !== "NaN%" && width !== "0%" ? <b key={name} style={{ left: mark, color: colour }} /> : null,
        )}
      </div>
      <p class="small soft">{text} Marks are thresholds.</p>
    </>
  );
}
