/** Buttons that export pictures of the page. */

import type { JSX } from "preact";
import { message, said } from "../state.ts";
import { download, png, standaloneSvg, type Head } from "./files.ts";

/** Renders the buttons for the drawing, plot or canvas with this id. */
export function Pictures(props: {
  readonly of: string;
  readonly name: string;
  /** Returns the text shown around the picture when it is exported. */
  readonly head: () => Head | Promise<Head>;
}): JSX.Element {
  const take = async (form: "png" | "svg"): Promise<void> => {
    try {
      const head = await props.head();
      const element = document.getElementById(props.of);
      if (form === "svg" && element instanceof SVGSVGElement) {
        download(`${props.name}.svg`, standaloneSvg(element, head).text, "image/svg+xml");
      } else if (form === "png") {
        const blob = await png(props.of, head);
        if (blob !== null) {
          download(`${props.name}.png`, blob);
        }
      }
    } catch (error) {
      said.value = message(error);
    }
  };
  // The ids of SVG drawings end in "-svg". At the first render, the element does not exist yet.
  const drawn = props.of.endsWith("-svg");
  return (
    <span class="pictures">
      <button type="button" class="quiet small" onClick={() => void take("png")}>
        PNG
      </button>
      {drawn && (
        <button type="button" class="quiet small" onClick={() => void take("svg")}>
          SVG
        </button>
      )}
    </span>
  );
}
