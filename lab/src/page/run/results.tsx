/** Results: dots for the seeds with their intervals, connections, ports, and each run with its fingerprint. */

import type { JSX } from "preact";
import type { Row } from "../../engine/api.ts";
import { estimate, mean } from "../../engine/statistics.ts";
import { Dots } from "../parts/dots.tsx";
import { FaultNotice } from "../parts/fault.tsx";
import { count, number, share } from "../parts/format.ts";
import { shortKind } from "../parts/names.ts";
import { Notice, Progress, Swatch } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { Unmet } from "../parts/unmet.tsx";
import { Word } from "../parts/words.tsx";
import { RequestResults } from "./requests.tsx";
import * as lens from "../see/lens.ts";
import { ensemble, run, stale, stop, toml, type Done } from "../state.ts";

export function Results(): JSX.Element {
  const { phase, runs, seeds, progress, fault, toml: of } = ensemble.value;
  return (
    <section class="card results" aria-labelledby="results-title" data-phase={phase}>
      <div class="row">
        <h2 id="results-title">Results</h2>
        {phase === "running" && (
          <button type="button" class="row-end" onClick={stop}>
            Stop
          </button>
        )}
      </div>
      {phase === "idle" && (
        <p class="soft">
          No runs yet. Each run has its own <Word of="seed" /> and appears here as a dot when it ends.
        </p>
      )}
      {phase === "running" && (
        <Progress done={progress} what={`${String(runs.length)} of ${String(seeds.length)} runs`} />
      )}
      <FaultNotice fault={fault} onAgain={() => void run(true)} />
      {phase === "stopped" && <Notice sort="warn">Stopped. The completed runs are below.</Notice>}
      {stale.value && phase !== "running" && (
        <Notice sort="warn">
          {of !== toml.value
            ? "The scenario has changed: these results belong to the previous version."
            : `These results are for ${seedRange(seeds)}.`}
        </Notice>
      )}
      {runs.length > 0 && <Outcome runs={runs} />}
    </section>
  );
}

export function Outcome(props: { readonly runs: readonly Done[] }): JSX.Element {
  const { runs } = props;
  const efficiency = runs.map((r) => r.answer.efficiency);
  const fairness = runs.map((r) => r.answer.fairness);
  const hasFlows = rowNames(runs, "flows").length > 0;
  return (
    <>
      <Unmet scenarios={[{ name: "", runs }]} />
      <Dots
        title="Efficiency and fairness, a dot for each seed"
        strips={[
          { label: "Efficiency", values: efficiency, estimate: estimate(efficiency), colour: "var(--vc-1)" },
          ...(hasFlows
            ? [{ label: "Fairness", values: fairness, estimate: estimate(fairness), colour: "var(--vc-3)" }]
            : []),
        ]}
      />
      <p class="small soft">
        Each dot is a run with its own seed. The line marks the mean, the box its <Word of="95 % interval" />.{" "}
        <Word of="efficiency">Efficiency</Word>
        {hasFlows && (
          <>
            , <Word of="fairness">fairness</Word>
          </>
        )}
        .
      </p>
      <RequestResults runs={runs} over={meansOver(runs)} />
      {hasFlows && <Connections runs={runs} />}
      <Ports runs={runs} />
      <Runs runs={runs} />
    </>
  );
}

/** Maximum number of rows in a table. */
const MOST_ROWS = 40;

function Connections(props: { readonly runs: readonly Done[] }): JSX.Element {
  const names = rowNames(props.runs, "flows");
  return (
    <Table
      label="Connections"
      caption={`Connections (${meansOver(props.runs)})`}
      columns={[
        "connection",
        "goodput Mb/s",
        "segments sent",
        "retransmitted",
        <Word of="timeout">timeouts</Word>,
        "fast retransmits",
      ]}
      below={<Rest of={names.length} />}
    >
      {names.slice(0, MOST_ROWS).map((name, i) => (
        <tr key={name}>
          <th scope="row">
            <Swatch n={i} />
            {name}
          </th>
          <td>{over(props.runs, "flows", i, "goodput_mbps").toFixed(2)}</td>
          {["segments_sent", "retransmitted_segments"].map((measure) => (
            <td key={measure}>{count(over(props.runs, "flows", i, measure))}</td>
          ))}
          {["timeouts", "fast_retransmits"].map((measure) => (
            <td key={measure}>{number(over(props.runs, "flows", i, measure))}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function Ports(props: { readonly runs: readonly Done[] }): JSX.Element {
  const names = rowNames(props.runs, "ports");
  // Ports without a limit, such as host ports, only matter if cells were lost there.
  const busy = names
    .map((name, i) => ({ name, i }))
    .filter(
      ({ i }) =>
        row(props.runs[0], "ports", i)?.["buffer_cells"] != null ||
        over(props.runs, "ports", i, "lost_cells") + over(props.runs, "ports", i, "discarded_cells") > 0,
    );
  return (
    <Table
      label="Ports"
      caption={`Ports with a finite buffer (${meansOver(props.runs)})`}
      columns={["port", "policy", "link busy", "largest queue", "cells lost", "cells discarded"]}
      below={<Rest of={busy.length} />}
    >
      {busy.slice(0, MOST_ROWS).map(({ name, i }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>{shortKind(String(row(props.runs[0], "ports", i)?.["policy"] ?? ""))}</td>
          <td>{share(over(props.runs, "ports", i, "utilisation"))}</td>
          {["max_queue_cells", "lost_cells", "discarded_cells"].map((measure) => (
            <td key={measure}>{count(over(props.runs, "ports", i, measure))}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function meansOver(runs: readonly Done[]): string {
  return runs.length === 1 ? "one run" : `means over ${String(runs.length)} seeds`;
}

/** Shows how many rows of a table were omitted. */
function Rest(props: { readonly of: number }): JSX.Element | null {
  return props.of > MOST_ROWS ? <p class="small soft">{`… and ${String(props.of - MOST_ROWS)} more.`}</p> : null;
}

function Runs(props: { readonly runs: readonly Done[] }): JSX.Element {
  return (
    <details>
      <summary>Each run, with its fingerprint</summary>
      <Table
        label="Runs"
        columns={["seed", <span class="unseen">microscope</span>, "efficiency", "fairness", <Word of="fingerprint" />, "cell-hops", "million per second"]}
      >
        {props.runs.map(({ seed, answer }) => (
          <tr key={seed}>
            <th scope="row">{seed}</th>
            <td>
              <button
                type="button"
                class="quiet small in-row"
                onClick={() => {
                  lens.lookInto(ensemble.value.toml, seed);
                }}
              >
                Look inside<span class="unseen"> seed {seed}</span>
              </button>
            </td>
            <td>{answer.efficiency.toFixed(4)}</td>
            <td>{answer.fairness === null ? "undefined" : answer.fairness.toFixed(4)}</td>
            <td>
              <code>{answer.fingerprint}</code>
            </td>
            <td>{count(answer.cell_hops)}</td>
            <td>{(answer.timing.cell_hops_per_second / 1e6).toFixed(1)}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

function seedRange(seeds: readonly number[]): string {
  const [first, last] = [String(seeds[0] ?? 0), String(seeds.at(-1) ?? 0)];
  return seeds.length === 1 ? `seed ${first}` : `seeds ${first} to ${last}`;
}

function rowNames(runs: readonly Done[], of: "flows" | "ports"): string[] {
  return (runs[0]?.answer[of] ?? []).map((r) => r.name);
}

function row(run: Done | undefined, of: "flows" | "ports", i: number): Row | undefined {
  return run?.answer[of][i];
}

/** Returns the mean of a measure in a row over all runs; NaN if the connection or port does not have it. */
function over(runs: readonly Done[], of: "flows" | "ports", i: number, measure: string): number {
  return mean(runs.map((r) => Number(row(r, of, i)?.[measure] ?? NaN)));
}
