/** Share and keep: a link, code for embedding, files, and commands that reproduce the result outside the page. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { STORIES } from "../../stories/index.ts";
import { compared } from "../compare/state.ts";
import { classics, ownText } from "../learn/own-text.ts";
import { setting } from "../learn/setting.ts";
import { FRAME, snippet } from "../link/embed.ts";
import { toFragment, type View } from "../link/link.ts";
import { Dialog } from "../parts/dialog.tsx";
import type { Setting } from "../parts/experiment.ts";
import { Icon } from "../parts/icon.tsx";
import * as lens from "../see/lens.ts";
import {
  checked,
  engine,
  ensemble,
  firstSeed,
  formula,
  message,
  nameNow,
  place,
  seedCount,
  seedInside,
  shippedName,
  stale,
  toml,
} from "../state.ts";
import { download, fileName, runsCsv } from "./files.ts";
import { lines, sources } from "./lines.ts";

/** Tables of a run that can be downloaded. */
const TABLES = [
  { of: "flows", called: "connections", press: "Connections (CSV)" },
  { of: "ports", called: "ports", press: "Ports (CSV)" },
  { of: "requests", called: "requests", press: "Requests (CSV)" },
] as const;

export function Keep(): JSX.Element {
  const [link, setLink] = useState("");
  const [frame, setFrame] = useState("");
  const [fault, setFault] = useState("");
  const [shown, setShown] = useState<Shown | null>(null);
  const here = place.value.split("/")[0] ?? "";
  const compress = async (): Promise<void> => {
    setLink("");
    setFrame("");
    setFault("");
    setShown(null);
    const inside = here === "inside";
    const isStory = /^learn\/./.test(place.value);
    const ownFormula = place.value.startsWith("learn/own") ? formula.value : "";
    const shared = {
      toml: toml.value,
      seed: inside ? seedInside.value : firstSeed.value,
      seeds: seedCount.value,
      place: place.value,
      settings:
        here === "compare" ? compared.value.map(({ name: of, toml: text }) => ({ name: of, toml: text })) : [],
      formula: ownFormula,
      view: inside ? viewNow() : null,
    };
    try {
      setShown(await onScreen(place.value));
      const fragment = await toFragment(shared);
      setLink(`${location.href.split("#")[0] ?? ""}${fragment}`);
      // An embedded story contains its own scenarios. Any other embedded page shows the microscope.
      const embedded = isStory
        ? ownFormula === ""
          ? `#/${place.value}`
          : fragment
        : here === "compare"
          ? ""
          : await toFragment({ ...shared, place: "inside", settings: [] });
      const title = isStory ? "celltrain lab" : `celltrain lab: ${nameNow.value}`;
      setFrame(embedded === "" ? "" : snippet(location.href, embedded, title));
    } catch (error) {
      setFault(message(error));
    }
  };
  const name = String(checked.value?.document.root?.["name"] ?? "");
  const settings = shown?.settings ?? [{ name, toml: toml.value }];
  const found = sources(settings, shippedName);
  const { command, python } = lines(
    found.map((f) => f.source),
    shown?.first ?? firstSeed.value,
    shown?.seeds ?? seedCount.value,
  );
  const file = fileName(shippedName(toml.value) ?? name);
  const files = found.filter((f) => shown === null || !f.isShipped);
  const runs = stale.value || shown !== null ? [] : ensemble.value.runs;
  const hasRequests = (runs[0]?.answer.requests.length ?? 0) > 0;
  // On views without runs, the commands refer to the scenario in the view "Run".
  const ofBench = shown === null && here !== "run" && here !== "inside" ? ` (scenario under “Run”: ${nameNow.value})` : "";
  return (
    <Dialog
      press={
        <>
          <Icon of="share" />
          <span class="tool-text">Share and keep</span>
        </>
      }
      title="Share and keep"
      class="keep"
      onOpen={() => void compress()}
    >
      {() => (
        <>
          <h3>A link to {here === "compare" ? "these settings" : "this scenario"} and the seeds, which opens this page</h3>
          {fault === "" ? <Copy text={link} what="link" /> : <p class="bad-text">{fault}</p>}
          {location.protocol === "file:" && (
            <p class="small warn-text">
              This page is a file on your computer, so others cannot open the link. Give them the scenario file
              or the command below.
            </p>
          )}
          <p class="small soft">
            The link contains the scenario and its seeds. Under “Compare” it also contains all settings, in the story of
            your own policy the formula, and under “Look inside” the instant shown. It contains no results or guesses. The
            part after # never leaves the browser.
          </p>
          {frame !== "" && (
            <>
              <h3>
                Embed {here === "learn" && place.value !== "learn" ? "this story" : "the microscope"} in a slide or a
                course page{ofBench}
              </h3>
              <Copy text={frame} what="embed code" />
              <p class="small soft">
                The frame has {FRAME.width} × {FRAME.height} pixels. The page adapts to other sizes, down to a phone.
                {location.protocol === "file:" && " Put lab.html into the same folder as the page that embeds it."}
              </p>
            </>
          )}
          <h3>Files{ofBench}</h3>
          <div class="row">
            {files.map(({ source, toml: text }) => (
              <button
                type="button"
                key={source}
                onClick={() => {
                  download(source.endsWith(".toml") ? source : `${source}.toml`, text, "application/toml");
                }}
              >
                {shown === null ? "Scenario (TOML)" : source}
              </button>
            ))}
            {shown === null && TABLES.filter(({ of }) => of !== "requests" || hasRequests).map(({ of, called, press }) => (
              <button
                type="button"
                key={of}
                disabled={runs.length === 0}
                onClick={() => {
                  download(`${file}-${called}.csv`, runsCsv(runs, of), "text/csv");
                }}
              >
                {press}
              </button>
            ))}
          </div>
          {shown !== null && files.length < found.length && (
            <p class="small soft">Shipped scenarios do not need a file.</p>
          )}
          {runs.length === 0 && shown === null && <p class="small soft">The tables become available when the scenario has been run.</p>}
          <h3>On the command line{ofBench}</h3>
          <Copy text={command} what="command" />
          <h3>In Python{ofBench}</h3>
          <Copy text={python} what="Python code" />
          {runs.length > 0 && (
            <>
              <p class="small">
                {runs.length === 1
                  ? "The run is identical if its fingerprint is:"
                  : "The runs are identical if their fingerprints are:"}
              </p>
              <Copy
                text={runs.map((r) => `seed ${String(r.seed)}  ${r.answer.fingerprint}`).join("\n")}
                what="fingerprints"
              />
            </>
          )}
        </>
      )}
    </Dialog>
  );
}

/** The scenarios currently shown, and their seeds. */
interface Shown {
  readonly settings: readonly Setting[];
  readonly first: number;
  readonly seeds: number;
}

/** Returns the scenarios that a view compares; null if it shows the scenario of "Run" or no scenario. */
async function onScreen(at: string): Promise<Shown | null> {
  const e = engine.peek();
  const [here, id, n] = at.split("/");
  if (here === "compare" && compared.value.length > 0) {
    return { settings: compared.value, first: firstSeed.value, seeds: seedCount.value };
  }
  const step = STORIES.find((s) => here === "learn" && s.id === id)?.steps[Number(n ?? 1) - 1];
  if (e === null || step === undefined || step.kind === "read") {
    return null;
  }
  if (step.kind === "run") {
    return { settings: await Promise.all(step.variants.map((v) => setting(e, v))), first: 1, seeds: step.seeds };
  }
  const mine = { name: `my policy ${formula.value}`, toml: await ownText(e, formula.value) };
  return { settings: [...classics(), mine], first: 1, seeds: 10 };
}

/** Returns the view of the microscope; null if it does not show this scenario. */
function viewNow(): View | null {
  const looked = lens.detail.peek();
  if (looked === null || lens.overview.peek()?.toml !== toml.peek()) {
    return null;
  }
  return { port: looked.port, from: looked.from, to: looked.to, step: lens.step.peek() };
}

/** Shows text with a button that copies it. */
export function Copy(props: { readonly text: string; readonly what: string }): JSX.Element {
  const pre = useRef<HTMLPreElement>(null);
  const [done, setDone] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(props.text);
      setDone("Copied");
    } catch {
      // If clipboard access is missing (page opened from a file, or denied), selects the text so that the user can copy
      // it.
      const selection = getSelection();
      if (pre.current !== null && selection !== null) {
        selection.selectAllChildren(pre.current);
      }
      setDone("Selected: copy it with Ctrl-C");
    }
  };
  return (
    <div class="code-line">
      <pre ref={pre} tabIndex={0} aria-label={props.what}>
        {props.text === "" ? "…" : props.text}
      </pre>
      <button type="button" onClick={() => void copy()} disabled={props.text === ""}>
        <span aria-live="polite">{done === "" ? "Copy" : done}</span>
        <span class="unseen"> {props.what}</span>
      </button>
    </div>
  );
}
