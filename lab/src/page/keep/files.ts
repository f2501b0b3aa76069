/** Files that the page generates for download. */

import type { Answer, RequestGroup, Row } from "../../engine/api.ts";

/** Returns a file name for a scenario: the letters and digits of its name, with hyphens. */
export function fileName(scenario: string): string {
  const words = scenario
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return words === "" ? "scenario" : words.slice(0, 60);
}

/**
 * Formats rows as CSV (RFC 4180). Cells with a comma, quote or line break are quoted. Spreadsheets execute text that
 * starts like a formula, and names in a scenario from a link may start like that. A leading apostrophe marks such cells
 * as text.
 */
export function csv(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const cell = (value: string | number | null): string => {
    const isText = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
    const text =
      value === null || (typeof value === "number" && Number.isNaN(value)) ? "" : `${isText ? "'" : ""}${value}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((r) => `${r.map(cell).join(",")}\r\n`).join("");
}

/** Formats the runs as a table: one row per run and connection or port, starting with the run's own measures. */
export function runsCsv(
  runs: readonly { readonly seed: number; readonly answer: Answer }[],
  of: "flows" | "ports" | "requests",
): string {
  const keys = [...new Set((runs[0]?.answer[of] ?? []).flatMap((row) => Object.keys(measuresOf(row))))];
  const called = { flows: "flow", ports: "port", requests: "group" }[of];
  const header = ["scenario", "seed", "efficiency", "fairness", "fingerprint", called];
  const rows = runs.flatMap(({ seed, answer }) =>
    answer[of].map((row) => {
      const measures = measuresOf(row);
      const { scenario, efficiency, fairness, fingerprint } = answer;
      return [scenario, seed, efficiency, fairness, fingerprint, row.name, ...keys.map((k) => measures[k] ?? null)];
    }),
  );
  return csv([...header, ...keys], rows);
}

/** Returns the measures of a row, including those of its size classes, such as `short.slowdown_p99`. */
function measuresOf({ name: _, queries, ...row }: Row | RequestGroup): Record<string, string | number | null> {
  // Flags are 0 or 1, as in measures of a sweep.
  const cells = Object.entries({ ...row, queries: queries ?? {} }).flatMap(([key, value]) =>
    typeof value === "object" && value !== null
      ? Object.entries(value).map(([inner, cell]) => [`${key}.${inner}`, typeof cell === "boolean" ? Number(cell) : cell] as const)
      : [[key, value] as const],
  );
  return Object.fromEntries(cells);
}

/** Starts the download of a file. */
export function download(name: string, content: string | Blob, type = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL only after the current task.
  setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 10_000);
}

/** Style properties of drawn elements. A standalone picture needs them, because it has no style sheet. */
const DRAWN = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
];

const SVG = "http://www.w3.org/2000/svg";
/** Device pixels per CSS pixel in a PNG. */
const SHARP = 2;
/** Margin around a picture and its text, line height, and minimum width, in pixels. */
const EDGE = 12;
const LINE = 19;
const LEAST = 420;
/** Side of a colour swatch, and the gap after a name, in pixels. */
const SWATCH = 10;
const GAP = 16;

/** Lines of text around an exported picture. */
export interface Head {
  /** Lines above the picture; the first is its title. */
  readonly lines: readonly string[];
  /** Names listed below the picture, each with the CSS property for its colour. */
  readonly legend?: readonly { readonly name: string; readonly colour: string }[];
}

/** Functions that redraw a plot or canvas on a new canvas with `SHARP` pixels per CSS pixel, by id. */
export const drawings = new Map<string, () => HTMLCanvasElement>();

/** Calls `make` while the light colours are active, regardless of the page's colours. */
export function inLight<T>(make: () => T): T {
  const sheet = document.querySelector<HTMLStyleElement>("#dark");
  const media = sheet?.media ?? "";
  if (sheet !== null) {
    sheet.media = "not all";
  }
  try {
    return make();
  } finally {
    if (sheet !== null) {
      sheet.media = media;
    }
  }
}

/** Redraws the page's canvases in light colours, for printing. */
export function lighten(): void {
  for (const [id, draw] of drawings) {
    const element = document.getElementById(id);
    const canvas = element instanceof HTMLCanvasElement ? element : element?.querySelector("canvas");
    const context = canvas?.getContext("2d");
    if (canvas != null && context != null) {
      const light = inLight(draw);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.drawImage(light, 0, 0, canvas.width, canvas.height);
    }
  }
}

/** Copies an SVG and writes the current colours and fonts into its attributes. */
function styled(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = to[i];
    target?.removeAttribute("class");
    target?.removeAttribute("style");
    for (const property of DRAWN) {
      target?.setAttribute(property, style.getPropertyValue(property));
    }
  });
  return copy;
}

/** A white sheet with the text of a picture, and space for the picture or for an SVG. */
interface Sheet {
  readonly text: string;
  readonly width: number;
  readonly height: number;
  /** Upper left corner of the picture. */
  readonly left: number;
  readonly top: number;
}

function sheet(head: Head, size: { readonly width: number; readonly height: number }, drawn?: SVGSVGElement): Sheet {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const family = colour("--sans");
  const pen = document.createElement("canvas").getContext("2d");
  const width = Math.max(LEAST, size.width + 2 * EDGE);
  const root = document.createElementNS(SVG, "svg");
  const put = (name: string, attributes: Readonly<Record<string, string | number>>, text = ""): void => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, String(value));
    }
    element.textContent = text;
    root.append(element);
  };
  const type = { "font-family": family, "font-size": 13, fill: colour("--ink") };
  const long = (text: string, weight: number): number => {
    if (pen !== null) {
      pen.font = `${String(weight)} 13px ${family}`;
    }
    return pen?.measureText(text).width ?? 0;
  };
  put("rect", { width: "100%", height: "100%", fill: colour("--paper") });
  let y = EDGE;
  head.lines.forEach((line, i) => {
    const weight = i === 0 ? 700 : 400;
    let row = "";
    const write = (): void => {
      y += LINE;
      put("text", { ...type, "font-weight": weight, x: EDGE, y: y - 5 }, row);
    };
    for (const word of line.split(" ")) {
      const longer = row === "" ? word : `${row} ${word}`;
      if (row !== "" && long(longer, weight) > width - 2 * EDGE) {
        write();
        row = word;
      } else {
        row = longer;
      }
    }
    write();
  });
  const top = y + 6;
  const left = EDGE;
  if (drawn !== undefined) {
    for (const [key, value] of Object.entries({ x: left, y: top, width: size.width, height: size.height })) {
      drawn.setAttribute(key, String(value));
    }
    root.append(drawn);
  }
  let x = EDGE;
  y = top + size.height + (head.legend?.length ? LINE : 0);
  for (const { name, colour: of } of head.legend ?? []) {
    const end = x + SWATCH + 5 + long(name, 400);
    if (x > EDGE && end > width - EDGE) {
      x = EDGE;
      y += LINE;
    }
    put("rect", { x, y: y - SWATCH, width: SWATCH, height: SWATCH, rx: 2, fill: colour(of) });
    put("text", { ...type, x: x + SWATCH + 5, y }, name);
    x += SWATCH + 5 + long(name, 400) + GAP;
  }
  const height = Math.ceil(y + EDGE);
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${String(width)} ${String(height)}` })) {
    root.setAttribute(key, String(value));
  }
  return { text: new XMLSerializer().serializeToString(root), width, height, left, top };
}

/** Exports an SVG of the page as a standalone file, in light colours and including its text. */
export function standaloneSvg(svg: SVGSVGElement, head: Head): Sheet {
  return inLight(() => sheet(head, svg.viewBox.baseVal, styled(svg)));
}

/** Exports a picture of the page as a PNG: light colours on white, including its text, at twice its size. */
export async function png(id: string, head: Head): Promise<Blob | null> {
  const element = document.getElementById(id);
  const drawing = drawings.get(id);
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (context === null || (drawing === undefined && !(element instanceof SVGSVGElement))) {
    return null;
  }
  const drawn = drawing === undefined ? null : inLight(drawing);
  const made =
    drawn === null
      ? standaloneSvg(element as unknown as SVGSVGElement, head)
      : inLight(() => sheet(head, { width: drawn.width / SHARP, height: drawn.height / SHARP }));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(made.text)}`;
  await image.decode();
  canvas.width = SHARP * made.width;
  canvas.height = SHARP * made.height;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  if (drawn !== null) {
    context.drawImage(drawn, SHARP * made.left, SHARP * made.top);
  }
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob === null) {
        reject(new Error("The browser could not make a PNG of this picture."));
      } else {
        resolve(blob);
      }
    });
  });
}
