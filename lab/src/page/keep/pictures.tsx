/** Presses that take a picture of the page away. */

import type { JSX } from "preact";
import { message, said } from "../state.ts";
import { download, png, standaloneSvg } from "./files.ts";

/** For the drawing with this id, or the canvas in it. */
export function Pictures(props: { readonly of: string; readonly name: string }): JSX.Element {
  const found = (): Element | null => document.getElementById(props.of);
  const asPng = async (): Promise<void> => {
    const element = found();
    try {
      if (element instanceof SVGSVGElement) {
        download(`${props.name}.png`, await png(element));
      } else {
        const canvas = element instanceof HTMLCanvasElement ? element : element?.querySelector("canvas");
        canvas?.toBlob((blob) => {
          if (blob !== null) {
            download(`${props.name}.png`, blob);
          }
        });
      }
    } catch (error) {
      said.value = message(error);
    }
  };
  const asSvg = (): void => {
    const element = found();
    if (element instanceof SVGSVGElement) {
      download(`${props.name}.svg`, standaloneSvg(element), "image/svg+xml");
    }
  };
  // What is drawn as SVG has an id that says so; the element is not there yet when this is drawn first.
  const drawn = props.of.endsWith("-svg");
  return (
    <span class="pictures">
      <button type="button" class="quiet small" onClick={() => void asPng()}>
        PNG
      </button>
      {drawn && (
        <button type="button" class="quiet small" onClick={asSvg}>
          SVG
        </button>
      )}
    </span>
  );
}
