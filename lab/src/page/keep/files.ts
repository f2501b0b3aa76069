/** Files that a person can take away, made in the page. */

import type { Answer, Row } from "../../engine/api.ts";

/** A name for a file: letters, digits and hyphens of what the scenario calls itself. */
export function fileName(scenario: string): string {
  const words = scenario
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return words === "" ? "scenario" : words.slice(0, 60);
}

/**
 * Rows as CSV (RFC 4180): a cell with a comma, a quote or a line break stands in quotes. Spreadsheets run a text that
 * begins as a formula does; names of a scenario from a link may, so an apostrophe before it makes it a text.
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

/** The runs as a table: a row for each run and connection or port, with the run's own measures before it. */
export function runsCsv(
  runs: readonly { readonly seed: number; readonly answer: Answer }[],
  of: "flows" | "ports",
): string {
  const keys = Object.keys(runs[0]?.answer[of][0] ?? {});
  const header = ["scenario", "seed", "efficiency", "fairness", "fingerprint", of === "flows" ? "flow" : "port"];
  const rows = runs.flatMap(({ seed, answer }) =>
    answer[of].map((row: Row) => [
      answer.scenario,
      seed,
      answer.efficiency,
      answer.fairness,
      answer.fingerprint,
      ...keys.map((k) => row[k] ?? null),
    ]),
  );
  return csv([...header, ...keys.slice(1)], rows);
}

/** Hands a file to the browser. */
export function download(name: string, content: string | Blob, type = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it after this task.
  setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 10_000);
}

/** Properties of drawn things: a picture that stands alone has no style sheet. */
const DRAWN = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "paint-order",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
];

/** An SVG of the page as a file of its own: colours and type in effect are written into it. */
export function standaloneSvg(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
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
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--paper").trim());
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** The same picture as PNG, at twice its size. */
export async function png(svg: SVGSVGElement): Promise<Blob> {
  const text = standaloneSvg(svg);
  const image = new Image();
  const box = svg.viewBox.baseVal;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * box.width;
  canvas.height = 2 * box.height;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
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
