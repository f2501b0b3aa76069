/** Technical terms with their meaning on hover, on focus and for screen readers. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import glossary from "../../../../docs/glossary.md";

/** Terms of `docs/glossary.md` that the lab explains. */
const EXPLAINED = [
  "cell", "segment", "frame", "VC", "cwnd", "ssthresh", "efficiency", "fairness", "tail drop",
  "PPD", "EPD", "Selective Drop", "FBA", "timeout", "tick", "retransmission timer",
  "fast retransmit", "round trip", "ABR", "UBR", "adaptive discard", "virtual queuing",
  "per-VC queuing", "explicit rate", "edge device", "K", "X", "Y", "N", "seed", "95 % interval",
  "fingerprint", "request", "incast", "completion time", "slowdown",
] as const;

export type Term = (typeof EXPLAINED)[number];

/** Meaning of each term, from the table in the glossary. */
export const MEANINGS: Readonly<Record<Term, string>> = meanings();

function meanings(): Record<Term, string> {
  const rows = new Map([...glossary.matchAll(/^\| (.+?) \| (.+) \|$/gm)].map((row) => [row[1], row[2]]));
  const pairs = EXPLAINED.map((term) => {
    const meaning = rows.get(term);
    if (meaning === undefined) {
      throw new Error(`docs/glossary.md does not have the term: ${term}`);
    }
    return [term, meaning] as const;
  });
  return Object.fromEntries(pairs) as Record<Term, string>;
}

/** Width in pixels that a tooltip may need to the right of its term. */
const ROOM = 340;

export function Word(props: { readonly of: Term; readonly children?: ComponentChildren }): JSX.Element {
  const id = useId();
  const [toLeft, setToLeft] = useState(false);
  const place = (event: { readonly currentTarget: HTMLElement }): void => {
    setToLeft(event.currentTarget.getBoundingClientRect().left + ROOM > innerWidth);
  };
  return (
    <button
      type="button"
      class={`word${toLeft ? " to-left" : ""}`}
      aria-describedby={id}
      onMouseEnter={place}
      onFocus={place}
    >
      {props.children ?? props.of}
      <span class="word-meaning" role="tooltip" id={id}>
        {MEANINGS[props.of]}
      </span>
    </button>
  );
}

/** Terms of one letter. Their case must match. */
const LETTERS: ReadonlySet<string> = new Set(["K", "X", "Y", "N"]);

const TERMS = [...EXPLAINED].sort((a, b) => b.length - a.length);

/** Matches terms in text, including plurals, but not inside longer words. */
const FOUND = new RegExp(`(?<![\\w-])(${TERMS.join("|")})(?=s?(?![\\w-]))`, "i");

/** Splits text into plain parts and the first occurrences of terms. */
export function parts(
  text: string,
  seen: Set<Term>,
): readonly (string | { readonly term: Term; readonly text: string })[] {
  const found: (string | { readonly term: Term; readonly text: string })[] = [];
  let rest = text;
  let passed = "";
  for (let match = FOUND.exec(rest); match !== null; match = FOUND.exec(rest)) {
    const written = match[0];
    const plural = rest[match.index + written.length] === "s" ? "s" : "";
    const end = match.index + written.length + plural.length;
    const term = TERMS.find((t) =>
      LETTERS.has(t) || t === t.toUpperCase() ? t === written : t.toLowerCase() === written.toLowerCase(),
    );
    if (term === undefined || seen.has(term)) {
      passed += rest.slice(0, end);
    } else {
      seen.add(term);
      found.push(passed + rest.slice(0, match.index), { term, text: written + plural });
      passed = "";
    }
    rest = rest.slice(end);
  }
  return [...found, passed + rest];
}

/** Longer names may break across lines, so that they fit on a phone. */
const MOST_UNBROKEN = 24;

/** Shows a name such as `sw1->sw2`, which does not break across lines. */
export function Name(props: { readonly children: string }): JSX.Element {
  return <span class={props.children.length <= MOST_UNBROKEN ? "name" : ""}>{props.children}</span>;
}

const LINK = /(\S*->\S*[^\s.,:;)])/;

/** Shows text in which link names and short formulas, such as `X < 0.8 * K`, do not break. */
export function Prose(props: { readonly text: string }): JSX.Element {
  // Every second part of the text is a link.
  return (
    <>{props.text.split(LINK).map((part, i) => (i % 2 === 1 ? <Name key={i}>{part}</Name> : unbroken(part)))}</>
  );
}

/** Replaces the spaces around operators with non-breaking spaces. */
export function unbroken(text: string): string {
  return text.replace(/(?<=[\w)]) ([<>]=?|=|[*\/]) (?=[\w(.])/g, "\u00a0$1\u00a0");
}

function punctuation(text: string): string {
  return /^[).,;:?!]+/.exec(text)?.[0] ?? "";
}

/** Shows paragraphs, and adds a tooltip to the first occurrence of each term. */
export function Explained(props: { readonly texts: readonly string[] }): JSX.Element {
  const seen = new Set<Term>();
  return (
    <>
      {props.texts.map((text) => (
        <p key={text}>
          {parts(text, seen).map((part, i, all) => {
            // Keep punctuation on the same line as its term.
            if (typeof part === "string") {
              return unbroken(part.slice(i === 0 ? 0 : punctuation(part).length));
            }
            const after = all[i + 1];
            return (
              <span key={i} class="name">
                <Word of={part.term}>{part.text}</Word>
                {typeof after === "string" ? punctuation(after) : ""}
              </span>
            );
          })}
        </p>
      ))}
    </>
  );
}
