/** Chooser for scenarios: the shipped ones by topic, and the rows of tables in papers. */

import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { PaperRow } from "../../engine/api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { number, shortened } from "../parts/format.ts";
import { byTopic } from "./topics.ts";
import { papers, scenarios, shippedName, toml } from "../state.ts";

interface Entry {
  readonly name: string;
  readonly about: string;
  readonly toml: string;
  readonly group: string;
}

/** Number of entries shown at once. The search finds the others. */
const SHOWN = 80;

export function Gallery(): JSX.Element {
  const [search, setSearch] = useState("");
  const id = useId();
  const entries = useMemo(() => [...shipped(scenarios.value), ...rows(papers.value)], [scenarios.value, papers.value]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((e) => {
    // Match only at the start of words: 4 finds table 4, but not a buffer of 24000.
    const text = ` ${e.name} ${e.about} ${e.group}`.toLowerCase();
    return words.every((w) => [" ", "-", "("].some((before) => text.includes(`${before}${w}`)));
  });
  const groups = [...new Set(found.slice(0, SHOWN).map((e) => e.group))];
  return (
    <Dialog press="Choose a scenario …" title="Scenarios" class="gallery">
      {(close) => (
        <>
          <div class="field">
            <label for={id}>Search</label>
            <input
              id={id}
              type="search"
              value={search}
              placeholder="for example: lan fba, or af-96-1269 table 2"
              onInput={(event) => {
                setSearch(event.currentTarget.value);
              }}
            />
          </div>
          {groups.map((g) => (
            <section key={g}>
              <h3>{g}</h3>
              <ul class="gallery-list">
                {found
                  .slice(0, SHOWN)
                  .filter((e) => e.group === g)
                  .map((e) => (
                    <li key={e.name}>
                      <button
                        type="button"
                        onClick={() => {
                          toml.value = e.toml;
                          close();
                        }}
                      >
                        <strong>{e.name}</strong>
                        <span class="small soft">{e.about}</span>
                      </button>
                    </li>
                  ))}
              </ul>
            </section>
          ))}
          <p class="small soft" aria-live="polite">
            {found.length === 0
              ? "No scenario matches."
              : found.length > SHOWN
                ? `The first ${String(SHOWN)} of ${String(found.length)} are shown. Search to find the others.`
                : `${String(found.length)} found.`}
          </p>
        </>
      )}
    </Dialog>
  );
}

function shipped(all: Readonly<Record<string, string>>): Entry[] {
  return byTopic(Object.keys(all)).flatMap(({ title, names }) =>
    names.map((name) => {
      const text = all[name] ?? "";
      return { name, about: about(text), toml: text, group: title };
    }),
  );
}

/** Maximum length of a comment shown; a comment from a link may be longer. */
const MOST_ABOUT = 600;

/** Returns the sentences of a file's first comment, up to the first command in it. */
export function about(text: string): string {
  const lines: string[] = [];
  for (const line of text.slice(0, 2 * MOST_ABOUT).split("\n")) {
    if (!line.startsWith("#") || line.trim() === "#") {
      break;
    }
    lines.push(line.replace(/^#\s?/, ""));
  }
  return shortened(lines.join(" "), MOST_ABOUT);
}

/** Returns the description of a text. If a shipped scenario was changed, its comment still describes the original. */
export function aboutNow(text: string): string {
  const words = about(text);
  const isChanged = words !== "" && shippedName(text) === null;
  return isChanged && Object.values(scenarios.value).some((t) => about(t) === words)
    ? `You have changed it. As shipped: ${words}`
    : words;
}

function rows(all: readonly PaperRow[]): Entry[] {
  return all.map((r) => {
    const keys = Object.entries(r.keys).map(([key, value]) => `${key.replaceAll("_", " ")} ${String(value)}`);
    const printed = Object.entries(r.published).map(([key, value]) => `${key.replaceAll("_", " ")} ${number(value)}`);
    return {
      name: keys.join(", "),
      about: `published: ${printed.join(", ")}`,
      toml: r.toml,
      group: `${r.paper}, ${r.heading}`,
    };
  });
}
