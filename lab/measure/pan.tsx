/** A page with one plot of a million points. `measure.mjs` moves its view frame by frame. */

import { signal } from "@preact/signals";
import { render, type JSX } from "preact";
import { line } from "../src/page/see/paint.ts";
import { Plot } from "../src/page/see/plot.tsx";
import "../src/page/styles/index.css";

const POINTS = 1_000_000;
const SECONDS = 10;

declare global {
  interface Window {
    /** Moves the view in every frame for this long. Returns the milliseconds between frames. */
    pan: (seconds: number) => Promise<number[]>;
    /** Duration of each repaint in milliseconds. */
    painted: number[];
  }
}

const times = Float64Array.from({ length: POINTS }, (_, i) => (i * SECONDS) / POINTS);
/** A queue that fills and drains, with peaks of single points. */
const values = Float64Array.from({ length: POINTS }, (_, i) => ((i * 7919) % 1009) * (0.5 + 0.5 * Math.sin(i / 30_000)));
const all: readonly [number, number] = [0, SECONDS];
/** Nine tenths of the points are in view. */
const WIDTH = 0.9 * SECONDS;
const view = signal<readonly [number, number]>([0, WIDTH]);

window.painted = [];
window.pan = (seconds) =>
  new Promise((resolve) => {
    const gaps: number[] = [];
    let before = performance.now();
    const end = before + 1000 * seconds;
    const frame = (now: number): void => {
      gaps.push(now - before);
      before = now;
      if (now >= end) {
        resolve(gaps.slice(1));
        return;
      }
      const from = ((SECONDS - WIDTH) * (1 + Math.sin(now / 500))) / 2;
      view.value = [from, from + WIDTH];
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });

function Million(): JSX.Element {
  return (
    <Plot
      id="million"
      label="A million points"
      unit="cells"
      height={260}
      view={view.value}
      all={all}
      most={1009}
      now={Number.NaN}
      paint={(c) => {
        const begun = performance.now();
        line(c, times, values, "--accent", false);
        window.painted.push(performance.now() - begun);
      }}
      onView={(v) => {
        view.value = v;
      }}
      onPick={() => undefined}
    />
  );
}

const app = document.getElementById("app");
if (app !== null) {
  app.replaceChildren();
  render(<Million />, app);
}
