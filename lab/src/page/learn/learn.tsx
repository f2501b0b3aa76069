/** The lessons: an overview, and the player of one story. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { STORIES } from "../../stories/index.ts";
import { minutes, type Step, type Story } from "../../stories/story.ts";
import { shortened } from "../parts/format.ts";
import { Notice } from "../parts/parts.tsx";
import { ToLab } from "../parts/to-lab.tsx";
import { Explained, Word } from "../parts/words.tsx";
import { embed, place } from "../state.ts";
import { CellField } from "./cell-field.tsx";
import { FrameToy } from "./frame-toy.tsx";
import { OwnPolicy } from "./own.tsx";
import { finish, finished, finishedSteps, forget } from "./progress.ts";
import { RunStep } from "./run-step.tsx";

export function Learn(): JSX.Element {
  const { story, step, isKnown } = found(place.value);
  return (
    <>
      {!isKnown && (
        <Notice sort="bad">No story or step has the address #/{shortened(place.value, 80)}. Choose another below.</Notice>
      )}
      {story === undefined ? <Home /> : <Player story={story} step={step} />}
    </>
  );
}

/** Returns the story and step at an address such as `learn/double/2`. If the address is unknown, returns the nearest
 * ones. */
export function found(address: string): {
  readonly story: Story | undefined;
  readonly step: number;
  readonly isKnown: boolean;
} {
  const [here, id = "", number = "1", ...rest] = address.replace(/\/$/, "").split("/");
  const story = here === "learn" ? STORIES.find((s) => s.id === id) : undefined;
  const step = Math.min(story?.steps.length ?? 1, Math.max(1, Number.parseInt(number, 10) || 1));
  const isStart = id === "" && (here === "" || here === "learn");
  return { story, step, isKnown: isStart || (story !== undefined && String(step) === number && rest.length === 0) };
}

function Home(): JSX.Element {
  return (
    <div class="learn-home">
      <section class="hero">
        <div>
          <h1>Why does a full buffer of cells ruin TCP?</h1>
          <p class="hero-lead">
            A laboratory for TCP over ATM networks, in your browser. It simulates every{" "}
            <Word of="cell">cell</Word> exactly like the command line. Guess, run, and look at single cells to see why.
          </p>
          <p class="row">
            <a class="button main-link" href={`#/learn/${STORIES[0]?.id ?? ""}/1`}>
              Start with the first story
            </a>
            <a class="button" href="#/run">
              Run a scenario
            </a>
          </p>
        </div>
        <CellField />
      </section>
      <ol class="stories">
        {STORIES.map((s, i) => (
          <li key={s.id} class={s.id === "own" ? "story-wide" : ""}>
            <StoryCard story={s} n={i + 1} />
          </li>
        ))}
      </ol>
      {finished.value.size > 0 && (
        <p class="small soft">
          Your progress is stored only in this browser.{" "}
          <button type="button" class="quiet small" onClick={forget}>
            Delete it
          </button>
        </p>
      )}
    </div>
  );
}

function StoryCard(props: { readonly story: Story; readonly n: number }): JSX.Element {
  const { story, n } = props;
  const done = finishedSteps(story);
  const steps = story.steps.length;
  const isFinished = done === steps;
  const time = minutes(story);
  const length = `${steps === 1 ? "1 step" : `${String(steps)} steps`}, ${time === 1 ? "1 minute" : `${String(time)} minutes`}`;
  // A story in progress continues at its first unfinished step.
  const open = story.steps.findIndex((_, i) => !finished.value.has(`${story.id}/${String(i + 1)}`)) + 1;
  return (
    <a class={`story-card${isFinished ? " finished" : ""}`} href={`#/learn/${story.id}/${String(Math.max(1, open))}`}>
      <span class="story-number" aria-hidden="true">
        {isFinished ? "✓" : n}
      </span>
      <strong>
        {story.id === "own" && <span class="story-now">Your turn: </span>}
        {story.title}
      </strong>
      <span class="soft">{story.lead}</span>
      <span class="small soft story-length">
        {length}
        {isFinished ? " · finished" : done > 0 ? ` · ${String(done)} of ${String(steps)} finished` : ""}
      </span>
    </a>
  );
}

function Player(props: { readonly story: Story; readonly step: number }): JSX.Element {
  const { story, step } = props;
  const shown = story.steps[step - 1];
  const after = STORIES[STORIES.indexOf(story) + 1];
  const at = (n: number): string => `#/learn/${story.id}/${String(n)}`;
  const key = `${story.id}/${String(step)}`;
  useEffect(() => {
    if (shown?.kind === "read") {
      finish(story, step);
    }
  }, [key]);
  const next: Next =
    step < story.steps.length
      ? { href: at(step + 1), text: `Next: ${story.steps[step]?.title ?? ""}` }
      : after === undefined
        ? { href: "#/learn", text: "All stories" }
        : { href: `#/learn/${after.id}/1`, text: `Next story: ${after.title}` };
  const isReady = finished.value.has(key);
  return (
    <article class="story">
      <nav class="row story-where" aria-label="Steps of this story">
        <a href="#/learn">All stories</a>
        <span aria-hidden="true">/</span>
        <strong>{story.title}</strong>
        {embed.value !== null && <ToLab />}
        <ol class="story-steps row-end">
          {story.steps.map((s, i) => (
            <li key={s.title}>
              <a
                href={at(i + 1)}
                class={finished.value.has(`${story.id}/${String(i + 1)}`) ? "finished" : ""}
                aria-current={i + 1 === step ? "step" : undefined}
                aria-label={`Step ${String(i + 1)}: ${s.title}${finished.value.has(`${story.id}/${String(i + 1)}`) ? ", finished" : ""}`}
              >
                {i + 1}
              </a>
            </li>
          ))}
        </ol>
      </nav>
      {shown !== undefined && (
        <StepView
          key={key}
          step={shown}
          next={next}
          onAnswered={() => {
            finish(story, step);
          }}
        />
      )}
      <div class="row story-on">
        {step > 1 && (
          <a class="button" href={at(step - 1)}>
            Back
          </a>
        )}
        <a class={`button row-end${isReady ? " main-link" : ""}`} href={next.href}>
          {next.text}
        </a>
      </div>
    </article>
  );
}

/** Link to the next step or story. */
export interface Next {
  readonly href: string;
  readonly text: string;
}

function StepView(props: {
  readonly step: Step;
  readonly next: Next;
  readonly onAnswered: () => void;
}): JSX.Element {
  const { step } = props;
  switch (step.kind) {
    case "run":
      return <RunStep step={step} next={props.next} onAnswered={props.onAnswered} />;
    case "free":
      return (
        <section class="card">
          <h1>{step.title}</h1>
          <Explained texts={step.text} />
          <OwnPolicy onRun={props.onAnswered} />
        </section>
      );
    case "read":
      return (
        <section class="card story-read">
          <h1>{step.title}</h1>
          <Explained texts={step.text} />
          {step.toy === "frame" && <FrameToy />}
        </section>
      );
  }
}
