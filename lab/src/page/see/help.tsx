/** Help for the microscope, behind a "?" button: how to read and use it. */

import type { JSX } from "preact";
import { Dialog } from "../parts/dialog.tsx";

const CONTROLS = [
  ["Play or pause", "▶", "Space"],
  ["Step", "‹ and ›", "← → by cell, Shift + ← → by frame, L by loss, T by timeout; Shift + L or T goes back"],
  ["Inspect a cell", "Point at it", "Arrow keys in the buffer"],
  ["Lose a cell", "Click it, then “Lose it on the link”", "Arrow keys in the buffer, Tab, then Enter"],
  ["Look at another port", "Click its bar in the network", "Tab to the bar, then Enter"],
  ["The whole run", "Drag to zoom in, click to jump", "← → move the window, + − resize it, Enter looks at it"],
  ["The whole run, with the wheel", "Shift + wheel moves, Ctrl + wheel resizes", ""],
  ["Plots below", "Drag or Ctrl + wheel zooms, Shift + wheel moves, click jumps", "+ − zoom, ← → move, 0 shows all"],
] as const;

export function Help(): JSX.Element {
  return (
    <Dialog
      press={
        <>
          <span aria-hidden="true">?</span>
          <span class="unseen">Help for this page</span>
        </>
      }
      title="Reading and using the microscope"
      class="help"
    >
      {() => (
        <>
          <ul>
            <li>
              A square is a cell. The oldest is top left. Its colour is its connection; a lighter shade marks every
              other frame, and a dark edge ends a frame.
            </li>
            <li>
              A <strong>hatched</strong> cell belongs to a frame that the receiver will throw away, so transmitting
              the cell is wasted. Either the frame has lost a cell, or the previous frame has lost its last cell and
              the receiver joins both.
            </li>
            <li>
              A bar in the network is the queue of a port. The cells on its link are the most recently sent ones;
              cells of damaged frames are crossed out. The selected port is exact, the others are sampled.
            </li>
            <li>All pictures show the same instant.</li>
          </ul>
          <div class="scroll" tabIndex={0} role="region" aria-label="Controls">
            <table class="controls">
              <thead>
                <tr>
                  <th scope="col">action</th>
                  <th scope="col">mouse</th>
                  <th scope="col">keyboard</th>
                </tr>
              </thead>
              <tbody>
                {CONTROLS.map(([what, mouse, keys]) => (
                  <tr key={what}>
                    <th scope="row">{what}</th>
                    <td>{mouse}</td>
                    <td>{keys}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Dialog>
  );
}
