/** What of many points is drawn: no more than a screen has columns, and no peak is lost. */

/** The first index whose time is not before `t`; `times` rise. */
export function firstAt(times: Float64Array, t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < t) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/**
 * Indices of the points to draw from `from` to `to` on so many columns: of each column the first, least, largest and
 * last point, in order; all points where they are few. The last point before `from` and the first after `to` are there
 * too, so that lines go on to the edges.
 */
export function thin(times: Float64Array, values: Float64Array, from: number, to: number, columns: number): number[] {
  const start = Math.max(0, firstAt(times, from) - 1);
  const end = Math.min(times.length, firstAt(times, to) + 1);
  const kept: number[] = [];
  if (end - start <= 4 * columns) {
    for (let i = start; i < end; i += 1) {
      kept.push(i);
    }
    return kept;
  }
  const width = (to - from) / columns;
  let i = start;
  while (i < end) {
    const column = Math.floor(((times[i] ?? 0) - from) / width);
    const first = i;
    let least = i;
    let most = i;
    while (i < end && Math.floor(((times[i] ?? 0) - from) / width) === column) {
      if ((values[i] ?? 0) < (values[least] ?? 0)) {
        least = i;
      }
      if ((values[i] ?? 0) > (values[most] ?? 0)) {
        most = i;
      }
      i += 1;
    }
    kept.push(...[...new Set([first, least, most, i - 1])].sort((a, b) => a - b));
  }
  return kept;
}
