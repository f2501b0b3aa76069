/** Jargon with its meaning in plain language, on hover, focus and for screen readers. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";

/** Each in one or two sentences, for somebody who has heard one lecture on TCP. */
export const MEANINGS = {
  cell: "A small packet of fixed size: 53 bytes, of which 48 are data. ATM switches move nothing else.",
  segment: "A piece of TCP's data with a header, sent as one.",
  frame: "Carries one TCP segment. It is cut into cells, and useless if one of them is missing.",
  VC: "Virtual channel: the path of one connection's cells through the switches.",
  cwnd: "Congestion window: how much the sender may have in flight without an acknowledgement.",
  ssthresh:
    "Slow start threshold: below this window the sender doubles it every round trip, above it adds one segment.",
  efficiency: "Data that all receivers got together, divided by what a full link could deliver. 1 is the best.",
  fairness: "Jain's index: 1 if all connections got the same, 1/N if one of N got everything, undefined if none got anything.",
  "tail drop": "The buffer accepts cells until it is full, then loses every cell that arrives.",
  PPD: "Partial packet discard: once a frame has lost a cell, its other cells are refused too.",
  EPD: "Early packet discard: no new frame may start while more cells wait than a threshold.",
  "Selective Drop": "Above a threshold, a connection that holds more than its share may not start a frame.",
  FBA: "Fair buffer allocation: like Selective Drop, with a share that shrinks as the buffer fills.",
  timeout: "No acknowledgement arrived in time: the sender starts again with a window of one segment.",
  tick: "The sender's timer is a coarse clock. It advances once per tick.",
  "retransmission timer": "How long a sender waits for an acknowledgement before it sends a segment again.",
  "fast retransmit": "Three acknowledgements of the same byte show that a segment is missing, without waiting for a timer.",
  "round trip": "The time from sending a segment until its acknowledgement arrives.",
  ABR: "Available bit rate: the network tells each source in control cells how fast it may send.",
  UBR: "Unspecified bit rate: every source may send as fast as its link, and the network promises nothing.",
  "adaptive discard": "An edge device drops packets early: the further its allowed rate has fallen, the more.",
  "virtual queuing":
    "One queue for all, and for each connection a count of the cells it would have waiting if all were served in turns.",
  "per-VC queuing": "A queue for each connection, served in turns.",
  "explicit rate": "The switch writes the rate that a source may use into control cells, as a number.",
  "edge device": "Where an IP network meets the ATM network: it takes whole packets and sends them as cells.",
  K: "The size of the buffer, in cells.",
  X: "Cells waiting in the buffer now.",
  Y: "Waiting cells of the frame's own connection.",
  N: "Connections that have cells waiting now.",
  seed: "The number that determines all random choices of a run. The same seed gives the same run.",
  "95 % interval": "If all were repeated with other seeds, 95 of 100 such intervals would contain the true mean.",
  fingerprint: "A short code for everything that happened in a run. Runs with the same code are the same run.",
} as const;

export type Term = keyof typeof MEANINGS;

/** Pixels that a meaning may need at the right of its word. */
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

/** A term of one letter is one only where it is spoken of as such. */
const LETTERS: ReadonlySet<string> = new Set(["K", "X", "Y", "N"]);

const TERMS = (Object.keys(MEANINGS) as Term[]).sort((a, b) => b.length - a.length);

/** Terms as words of a text, in the plural too; not within a longer word, and a letter only beside other words. */
const FOUND = new RegExp(`(?<![\\w-])(${TERMS.join("|")})(?=s?(?![\\w-]))`, "i");

/** A text in parts: words as they are, and terms that stand in it for the first time. */
export function parts(
  text: string,
  met: Set<Term>,
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
    if (term === undefined || met.has(term)) {
      passed += rest.slice(0, end);
    } else {
      met.add(term);
      found.push(passed + rest.slice(0, match.index), { term, text: written + plural });
      passed = "";
    }
    rest = rest.slice(end);
  }
  return [...found, passed + rest];
}

/** Longer names may break, so that a phone has room for them. */
const MOST_UNBROKEN = 24;

/** A name such as `sw1->sw2`, which is not broken between its parts. */
export function Name(props: { readonly children: string }): JSX.Element {
  return <span class={props.children.length <= MOST_UNBROKEN ? "name" : ""}>{props.children}</span>;
}

const LINK = /(\S*->\S*[^\s.,:;)])/;

/** A text in which names of links and short formulas, such as `X < 0.8 * K`, are not broken. */
export function Prose(props: { readonly text: string }): JSX.Element {
  // Every other part is a link.
  return (
    <>{props.text.split(LINK).map((part, i) => (i % 2 === 1 ? <Name key={i}>{part}</Name> : unbroken(part)))}</>
  );
}

/** Replaces the spaces around operators by spaces that do not break. */
export function unbroken(text: string): string {
  return text.replace(/(?<=[\w)]) ([<>]=?|=|[*\/]) (?=[\w(.])/g, "\u00a0$1\u00a0");
}

function punctuation(text: string): string {
  return /^[).,;:?!]+/.exec(text)?.[0] ?? "";
}

/** Paragraphs, in which a term has its meaning where it stands first. */
export function Told(props: { readonly texts: readonly string[] }): JSX.Element {
  const met = new Set<Term>();
  return (
    <>
      {props.texts.map((text) => (
        <p key={text}>
          {parts(text, met).map((part, i, all) => {
            // Punctuation stays on the line of its term.
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
