/** The link from an embedded page to the full lab. */

import type { JSX } from "preact";
import { unframed } from "../link/embed.ts";
import { place } from "../state.ts";

export function ToLab(): JSX.Element {
  // Reading `place` makes the link render again when the address changes.
  void place.value;
  return (
    <a class="small" href={unframed(location)} target="_blank" rel="noopener">
      Open in the lab ↗
    </a>
  );
}
