/** The lessons: a page of cards, and the player of one story. */

import type { JSX } from "preact";
import { STORIES } from "../../stories/index.ts";
import type { Step, Story } from "../../stories/story.ts";
import { Told, Word } from "../parts/words.tsx";
import { place } from "../state.ts";
import { FrameToy } from "./frame-toy.tsx";
import { OwnPolicy } from "./own.tsx";
import { RunStep } from "./run-step.tsx";

export function Learn(): JSX.Element {
  const [, id, number] = place.value.split("/");
  const story = STORIES.find((s) => s.id === id);
  if (story === undefined) {
    return <Home />;
  }
  const step = Math.min(story.steps.length, Math.max(1, Number.parseInt(number ?? "1", 10) || 1));
  return <Player story={story} step={step} />;
}

function Home(): JSX.Element {
  return (
    <div class="learn-home">
      <section class="hero">
        <h1>Why does a full buffer of cells ruin TCP?</h1>
        <p class="hero-lead">
          A laboratory for TCP over ATM networks, in this page. Every <Word of="cell">cell</Word> is simulated, exactly
          as on the command line. Guess, run, and look at single cells to see why.
        </p>
        <p class="row">
          <a class="button main-link" href={`#/learn/${STORIES[0]?.id ?? ""}/1`}>
            Begin with the first story
          </a>
          <a class="button" href="#/run">
            Open the bench
          </a>
        </p>
      </section>
      <ol class="stories">
        {STORIES.map((s, i) => (
          <li key={s.id}>
            <a class="story-card" href={`#/learn/${s.id}/1`}>
              <span class="story-number" aria-hidden="true">
                {i + 1}
              </span>
              <strong>{s.title}</strong>
              <span class="soft">{s.lead}</span>
            </a>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Player(props: { readonly story: Story; readonly step: number }): JSX.Element {
  const { story, step } = props;
  const shown = story.steps[step - 1];
  const next = STORIES[STORIES.indexOf(story) + 1];
  const at = (n: number): string => `#/learn/${story.id}/${String(n)}`;
  return (
    <article class="story">
      <nav class="row story-where" aria-label="Steps of this story">
        <a href="#/learn">All stories</a>
        <span aria-hidden="true">/</span>
        <strong>{story.title}</strong>
        <ol class="story-steps row-end">
          {story.steps.map((s, i) => (
            <li key={s.title}>
              <a
                href={at(i + 1)}
                aria-current={i + 1 === step ? "step" : undefined}
                aria-label={`Step ${String(i + 1)}: ${s.title}`}
              >
                {i + 1}
              </a>
            </li>
          ))}
        </ol>
      </nav>
      {shown !== undefined && <StepView key={`${story.id}/${String(step)}`} step={shown} />}
      <div class="row story-on">
        {step > 1 && (
          <a class="button" href={at(step - 1)}>
            Back
          </a>
        )}
        {step < story.steps.length ? (
          <a class="button row-end" href={at(step + 1)}>
            Next: {story.steps[step]?.title}
          </a>
        ) : (
          <a class="button row-end" href={next === undefined ? "#/learn" : `#/learn/${next.id}/1`}>
            {next === undefined ? "All stories" : `Next story: ${next.title}`}
          </a>
        )}
      </div>
    </article>
  );
}

function StepView(props: { readonly step: Step }): JSX.Element {
  const { step } = props;
  switch (step.kind) {
    case "run":
      return <RunStep step={step} />;
    case "free":
      return (
        <section class="card">
          <h1>{step.title}</h1>
          <Told texts={step.text} />
          <OwnPolicy />
        </section>
      );
    case "read":
      return (
        <section class="card story-read">
          <h1>{step.title}</h1>
          <Told texts={step.text} />
          {step.toy === "frame" && <FrameToy />}
        </section>
      );
  }
}
