/** A frame of twelve cells. Clicking a cell marks it as lost. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

const CELLS = 12;

export function FrameToy(): JSX.Element {
  const [lost, setLost] = useState<ReadonlySet<number>>(new Set());
  const whole = lost.size === 0;
  return (
    <div class="toy">
      <div class="toy-cells" role="group" aria-label="The cells of a frame: click one to lose it">
        {Array.from({ length: CELLS }, (_, i) => (
          <button
            type="button"
            key={i}
            class={`toy-cell${lost.has(i) ? " lost" : whole ? "" : " dead"}`}
            aria-pressed={lost.has(i)}
            aria-label={`Cell ${String(i + 1)}`}
            onClick={() => {
              const after = new Set(lost);
              if (!after.delete(i)) {
                after.add(i);
              }
              setLost(after);
            }}
          >
            {i + 1}
          </button>
        ))}
      </div>
      <p aria-live="polite">
        {whole ? (
          <>
            All twelve cells arrive: the receiver gets all <strong>512 bytes</strong> of the segment.
          </>
        ) : (
          <>
            {lost.size === 1 ? "One cell is lost" : `${String(lost.size)} cells are lost`}. The other{" "}
            {CELLS - lost.size} cross every link, and the receiver discards them. It gets{" "}
            <strong>0 bytes</strong>, and all 512 must be retransmitted.
          </>
        )}
      </p>
    </div>
  );
}
