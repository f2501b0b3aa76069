/** A memory shared by ports: one block divided by queue, with a mark at the threshold of each queue. */

import type { JSX } from "preact";
import type { MemoryView } from "../../engine/api.ts";
import { Prose } from "../parts/words.tsx";
import { describeMemory } from "./sentence.ts";

export function Memory(props: { readonly memory: MemoryView | null; readonly port: string }): JSX.Element | null {
  const { memory, port } = props;
  if (memory === null) {
    return null;
  }
  const share = (cells: number): string => `${String((100 * cells) / memory.cells)}%`;
  let end = 0;
  const parts = memory.queues.map(({ name, held, most }) => {
    const start = end;
    end += held;
    const kind = name === port || name.startsWith(`${port}, `) ? "own" : "other";
    return { name, kind, left: share(start), width: share(held), mark: share(Math.min(start + most, memory.cells)) };
  });
  // An empty queue does not appear in the block.
  const held = parts.filter(({ width }) => width !== "0%");
  return (
    <>
      <div class="memory" role="img" aria-label={describeMemory(memory)}>
        {held.map(({ name, kind, left, width }) => (
          <i key={name} class={kind} title={name} style={{ left, width }} />
        ))}
        {held.map(({ name, kind, mark }) =>
          mark === "NaN%" ? null : <b key={name} class={kind} title={`threshold of ${name}`} style={{ left: mark }} />,
        )}
      </div>
      <p class="small soft">
        <Prose text={describeMemory(memory)} /> Marks: how far each queue may grow.
      </p>
    </>
  );
}
