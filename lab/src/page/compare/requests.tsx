/** Comparison of requests: one statistic of each setting, and the paired differences from the first setting. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { estimate } from "../../engine/statistics.ts";
import { csv, download } from "../keep/files.ts";
import { Dots } from "../parts/dots.tsx";
import type { Outcome } from "../parts/experiment.ts";
import { number, shortened } from "../parts/format.ts";
import { Swatch, vcColour } from "../parts/parts.tsx";
import { STATISTICS, isBound, mostOpen, partName, partsOf, statisticsOf, tooFew, valuesOf } from "../parts/requests.ts";
import { Table } from "../parts/table.tsx";
import { Word } from "../parts/words.tsx";
import type { Done } from "../state.ts";
import { meanOf, paired } from "./differences.tsx";

/** Statistics to choose from. Queries have no slowdowns. */
const CHOICES = [
  ...STATISTICS.map((s) => ({ ...s, key: `slowdown_${s.key}`, name: `slowdown, ${s.long}` })),
  ...STATISTICS.map((s) => ({ ...s, key: `completion_ms_${s.key}`, name: `completion time in ms, ${s.long}` })),
];

/** Returns whether any run of the outcomes has requests. */
export function haveRequests(outcomes: readonly Outcome[]): boolean {
  return outcomes.some((o) => o.runs.some((r) => r.answer.requests.length > 0));
}

export function RequestDifferences(props: { readonly outcomes: readonly Outcome[] }): JSX.Element {
  const { outcomes } = props;
  const [chosen, setChosen] = useState({ part: "", measure: "slowdown_p99" });
  const parts = partsOf(outcomes.flatMap((o) => o.runs));
  const part = parts.find((p) => partName(p) === chosen.part) ?? parts.find((p) => p.of === "short") ?? parts[0];
  const choices = CHOICES.filter(({ key }) => part?.of !== "queries" || key.startsWith("completion"));
  const choice = choices.find(({ key }) => key === chosen.measure) ?? choices[0];
  if (part === undefined || choice === undefined) {
    return <></>;
  }
  const value = (run: Done): number | null => valuesOf([run], part, choice.key)[0] ?? null;
  const statistic = choice.key.slice(choice.key.lastIndexOf("_") + 1);
  const bound = (o: Outcome | undefined): boolean => o !== undefined && isBound(o.runs, part, statistic);
  const bounded = outcomes.filter(bound);
  const known = outcomes.filter((o) => o.runs.length > 0 && o.runs.every((r) => value(r) !== null));
  const strips = outcomes.flatMap((o, i) => {
    const values = o.runs.map(value);
    const label = shortened(o.setting.name, 40);
    return known.includes(o) ? [{ label, values, estimate: estimate(values), colour: vcColour(i) }] : [];
  });
  const label = `${partName(part)}: ${choice.name}`;
  const keep = (): void => {
    const path = `requests.${part.group}.${part.of}.${choice.key}`;
    const lines = outcomes.flatMap((o) => o.runs.map((r) => [o.setting.name, r.seed, value(r), r.answer.fingerprint]));
    download("requests.csv", csv(["setting", "seed", path, "fingerprint"], lines), "text/csv");
  };
  /** Explains why a setting has no mean: it has no such requests, or too few of them. */
  const missing = (o: Outcome): string =>
    o.runs.every((r) => statisticsOf(r, part) === null) ? "–" : tooFew(o.runs, part, [choice.needs]);
  return (
    <section class="card" aria-labelledby="requests-title">
      <div class="row">
        <h2 id="requests-title">
          <Word of="request">Requests</Word>
        </h2>
        <button type="button" class="quiet small row-end" onClick={keep}>
          CSV
        </button>
      </div>
      <div class="row running">
        <Choice
          label="Group and size"
          value={partName(part)}
          options={parts.map((p) => [partName(p), partName(p)])}
          onChange={(name) => {
            setChosen({ ...chosen, part: name });
          }}
        />
        <Choice
          label="Measure"
          value={choice.key}
          options={choices.map(({ key, name }) => [key, name])}
          onChange={(measure) => {
            setChosen({ ...chosen, measure });
          }}
        />
      </div>
      {known.length > 0 && (
        <Dots
          title={`${label}, a dot for each seed`}
          most={Math.max(...strips.map(({ estimate: e }) => Math.max(e.max, e.high ?? 0)))}
          text={number}
          strips={strips}
        />
      )}
      <Table label={label} class="intervals" columns={["setting", "runs", choice.name, "difference"]}>
        {outcomes.map((o, i) => (
          <tr key={i}>
            <th scope="row">
              <Swatch n={i} />
              {o.setting.name}
            </th>
            <td>{o.runs.length}</td>
            <td>{known.includes(o) ? <>{bound(o) && "≥ "}{meanOf(o, value, number)}</> : o.runs.length === 0 ? "–" : missing(o)}</td>
            <td>
              {i > 0 && known.includes(o)
                ? bound(o) || bound(outcomes[0])
                  ? "unknown"
                  : paired(o, outcomes[0], value, number)
                : ""}
            </td>
          </tr>
        ))}
      </Table>
      {bounded.length > 0 && (
        <p class="small soft">
          ≥ is a lower bound: up to {mostOpen(bounded.flatMap((o) => o.runs), part)} were open at the end.
        </p>
      )}
    </section>
  );
}

function Choice(props: {
  readonly label: string;
  readonly value: string;
  /** Values with their names. */
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (value: string) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => {
          props.onChange(event.currentTarget.value);
        }}
      >
        {props.options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
