/** Look inside: one run at one instant. Shows first the microscope, then the whole run, then the plots. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Pictures } from "../keep/pictures.tsx";
import { count, shortened, time } from "../parts/format.ts";
import { FaultNotice } from "../parts/fault.tsx";
import { Notice, Progress } from "../parts/parts.tsx";
import { RunOrStop, SeedInside } from "../parts/running.tsx";
import { ToLab } from "../parts/to-lab.tsx";
import { Unmet } from "../parts/unmet.tsx";
import { Name, Prose } from "../parts/words.tsx";
import { checkedNow, cameFrom, embed, marked, nameNow, network, seedInside, toml } from "../state.ts";
import { Unchecked } from "../run/unchecked.tsx";
import { LEGEND, headOf } from "./head.ts";
import { Help } from "./help.tsx";
import * as lens from "./lens.ts";
import { Memory } from "./memory.tsx";
import { Microscope } from "./microscope.tsx";
import { NetworkDrawing } from "./network.tsx";
import { column, valueAt, vcColours } from "./paint.ts";
import { Overall, Plots } from "./plots.tsx";
import { describe } from "./sentence.ts";
import { Timeline } from "./timeline.tsx";

export function Inside(): JSX.Element {
  const o = lens.overview.value;
  const c = lens.detail.value;
  const faults = checkedNow.value?.result.faults.length ?? 0;
  const ready = network.value !== null;
  const looked = o !== null && c !== null;
  useEffect(() => {
    if (ready && lens.lookSoon.value) {
      lens.lookSoon.value = false;
      void lens.look();
    }
  }, [ready, lens.lookSoon.value]);
  const old = o !== null && (o.toml !== toml.value || o.seed !== seedInside.value);
  const working = lens.busy.value !== "";
  const press = (
    <RunOrStop
      id="look"
      running={working}
      disabled={faults > 0 || !ready}
      onRun={() => void lens.look()}
      onStop={lens.stopLooking}
    >
      Run and look
    </RunOrStop>
  );
  const notices = (
    <>
      <Unchecked />
      {faults > 0 && <Notice sort="warn">The scenario has errors. Correct them under “Run” first.</Notice>}
      {lens.before.value?.after === toml.value && (
        <Notice>
          The scenario now loses {lens.before.value.lost.join(", ")}.{" "}
          <button type="button" class="small" disabled={working} onClick={lens.loseNothing}>
            Undo
          </button>
        </Notice>
      )}
      {o !== null && <Unmet scenarios={[{ name: "", runs: [{ seed: o.seed, unmet: o.run.unmet }] }]} />}
      {old && !working && (
        <Notice sort="warn">The scenario or the seed has changed. Press “Run and look” again.</Notice>
      )}
      <FaultNotice fault={lens.fault.value} onAgain={() => void lens.again()} />
    </>
  );
  return (
    <div class="inside">
      {looked ? (
        <>
          <Bar overview={o} />
          {notices}
          <Stage overview={o} looked={c} />
        </>
      ) : (
        <section class="card" aria-labelledby="inside-title">
          <h1 id="inside-title">Look inside a run</h1>
          <p>
            Watch one run of <strong>{nameNow.value}</strong> cell by cell: the buffer, the network and every loss.
          </p>
          {working && <Progress done={lens.progress.value} what={lens.busy.value} />}
          {notices}
          <div class="row running">
            <SeedInside />
            {press}
            {embed.value === null && <a href="#/run">Change the scenario</a>}
          </div>
        </section>
      )}
      {o !== null && embed.value === null && (
        <section class="card" aria-label="The whole run">
          <div class="cards whole-run">
            <div>
              <Overall overview={o} />
              {looked && (
                <div class="row running">
                  <SeedInside />
                  {press}
                  <a href="#/run">Change the scenario</a>
                </div>
              )}
            </div>
            {c !== null && <Discarded looked={c} />}
          </div>
        </section>
      )}
      {looked && embed.value === null && <Plots overview={o} looked={c} />}
    </div>
  );
}

/** Maximum length of a title. A name that comes from a URL may be very long. */
const MOST_TITLE = 60;

/** Shows the title of the run in one line, with the progress of the next run. */
function Bar(props: { readonly overview: lens.Overview }): JSX.Element {
  const back = cameFrom.value;
  return (
    <div class="row inside-bar">
      <h1 id="inside-title">
        Inside {shortened(marked(props.overview.network.name, props.overview.toml), MOST_TITLE)}, seed {props.overview.seed}
      </h1>
      {back.startsWith("learn/") && (
        <a class="small back" href={`#/${back}`}>
          ‹ Back to the story
        </a>
      )}
      {lens.busy.value !== "" && (
        <span class="bar-progress">
          <Progress done={lens.progress.value} what={lens.busy.value} />
        </span>
      )}
      <span class="row row-end">
        {embed.value !== null && <ToLab />}
        <Help />
      </span>
    </div>
  );
}

function Stage(props: { readonly overview: lens.Overview; readonly looked: lens.Detail }): JSX.Element {
  const { overview, looked } = props;
  const { history } = looked;
  const net = overview.network;
  const port = net.links.findIndex((l) => l.name === history.port);
  const at = lens.now.value;
  const step = lens.step.value;
  const series = overview.run.series;
  const stage = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = stage.current;
    if (element === null || !lens.showStage.peek()) {
      return;
    }
    lens.showStage.value = false;
    // On a small screen, scroll the stage to the top of the window. On a large screen it is fully visible anyway.
    if (element.getBoundingClientRect().bottom > innerHeight) {
      element.scrollIntoView({ block: "start" });
    }
  }, [overview]);
  const recorded = useMemo(
    () => new Map(net.links.map((l, i) => [i, series === null ? null : known(series, l.name)])),
    [overview],
  );
  const colours = useMemo(() => vcColours(net, history), [overview, history]);
  const queues = (link: number): number | undefined => {
    if (link === port) {
      return step === 0 ? history.at(0).length : history.steps.occupancy[step - 1];
    }
    const values = recorded.get(link);
    return values == null || series === null ? undefined : valueAt(series.time_s, values, at);
  };
  const { what, why: rule, bad } = describe(history, step, { policy: net.links[port]?.policy ?? "", formula: overview.formula });
  const why = [rule, lens.ranOut(looked, step)].filter(Boolean).join(" ");
  return (
    <section class="card stage" aria-label={`The buffer of ${history.port} at ${time(at)}`} ref={stage}>
      <div class={`event ${bad ? "bad" : ""}`} aria-live={lens.playing.value ? "off" : "polite"}>
        <p class="event-what">
          <Prose text={what} />
        </p>
        {why !== "" && (
          <p class="why">
            <Prose text={why} />
          </p>
        )}
      </div>
      <div class="stage-buffer">
        <div class="row">
          <h2 id="buffer-title">
            The buffer of <Name>{history.port}</Name>
          </h2>
          <span class="row-end">
            <Pictures
              of="microscope"
              name="buffer"
              head={() =>
                headOf(
                  overview,
                  `The buffer of ${history.port}: ${count(history.at(step).length)} cells wait (hatched: frame lost)`,
                  at,
                  history.vcs,
                  colours,
                )
              }
            />
          </span>
        </div>
        <Microscope history={history} step={step} colours={colours} inOrder={net.links[port]?.in_order === true} />
        <Memory memory={history.memory(step)} port={history.port} />
      </div>
      <Timeline looked={looked} network={net} />
      <div class="stage-network">
        <div class="row">
          <h2 id="network-title">The network</h2>
          <span class="row-end">
            <Pictures
              of="network-svg"
              name="network"
              head={() => headOf(overview, "The network and its queues", at, history.vcs, colours)}
            />
          </span>
        </div>
        <div class="network-room">
        <NetworkDrawing
          network={net}
          queues={queues}
          port={port}
          waiting={() => Array.from(history.perVc(step), (cells, vc) => ({ cells, colour: colours[vc] ?? "" }))}
          sent={(most) =>
            history.sent(step, most).map(({ vc, damaged }) => ({ colour: `var(${colours[vc] ?? ""})`, damaged }))
          }
          onPort={(link) => {
            const name = net.links[link]?.name;
            if (name !== undefined) {
              void lens.lookAt(name, looked.from, looked.to);
            }
          }}
        />
        </div>
        <ul class="legend small" aria-label="Colours">
          {history.vcs.slice(0, LEGEND).map((name, i) => (
            <li key={name}>
              <span class="swatch" style={{ background: `var(${colours[i] ?? ""})` }} />
              {name}
            </li>
          ))}
          {history.vcs.length > LEGEND && <li>and {history.vcs.length - LEGEND} more in the same colours</li>}
        </ul>
      </div>
    </section>
  );
}

function known(series: NonNullable<lens.Overview["run"]["series"]>, name: string): Float64Array | null {
  return series.measures["queue_cells"]?.names.includes(name) === true ? column(series, "queue_cells", name) : null;
}

/** Number of discarded frames listed at first. */
const LISTED = 6;

/** Lists the frames discarded in the window. A click on a frame shows the moment of its discard. */
function Discarded(props: { readonly looked: lens.Detail }): JSX.Element {
  const { history } = props.looked;
  const [from, setFrom] = useState(0);
  const discarded = history.judgements.filter((j) => !j.admitted);
  return (
    <div class="discarded">
      <h2 class="plot-title">Frames discarded here</h2>
      {discarded.length === 0 && <p class="small">The policy discarded no frame in this window.</p>}
      <ul class="plain">
        {discarded.slice(from, from + LISTED).map((j) => {
          const frame = history.frames[j.frame];
          return (
            <li key={j.frame}>
              <button
                type="button"
                class="quiet small"
                onClick={() => {
                  lens.step.value = discardStep(props.looked, j.frame) ?? history.stepAt(j.time_s);
                }}
              >
                {time(j.time_s)}: {history.vcs[frame?.vc ?? -1]}’s frame {frame?.number}
              </button>
            </li>
          );
        })}
      </ul>
      {discarded.length > LISTED && (
        <div class="row small">
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
            disabled={from + LISTED >= discarded.length}
            onClick={() => {
              setFrom(from + LISTED);
            }}
          >
            Later
          </button>
          <span class="soft">
            {count(from + 1)}–{count(Math.min(from + LISTED, discarded.length))} of {count(discarded.length)}
          </span>
        </div>
      )}
    </div>
  );
}

/** Returns the number of steps up to and including the discard of this frame. */
function discardStep(looked: lens.Detail, frame: number): number | null {
  const { steps } = looked.history;
  const found = looked.losses.find((i) => steps.frame[i] === frame && (steps.judgement[i] ?? -1) >= 0);
  return found === undefined ? null : found + 1;
}
