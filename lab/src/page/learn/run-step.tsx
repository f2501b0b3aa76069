/** A story step with a guess, a run, and the answer shown next to the result. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Checked, EngineError } from "../../engine/api.ts";
import { estimate, mean } from "../../engine/statistics.ts";
import type { Guess, Means, Shown, Step, Values } from "../../stories/story.ts";
import { printed, type Printed } from "../compare/printed.ts";
import { Dots } from "../parts/dots.tsx";
import { Experiment, type Outcome, type Setting } from "../parts/experiment.ts";
import { count } from "../parts/format.ts";
import { tcpName } from "../parts/names.ts";
import { FaultNotice, FaultNotices } from "../parts/fault.tsx";
import { Progress, Slider, showSoon, vcColour } from "../parts/parts.tsx";
import { Plane, clouds } from "../parts/plane.tsx";
import { RunOrStop, ToBench } from "../parts/running.tsx";
import { Explained } from "../parts/words.tsx";
import * as lens from "../see/lens.ts";
import type { Next } from "./learn.tsx";
import { attempts } from "./progress.ts";
import { setting } from "./setting.ts";
import { Sketch, summary } from "./sketch.tsx";
import { asFault, engine, firstSeed, papers, said } from "../state.ts";

type Run = Extract<Step, { kind: "run" }>;

export function RunStep(props: {
  readonly step: Run;
  readonly next: Next;
  /** Called when the answer appears. */
  readonly onAnswered: () => void;
}): JSX.Element {
  const { step } = props;
  const experiment = useMemo(() => new Experiment(), [step]);
  const [settings, setSettings] = useState<readonly Setting[]>([]);
  const [unread, setUnread] = useState<EngineError | null>(null);
  const attempt = attempts.get(step);
  const [guess, setGuess] = useState(attempt?.guess ?? null);
  const [more, setMore] = useState(attempt?.more ?? 0);
  const [asked, setAsked] = useState(attempt?.asked ?? false);
  useEffect(() => {
    attempts.set(step, { guess, more, asked });
  }, [guess, more, asked]);
  const [points, setPoints] = useState<readonly (readonly Printed[])[]>([]);
  const seeds = Array.from({ length: step.seeds + more }, (_, i) => i + 1);
  const { phase, progress, faults } = experiment.state.value;
  const outcomes = asked ? experiment.outcomes(settings, seeds) : [];
  const result = useRef<HTMLElement>(null);
  const shown = outcomes.some((o) => o.runs.length > 0);
  useEffect(() => {
    if (shown) {
      showSoon(result.current);
    }
  }, [shown, phase === "done"]);
  const enough = outcomes.length > 0 && outcomes.every((o) => o.runs.length >= step.seeds);
  const isAnswered = enough && phase !== "running";
  useEffect(() => {
    if (isAnswered) {
      props.onAnswered();
    }
  }, [isAnswered]);

  useEffect(() => {
    const e = engine.value;
    let current = true;
    if (e !== null) {
      void Promise.all(step.variants.map((v) => setting(e, v)))
        .then((all) => {
          if (current) {
            setSettings(all);
          }
        })
        .catch((error: unknown) => {
          setUnread(asFault(error));
        });
    }
    return () => {
      current = false;
      experiment.stop();
    };
  }, [step]);

  useEffect(() => {
    const e = engine.value;
    let current = true;
    if (asked && step.plane === true && e !== null && papers.value.length > 0) {
      void Promise.all(settings.map((s) => printed(e, papers.value, s.toml)))
        .then((all) => {
          if (current) {
            setPoints(all);
          }
        })
        .catch(() => undefined);
    }
    return () => {
      current = false;
    };
  }, [asked, settings, papers.value]);

  const run = (extra: number): void => {
    const e = engine.value;
    if (e === null) {
      return;
    }
    setAsked(true);
    setMore(extra);
    const list = Array.from({ length: step.seeds + extra }, (_, i) => i + 1);
    void experiment.run(e, settings, list).then(() => {
      said.value = "The runs have ended.";
    });
  };

  return (
    <div class="cards story-run">
      <section class="card">
        <h1>{step.title}</h1>
        <Explained texts={step.text} />
        <GuessView guess={step.guess} value={guess} fixed={asked} onGuess={setGuess} />
        <div class="row">
          <RunOrStop
            id="run-step"
            running={phase === "running"}
            isSecondary={isAnswered}
            disabled={guess === null || settings.length === 0}
            onRun={() => {
              run(asked && enough ? more + step.seeds : more);
            }}
            onStop={() => {
              experiment.stop();
            }}
          >
            {asked && enough ? `${String(step.seeds)} more seeds` : "Run it"}
          </RunOrStop>
          {guess === null && <span class="soft small">Guess first. Wrong guesses do no harm.</span>}
        </div>
        {phase === "running" && (
          <Progress done={progress} what={`Running ${count(settings.length * seeds.length)} simulations`} />
        )}
        <FaultNotice fault={unread} onAgain={() => undefined} />
        <FaultNotices
          faults={faults}
          onAgain={() => {
            run(more);
          }}
        />
      </section>
      {!shown && <Before step={step} settings={settings} />}
      {shown && (
        <section class="card" aria-labelledby="answer-title" data-answered={enough} ref={result}>
          <h2 id="answer-title">Results</h2>
          {isAnswered && (
            <Answer step={step} outcomes={outcomes} guess={guess}>
              <a class="button main-link" href={props.next.href}>
                {props.next.text}
              </a>
              {step.look !== undefined && <Look variant={settings[step.look.variant]} text={step.look.text} window={step.look.window} />}
            </Answer>
          )}
          {step.shown.map((shown, m) => (
            <Strips key={shown.label} step={step} shown={shown} measure={m} outcomes={outcomes} guess={guess} />
          ))}
          <ToBench toml={settings[step.look?.variant ?? 0]?.toml ?? null} class="quiet">
            Change it under “Run”
          </ToBench>
        </section>
      )}
      {shown && step.plane === true && (
        <section class="card story-plane" aria-label="Efficiency and fairness">
          <Plane clouds={clouds(outcomes, points)} />
        </section>
      )}
    </div>
  );
}

/** Shows the network, its TCP and the compared settings until there is a result. */
function Before(props: { readonly step: Run; readonly settings: readonly Setting[] }): JSX.Element {
  const { step, settings } = props;
  const [checked, setChecked] = useState<readonly Checked[]>([]);
  useEffect(() => {
    const e = engine.value;
    let current = true;
    if (e !== null) {
      void Promise.all(settings.map((s) => e.check(s.toml)))
        .then((results) => {
          if (current) {
            setChecked(results);
          }
        })
        .catch(() => undefined);
    }
    return () => {
      current = false;
    };
  }, [settings]);
  const network = checked[0]?.network ?? null;
  const tcp = tcpName(...checked.map((c) => c.defaults));
  return (
    <section class="card story-before" aria-labelledby="network-title">
      <h2 id="network-title">The network</h2>
      {network !== null && network.nodes.length <= MOST_NODES && <Sketch network={network} />}
      {network !== null && tcp !== "" && (
        <p class="small soft">
          {`${summary(network)} TCP: ${tcp}.`}
        </p>
      )}
      {step.variants.length > 1 && (
        <ul class="legend small" aria-label="Compared">
          {step.variants.map((v, i) => (
            <li key={v.name}>
              <span class="swatch" style={{ background: vcColour(i) }} aria-hidden="true" />
              {v.name}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Maximum number of nodes in a drawing. */
const MOST_NODES = 60;

/** Shows a button that loads a setting and opens it in the microscope. */
function Look(props: {
  readonly variant: Setting | undefined;
  readonly text: string;
  readonly window: readonly [number, number] | undefined;
}): JSX.Element | null {
  const { variant } = props;
  if (variant === undefined) {
    return null;
  }
  return (
    <button
      type="button"
      onClick={() => {
        firstSeed.value = 1;
        lens.lookInto(variant.toml, 1, props.window);
      }}
    >
      {props.text} →
    </button>
  );
}

function Strips(props: {
  readonly step: Run;
  readonly shown: Shown;
  readonly measure: number;
  readonly outcomes: readonly Outcome[];
  readonly guess: number | null;
}): JSX.Element {
  const { step, shown, outcomes } = props;
  const digits = shown.digits ?? 2;
  const text = (value: number): string => (digits === 0 ? count(value) : value.toFixed(digits));
  const guessed = (variant: number): number | undefined =>
    step.guess.kind === "number" && step.guess.variant === variant && step.guess.measure === props.measure
      ? (props.guess ?? undefined)
      : undefined;
  const single = outcomes.length === 1;
  return (
    <>
      {!single && <h3>{shown.label}</h3>}
      <Dots
        title={`${shown.label}, a dot for each seed`}
        most={shown.most ?? 1}
        text={text}
        strips={outcomes.map((o, i) => {
          const values = o.runs.map((r) => shown.value(r.answer));
          const guessOfIt = guessed(i);
          return {
            label: single ? shown.label : o.setting.name,
            values,
            estimate: values.length === 0 ? null : estimate(values),
            colour: vcColour(single ? props.measure : i),
            ...(guessOfIt === undefined ? {} : { guess: guessOfIt }),
          };
        })}
      />
    </>
  );
}

function Answer(props: {
  readonly step: Run;
  readonly outcomes: readonly Outcome[];
  readonly guess: number | null;
  /** Links to the next steps. */
  readonly children: ComponentChildren;
}): JSX.Element {
  const { step, outcomes, guess } = props;
  const values = paired(step, outcomes);
  const means: Means = values.map((of) => of.map(mean));
  return (
    <div class="answer" role="status">
      <p class="verdict">{verdict(step.guess, guess, means, values)}</p>
      <Explained texts={step.answer(means, values)} />
      <p class="row">{props.children}</p>
    </div>
  );
}

/** Returns the values for the seeds that all variants have run. After a stop, some variants have run more seeds than
 * others. */
function paired(step: Run, outcomes: readonly Outcome[]): Values {
  const run = outcomes.map((o) => new Set(o.runs.map((r) => r.seed)));
  return outcomes.map((o) => {
    const common = o.runs.filter((r) => run.every((seeds) => seeds.has(r.seed)));
    return step.shown.map((s) => common.map((r) => s.value(r.answer)));
  });
}

function verdict(guess: Guess, value: number | null, means: Means, values: Values): string {
  if (value === null) {
    return "";
  }
  if (guess.kind === "choice") {
    const right = guess.right(means, values);
    const quoted = (choice: number): string => `“${guess.choices[choice] ?? ""}”`;
    if (!right.includes(value)) {
      const unsure = right.length > 1 ? ": these runs do not separate them" : "";
      return `You guessed ${quoted(value)}. The right answer is ${right.map(quoted).join(" or ")}${unsure}.`;
    }
    const others = right.filter((r) => r !== value).map(quoted);
    return others.length === 0
      ? `You guessed right: ${quoted(value)}.`
      : `You may be right: these runs do not separate ${quoted(value)} from ${others.join(" or ")}.`;
  }
  const result = means[guess.variant]?.[guess.measure] ?? Number.NaN;
  const off = Math.abs(result - value);
  const near = off <= 0.05 * (guess.max - guess.min);
  return `Your guess was ${value.toFixed(2)}, the mean is ${result.toFixed(2)}: ${near ? "a good guess." : result < value ? "less than you thought." : "more than you thought."}`;
}

function GuessView(props: {
  readonly guess: Guess;
  readonly value: number | null;
  /** True after the run, when the guess can no longer change. */
  readonly fixed: boolean;
  readonly onGuess: (value: number) => void;
}): JSX.Element {
  const { guess, value, fixed } = props;
  const name = useId();
  if (guess.kind === "number") {
    const middle = (guess.min + guess.max) / 2;
    return (
      <fieldset class="guess" disabled={fixed}>
        <legend>{guess.question}</legend>
        <Slider
          label="My guess"
          value={value ?? middle}
          min={guess.min}
          max={guess.max}
          step={guess.step}
          text={value === null ? "not yet" : value.toFixed(2)}
          onChange={props.onGuess}
        />
        {value === null && (
          <button
            type="button"
            class="quiet small"
            onClick={() => {
              props.onGuess(middle);
            }}
          >
            I guess {middle.toFixed(2)}
          </button>
        )}
      </fieldset>
    );
  }
  return (
    <fieldset class="guess" disabled={fixed}>
      <legend>{guess.question}</legend>
      <div class="guess-choices">
        {guess.choices.map((c, i) => (
          <label key={c}>
            <input
              type="radio"
              name={name}
              checked={value === i}
              onChange={() => {
                props.onGuess(i);
              }}
            />
            {c}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
