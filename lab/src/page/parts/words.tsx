/** Jargon with its meaning in plain language, on hover, focus and for screen readers. */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** Each in one or two sentences, for somebody who has heard one lecture on TCP. */
export const MEANINGS = {
  cell: "A small packet of fixed size: 53 bytes, of which 48 are data. ATM switches move nothing else.",
  frame: "What carries one TCP segment: it is cut into cells, and useless as soon as one of them is missing.",
  VC: "Virtual channel: the path of one connection's cells through the switches.",
  cwnd: "Congestion window: how much the sender dares to have on its way without an acknowledgement.",
  ssthresh:
    "Slow start threshold: below this window the sender doubles it every round trip, above it adds one segment.",
  efficiency: "What all receivers got together, divided by what one full link could deliver. 1 is all of it.",
  fairness: "Jain's index: 1 if all connections got the same, 1/N if one of N got everything.",
  "tail drop": "The buffer takes cells until it is full, and loses what comes then.",
  PPD: "Partial packet discard: once a frame has lost a cell, its other cells are refused too.",
  EPD: "Early packet discard: while more than a threshold of cells wait, no new frame may start.",
  "Selective Drop": "Above a threshold, a connection that holds more than its share may not start a frame.",
  FBA: "Fair buffer allocation: like Selective Drop, with a share that shrinks as the buffer fills.",
  timeout: "No acknowledgement came in time: the sender starts again with a window of one segment.",
  tick: "The sender's timer is a coarse clock: it is looked at only so often.",
  "round trip": "The time from sending a segment until its acknowledgement is back.",
  ABR: "Available bit rate: the network tells each source how fast it may send, by cells that go around.",
  "explicit rate": "The switch writes into those cells the rate that a source may have, as a number.",
  "edge device": "Where an IP network meets the ATM network: it takes whole packets and sends them as cells.",
  K: "The places of the buffer, in cells.",
  X: "The cells that wait in the buffer now.",
  Y: "The cells of this frame's connection that wait now.",
  N: "How many connections have cells waiting now.",
  seed: "The number that all random choices of a run follow from. The same seed gives the same run.",
  "95 % interval": "Were all of it done again with other seeds, 95 of 100 such intervals would hold the true mean.",
  fingerprint: "A short code of all that happened in a run. Two runs with the same code are the same run.",
} as const;

export type Term = keyof typeof MEANINGS;

export function Word(props: { readonly of: Term; readonly children?: ComponentChildren }): JSX.Element {
  const id = useId();
  return (
    <button type="button" class="word" aria-describedby={id}>
      {props.children ?? props.of}
      <span class="word-meaning" role="tooltip" id={id}>
        {MEANINGS[props.of]}
      </span>
    </button>
  );
}
