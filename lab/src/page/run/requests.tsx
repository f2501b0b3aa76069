/** Results of requests: groups, completion times and slowdowns by size, and the slowdown of each request. */

import type { JSX } from "preact";
import type { Requests } from "../../engine/api.ts";
import { mean } from "../../engine/statistics.ts";
import { Pictures } from "../keep/pictures.tsx";
import { bytes, count, number, shortened } from "../parts/format.ts";
import { Swatch, vcColour } from "../parts/parts.tsx";
import { STATISTICS, isBound, mostOpen, partName, partsOf, tooFew, valuesOf, type Part } from "../parts/requests.ts";
import { Table } from "../parts/table.tsx";
import { Word } from "../parts/words.tsx";
import type { Done } from "../state.ts";

/** @param props.over Description of the runs, such as "means over 5 seeds". */
export function RequestResults(props: { readonly runs: readonly Done[]; readonly over: string }): JSX.Element | null {
  const { runs, over } = props;
  const groups = runs[0]?.answer.requests ?? [];
  const recorded = runs.find((run) => run.requests != null);
  if (groups.length === 0) {
    return null;
  }
  const part = (group: string): readonly (number | null)[][] =>
    (["opened", "completed", "open", "goodput_mbps", "timeouts_per_request"] as const).map((measure) =>
      runs.map((run) => run.answer.requests.find((g) => g.name === group)?.[measure] ?? null),
    );
  return (
    <>
      <Table
        label="Requests"
        caption={<><Word of="request">Requests</Word> ({over})</>}
        columns={["group", "opened", "completed", "still open", "goodput Mb/s", "timeouts per request"]}
      >
        {groups.map(({ name, queries }, i) => (
          <tr key={name}>
            <th scope="row">
              <Swatch n={i} />
              {shortened(name, 40)}
              {queries !== null && (
                <>
                  {" "}
                  (<Word of="incast" />)
                </>
              )}
            </th>
            {part(name).map((values, j) => (
              <td key={j}>{(j < 4 ? count : number)(mean(values.map((value) => value ?? NaN)))}</td>
            ))}
          </tr>
        ))}
      </Table>
      <Statistics runs={runs} of="completion_ms" caption={<><Word of="completion time">Completion time</Word> in ms</>} />
      <Statistics runs={runs} of="slowdown" caption={<Word of="slowdown">Slowdown</Word>} />
      {partsOf(runs)
        .filter((part) => STATISTICS.some(({ key }) => isBound(runs, part, key)))
        .map((part) => (
          <p key={partName(part)} class="small soft">
            ≥ is a lower bound: of {partName(part)}, {runs.length > 1 ? "up to " : ""}
            {mostOpen(runs, part)} were open at the end.
          </p>
        ))}
      <p class="small soft">
        Short requests have at most 100 kB and long ones more than 1 MB, unless <code>[measure]</code> sets other bounds.
      </p>
      {recorded?.requests != null && <Slowdowns requests={recorded.requests} run={recorded} />}
    </>
  );
}

/** Shows the statistics of completion times or slowdowns for each part. */
function Statistics(props: {
  readonly runs: readonly Done[];
  readonly of: "completion_ms" | "slowdown";
  readonly caption: JSX.Element;
}): JSX.Element {
  const { runs, of } = props;
  const parts = partsOf(runs).filter((part) => of === "completion_ms" || part.of !== "queries");
  return (
    <Table
      label={of === "slowdown" ? "Slowdown" : "Completion time"}
      class="dense"
      caption={props.caption}
      columns={["requests", "completed", ...STATISTICS.map((s) => s.name)]}
    >
      {parts.map((part) => (
        <tr key={partName(part)}>
          <th scope="row">{partName(part)}</th>
          <td>{count(mean(valuesOf(runs, part, "completed").map(Number)))}</td>
          <Cells runs={runs} part={part} of={of} />
        </tr>
      ))}
    </Table>
  );
}

/** Shows the statistics of a part. Statistics that need more requests share a cell at the end. */
function Cells(props: { readonly runs: readonly Done[]; readonly part: Part; readonly of: string }): JSX.Element {
  const { runs, part, of } = props;
  const all = STATISTICS.map((s) => ({ ...s, values: valuesOf(runs, part, `${of}_${s.key}`) }));
  // If no request is complete, there is no mean, but there may be lower bounds of percentiles.
  const known = all.some((s) => !s.values.includes(null));
  const missing = all.filter((s) => s.values.includes(null) && (s.key !== "mean" || !known));
  return (
    <>
      {all
        .filter((s) => !missing.includes(s))
        .map((s) => (
          <td key={s.key}>
            {s.values.includes(null)
              ? "–"
              : `${isBound(runs, part, s.key) ? "≥ " : ""}${digits(mean(s.values.map(Number)))}`}
          </td>
        ))}
      {missing.length > 0 && (
        <td class="wrapped small soft" colSpan={missing.length}>
          {tooFew(runs, part, missing.map((s) => s.needs))}
        </td>
      )}
    </>
  );
}

/** Formats a statistic with three digits, so that the values of a column are easy to compare. */
export function digits(value: number): string {
  return value < 1000 ? value.toPrecision(3) : count(value);
}

const WIDTH = 480;
const HEIGHT = 260;
const LEFT = 52;
const RIGHT = 28;
const TOP = 10;
const BOTTOM = 44;

/** Plots slowdown against size, both on logarithmic axes, with a dot for each completed request. */
function Slowdowns(props: { readonly requests: Requests; readonly run: Done }): JSX.Element | null {
  const { group, bytes: sizes, slowdown } = props.requests;
  const completed = Array.from(slowdown.keys()).filter((i) => !Number.isNaN(slowdown[i]));
  if (completed.length === 0) {
    return null;
  }
  const across = logAxis(completed.map((i) => sizes[i] ?? 1));
  const up = logAxis(completed.map((i) => Math.max(1, slowdown[i] ?? 1)));
  const x = (size: number): number => LEFT + across.at(size) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - up.at(value) * (HEIGHT - BOTTOM - TOP);
  // A line of zero length appears as a dot, because line ends are round.
  const dots = (n: number): string =>
    completed
      .filter((i) => group.at[i] === n)
      .map((i) => `M${x(sizes[i] ?? 1).toFixed(1)} ${y(Math.max(1, slowdown[i] ?? 1)).toFixed(1)}h0`)
      .join("");
  const title = "Slowdown of each request by its size";
  const legend = group.words.map((name, n) => ({ name: shortened(name, 40), colour: `--vc-${String((n % 8) + 1)}` }));
  const left = sizes.length - completed.length;
  return (
    <figure class="plane">
      <h3 class="plot-title">
        {title}, seed {props.run.seed}{" "}
        <Pictures
          of="requests-svg"
          name="slowdown"
          head={() => ({ lines: [title, `${shortened(props.run.answer.scenario, 80)}, seed ${String(props.run.seed)}`], legend })}
        />
      </h3>
      <svg
        id="requests-svg"
        viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`}
        role="img"
        aria-label={`${title}: ${count(completed.length)} requests`}
      >
        {across.ticks.map((t) => (
          <g key={t}>
            <line class="grid" x1={x(t)} x2={x(t)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text class="tick" x={x(t)} y={HEIGHT - BOTTOM + 17} text-anchor="middle">
              {bytes(t).replace(/\.0+ /, " ")}
            </text>
          </g>
        ))}
        {up.ticks.map((t) => (
          <g key={t}>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(t)} y2={y(t)} />
            <text class="tick" x={LEFT - 8} y={y(t) + 4} text-anchor="end">
              {count(t)}
            </text>
          </g>
        ))}
        <text class="tick" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 8} text-anchor="middle">
          size →
        </text>
        <text
          class="tick"
          text-anchor="middle"
          transform={`translate(14 ${String((TOP + HEIGHT - BOTTOM) / 2)}) rotate(-90)`}
        >
          slowdown →
        </text>
        {group.words.map((name, n) => (
          <path key={name} d={dots(n)} class="request-dots" style={{ stroke: vcColour(n) }} />
        ))}
      </svg>
      <ul class="legend small">
        {group.words.map((name, n) => (
          <li key={name}>
            <Swatch n={n} />
            {shortened(name, 40)}
          </li>
        ))}
        {left > 0 && <li class="soft">{count(left)} not complete at the end</li>}
      </ul>
    </figure>
  );
}

/** Returns a function that maps values to positions from 0 to 1 by their logarithms, and ticks at round values. */
export function logAxis(values: readonly number[]): { readonly at: (value: number) => number; readonly ticks: number[] } {
  const [least, most] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const first = Math.floor(Math.log10(least));
  const powers = Array.from({ length: Math.ceil(Math.log10(most)) - first + 2 }, (_, i) => 10 ** (first + i));
  const round = powers.flatMap((power) => [power, 2 * power, 5 * power]);
  const from = round.findLast((t) => t <= least) ?? least;
  const to = round.find((t) => t >= most && t > from) ?? most;
  const inside = round.filter((t) => t >= from && t <= to);
  return {
    at: (value) => Math.log(value / from) / Math.log(to / from),
    ticks: inside.length <= 7 ? inside : inside.filter((t) => powers.includes(t)),
  };
}
