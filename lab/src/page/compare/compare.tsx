/** Compare: settings side by side with the same seeds, paired differences, and the plane of both measures. */

import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { estimate } from "../../engine/statistics.ts";
import type { Value } from "../form/schema.ts";
import { csv, download } from "../keep/files.ts";
import { Pictures } from "../keep/pictures.tsx";
import { interval, share } from "../parts/format.ts";
import { FaultNotices } from "../parts/fault.tsx";
import { Progress, Slider, Swatch, useDraft, vcColour } from "../parts/parts.tsx";
import { Plane, clouds } from "../parts/plane.tsx";
import { RunOrStop, SeedCount, ToBench } from "../parts/running.tsx";
import { Table } from "../parts/table.tsx";
import { Word } from "../parts/words.tsx";
import type { Outcome } from "../parts/experiment.ts";
import { engine, papers, said, scenarios, seeds, nameNow, toml } from "../state.ts";
import { knobs, type Knob } from "./knobs.ts";
import { printed, type Printed } from "./printed.ts";
import { MOST_SETTINGS } from "../link/link.ts";
import { add, change, compared, drop, experiment, type Compared } from "./state.ts";

/** The classics, for the scenarios that they are compared in by 96-1269. */
const CLASSICS = ["lan-tail-drop", "lan-ppd", "lan-epd", "lan-selective-drop"] as const;

export function Compare(): JSX.Element {
  const settings = compared.value;
  const outcomes = experiment.outcomes(settings, seeds.value);
  const { phase, progress, faults } = experiment.state.value;
  const [points, setPoints] = useState<Readonly<Record<number, readonly Printed[]>>>({});
  const start = (): void => {
    const e = engine.value;
    if (e !== null) {
      void experiment.run(e, compared.value, seeds.value).then(() => {
        said.value = "The comparison has ended.";
      });
    }
  };
  useEffect(() => {
    const e = engine.value;
    if (e === null || papers.value.length === 0) {
      return undefined;
    }
    let current = true;
    void Promise.all(settings.map(async (s) => [s.id, await printed(e, papers.value, s.toml)] as const))
      .then((all) => {
        if (current) {
          setPoints(Object.fromEntries(all));
        }
      })
      .catch(() => undefined);
    return () => {
      current = false;
    };
  }, [settings, papers.value]);
  return (
    <div class="compare" data-phase={phase}>
      <section class="card" aria-labelledby="compare-title">
        <h1 id="compare-title">Compare</h1>
        <p>
          Every setting runs with the same <Word of="seed">seeds</Word>, so chance is the same for all, and differences
          are taken seed by seed.
        </p>
        <div class="row">
          <button
            type="button"
            disabled={settings.length >= MOST_SETTINGS}
            onClick={() => {
              add({ name: nameNow.value, toml: toml.value });
            }}
          >
            Add the scenario of “Run”
          </button>
          <AddShipped />
          {settings.length === 0 && (
            <button
              type="button"
              class="main"
              onClick={() => {
                for (const name of CLASSICS) {
                  add({ name, toml: scenarios.value[name] ?? "" });
                }
              }}
            >
              Begin with four policies
            </button>
          )}
        </div>
        {settings.length > 0 && (
          <>
            <div class="settings">
              {settings.map((s, i) => (
                <SettingCard key={s.id} setting={s} n={i} onTurned={start} />
              ))}
            </div>
            <div class="row running">
              <SeedCount />
              <RunOrStop
                id="run-compare"
                running={phase === "running"}
                onRun={start}
                onStop={() => {
                  experiment.stop();
                }}
              >
                Run them all
              </RunOrStop>
            </div>
          </>
        )}
        {phase === "running" && <Progress done={progress} what="Running" />}
        <FaultNotices faults={faults} onAgain={start} />
      </section>
      {settings.length > 0 && (
        <div class="cards compare-results">
          <section class="card" aria-labelledby="plane-title">
            <div class="row">
              <h2 id="plane-title">Efficiency and fairness</h2>
              <span class="row-end">
                <Pictures of="plane-svg" name="efficiency-fairness" />
              </span>
            </div>
            <Plane
              id="plane-svg"
              clouds={clouds(
                outcomes,
                settings.map((s) => points[s.id]),
              )}
            />
            <p class="small soft">
              A dot is a run, a cross the mean of a setting, an open diamond what a paper prints for exactly this
              scenario.
            </p>
          </section>
          <Differences outcomes={outcomes} />
        </div>
      )}
    </div>
  );
}

function AddShipped(): JSX.Element {
  const id = useId();
  return (
    <span class="row">
      <label for={id} class="unseen">
        Add a shipped scenario
      </label>
      <select
        id={id}
        value=""
        disabled={compared.value.length >= MOST_SETTINGS}
        onChange={(event) => {
          const name = event.currentTarget.value;
          const text = scenarios.value[name];
          if (text !== undefined) {
            add({ name, toml: text });
          }
          event.currentTarget.value = "";
        }}
      >
        <option value="">Add a shipped scenario …</option>
        {Object.keys(scenarios.value).map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </span>
  );
}

function SettingCard(props: {
  readonly setting: Compared;
  readonly n: number;
  readonly onTurned: () => void;
}): JSX.Element {
  const { setting, n } = props;
  const found = useKnobs(setting.toml);
  const draft = useDraft(setting.name);
  const id = useId();
  const turn = async (knob: Knob, value: number): Promise<void> => {
    const e = engine.value;
    if (e !== null) {
      const text = await e.edit(setting.toml, [...knob.path], knob.write(value));
      change(setting.id, { toml: text });
    }
  };
  return (
    <fieldset class="setting-card" style={{ borderTopColor: vcColour(n) }}>
      <legend class="unseen">{setting.name}</legend>
      <div class="row">
        <label for={id} class="unseen">
          Name
        </label>
        <input
          id={id}
          class="setting-name"
          value={draft.text}
          onInput={(event) => {
            draft.type(event.currentTarget.value);
          }}
          onChange={(event) => {
            draft.rest();
            change(setting.id, { name: event.currentTarget.value });
          }}
        />
        <button
          type="button"
          class="quiet"
          aria-label={`Take ${setting.name} out`}
          onClick={() => {
            drop(setting.id);
          }}
        >
          ✕
        </button>
      </div>
      {found.map((k) => (
        <Turning
          key={k.path.join(".")}
          knob={k}
          onTurn={(value) => {
            void turn(k, value).then(props.onTurned);
          }}
        />
      ))}
      <div class="row">
        <button
          type="button"
          class="quiet small"
          disabled={compared.value.length >= MOST_SETTINGS}
          onClick={() => {
            add(setting);
          }}
        >
          Copy it
        </button>
        <ToBench toml={setting.toml} class="quiet small">
          Edit under “Run”
        </ToBench>
      </div>
    </fieldset>
  );
}

/** A slider that follows the hand at once, and tells its value once the hand rests. */
export function Turning(props: { readonly knob: Knob; readonly onTurn: (value: number) => void }): JSX.Element {
  const { knob } = props;
  const [value, setValue] = useState(knob.value);
  useEffect(() => {
    setValue(knob.value);
  }, [knob.value]);
  useEffect(() => {
    if (value === knob.value) {
      return undefined;
    }
    const timer = setTimeout(() => {
      props.onTurn(value);
    }, 350);
    return () => {
      clearTimeout(timer);
    };
  }, [value]);
  return (
    <Slider
      label={knob.label}
      value={value}
      min={knob.min}
      max={knob.max}
      step={knob.step}
      text={knob.text(value)}
      onChange={setValue}
    />
  );
}

/** The knobs of a text, once the engine has read it. */
export function useKnobs(text: string): readonly Knob[] {
  const [found, setFound] = useState<readonly Knob[]>([]);
  useEffect(() => {
    let current = true;
    void engine.value
      ?.document(text)
      .then((d) => {
        if (current && d.root !== null) {
          setFound(knobs(d.root as { readonly [key: string]: Value }));
        }
      })
      .catch(() => undefined);
    return () => {
      current = false;
    };
  }, [text]);
  return found;
}

/** Means with intervals, and differences from the first setting, seed by seed. */
export function Differences(props: { readonly outcomes: readonly Outcome[] }): JSX.Element {
  const rows = props.outcomes.map((o) => ({
    name: o.setting.name,
    runs: o.runs.length,
    efficiency: o.runs.length === 0 ? null : estimate(o.runs.map((r) => r.answer.efficiency)),
    fairness: o.runs.length === 0 ? null : estimate(o.runs.map((r) => r.answer.fairness)),
    less: paired(o, props.outcomes[0], "efficiency"),
    lessFair: paired(o, props.outcomes[0], "fairness"),
  }));
  const keep = (): void => {
    const lines = props.outcomes.flatMap((o) =>
      o.runs.map((r) => [o.setting.name, r.seed, r.answer.efficiency, r.answer.fairness, r.answer.fingerprint]),
    );
    download("comparison.csv", csv(["setting", "seed", "efficiency", "fairness", "fingerprint"], lines), "text/csv");
  };
  const first = props.outcomes[0]?.setting.name ?? "the first";
  return (
    <section class="card" aria-labelledby="differences-title">
      <div class="row">
        <h2 id="differences-title">Means, and differences from {first}</h2>
        <button type="button" class="quiet small row-end" onClick={keep}>
          CSV
        </button>
      </div>
      <Table
        label="Comparison"
        class="intervals"
        columns={["setting", "runs", "efficiency", "difference", "fairness", "difference"]}
      >
        {rows.map((r, i) => (
          <tr key={i}>
            <th scope="row">
              <Swatch n={i} />
              {r.name}
            </th>
            <td>{r.runs}</td>
            <td>{r.efficiency === null ? "–" : interval(r.efficiency)}</td>
            <td>{i === 0 ? "" : r.less}</td>
            <td>{r.fairness === null ? "–" : interval(r.fairness)}</td>
            <td>{i === 0 ? "" : r.lessFair}</td>
          </tr>
        ))}
      </Table>
      <p class="small soft">
        In brackets: the <Word of="95 % interval" />. A difference whose interval holds 0 is no difference that these
        runs have shown.
      </p>
    </section>
  );
}

/** The paired difference from the first setting, as text. */
function paired(o: Outcome, first: Outcome | undefined, of: "efficiency" | "fairness"): string {
  const base = new Map(first?.runs.map((r) => [r.seed, r.answer[of]]));
  const less = o.runs.flatMap((r) => {
    const other = base.get(r.seed);
    return other === undefined ? [] : [r.answer[of] - other];
  });
  if (less.length === 0) {
    return "–";
  }
  return interval(estimate(less), (v) => (v > 0 ? `+${share(v)}` : share(v)));
}
