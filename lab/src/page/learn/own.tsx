/**
 * A policy of the user's own: a formula with its faults below it, and its results next to those of the classic
 * policies.
 */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Checked, EngineError } from "../../engine/api.ts";
import { Differences } from "../compare/differences.tsx";
import { Experiment, type Setting } from "../parts/experiment.ts";
import { shortened } from "../parts/format.ts";
import { FaultNotice, FaultNotices } from "../parts/fault.tsx";
import { Progress, showSoon } from "../parts/parts.tsx";
import { Plane, clouds } from "../parts/plane.tsx";
import { RunOrStop, ToBench } from "../parts/running.tsx";
import { Faults } from "../run/editor.tsx";
import { asFault, engine, formula, limits, said } from "../state.ts";
import { CLASSICS, classics, ownText } from "./own-text.ts";

const SEEDS = Array.from({ length: 10 }, (_, i) => i + 1);

const EXAMPLES = [
  { name: "EPD", formula: "X < 0.8 * K" },
  { name: "Selective Drop", formula: "X <= 0.9 * K or Y * N / X <= 0.8" },
  { name: "Dynamic Threshold", formula: "Y < 1.0 * (K - X)" },
  { name: "random, above half", formula: "X < 0.5 * K or random() < 0.9" },
] as const;

export function OwnPolicy(props: { readonly onRun: () => void }): JSX.Element {
  const id = useId();
  const text = formula.value;
  const [mine, setMine] = useState<string | null>(null);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [unchecked, setUnchecked] = useState<EngineError | null>(null);
  /** Warning from the check of the formula, keyed by the scenario's text. */
  const [why, setWhy] = useState<Readonly<Record<string, string>>>({});
  const [shown, setShown] = useState<readonly Setting[]>([]);
  const experiment = useMemo(() => new Experiment(), []);
  const { phase, progress, faults: failed } = experiment.state.value;

  useEffect(() => {
    const e = engine.value;
    let current = true;
    const look = async (): Promise<void> => {
      if (e === null) {
        return;
      }
      const put = await ownText(e, text);
      const { memory, check: seconds } = limits.value;
      const result = await e.check(put, { memory, seconds });
      if (current) {
        setMine(put);
        setChecked(result);
      }
    };
    const timer = setTimeout(() => {
      look().then(
        () => {
          setUnchecked(null);
        },
        (error: unknown) => {
          setUnchecked(asFault(error));
        },
      );
    }, 150);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, limits.value]);
  useEffect(
    () => () => {
      experiment.stop();
    },
    [],
  );

  const faults = checked?.faults ?? [];
  const warning = warningOf(checked);
  const run = (): void => {
    const e = engine.value;
    if (e === null || mine === null) {
      return;
    }
    const before = shown.slice(CLASSICS.length).filter((s) => s.toml !== mine);
    const settings = [...classics(), ...before.slice(-4), { name: shortened(text, 80), toml: mine }];
    setShown(settings);
    setWhy({ ...why, [mine]: warning });
    void experiment.run(e, settings, SEEDS).then(() => {
      said.value = "The runs have ended.";
      props.onRun();
    });
  };
  const outcomes = experiment.outcomes(shown, SEEDS);
  const results = useRef<HTMLDivElement>(null);
  useEffect(() => {
    showSoon(results.current);
  }, [shown, phase === "done"]);
  return (
    <>
      <div class="field">
        <label for={id}>A frame may start if</label>
        <textarea
          id={id}
          class="mono formula"
          rows={2}
          spellcheck={false}
          autocapitalize="off"
          value={text}
          aria-invalid={faults.length > 0}
          aria-describedby={`${id}-faults`}
          onInput={(event) => {
            formula.value = event.currentTarget.value;
          }}
        />
        <div id={`${id}-faults`} aria-live="polite" class="formula-faults">
          {faults.length > 0 ? (
            <Faults faults={faults} short />
          ) : warning !== "" ? (
            <span class="warn-text">{warning}</span>
          ) : (
            <span class="small good-text">The formula is valid.</span>
          )}
        </div>
      </div>
      <p class="row small">
        Start with
        {EXAMPLES.map((x) => (
          <button
            type="button"
            class="small"
            key={x.name}
            onClick={() => {
              formula.value = x.formula;
            }}
          >
            {x.name}
          </button>
        ))}
      </p>
      <p class="row">
        <RunOrStop
          id="run-own"
          running={phase === "running"}
          disabled={mine === null || faults.length > 0}
          onRun={run}
          onStop={() => {
            experiment.stop();
          }}
        >
          Run with the classic policies
        </RunOrStop>
        <ToBench toml={mine} class="quiet">
          Change it under “Run”
        </ToBench>
      </p>
      <FaultNotice fault={unchecked} onAgain={() => undefined} />
      {phase === "running" && <Progress done={progress} what="Running" />}
      <FaultNotices faults={failed} onAgain={run} />
      {outcomes.length > 0 && (
        <div class="story-results own-results" ref={results}>
          <Plane clouds={clouds(outcomes, [])} />
          <Differences outcomes={outcomes} why={why} top={outcomes.length - 1} />
        </div>
      )}
    </>
  );
}

/** Returns the check's warnings about the formula; empty if there are none. */
function warningOf(checked: Checked | null): string {
  return (checked?.warnings ?? [])
    .filter((w) => w.key.includes("policy"))
    .map((w) => `${w.message.replace(w.key, "It")}.`)
    .join(" ");
}
