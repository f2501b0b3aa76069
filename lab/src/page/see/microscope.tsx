/** The cell microscope: a port's buffer cell by cell, oldest first, coloured by VC, with damaged frames hatched. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { BufferHistory, CellView } from "../../engine/api.ts";
import { drawings } from "../keep/files.ts";
import { colours } from "../state.ts";
import { count } from "../parts/format.ts";
import { Prose } from "../parts/words.tsx";
import * as lens from "./lens.ts";
import { describeCell } from "./sentence.ts";

/** Maximum number of squares; if there were more, they would be too small to see. */
const MOST = 40_000;
/** Buffers up to this size are drawn completely, including their free places. */
const WHOLE = 2_000;

/** Space available for the buffer, in CSS pixels. */
interface Room {
  readonly width: number;
  readonly height: number;
}

interface Grid {
  readonly side: number;
  readonly columns: number;
  readonly rows: number;
}

export function Microscope(props: {
  readonly history: BufferHistory;
  readonly step: number;
  /** CSS property of each VC's colour. */
  readonly colours: readonly string[];
  /** True if cells leave in order of arrival. */
  readonly inOrder: boolean;
}): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState<Room>({ width: 600, height: 320 });
  const [chosen, setChosen] = useState(-1);
  // A clicked cell stays chosen until the next step.
  const [clicked, setClicked] = useState(-1);
  const { history, step } = props;
  const cells = history.at(step);
  const most = largest(history);
  const places = Math.min(
    MOST,
    // Free places show whether the policy or a full buffer sets the limit. In a large buffer, drawing them would make
    // all squares too small.
    Number.isFinite(history.capacity) ? Math.min(history.capacity, Math.max(most, WHOLE)) : most,
  );
  const grid = layout(places, room);
  // The smallest squares may need more than the space. The lines below then move down.
  const beyond = grid.rows * grid.side - room.height;

  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const measure = (): void => {
      // The style sheet limits the height of the buffer.
      const height = Number.parseFloat(getComputedStyle(element).maxHeight);
      setRoom({ width: Math.max(160, element.clientWidth), height: Number.isFinite(height) ? height : 320 });
    };
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    addEventListener("resize", measure);
    return () => {
      resized.disconnect();
      removeEventListener("resize", measure);
    };
  }, []);

  useEffect(
    () => () => {
      drawings.delete("microscope");
    },
    [],
  );

  const scheme = colours.value;
  useEffect(() => {
    if (canvas.current !== null) {
      draw(canvas.current, cells, history, props.colours, grid, places, chosen);
      drawings.set("microscope", () => {
        const picture = document.createElement("canvas");
        draw(picture, cells, history, props.colours, grid, places, -1, 2);
        return picture;
      });
    }
  }, [history, step, room.width, room.height, chosen, scheme]);

  const placeAt = (event: MouseEvent): number => {
    const rect = canvas.current?.getBoundingClientRect();
    if (rect === undefined) {
      return -1;
    }
    const column = Math.floor((event.clientX - rect.left) / grid.side);
    const row = Math.floor((event.clientY - rect.top) / grid.side);
    const place = row * grid.columns + column;
    return column < grid.columns && place < cells.length ? place : -1;
  };
  const damaged = cells.reduce((sum, c) => sum + (c.damaged ? 1 : 0), 0);
  const spoken = chosen >= 0 && chosen < cells.length ? describeCell(history, step, chosen) : "";
  const losable = clicked === step && spoken !== "" ? lens.losable(chosen) : null;
  return (
    <div class="microscope">
      <div class="microscope-room" ref={box} style={beyond > 0 ? { marginBottom: `${String(beyond)}px` } : {}}>
      <canvas
        id="microscope"
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={
          `The buffer of ${history.port}: ${count(cells.length)} cells wait, ${count(damaged)} of them from damaged frames. ` +
          `Arrow keys choose a cell. ${spoken}`
        }
        onMouseMove={(event) => {
          if (clicked !== step) {
            setChosen(placeAt(event));
          }
        }}
        onClick={(event) => {
          const place = placeAt(event);
          setChosen(place);
          setClicked(place < 0 || place === chosen && clicked === step ? -1 : step);
        }}
        onKeyDown={(event) => {
          const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns }[event.key];
          if (by !== undefined) {
            event.preventDefault();
            setClicked(step);
            setChosen(Math.max(0, Math.min(cells.length - 1, chosen + by)));
          }
        }}
      />
      </div>
      <p class="microscope-count">
        <strong>{count(cells.length)}</strong> {cells.length === 1 ? "cell waits" : "cells wait"}
        {Number.isFinite(history.capacity) && ` in ${count(history.capacity)} places`},{" "}
        <strong>{count(damaged)}</strong> of them hatched
      </p>
      <p class="small soft microscope-cell" aria-live="polite">
        {spoken === "" ? (
          `Hatched cells belong to lost frames. ${props.inOrder ? "The oldest cell is top left." : "Cells do not leave in order of arrival."}`
        ) : (
          <Prose text={spoken} />
        )}
        {losable !== null && (
          <button type="button" class="small" disabled={lens.busy.value !== ""} onClick={() => void lens.lose(losable)}>
            Lose it on the link
          </button>
        )}
      </p>
    </div>
  );
}

const largestOf = new WeakMap<BufferHistory, number>();

function largest(history: BufferHistory): number {
  const known = largestOf.get(history);
  if (known !== undefined) {
    return known;
  }
  const most = history.steps.occupancy.reduce((a, b) => Math.max(a, b), history.at(0).length);
  largestOf.set(history, most);
  return most;
}

/** Returns the grid with the largest squares that fit into the space; the smallest squares may exceed its height. */
function layout(places: number, { width, height }: Room): Grid {
  for (let side = 24; side > 3; side -= 1) {
    const columns = Math.floor(width / side);
    const rows = Math.ceil(places / columns);
    if (rows * side <= height) {
      return { side, columns, rows };
    }
  }
  const columns = Math.floor(width / 3);
  return { side: 3, columns, rows: Math.ceil(places / columns) };
}

function draw(
  canvas: HTMLCanvasElement,
  cells: readonly CellView[],
  history: BufferHistory,
  colours: readonly string[],
  grid: Grid,
  places: number,
  chosen: number,
  ratio = devicePixelRatio,
): void {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const { side, columns, rows } = grid;
  canvas.width = Math.round(columns * side * ratio);
  canvas.height = Math.round(rows * side * ratio);
  canvas.style.width = `${String(columns * side)}px`;
  canvas.style.height = `${String(rows * side)}px`;
  const context = canvas.getContext("2d");
  if (context === null) {
    return;
  }
  context.scale(ratio, ratio);
  const gap = side >= 6 ? 1 : side >= 4 ? 0.5 : 0;
  const size = side - gap;
  const at = (place: number): readonly [number, number] => [
    (place % columns) * side,
    Math.floor(place / columns) * side,
  ];
  context.fillStyle = colour("--sunken");
  for (let place = cells.length; place < places; place += 1) {
    const [x, y] = at(place);
    context.fillRect(x, y, size, size);
  }
  const fills = history.vcs.map((_, i) => colour(colours[i] ?? "--ink-soft"));
  cells.slice(0, MOST).forEach((cell, place) => {
    const [x, y] = at(place);
    context.fillStyle = fills[cell.vc] ?? colour("--ink-soft");
    // Alternating opacity separates consecutive frames.
    const number = history.frames[cell.frame]?.number ?? 0;
    context.globalAlpha = number % 2 === 0 ? 1 : 0.72;
    context.fillRect(x, y, size, size);
  });
  context.globalAlpha = 1;
  context.strokeStyle = colour("--paper");
  context.lineWidth = Math.max(1, side / 6);
  context.beginPath();
  cells.slice(0, MOST).forEach((cell, place) => {
    if (cell.damaged) {
      const [x, y] = at(place);
      context.moveTo(x, y + size);
      context.lineTo(x + size, y);
      if (side >= 9) {
        context.moveTo(x, y + size / 2);
        context.lineTo(x + size / 2, y);
        context.moveTo(x + size / 2, y + size);
        context.lineTo(x + size, y + size / 2);
      }
    }
  });
  context.stroke();
  // Mark the last cell of a frame with a dark edge.
  context.fillStyle = colour("--ink");
  cells.slice(0, MOST).forEach((cell, place) => {
    if (cell.last && side >= 5) {
      const [x, y] = at(place);
      context.fillRect(x + size - 1.5, y, 1.5, size);
    }
  });
  if (chosen >= 0 && chosen < cells.length) {
    const [x, y] = at(chosen);
    context.strokeStyle = colour("--focus");
    context.lineWidth = 2;
    context.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
  }
}
