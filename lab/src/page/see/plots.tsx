/** Plots of a run: the queue over the whole run, then the buffer by VC, windows and segments in the current window. */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Pictures } from "../keep/pictures.tsx";
import { time } from "../parts/format.ts";
import { Name, Word } from "../parts/words.tsx";
import { headOf } from "./head.ts";
import * as lens from "./lens.ts";
import { band, bars, column, flowColour, level, line, marks, sequence, sequencePlot, stack, vcColours, windows } from "./paint.ts";
import { Plot, type Canvas } from "./plot.tsx";

/** Plots the queue over the whole run; dragging selects a range to show in detail. */
export function Overall(props: { readonly overview: lens.Overview }): JSX.Element {
  const { run, network } = props.overview;
  const looked = lens.detail.value;
  // Range selected with keys or wheel but not shown yet.
  const [chosen, setChosen] = useState<readonly [number, number] | null>(null);
  useEffect(() => {
    setChosen(null);
  }, [looked]);
  const port = looked?.history.port ?? network.links[network.bottleneck]?.name ?? "";
  const series = run.series;
  const stretch = chosen ?? (looked === null ? [0, 0.01] : ([looked.from, looked.to] as const));
  const [least, values, largest] = useMemo(
    () =>
      ["queue_cells_least", "queue_cells", "queue_cells_largest"].map((name) =>
        series === null ? new Float64Array(0) : column(series, name, port),
      ) as [Float64Array, Float64Array, Float64Array],
    [series, port],
  );
  const all: readonly [number, number] = [0, network.duration_s];
  const most =
    Math.max(
      10,
      largest.reduce((a, b) => Math.max(a, b), 0),
    ) * 1.05;
  const recorded = series?.measures["queue_cells"]?.names.includes(port) === true;
  if (series === null || !recorded) {
    return <p class="small soft">The queue of {port} was not recorded over the whole run.</p>;
  }
  return (
    <>
      <h2 class="plot-title">
        Cells waiting at <Name>{port}</Name>, the whole run{" "}
        <Pictures
          of="plot-overall"
          name="queue"
          head={() =>
            headOf(
              props.overview,
              `Cells waiting at ${port} (band: minimum and maximum between samples)`,
              all,
            )
          }
        />
      </h2>
      <Plot
        id="plot-overall"
        label={`Cells waiting at ${port}`}
        unit="cells"
        height={150}
        view={all}
        all={all}
        most={most}
        now={lens.now.value}
        paint={(c: Canvas) => {
          if (looked !== null || chosen !== null) {
            c.context.fillStyle = c.colour("--accent-wash");
            const left = c.x(stretch[0]);
            c.context.fillRect(left, c.top, Math.max(3 * c.scale, c.x(stretch[1]) - left), c.bottom - c.top);
          }
          c.context.globalAlpha = 0.45;
          band(c, series.time_s, least, largest, "--accent");
          c.context.globalAlpha = 1;
          line(c, series.time_s, values, "--accent", false);
        }}
        stretch={{ view: [stretch[0], stretch[1]], onChange: setChosen }}
        onView={([from, to]) => {
          void lens.lookAt(port, Math.max(0, from), Math.min(network.duration_s, to));
        }}
        onPick={(t) => {
          const half = ((looked?.to ?? 0.01) - (looked?.from ?? 0)) / 2;
          const from = Math.max(0, t - half);
          void lens.lookAt(port, from, Math.min(network.duration_s, from + 2 * half));
        }}
      />
      <p class="small soft">
        Drag to zoom in, click to jump. {chosen === null ? "Showing" : "Selected:"} {time(stretch[0])} to{" "}
        {time(stretch[1])} (shaded). The band shows the minimum and maximum between samples.
      </p>
      {chosen !== null && (
        <p class="row small">
          <button
            type="button"
            class="small"
            onClick={() => {
              void lens.lookAt(port, chosen[0], chosen[1]);
            }}
          >
            Look at {time(chosen[0])} to {time(chosen[1])}
          </button>
          <button
            type="button"
            class="quiet small"
            onClick={() => {
              setChosen(null);
            }}
          >
            Cancel
          </button>
        </p>
      )}
    </>
  );
}

/** Maximum number of connections in a list to choose from. */
const MOST_FLOWS = 500;
/** Maximum number of connections whose windows are drawn. */
const MOST_LINES = 24;

export function Plots(props: { readonly overview: lens.Overview; readonly looked: lens.Detail }): JSX.Element {
  const { looked, overview } = props;
  const { history } = looked;
  const windowsPlot = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (lens.showPlots.value) {
      lens.showPlots.value = false;
      // The views above get their final heights only when they are drawn.
      setTimeout(() => windowsPlot.current?.scrollIntoView({ block: "center" }), 200);
    }
  }, [lens.showPlots.value]);
  const all: readonly [number, number] = [looked.from, looked.to];
  const view = lens.zoom.value;
  const flows = looked.connections.slice(0, MOST_FLOWS);
  const flow = lens.flow.value;
  const silent = lens.unreported(overview.network);
  const id = useId();
  const common = {
    view,
    all,
    now: lens.now.value,
    sync: "inside",
    onView: (v: readonly [number, number]): void => {
      lens.zoom.value = [Math.max(all[0], v[0]), Math.min(all[1], v[1])];
    },
    onPick: (t: number): void => {
      lens.step.value = history.stepAt(t);
    },
  };
  const lines = useMemo(() => {
    const hosted = new Set(overview.network.flows.flatMap((f) => (f.stack === "" ? [] : [f.name])));
    const shown = flows.slice(0, MOST_LINES).map((name, i) => ({ name, colour: flowColour(i) }));
    return shown.flatMap((l) => (hosted.has(l.name) ? [] : [{ ...l, ...windows(looked, overview.run.series, l.name) }]));
  }, [looked]);
  const mostWindow = lines.reduce((m, l) => l.values.reduce((a, b) => Math.max(a, b), m), 4) * 1.1;
  const segments = useMemo(() => sequence(looked.segments, flow), [looked, flow]);
  const mostCells = useMemo(() => history.steps.occupancy.reduce((a, b) => Math.max(a, b), 10), [looked]);
  const room = Number.isFinite(history.capacity) && history.capacity < 1.6 * mostCells ? history.capacity : mostCells;
  const threshold = history.judgements.findLast((j) => Number.isFinite(j.threshold_cells))?.threshold_cells;
  const colours = useMemo(() => vcColours(overview.network, history), [looked]);
  const mine = looked.timeouts.filter((t) => t.flow === flow).map((t) => t.time_s);
  return (
    <section class="card" aria-labelledby="plots-title">
      <div class="row">
        <h2 id="plots-title">Over time</h2>
        <span class="row row-end">
          <button
            type="button"
            disabled={view[0] <= all[0] && view[1] >= all[1]}
            onClick={() => {
              lens.zoom.value = all;
            }}
          >
            Show the whole window
          </button>
        </span>
      </div>
      <h3 class="plot-title">
        Cells waiting by connection (× discarded, ▼ lost){" "}
        <Pictures
          of="plot-stack"
          name="buffer-by-vc"
          head={() =>
            headOf(
              overview,
              `Cells waiting at ${history.port} by connection (× discarded, ▼ lost${threshold === undefined ? "" : ", dashed: threshold"})`,
              view,
              history.vcs,
              colours,
            )
          }
        />
      </h3>
      <Plot
        {...common}
        id="plot-stack"
        label="Cells waiting by connection, with marks for discarded and lost cells"
        unit="cells"
        height={230}
        most={Math.max(room, mostCells) * 1.08}
        paint={(c) => {
          stack(c, history, colours);
          if (threshold !== undefined) {
            level(c, threshold);
          }
          marks(c, looked);
        }}
      />
      {lens.hasOwnTcp(overview.network) && (
        <div ref={windowsPlot}>
          <h3 class="plot-title">
            <Word of="cwnd">Congestion windows</Word> of{" "}
            {flows.length > MOST_LINES ? `the first ${String(MOST_LINES)}` : "all"} connections. TCP: {overview.tcp}{" "}
            <Pictures
              of="plot-cwnd"
              name="cwnd"
              head={() =>
                headOf(
                  overview,
                  "Congestion windows (dotted: timeouts)",
                  view,
                  lines.map((l) => l.name),
                  lines.map((l) => l.colour),
                )
              }
            />
          </h3>
          <Plot
            {...common}
            id="plot-cwnd"
            label="Congestion windows"
            unit="segments"
            height={190}
            most={mostWindow}
            paint={(c) => {
              for (const l of lines) {
                line(c, l.times, l.values, l.colour, true);
              }
              bars(
                c,
                looked.timeouts.map((t) => t.time_s),
                "--bad",
              );
            }}
          />
        </div>
      )}
      {silent !== "" && <p class="small soft">{silent}</p>}
      <div class="row plot-title">
        <h3>Segments of one connection</h3>
        <label for={id} class="unseen">
          Connection
        </label>
        <select
          id={id}
          value={flow}
          onChange={(event) => {
            lens.flow.value = event.currentTarget.value;
          }}
        >
          {flows.map((f) => (
            <option key={f} value={f}>
              {f}
            </option>
          ))}
        </select>
        <Pictures
          of="plot-sequence"
          name="sequence"
          head={() => ({
            ...headOf(overview, `Segments of ${flow}`, view),
            legend: [
              { name: "sent", colour: "--ink" },
              { name: "retransmitted", colour: "--vc-2" },
              { name: "acknowledged", colour: "--good" },
              { name: "timeout (dotted)", colour: "--bad" },
            ],
          })}
        />
      </div>
      <Plot
        {...common}
        id="plot-sequence"
        label={`Time-sequence plot of ${flow}`}
        unit="kB of data"
        height={260}
        least={segments.least / 1000}
        most={Math.max(segments.most / 1000, segments.least / 1000 + 1)}
        paint={(c) => {
          sequencePlot({ ...c, y: (v) => c.y(v / 1000) }, segments);
          bars(c, mine, "--bad");
        }}
      />
      <p class="small soft">
        Thin bars are segments sent, <span class="again">thick orange bars</span> retransmissions. The green
        line shows the highest acknowledgement. Dotted lines are timeouts.
      </p>
    </section>
  );
}
