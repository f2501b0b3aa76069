/** Compare: scenarios run with the same seeds, their paired differences, and the plane of efficiency and fairness. */

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Value } from "../form/schema.ts";
import type { Head } from "../keep/files.ts";
import { Pictures } from "../keep/pictures.tsx";
import { FaultNotices } from "../parts/fault.tsx";
import { count, shortened } from "../parts/format.ts";
import { tcpName } from "../parts/names.ts";
import { Progress, showSoon, useDraft, vcColour } from "../parts/parts.tsx";
import { Plane, clouds } from "../parts/plane.tsx";
import { RunOrStop, SeedCount, ToBench } from "../parts/running.tsx";
import { Word } from "../parts/words.tsx";
import { engine, papers, said, scenarios, seeds, nameNow, toml } from "../state.ts";
import { Differences } from "./differences.tsx";
import { bufferOf, sourcesOf } from "./for-all.ts";
import { ForAll } from "./for-all.tsx";
import { knobs, type Knob } from "./knobs.ts";
import { Turning } from "./turning.tsx";
import { printed, type Printed } from "./printed.ts";
import { RequestDifferences, haveRequests } from "./requests.tsx";
import { MOST_SETTINGS } from "../link/link.ts";
import { add, beginOnce, change, compared, drop, dropAll, experiment, type Compared } from "./state.ts";

/** Scenarios compared at first: four policies in the network of ATM Forum 96-1269. */
const CLASSICS = ["lan-tail-drop", "lan-ppd", "lan-epd", "lan-selective-drop"] as const;

export function Compare(): JSX.Element {
  const settings = compared.value;
  const outcomes = experiment.outcomes(settings, seeds.value);
  const { phase, progress, faults } = experiment.state.value;
  const requests = haveRequests(outcomes);
  // Fairness is a measure of flows.
  const hasPlane = !requests || outcomes.some((o) => o.runs.some((r) => r.answer.flows.length > 0));
  const plane = useRef<HTMLElement>(null);
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
  const head = async (): Promise<Head> => {
    const checked = await Promise.all(settings.map((s) => engine.value?.check(s.toml)));
    const tcps = tcpName(...checked.map((c) => c?.defaults));
    const roots = checked.flatMap((c) => (c?.defaults ? [c.defaults as { readonly [key: string]: Value }] : []));
    const all = (of: typeof bufferOf): string => [...new Set(roots.flatMap((r) => of(r) ?? []))].map(count).join(", ");
    const [buffers, sources] = [all(bufferOf), all(sourcesOf)];
    const network = [buffers && `Buffer: ${buffers} cells`, sources && `Sources: ${sources}`].filter(Boolean).join(". ");
    const run = outcomes.flatMap((o) => o.runs.map((r) => r.seed));
    const [first, last] = [Math.min(...run), Math.max(...run)];
    const seedsRun = run.length === 0 ? "Not run" : first === last ? `Seed ${String(first)}` : `Seeds ${String(first)} to ${String(last)}`;
    return {
      lines: [
        "Efficiency and fairness",
        ...(network === "" ? [] : [network]),
        `${seedsRun}${tcps === "" ? "" : `. TCP: ${shortened(tcps, 120)}`}`,
      ],
    };
  };
  const begin = (): void => {
    for (const name of CLASSICS) {
      add({ name, toml: scenarios.value[name] ?? "" });
    }
  };
  useEffect(() => {
    beginOnce(begin);
  }, []);
  return (
    <div class="compare" data-phase={phase}>
      <section class="card" aria-labelledby="compare-title">
        <h1 id="compare-title">Compare</h1>
        <p>
          All scenarios run with the same <Word of="seed">seeds</Word>, so the random choices are the same and differences
          can be computed seed by seed.
        </p>
        <div class="row running">
          {settings.length > 0 && (
            <>
              <SeedCount />
              <RunOrStop
                id="run-compare"
                running={phase === "running"}
                onRun={() => {
                  start();
                  showSoon(plane.current);
                }}
                onStop={() => {
                  experiment.stop();
                }}
              >
                Run all
              </RunOrStop>
            </>
          )}
          {settings.length === 0 && (
            <button type="button" class="main" onClick={begin}>
              Start with four policies
            </button>
          )}
          <span class="row row-end">
            <AddShipped />
            <button
              type="button"
              disabled={settings.length >= MOST_SETTINGS}
              onClick={() => {
                add({ name: nameNow.value, toml: toml.value });
              }}
            >
              Add the scenario under “Run”
            </button>
            {settings.length > 0 && (
              <button type="button" class="quiet" onClick={dropAll}>
                Remove all
              </button>
            )}
          </span>
        </div>
        {phase === "running" && <Progress done={progress} what="Running" />}
        <FaultNotices faults={faults} onAgain={start} />
      </section>
      {settings.length > 0 && (
        <div class={`cards compare-results${hasPlane ? "" : " without-plane"}`}>
          {hasPlane && (
            <section class="card compare-plane" aria-labelledby="plane-title" ref={plane}>
              <div class="row">
                <h2 id="plane-title">Efficiency and fairness</h2>
                <span class="row-end">
                  <Pictures of="plane-svg" name="efficiency-fairness" head={head} />
                </span>
              </div>
              <Plane
                id="plane-svg"
                clouds={clouds(
                  outcomes,
                  settings.map((s) => points[s.id]),
                )}
              />
            </section>
          )}
          <div>
            {hasPlane && <Differences outcomes={outcomes} />}
            {requests && <RequestDifferences outcomes={outcomes} />}
            <ForAll settings={settings} onChanged={start} />
            <div class="settings">
              {settings.map((s, i) => (
                <SettingCard key={s.id} setting={s} n={i} onTurned={start} />
              ))}
            </div>
          </div>
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
          aria-label={`Remove ${setting.name}`}
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
          Copy
        </button>
        <ToBench toml={setting.toml} class="quiet small">
          Edit under “Run”
        </ToBench>
      </div>
    </fieldset>
  );
}

/** Returns the adjustable settings of a scenario, including defaults, once the engine has read it. */
export function useKnobs(text: string): readonly Knob[] {
  const [found, setFound] = useState<readonly Knob[]>([]);
  useEffect(() => {
    let current = true;
    const read = async (): Promise<void> => {
      const e = engine.value;
      const [checked, document] = await Promise.all([e?.check(text), e?.document(text)]);
      const root = checked?.defaults ?? document?.root ?? null;
      if (current && root !== null) {
        setFound(knobs(root as { readonly [key: string]: Value }));
      }
    };
    read().catch(() => undefined);
    return () => {
      current = false;
    };
  }, [text]);
  return found;
}
