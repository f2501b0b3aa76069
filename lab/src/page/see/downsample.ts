/** Reduces a large number of points to a few per pixel column, without losing peaks. */

/** Returns the first index whose time is `t` or later; `times` must be sorted. */
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
 * Returns the indices of the points to draw from `from` to `to` on `columns` columns: the first, smallest, largest and
 * last point of each column, in order, or all points if there are only a few. Includes the last point before `from` and
 * the first after `to`, so that lines continue to the edges.
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
  for (let first = start; first < end; ) {
    const column = Math.floor(((times[first] ?? 0) - from) / width);
    const next = Math.max(first + 1, Math.min(end, firstAt(times, from + (column + 1) * width)));
    const [least, most] = extremes(values, first, next);
    kept.push(...[...new Set([first, least, most, next - 1])].sort((a, b) => a - b));
    first = next;
  }
  return kept;
}

/** Number of points per block of precomputed extremes. With these, drawing a million points need not scan all of
 * them. */
const BLOCK = 64;

/** Alternating indices of the smallest and largest value of each block. Values never change once they are drawn. */
const blocks = new WeakMap<Float64Array, Int32Array>();

function blocksOf(values: Float64Array): Int32Array {
  let found = blocks.get(values);
  if (found === undefined) {
    found = Int32Array.from({ length: 2 * Math.floor(values.length / BLOCK) });
    for (let block = 0; 2 * block < found.length; block += 1) {
      const from = block * BLOCK;
      let [least, most] = [from, from];
      for (let i = from; i < from + BLOCK; i += 1) {
        least = (values[i] ?? 0) < (values[least] ?? 0) ? i : least;
        most = (values[i] ?? 0) > (values[most] ?? 0) ? i : most;
      }
      found[2 * block] = least;
      found[2 * block + 1] = most;
    }
    blocks.set(values, found);
  }
  return found;
}

/** Returns the indices of the smallest and largest value from `from` up to `to`; the first if several are equal. */
function extremes(values: Float64Array, from: number, to: number): readonly [number, number] {
  const known = blocksOf(values);
  let [least, most] = [from, from];
  for (let i = from; i < to; ) {
    const isWhole = i % BLOCK === 0 && i + BLOCK <= to;
    const [low, high] = isWhole ? [known[(2 * i) / BLOCK] ?? i, known[(2 * i) / BLOCK + 1] ?? i] : [i, i];
    least = (values[low] ?? 0) < (values[least] ?? 0) ? low : least;
    most = (values[high] ?? 0) > (values[most] ?? 0) ? high : most;
    i += isWhole ? BLOCK : 1;
  }
  return [least, most];
}
