/** Numbers as the page writes them. */

/** A share from 0 to 1, or any measure of that size: two decimals. */
export function share(value: number): string {
  return Number.isFinite(value) ? value.toFixed(2) : "–";
}

/** A count with commas between thousands. */
export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
}

/** Any number in about four digits. */
export function number(value: number): string {
  if (!Number.isFinite(value)) {
    return "–";
  }
  if (Number.isInteger(value) || Math.abs(value) >= 1000) {
    return count(value);
  }
  return Math.abs(value) >= 10 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
}

/** An instant or a span with a unit that suits it. */
export function time(seconds: number): string {
  const size = Math.abs(seconds);
  if (!Number.isFinite(seconds)) {
    return "–";
  }
  if (size === 0) {
    return "0 s";
  }
  if (size < 1e-3) {
    return `${trim((seconds * 1e6).toFixed(2))} µs`;
  }
  return size < 1 ? `${trim((seconds * 1e3).toFixed(4))} ms` : `${trim(seconds.toFixed(6))} s`;
}

function trim(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Bytes in a unit that suits them. */
export function bytes(value: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count(size) : size.toPrecision(3)} ${units[unit] ?? ""}`;
}

/** A mean with its interval: "0.45 [0.41, 0.49]". */
export function interval(
  e: { readonly mean: number; readonly low: number | null; readonly high: number | null },
  text: (value: number) => string = share,
): string {
  // Where there is no room, the line breaks before the bracket.
  return e.low === null || e.high === null ? text(e.mean) : `${text(e.mean)} [${text(e.low)},\u00a0${text(e.high)}]`;
}

/** A text that is cut where it is too long to be shown. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
