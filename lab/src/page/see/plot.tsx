/** A plot over time. uPlot draws the axes and handles cursor and zoom; a painter draws all points in view. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { drawings } from "../keep/files.ts";
import { colours } from "../state.ts";
import { time } from "../parts/format.ts";

/** Drawing context for a painter: clipped to the plot, with the plot's scales. */
export interface Canvas {
  readonly context: CanvasRenderingContext2D;
  /** Returns the pixel position of a time or a value. */
  readonly x: (time: number) => number;
  readonly y: (value: number) => number;
  readonly from: number;
  readonly to: number;
  readonly columns: number;
  readonly bottom: number;
  readonly top: number;
  /** Device pixels per CSS pixel. */
  readonly scale: number;
  readonly colour: (name: string) => string;
}

export interface PlotProps {
  readonly id: string;
  /** Description of the plot, also for screen readers. */
  readonly label: string;
  readonly height: number;
  readonly unit: string;
  /** Visible time range, and the full range. */
  readonly view: readonly [number, number];
  readonly all: readonly [number, number];
  /** Upper end of the value axis. */
  readonly most: number;
  readonly least?: number;
  /** The current instant, or NaN. */
  readonly now: number;
  readonly paint: (canvas: Canvas) => void;
  /** Called when the user selects a time range. */
  readonly onView: (view: readonly [number, number]) => void;
  /** Called when the user selects an instant. */
  readonly onPick: (time: number) => void;
  /** Range adjusted by keys and the wheel until Enter calls `onView`. If absent, keys and wheel change the view
   * directly. */
  readonly stretch?: {
    readonly view: readonly [number, number];
    readonly onChange: (view: readonly [number, number]) => void;
  };
  /** Name of the group of plots that share their cursor. */
  readonly sync?: string;
}

const AXIS = 58;
/** Placeholder data for uPlot: the painter draws the contents. */
const EMPTY: uPlot.AlignedData = [
  [0, 1],
  [null, null],
];

export function Plot(props: PlotProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const scheme = colours.value;

  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const made = new uPlot(options(element, latest), EMPTY, element);
    plot.current = made;
    drawings.set(props.id, () => picture(element, latest.current));
    const resized = new ResizeObserver(() => {
      made.setSize({ width: Math.max(200, element.clientWidth), height: latest.current.height });
    });
    resized.observe(element);
    // A click without a drag selects an instant.
    let down = Number.NaN;
    const pressed = (event: MouseEvent): void => {
      down = event.clientX;
    };
    const released = (event: MouseEvent): void => {
      if (Math.abs(event.clientX - down) < 4) {
        const left = event.clientX - made.over.getBoundingClientRect().left;
        latest.current.onPick(made.posToVal(left, "x"));
      }
    };
    const wheel = (event: WheelEvent): void => {
      if (!event.shiftKey && !event.ctrlKey) {
        return;
      }
      event.preventDefault();
      const left = event.clientX - made.over.getBoundingClientRect().left;
      const amount = Math.sign(event.deltaY === 0 ? event.deltaX : event.deltaY);
      const { view, onChange } = moved(latest.current);
      const of = { view, all: latest.current.all };
      const about = latest.current.stretch === undefined ? made.posToVal(left, "x") : (view[0] + view[1]) / 2;
      onChange(event.ctrlKey ? zoomed(of, amount, about) : panned(of, amount));
    };
    made.over.addEventListener("mousedown", pressed);
    made.over.addEventListener("mouseup", released);
    made.over.addEventListener("wheel", wheel, { passive: false });
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
      drawings.delete(props.id);
    };
    // The axes' colours are fixed at creation, so new colours need a new plot.
  }, [scheme]);

  const [from, to] = props.view;
  useEffect(() => {
    if (plot.current !== null) {
      draw(plot.current, props);
    }
  });

  return (
    <div
      class="plot"
      id={props.id}
      ref={box}
      role="group"
      tabIndex={0}
      aria-label={
        props.stretch === undefined
          ? `${props.label}, from ${time(from)} to ${time(to)}. Plus and minus zoom, arrow keys move.`
          : `${props.label}, from ${time(from)} to ${time(to)}. The selection is ${time(props.stretch.view[0])} to ` +
            `${time(props.stretch.view[1])}: arrow keys move it, plus and minus change its length, Enter shows it.`
      }
      onKeyDown={(event) => {
        const { view: now, onChange } = moved(props);
        const view = keyed(event.key, { view: now, all: props.all });
        if (view !== null) {
          event.preventDefault();
          onChange(view);
        } else if (event.key === "Enter" && props.stretch !== undefined) {
          event.preventDefault();
          props.onView(now);
        }
      }}
    />
  );
}

/** Draws a plot with the scales given by its properties. */
function draw(u: uPlot, props: PlotProps): void {
  // A batch redraws at its end, even if no scale has changed.
  u.batch(() => {
    u.setScale("x", { min: props.view[0], max: props.view[1] });
    u.setScale("y", { min: props.least ?? 0, max: props.most });
  });
}

/** Draws a plot on a new canvas, without the line at the current instant, at two pixels per CSS pixel. */
function picture(element: HTMLElement, props: PlotProps): HTMLCanvasElement {
  const current = { ...props, now: Number.NaN };
  const made = new uPlot(options(element, { current }, 2 / devicePixelRatio), EMPTY, document.createElement("div"));
  draw(made, current);
  // uPlot draws again after this task, possibly in other colours. So copy the canvas now.
  const copy = document.createElement("canvas");
  copy.width = made.ctx.canvas.width;
  copy.height = made.ctx.canvas.height;
  copy.getContext("2d")?.drawImage(made.ctx.canvas, 0, 0);
  made.destroy();
  return copy;
}

/** Returns the range that keys and the wheel change: the selection, or the view if there is no selection. */
function moved(props: PlotProps): NonNullable<PlotProps["stretch"]> {
  return props.stretch ?? { view: props.view, onChange: props.onView };
}

/** Returns the view that a key selects; null if the key has no function. */
export function keyed(key: string, props: Pick<PlotProps, "view" | "all">): readonly [number, number] | null {
  const middle = (props.view[0] + props.view[1]) / 2;
  switch (key) {
    case "+":
    case "=":
      return zoomed(props, -1, middle);
    case "-":
      return zoomed(props, 1, middle);
    case "ArrowLeft":
      return panned(props, -1);
    case "ArrowRight":
      return panned(props, 1);
    case "0":
      return props.all;
    default:
      return null;
  }
}

/** Returns the view made wider (1) or narrower (-1) around an instant. */
export function zoomed(
  props: { readonly view: readonly [number, number]; readonly all: readonly [number, number] },
  direction: number,
  about: number,
): readonly [number, number] {
  const factor = direction > 0 ? 1.5 : 1 / 1.5;
  const [from, to] = props.view;
  const least = 1e-7;
  const width = Math.min(props.all[1] - props.all[0], Math.max(least, (to - from) * factor));
  const start = about - ((about - from) / (to - from)) * width;
  return within(start, width, props.all);
}

/** Returns the view moved by a fraction of its width. */
export function panned(
  props: { readonly view: readonly [number, number]; readonly all: readonly [number, number] },
  direction: number,
): readonly [number, number] {
  const width = props.view[1] - props.view[0];
  return within(props.view[0] + 0.15 * direction * width, width, props.all);
}

function within(start: number, width: number, all: readonly [number, number]): readonly [number, number] {
  const from = Math.max(all[0], Math.min(start, all[1] - width));
  return [from, Math.min(all[1], from + width)];
}

/** Returns uPlot's options, for a plot `factor` times as large as on the page. */
function options(element: HTMLElement, latest: { readonly current: PlotProps }, factor = 1): uPlot.Options {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const font = `${String(Math.round(12 * factor))}px ${colour("--sans")}`;
  const axis = {
    stroke: colour("--ink-soft"),
    font,
    gap: 5 * factor,
    grid: { stroke: colour("--line"), width: factor },
    ticks: { show: false },
  };
  const { sync, unit } = latest.current;
  return {
    width: factor * Math.max(200, element.clientWidth),
    height: factor * latest.current.height,
    // Room for the second half of the last tick label, which extends beyond the axis.
    padding: [null, 25 * factor, null, null],
    legend: { show: false },
    scales: { x: { time: false, auto: false }, y: { auto: false } },
    series: [{}, { show: false }],
    axes: [
      { ...axis, space: 90 * factor, size: 28 * factor, values: (_, ticks) => ticks.map((t) => time(t)) },
      { ...axis, space: 30 * factor, size: AXIS * factor, label: unit, labelFont: font, labelSize: 18 * factor, labelGap: 0 },
    ],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      ...(sync === undefined ? {} : { sync: { key: sync, setSeries: false } }),
    },
    hooks: {
      setSelect: [
        (u) => {
          if (u.select.width > 3) {
            latest.current.onView([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
          }
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      draw: [
        (u) => {
          paint(u, latest.current, colour, factor * devicePixelRatio);
        },
      ],
    },
  };
}

function paint(u: uPlot, props: PlotProps, colour: (name: string) => string, scale: number): void {
  const { ctx: context, bbox } = u;
  const x = linear(u, "x", props.view[0], props.view[1]);
  const y = linear(u, "y", props.least ?? 0, props.most);
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  props.paint({
    context,
    x,
    y,
    from: props.view[0],
    to: props.view[1],
    columns: Math.max(1, Math.round(bbox.width)),
    top: bbox.top,
    bottom: bbox.top + bbox.height,
    scale,
    colour,
  });
  if (props.now >= props.view[0] && props.now <= props.view[1]) {
    context.strokeStyle = colour("--focus");
    context.lineWidth = 2 * scale;
    context.beginPath();
    context.moveTo(x(props.now), bbox.top);
    context.lineTo(x(props.now), bbox.top + bbox.height);
    context.stroke();
  }
  context.restore();
}

/** Returns a linear map from values to pixels, which is faster than uPlot's for thousands of points. */
function linear(u: uPlot, scale: "x" | "y", low: number, high: number): (value: number) => number {
  const [from, to] = [u.valToPos(low, scale, true), u.valToPos(high, scale, true)];
  const each = (to - from) / (high - low);
  return (value) => from + (value - low) * each;
}
