/** Number formats of the page. */

/** Formats a fraction, or any measure between 0 and 1, with two decimals. */
export function share(value: number): string {
  return Number.isFinite(value) ? value.toFixed(2) : "–";
}

/** Formats a count with thousands separators. */
export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
}

/** Formats any number with about four digits. */
export function number(value: number): string {
  if (!Number.isFinite(value)) {
    return "–";
  }
  if (Number.isInteger(value) || Math.abs(value) >= 1000) {
    return count(value);
  }
  return Math.abs(value) >= 10 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
}

/** Formats an instant or a duration in a convenient unit. */
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

/** Formats a number of bytes in a convenient unit. */
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

/** Formats a mean with its interval: "0.45 [0.41, 0.49]". */
export function interval(
  e: { readonly mean: number; readonly low: number | null; readonly high: number | null },
  text: (value: number) => string = share,
): string {
  // A narrow column breaks the line before the bracket.
  return e.low === null || e.high === null ? text(e.mean) : `${text(e.mean)} [${text(e.low)},\u00a0${text(e.high)}]`;
}

/** Truncates text that is too long to show. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
