/** Share and keep: a link, code to embed the page, files, and the lines that give the same result elsewhere. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { compared } from "../compare/state.ts";
import { FRAME, snippet } from "../link/embed.ts";
import { toFragment, type View } from "../link/link.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import * as lens from "../see/lens.ts";
import {
  checked,
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
import { lines } from "./lines.ts";

/** The tables of a run that there are as files. */
const TABLES = [
  { of: "flows", called: "connections", press: "Connections (CSV)" },
  { of: "ports", called: "ports", press: "Ports (CSV)" },
] as const;

export function Keep(): JSX.Element {
  const [link, setLink] = useState("");
  const [frame, setFrame] = useState("");
  const [fault, setFault] = useState("");
  const here = place.value.split("/")[0] ?? "";
  const compress = async (): Promise<void> => {
    setLink("");
    setFrame("");
    setFault("");
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
      const fragment = await toFragment(shared);
      setLink(`${location.href.split("#")[0] ?? ""}${fragment}`);
      // A story brings its own scenarios; everywhere else the microscope is what fits into a frame.
      const embedded = isStory
        ? ownFormula === ""
          ? `#/${place.value}`
          : fragment
        : await toFragment({ ...shared, place: "inside", settings: [] });
      const title = isStory ? "celltrain lab" : `celltrain lab: ${nameNow.value}`;
      setFrame(snippet(location.href, embedded, title));
    } catch (error) {
      setFault(message(error));
    }
  };
  const name = String(checked.value?.document.root?.["name"] ?? "");
  const file = fileName(shippedName(toml.value) ?? name);
  const { command, python } = lines(file, shippedName(toml.value), firstSeed.value, seedCount.value);
  const runs = stale.value ? [] : ensemble.value.runs;
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
          <h3>A link to {here === "compare" ? "these settings" : "this scenario"}, its seeds and this place</h3>
          {fault === "" ? <Copy text={link} what="link" /> : <p class="bad-text">{fault}</p>}
          <p class="small soft">
            The link holds the scenario and its seeds; under “Compare” also all settings, in the story of your own
            policy its formula, and under “Look inside” the instant you see. Results and guesses are not in it. The part
            after # never leaves the browser.
          </p>
          {frame !== "" && (
            <>
              <h3>
                Embed {here === "learn" && place.value !== "learn" ? "this story" : "the microscope"} in a slide or a
                course page
              </h3>
              <Copy text={frame} what="embed code" />
              <p class="small soft">
                {FRAME.width} × {FRAME.height} pixels; the page adapts to any other size, down to a phone.
                {location.protocol === "file:" && " Put lab.html in the folder of the page that embeds it."}
              </p>
            </>
          )}
          <h3>Files</h3>
          <div class="row">
            <button
              type="button"
              onClick={() => {
                download(`${file}.toml`, toml.value, "application/toml");
              }}
            >
              Scenario (TOML)
            </button>
            {TABLES.map(({ of, called, press }) => (
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
          {runs.length === 0 && <p class="small soft">The tables are there once the scenario has been run.</p>}
          <h3>The same on the command line</h3>
          <Copy text={command} what="command" />
          <h3>The same in Python</h3>
          <Copy text={python} what="lines of Python" />
          {runs.length > 0 && (
            <>
              <p class="small">
                {runs.length === 1
                  ? "It is the same run if its fingerprint is:"
                  : "They are the same runs if they print:"}
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

/** Returns the view of the microscope; null if it shows nothing of this scenario. */
function viewNow(): View | null {
  const looked = lens.closely.peek();
  if (looked === null || lens.overview.peek()?.toml !== toml.peek()) {
    return null;
  }
  return { port: looked.port, from: looked.from, to: looked.to, step: lens.step.peek() };
}

/** A text with a press that copies it. */
export function Copy(props: { readonly text: string; readonly what: string }): JSX.Element {
  const pre = useRef<HTMLPreElement>(null);
  const [done, setDone] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(props.text);
      setDone("Copied");
    } catch {
      // From a file or without leave there is no clipboard: then it is marked, to be copied by hand.
      const selection = getSelection();
      if (pre.current !== null && selection !== null) {
        selection.selectAllChildren(pre.current);
      }
      setDone("Marked: copy it with Ctrl-C");
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
