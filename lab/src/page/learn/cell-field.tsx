/** Animates the first milliseconds of a run: every cell in a switch's buffer, simulated when the page opens. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { BufferHistory } from "../../engine/api.ts";
import { count } from "../parts/format.ts";
import { colours, engine, scenarios } from "../state.ts";

/** Tail drop with five TCPs: the buffer fills, overflows and drains within nine milliseconds. */
const SCENARIO = "lan-tail-drop";
const SEED = 1;
const END_S = 0.0088;
/** Duration of one playback and of the pause after it, in seconds. */
const PASS_S = 15;
const PAUSE_S = 3;
/**
 * Simulated start time of the first playback, with a half-full buffer, and time of the still picture, with an overflow.
 */
const FIRST_S = 0.0016;
const STILL_S = 0.0042;

const COLUMNS = 40;
const ROWS = 25;

interface Field {
  readonly history: BufferHistory;
  /** Number of cells that have left the buffer after each step. */
  readonly departures: Int32Array;
}

export function CellField(): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [field, setField] = useState<Field | null>(null);
  const [isCalm] = useState(() => matchMedia("(prefers-reduced-motion: reduce)").matches);
  const [isPlaying, setPlaying] = useState(!isCalm);
  const [shown, setShown] = useState<Shown>({ time: 0, cells: 0, damaged: 0 });
  const at = useRef(isCalm ? STILL_S : FIRST_S);

  useEffect(() => {
    let current = true;
    void engine.value
      ?.buffer(scenarios.value[SCENARIO] ?? "", SEED, "bottleneck", 0, END_S)
      .then((history) => {
        if (current) {
          setField({ history, departures: departed(history) });
        }
      })
      // The page also works without this picture.
      .catch(() => undefined);
    return () => {
      current = false;
    };
  }, [engine.value]);

  const scheme = colours.value;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) {
      return undefined;
    }
    const draw = (): void => {
      const time = Math.min(at.current, END_S);
      setShown(paint(element, field, time));
    };
    draw();
    const resized = new ResizeObserver(draw);
    resized.observe(element);
    let frame = 0;
    let before = performance.now();
    const tick = (now: number): void => {
      frame = requestAnimationFrame(tick);
      // About 25 frames per second are enough, and leave processor time for the simulator.
      if (now - before < 38) {
        return;
      }
      at.current += (Math.min(now - before, 200) / 1000 / PASS_S) * END_S;
      if (at.current > END_S * (1 + PAUSE_S / PASS_S)) {
        at.current = 0;
      }
      before = now;
      draw();
    };
    if (isPlaying && field !== null) {
      frame = requestAnimationFrame(tick);
    }
    return () => {
      cancelAnimationFrame(frame);
      resized.disconnect();
    };
  }, [field, isPlaying, scheme]);

  return (
    <figure class="cell-field" data-ready={field !== null}>
      <canvas
        ref={canvas}
        role="img"
        aria-label="The buffer of a switch with room for 1000 cells. Cells of five connections fill it. When it overflows, more and more cells become hatched, because their frames have lost a cell. Then it drains."
      />
      <figcaption class="small">
        <span>
          <strong>A switch buffer, cell by cell.</strong> {caption(shown)}
        </span>
        {!isCalm && (
          <button
            type="button"
            class="quiet small"
            onClick={() => {
              setPlaying(!isPlaying);
            }}
          >
            {isPlaying ? "Pause" : "Play"}
            <span class="unseen"> the animation</span>
          </button>
        )}
      </figcaption>
    </figure>
  );
}

interface Shown {
  readonly time: number;
  readonly cells: number;
  readonly damaged: number;
}

function caption({ time, cells, damaged }: Shown): string {
  const ms = `${(1000 * time).toFixed(1)} ms`;
  if (cells === 0) {
    return time < END_S / 2 ? "Five TCP connections start." : `${ms}: the buffer is empty. All five senders wait for a timer.`;
  }
  const waiting = `${ms}: ${count(cells)} cells wait`;
  return damaged === 0 ? `${waiting}.` : `${waiting}, ${count(damaged)} from damaged frames (hatched).`;
}

function departed(history: BufferHistory): Int32Array {
  const { kinds, steps } = history;
  const leaves = ["departed", "pushed_out", "dropped"].map((kind) => kinds.indexOf(kind as (typeof kinds)[number]));
  const sums = new Int32Array(history.length + 1);
  for (let step = 0; step < history.length; step += 1) {
    sums[step + 1] = (sums[step] ?? 0) + (leaves.includes(steps.kind[step] ?? -1) ? 1 : 0);
  }
  return sums;
}

/** Draws the buffer at an instant. Each cell stays in its place from arrival to departure. */
function paint(canvas: HTMLCanvasElement, field: Field | null, time: number): Shown {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio;
  const side = Math.floor((canvas.clientWidth * ratio) / COLUMNS);
  if (context === null || side < 1) {
    return { time, cells: 0, damaged: 0 };
  }
  canvas.width = side * COLUMNS;
  canvas.height = side * ROWS;
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const size = side - Math.max(1, Math.round(side / 9));
  const place = (slot: number): readonly [number, number] => [
    (slot % COLUMNS) * side,
    Math.floor(slot / COLUMNS) * side,
  ];
  context.fillStyle = colour("--line");
  context.globalAlpha = 0.55;
  for (let slot = 0; slot < COLUMNS * ROWS; slot += 1) {
    context.fillRect(...place(slot), size, size);
  }
  context.globalAlpha = 1;
  if (field === null) {
    return { time, cells: 0, damaged: 0 };
  }
  const { history, departures } = field;
  const step = history.stepAt(time);
  const cells = history.at(step);
  const left = departures[step] ?? 0;
  const fills = history.vcs.map((_, vc) => colour(`--vc-${String((vc % 8) + 1)}`));
  cells.forEach((cell, i) => {
    context.fillStyle = fills[cell.vc] ?? "";
    context.fillRect(...place((left + i) % (COLUMNS * ROWS)), size, size);
  });
  context.strokeStyle = colour("--paper");
  context.lineWidth = Math.max(1, side / 6);
  context.beginPath();
  let damaged = 0;
  cells.forEach((cell, i) => {
    if (cell.damaged) {
      damaged += 1;
      const [x, y] = place((left + i) % (COLUMNS * ROWS));
      context.moveTo(x, y + size);
      context.lineTo(x + size, y);
      context.moveTo(x, y + size / 2);
      context.lineTo(x + size / 2, y);
      context.moveTo(x + size / 2, y + size);
      context.lineTo(x + size, y + size / 2);
    }
  });
  context.stroke();
  return { time, cells: cells.length, damaged };
}
