/** Results: dots for the seeds with their intervals, connections, ports, and each run with its fingerprint. */

import type { JSX } from "preact";
import { estimate } from "../../engine/statistics.ts";
import { Dots } from "../parts/dots.tsx";
import { FaultNotice } from "../parts/fault.tsx";
import { count, number, share } from "../parts/format.ts";
import { shortKind } from "../parts/names.ts";
import { Notice, Progress, Swatch } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { Unmet } from "../parts/unmet.tsx";
import { Word } from "../parts/words.tsx";
import { Delays } from "./delays.tsx";
import { RequestResults } from "./requests.tsx";
import { MOST_ROWS, Rest, busyPorts, meansOver, over, row, rowNames } from "./rows.tsx";
import * as lens from "../see/lens.ts";
import { seeds as chosen, ensemble, run, stale, stop, toml, type Done } from "../state.ts";

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
            : seeds.join() !== chosen.value.join()
              ? `These results are for ${seedRange(seeds)}.`
              : "These runs did not measure the delays of packets: run them again."}
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
      <Delays runs={runs} />
      <Runs runs={runs} />
    </>
  );
}

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
  const busy = busyPorts(props.runs);
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
