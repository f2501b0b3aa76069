/** Delays of packets: queueing delays at ports and in queues, and round-trip times and one-way delays of connections. */

import type { JSX } from "preact";
import { Swatch } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { Word } from "../parts/words.tsx";
import type { Done } from "../state.ts";
import { digits } from "./requests.tsx";
import { MOST_ROWS, Rest, busyPorts, meansOver, over, rowNames } from "./rows.tsx";

/** Statistics of delays, as in the names of measures: `delay_ms_p99`. */
const STATISTICS = [
  { key: "mean", name: "mean" },
  { key: "p50", name: "median" },
  { key: "p95", name: "95 %" },
  { key: "p99", name: "99 %" },
  { key: "p999", name: "99.9 %" },
] as const;

/** Shows the delays of runs that measured them. */
export function Delays(props: { readonly runs: readonly Done[] }): JSX.Element | null {
  const { runs } = props;
  if (runs[0]?.answer.ports[0]?.["delay_ms_mean"] === undefined) {
    return null;
  }
  const flows = rowNames(runs, "flows");
  const queues = rowNames(runs, "queues").map((name, i) => ({ name, i }));
  return (
    <>
      <Queueing runs={runs} label="Queueing delay at ports" of="ports" rows={busyPorts(runs)} />
      <Queueing runs={runs} label="Queueing delay in queues" of="queues" rows={queues} />
      {flows.length > 0 && (
        <Table
          label="Round-trip time"
          class="dense"
          caption={
            <>
              <Word of="round trip">Round-trip time</Word> (RTT) and one-way delay in ms ({meansOver(runs)})
            </>
          }
          columns={["connection", ...STATISTICS.map((s) => s.name), "jitter"]}
          below={<Rest of={flows.length} />}
        >
          {flows.slice(0, MOST_ROWS).flatMap((name, i) =>
            (["rtt", "delay"] as const).map((kind) => (
              <tr key={`${name} ${kind}`}>
                <th scope="row">
                  <Swatch n={i} />
                  {`${name}, ${kind === "rtt" ? "RTT" : "one way"}`}
                </th>
                {STATISTICS.map(({ key }) => (
                  <td key={key}>{digits(over(runs, "flows", i, `${kind}_ms_${key}`))}</td>
                ))}
                <td>{kind === "rtt" ? "" : digits(over(runs, "flows", i, "jitter_ms"))}</td>
              </tr>
            )),
          )}
        </Table>
      )}
      <p class="small soft">
        A packet waits from the arrival of its last cell until its transmission begins. Lost packets do not count, and –
        marks a delay that no packet or too few packets have.
      </p>
    </>
  );
}

function Queueing(props: {
  readonly runs: readonly Done[];
  readonly label: string;
  readonly of: "ports" | "queues";
  readonly rows: readonly { readonly name: string; readonly i: number }[];
}): JSX.Element | null {
  const { runs, label, of, rows } = props;
  return rows.length === 0 ? null : (
    <Table
      label={label}
      class="dense"
      caption={`${label} in ms (${meansOver(runs)})`}
      columns={[of === "ports" ? "port" : "queue", ...STATISTICS.map((s) => s.name)]}
      below={<Rest of={rows.length} />}
    >
      {rows.slice(0, MOST_ROWS).map(({ name, i }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          {STATISTICS.map(({ key }) => (
            <td key={key}>{digits(over(runs, of, i, `delay_ms_${key}`))}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}
