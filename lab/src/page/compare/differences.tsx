/** Means with confidence intervals, and paired differences from the first setting. */

import type { JSX } from "preact";
import { estimate } from "../../engine/statistics.ts";
import type { Estimate } from "../../engine/api.ts";
import { csv, download } from "../keep/files.ts";
import type { Outcome } from "../parts/experiment.ts";
import { interval, share } from "../parts/format.ts";
import { Notice, Swatch } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { Unmet } from "../parts/unmet.tsx";
import { Word } from "../parts/words.tsx";
import type { Done } from "../state.ts";

/** Returns a measure of a run; null if it is undefined. */
type Measure = (run: Done) => number | null;

const efficiency: Measure = (run) => run.answer.efficiency;
const fairness: Measure = (run) => run.answer.fairness;

export function Differences(props: {
  readonly outcomes: readonly Outcome[];
  /** Warning from the check of a scenario, keyed by the scenario's text. */
  readonly why?: Readonly<Record<string, string>>;
  /**
   * Index of the setting shown first, such as a custom policy. Differences still refer to setting 0. Warnings about low
   * delivery concern only the setting shown first, so that warnings about earlier policies disappear.
   */
  readonly top?: number;
}): JSX.Element {
  const { outcomes } = props;
  const rows = outcomes.map((o, i) => ({ o, i })).sort((a, b) => Number(b.i === props.top) - Number(a.i === props.top));
  const own = outcomes.filter((_, i) => i === props.top);
  const keep = (): void => {
    const lines = outcomes.flatMap((o) =>
      o.runs.map((r) => [o.setting.name, r.seed, r.answer.efficiency, r.answer.fairness, r.answer.fingerprint]),
    );
    download("comparison.csv", csv(["setting", "seed", "efficiency", "fairness", "fingerprint"], lines), "text/csv");
  };
  const first = outcomes[0]?.setting.name ?? "the first";
  return (
    <section class="card" aria-labelledby="differences-title">
      <div class="row">
        <h2 id="differences-title">Means, and differences from {first}</h2>
        <button type="button" class="quiet small row-end" onClick={keep}>
          CSV
        </button>
      </div>
      <Few outcomes={outcomes} />
      <NothingCarried outcomes={own.length > 0 ? own : outcomes} why={props.why ?? {}} />
      <Little outcomes={own} why={props.why ?? {}} />
      <Unmet scenarios={outcomes.map((o) => ({ name: o.setting.name, runs: o.runs }))} />
      <Table
        label="Comparison"
        class="intervals"
        columns={["setting", "runs", "efficiency", "difference", "fairness", "difference"]}
      >
        {rows.map(({ o, i }) => (
          <tr key={i} class={i === props.top ? "own-row" : ""}>
            <th scope="row">
              <Swatch n={i} />
              {o.setting.name}
            </th>
            <td>{o.runs.length}</td>
            <td>{meanOf(o, efficiency)}</td>
            <td>{i === 0 ? "" : paired(o, outcomes[0], efficiency)}</td>
            <td>{meanOf(o, fairness)}</td>
            <td>{i === 0 ? "" : paired(o, outcomes[0], fairness)}</td>
          </tr>
        ))}
      </Table>
      <p class="small soft">
        In brackets: the <Word of="95 % interval" />. A difference is significant if its interval excludes 0.
      </p>
    </section>
  );
}

/** Warns, like `celltrain compare`, if there are so few seeds that intervals extend beyond possible values. */
function Few(props: { readonly outcomes: readonly Outcome[] }): JSX.Element | null {
  const seeds = Math.max(...props.outcomes.map((o) => o.runs.length));
  const isBeyond = props.outcomes.some((o) =>
    [efficiency, fairness].some((of) => {
      const { low, high } = estimate(o.runs.map(of));
      return low !== null && high !== null && (low < 0 || high > 1);
    }),
  );
  return seeds >= FEW || !isBeyond ? null : (
    <Notice sort="warn">
      {seeds} seeds are too few: 95 % intervals extend beyond possible values. Use {FEW} seeds or more.
    </Notice>
  );
}

const FEW = 5;

/** Lists settings with runs in which no flow received data, so that their measures are meaningless. */
function NothingCarried(props: {
  readonly outcomes: readonly Outcome[];
  readonly why: Readonly<Record<string, string>>;
}): JSX.Element | null {
  const dead = props.outcomes.flatMap((o) => {
    const runs = o.runs.filter(
      ({ answer }) => (answer.fairness === null && answer.flows.length > 0) || answer.efficiency === 0,
    ).length;
    return runs === 0 ? [] : [{ name: o.setting.name, runs, of: o.runs.length, why: props.why[o.setting.toml] ?? "" }];
  });
  return dead.length === 0 ? null : (
    <Notice sort="warn">
      {dead.map(({ name, runs, of, why }) => (
        <p key={name}>
          <strong>{name}</strong> carried nothing in {runs === of ? "any run" : `${String(runs)} of ${String(of)} runs`}
          , so its fairness is undefined there. Do not compare it. {why}
        </p>
      ))}
    </Notice>
  );
}

/** A policy with a lower efficiency is probably a mistake. */
const LITTLE = 0.05;

/** Lists settings that deliver very little. */
function Little(props: {
  readonly outcomes: readonly Outcome[];
  readonly why: Readonly<Record<string, string>>;
}): JSX.Element | null {
  const found = props.outcomes.flatMap((o) => {
    const { mean } = estimate(o.runs.map((r) => r.answer.efficiency));
    return mean > 0 && mean < LITTLE ? [{ name: o.setting.name, mean, why: props.why[o.setting.toml] ?? "" }] : [];
  });
  return found.length === 0 ? null : (
    <Notice sort="warn">
      {found.map(({ name, mean, why }) => (
        <p key={name}>
          <strong>{name}</strong> uses only {(100 * mean).toFixed(mean < 0.01 ? 1 : 0)} % of the link. Check the policy
          before you compare it. {why}
        </p>
      ))}
    </Notice>
  );
}

/** Formats the mean with its interval. */
export function meanOf(o: Outcome, of: Measure, text = share): string {
  return o.runs.length === 0 ? "–" : formatted(estimate(o.runs.map(of)), text);
}

/** Formats the paired difference from the first setting. */
export function paired(o: Outcome, first: Outcome | undefined, of: Measure, text = share): string {
  const base = new Map(first?.runs.map((r) => [r.seed, of(r)]));
  const differences = o.runs.flatMap((r) => {
    const [own, other] = [of(r), base.get(r.seed)];
    return other === undefined ? [] : [other === null || own === null ? null : own - other];
  });
  return differences.length === 0 ? "–" : formatted(estimate(differences), (v) => (v > 0 ? `+${text(v)}` : text(v)));
}

function formatted(e: Estimate, text: (value: number) => string): string {
  return e.n === 0 ? "undefined" : interval(e, text);
}
