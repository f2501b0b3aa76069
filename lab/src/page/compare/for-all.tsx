/** A row of controls that set the sources, buffer and TCP of all compared scenarios. */

import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { Value } from "../form/schema.ts";
import { kindName } from "../parts/names.ts";
import { engine, message, said } from "../state.ts";
import { Turning } from "./turning.tsx";
import { bufferOf, setBuffer, setSources, setTcp, sourcesOf, tcpOf, type Edit } from "./for-all.ts";
import { plain, round, type Knob } from "./knobs.ts";
import { change, type Compared } from "./state.ts";

type Root = { readonly [key: string]: Value };

const TCPS = ["vanilla", "tahoe", "reno", "newreno", "newreno_hoe", "sack", "sack_pipe"] as const;

export function ForAll(props: { readonly settings: readonly Compared[]; readonly onChanged: () => void }): JSX.Element {
  const { settings } = props;
  const id = useId();
  const roots = useRoots(settings);
  const sources = roots.map(sourcesOf).filter((v) => v !== null);
  const buffers = roots.map(bufferOf).filter((v) => v !== null);
  const tcps = [...new Set(roots.map(tcpOf))];
  const tcp = TCPS.find((one) => tcps.length === 1 && one === tcps[0]) ?? "";
  const apply = async (edits: (root: Root) => readonly Edit[]): Promise<void> => {
    const e = engine.value;
    if (e === null) {
      return;
    }
    try {
      for (const { id: of, toml } of settings) {
        const { root } = await e.document(toml);
        let text = toml;
        for (const { path, value } of root === null ? [] : edits(root as Root)) {
          text = await e.edit(text, [...path], value);
        }
        change(of, { toml: text });
      }
      props.onChanged();
    } catch (error) {
      said.value = message(error);
    }
  };
  return (
    <fieldset class="for-all">
      <legend>For all</legend>
      {sources.length > 0 && (
        <Turning
          knob={shared("Sources", sources, 1, 30, 1)}
          onTurn={(value) => void apply((root) => setSources(root, value))}
        />
      )}
      {buffers.length > 0 && (
        <Turning
          knob={shared("Buffer K, cells", buffers, 100, 4000, 100)}
          onTurn={(value) => void apply((root) => setBuffer(root, value))}
        />
      )}
      <div class="field">
        <label for={id}>TCP</label>
        <select
          id={id}
          value={tcp}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            void apply((root) => setTcp(root, chosen));
          }}
        >
          {tcp === "" && (
            <option value="" disabled>
              {tcps.length === 1 ? kindName(tcps[0] ?? "") : "different"}
            </option>
          )}
          {TCPS.map((one) => (
            <option key={one} value={one}>
              {kindName(one)}
            </option>
          ))}
        </select>
      </div>
      <p class="small soft">Thresholds in cells scale with the buffer.</p>
    </fieldset>
  );
}

/** Returns a slider for a number in several scenarios. It shows "different" if their values differ. */
function shared(label: string, values: readonly number[], min: number, max: number, step: number): Knob {
  const value = values[0] ?? min;
  const knob = plain([], label, value, Math.min(min, value), Math.max(max, 2 * round(value)), step);
  const isMixed = new Set(values).size > 1;
  return { ...knob, text: (v) => (isMixed && v === value ? "different" : knob.text(v)) };
}

/** Returns the parsed values of each text that is valid TOML. */
function useRoots(settings: readonly Compared[]): readonly Root[] {
  const [roots, setRoots] = useState<readonly Root[]>([]);
  useEffect(() => {
    let current = true;
    const e = engine.value;
    if (e !== null) {
      void Promise.all(settings.map((s) => e.document(s.toml)))
        .then((all) => {
          if (current) {
            setRoots(all.flatMap(({ root }) => (root === null ? [] : [root as Root])));
          }
        })
        .catch(() => undefined);
    }
    return () => {
      current = false;
    };
  }, [settings]);
  return roots;
}
