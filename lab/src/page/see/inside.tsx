/** Look inside: one run, its network, a port's buffer cell by cell, and plots, all at one instant. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Pictures } from "../keep/pictures.tsx";
import { count, time } from "../parts/format.ts";
import { FaultNotice } from "../parts/fault.tsx";
import { Notice, Progress } from "../parts/parts.tsx";
import { FirstSeed, RunOrStop } from "../parts/running.tsx";
import { checkedNow, firstSeed, nameNow, network, toml } from "../state.ts";
import * as lens from "./lens.ts";
import { Microscope } from "./microscope.tsx";
import { NetworkDrawing } from "./network.tsx";
import { Overall, Plots } from "./plots.tsx";
import { Unchecked } from "../run/unchecked.tsx";
import { column, valueAt, vcName } from "./paint.ts";
import { told } from "./sentence.ts";
import { Timeline } from "./timeline.tsx";

export function Inside(): JSX.Element {
  const o = lens.overview.value;
  const c = lens.closely.value;
  const faults = checkedNow.value?.result.faults.length ?? 0;
  const ready = network.value !== null;
  useEffect(() => {
    if (ready && lens.lookSoon.value) {
      lens.lookSoon.value = false;
      void lens.look();
    }
  }, [ready, lens.lookSoon.value]);
  const old = o !== null && (o.toml !== toml.value || o.seed !== firstSeed.value);
  return (
    <div class="inside">
      <section class="card" aria-labelledby="inside-title">
        <h1 id="inside-title">Look inside a run</h1>
        <p>
          One run of <strong>{nameNow.value}</strong>, cell by cell. Drag over a plot to look closer, press in it to go
          to an instant. All pictures show the same instant.
        </p>
        <div class="row running">
          <FirstSeed label="Seed" />
          <RunOrStop
            id="look"
            running={lens.busy.value !== ""}
            disabled={faults > 0 || !ready}
            onRun={() => void lens.look()}
            onStop={lens.stopLooking}
          >
            Run and look
          </RunOrStop>
          <a href="#/run">Change the scenario</a>
        </div>
        <Unchecked />
        {faults > 0 && <Notice sort="warn">The scenario has faults: mend them first, under “Run”.</Notice>}
        {lens.busy.value !== "" && <Progress done={lens.progress.value} what={lens.busy.value} />}
        {old && lens.busy.value === "" && (
          <Notice sort="warn">The scenario or the seed has changed since: press “Run and look” again.</Notice>
        )}
        <FaultNotice fault={lens.fault.value} onAgain={() => void lens.again()} />
        {o !== null && <Overall overview={o} />}
      </section>
      {o !== null && c !== null && <Stage overview={o} looked={c} />}
    </div>
  );
}

function Stage(props: { readonly overview: lens.Overview; readonly looked: lens.Closely }): JSX.Element {
  const { overview, looked } = props;
  const net = overview.network;
  const port = net.links.findIndex((l) => l.name === looked.history.port);
  const at = lens.now.value;
  const series = overview.run.series;
  const recorded = useMemo(
    () => new Map(net.links.map((l, i) => [i, series === null ? null : known(series, l.name)])),
    [overview],
  );
  const queues = (link: number): number | undefined => {
    if (link === port) {
      const step = lens.step.value;
      return step === 0 ? looked.history.at(0).length : looked.history.steps.occupancy[step - 1];
    }
    const values = recorded.get(link);
    return values == null || series === null ? undefined : valueAt(series.time_s, values, at);
  };
  const { what, why, bad } = told(looked.history, lens.step.value);
  return (
    <>
      <section class="card stage-time" aria-labelledby="instant-title">
        <h2 id="instant-title">The instant</h2>
        <Timeline looked={looked} />
        <div class={`told ${bad ? "bad" : ""}`} aria-live="polite">
          <p>
            <strong>{what}</strong>
          </p>
          {why !== "" && <p class="why">{why}</p>}
        </div>
      </section>
      <div class="cards stage">
        <section class="card" aria-labelledby="buffer-title">
          <div class="row">
            <h2 id="buffer-title">The buffer of {looked.history.port}</h2>
            <span class="row-end">
              <Pictures of="microscope" name="buffer" />
            </span>
          </div>
          <Microscope history={looked.history} step={lens.step.value} inOrder={net.links[port]?.in_order === true} />
        </section>
        <section class="card" aria-labelledby="network-title">
          <div class="row">
            <h2 id="network-title">The network</h2>
            <span class="row-end">
              <Pictures of="network-svg" name="network" />
            </span>
          </div>
          <NetworkDrawing
            network={net}
            queues={queues}
            port={port}
            sent={(most) =>
              looked.history
                .sent(lens.step.value, most)
                .map(({ vc, damaged }) => ({ colour: `var(${vcName(vc)})`, damaged }))
            }
            onPort={(link) => {
              const name = net.links[link]?.name;
              if (name !== undefined) {
                void lens.lookAt(name, looked.from, looked.to);
              }
            }}
          />
          <p class="small soft">
            A bar is the queue of a port and fills as cells wait; press one to look at it. On the link of the port
            looked at are the cells that it sent last, in the colours of the buffer; those struck through are carried in
            vain. This port is exact, the others are as of the last sample, every{" "}
            {time((series?.time_s[1] ?? 0) - (series?.time_s[0] ?? 0))}.
          </p>
          <Refused looked={looked} />
        </section>
      </div>
      <Plots overview={overview} looked={looked} />
    </>
  );
}

function known(series: NonNullable<lens.Overview["run"]["series"]>, name: string): Float64Array | null {
  return series.measures["queue_cells"]?.names.includes(name) === true ? column(series, "queue_cells", name) : null;
}

/** How many refusals are listed at once. */
const LISTED = 6;

/** The frames that were refused in the window: press one to go there. */
function Refused(props: { readonly looked: lens.Closely }): JSX.Element {
  const { history } = props.looked;
  const [from, setFrom] = useState(0);
  const refused = history.judgements.filter((j) => !j.admitted);
  if (refused.length === 0) {
    return <p class="small">No frame was refused in this window.</p>;
  }
  return (
    <div>
      <h3>{count(refused.length)} frames were refused</h3>
      <ul class="refused">
        {refused.slice(from, from + LISTED).map((j) => {
          const frame = history.frames[j.frame];
          return (
            <li key={j.frame}>
              <button
                type="button"
                class="quiet small"
                onClick={() => {
                  lens.step.value = refusalStep(props.looked, j.frame) ?? history.stepAt(j.time_s);
                }}
              >
                {time(j.time_s)}: frame {frame?.number} of {history.vcs[frame?.vc ?? -1]}
              </button>
            </li>
          );
        })}
      </ul>
      {refused.length > LISTED && (
        <div class="row">
          <button
            type="button"
            class="small"
            disabled={from === 0}
            onClick={() => {
              setFrom(Math.max(0, from - LISTED));
            }}
          >
            Earlier
          </button>
          <button
            type="button"
            class="small"
            disabled={from + LISTED >= refused.length}
            onClick={() => {
              setFrom(from + LISTED);
            }}
          >
            Later
          </button>
        </div>
      )}
    </div>
  );
}

/** Steps done once this frame has been refused. */
function refusalStep(looked: lens.Closely, frame: number): number | null {
  const { steps } = looked.history;
  const found = looked.losses.find((i) => steps.frame[i] === frame && (steps.judgement[i] ?? -1) >= 0);
  return found === undefined ? null : found + 1;
}
