/** A slider for a numeric setting. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Slider } from "../parts/parts.tsx";
import type { Knob } from "./knobs.ts";

/** Shows changes immediately, but reports the value only 0.35 s after the last change. */
export function Turning(props: { readonly knob: Knob; readonly onTurn: (value: number) => void }): JSX.Element {
  const { knob } = props;
  const [value, setValue] = useState(knob.value);
  useEffect(() => {
    setValue(knob.value);
  }, [knob.value]);
  useEffect(() => {
    if (value === knob.value) {
      return undefined;
    }
    const timer = setTimeout(() => {
      props.onTurn(value);
    }, 350);
    return () => {
      clearTimeout(timer);
    };
  }, [value]);
  return (
    <Slider
      label={knob.label}
      value={value}
      min={knob.min}
      max={knob.max}
      step={knob.step}
      text={knob.text(value)}
      onChange={setValue}
    />
  );
}
