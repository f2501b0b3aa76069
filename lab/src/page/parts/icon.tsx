/** Icons on buttons, drawn in the colour of the button's text. */

import type { JSX } from "preact";

const PATHS = {
  share: "M8 10V1.5M4.5 5 8 1.5 11.5 5M3 8v6.5h10V8",
} as const;

export function Icon(props: { readonly of: keyof typeof PATHS }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[props.of]} />
    </svg>
  );
}
