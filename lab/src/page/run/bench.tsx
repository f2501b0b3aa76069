/** The page "Run": a scenario, its seeds, and the results. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Checked } from "../../engine/api.ts";
import { Form } from "../form/form.tsx";
import { span } from "../parts/fault.tsx";
import { bytes } from "../parts/format.ts";
import { Segments } from "../parts/parts.tsx";
import { FirstSeed, RunOrStop, SeedCount } from "../parts/running.tsx";
import {
  checkFault,
  checkedNow,
  delays,
  engine,
  ensemble,
  nameNow,
  run,
  seedCount,
  stop,
  toml,
} from "../state.ts";
import { Editor } from "./editor.tsx";
import { Gallery, aboutNow } from "./gallery.tsx";
import { Results } from "./results.tsx";
import { Unchecked } from "./unchecked.tsx";

export function Bench(): JSX.Element {
  const [side, setSide] = useState<"form" | "text">("form");
  return (
    <div class="cards bench">
      <section class="card setting bench-head" aria-labelledby="setting-title">
        <h1 id="setting-title">Set up and run</h1>
        <div class="row">
          <strong class="scenario-name">{nameNow.value}</strong>
          <Gallery />
        </div>
        <p class="about soft">{aboutNow(toml.value)}</p>
        <Running />
        <Unchecked />
      </section>
      <Results />
      <section class="card setting bench-side" aria-label="The scenario">
        <div class="row">
          <Segments
            label="How to change the scenario"
            value={side}
            choices={[
              { value: "form", text: "Form" },
              { value: "text", text: "Text (TOML)" },
            ]}
            onChange={setSide}
            controls="setting-side"
          />
          <Verdict />
        </div>
        <div id="setting-side" role="tabpanel" aria-label={side === "form" ? "Form" : "Text"}>
          {side === "form" ? <Form /> : <Editor />}
        </div>
      </section>
    </div>
  );
}

/** Shows the fields for seeds and the button that runs them. */
function Running(): JSX.Element {
  const faults = checkedNow.value?.result.faults.length ?? 0;
  return (
    <div class="row running">
      <SeedCount />
      <FirstSeed label="First seed" />
      <RunOrStop
        id="run"
        running={ensemble.value.phase === "running"}
        disabled={faults > 0}
        onRun={() => void run()}
        onStop={stop}
      >
        {seedCount.value === 1 ? "Run" : `Run ${String(seedCount.value)} seeds`}
      </RunOrStop>
      <label class="row" title="Measure queueing delays and round-trip times. Runs take longer.">
        <input
          type="checkbox"
          checked={delays.value}
          onChange={(event) => {
            delays.value = event.currentTarget.checked;
          }}
        />
        Packet delays
      </label>
    </div>
  );
}

/** Returns the number of connections, and of the groups of requests if there are any. */
function trafficOf(flows: number, defaults: Checked["defaults"]): string {
  const groups = ["requests", "incast"].reduce((sum, key) => sum + Object.keys(defaults?.[key] ?? {}).length, 0);
  const requests = groups === 0 ? "" : `${String(groups)} ${groups === 1 ? "group" : "groups"} of requests`;
  return [flows > 0 || groups === 0 ? `${String(flows)} connections` : "", requests].filter(Boolean).join(", ");
}

/** Summarizes the result of the check. */
function Verdict(): JSX.Element {
  const now = checkedNow.value;
  if (now === null) {
    const isChecked = checkFault.value?.toml === toml.value;
    return <span class="small soft">{isChecked ? "not checked" : "checking …"}</span>;
  }
  const { faults, warnings, network, defaults, memory_bytes: memory, cell_hops: hops } = now.result;
  const seconds = ((hops ?? 0) / 1e7) * Math.ceil(seedCount.value / Math.max(1, engine.value?.workers ?? 1));
  if (faults.length > 0) {
    return (
      <span class="small bad-text" role="status">
        {faults.length === 1 ? "1 error" : `${String(faults.length)} errors`}: see the text
      </span>
    );
  }
  return (
    <span class="small soft" role="status">
      {network === null ? "" : `${String(network.nodes.length)} nodes, ${trafficOf(network.flows.length, defaults)}`}
      {memory === null ? "" : `, ${bytes(memory)} of memory`}
      {seconds > 30 && <span class="warn-text"> This can take {span(seconds)}.</span>}
      {warnings.map((w, i) => (
        <span key={i} class="warn-text">
          {" "}
          {w.message}
        </span>
      ))}
    </span>
  );
}
