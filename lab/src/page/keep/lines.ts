/** Commands that reproduce the result outside the page. */

import { fileName } from "./files.ts";

export interface Lines {
  readonly command: string;
  readonly python: string;
}

/** A displayed scenario and where celltrain finds it: the name of a shipped scenario, or the name of the downloaded
 * file. */
export interface Source {
  readonly source: string;
  readonly isShipped: boolean;
  readonly toml: string;
}

/** Returns a source for each text, with unique file names. */
export function sources(
  texts: readonly { readonly name: string; readonly toml: string }[],
  shippedName: (toml: string) => string | null,
): Source[] {
  const taken = new Set<string>();
  return texts.map(({ name, toml }, i) => {
    const shipped = shippedName(toml);
    const file = fileName(name);
    const source = shipped ?? `${file}${taken.has(`${file}.toml`) ? `-${String(i + 1)}` : ""}.toml`;
    taken.add(source);
    return { source, isShipped: shipped !== null, toml };
  });
}

/** Returns the command and the Python code that run one scenario, or compare several with the same seeds. */
export function lines(names: readonly string[], first: number, seeds: number): Lines {
  const quoted = names.map((name) => JSON.stringify(name)).join(", ");
  const from = first === 1 ? "" : `, first_seed=${String(first)}`;
  if (names.length !== 1) {
    return {
      command: `celltrain compare ${names.join(" ")} --seed ${String(first)} --seeds ${String(seeds)}`,
      python: `import celltrain as ct\n\nprint(ct.compare([${quoted}], seeds=${String(seeds)}${from}))`,
    };
  }
  const many = seeds === 1 ? "" : ` --seeds ${String(seeds)} --fingerprints`;
  const range = `range(${String(first)}, ${String(first + seeds)})`;
  return {
    command: `celltrain run ${names[0] ?? ""} --seed ${String(first)}${many}`,
    python:
      seeds === 1
        ? `import celltrain as ct\n\nresult = ct.run(${quoted}, seed=${String(first)})\nprint(result.efficiency, result.fairness, result.fingerprint)`
        : `import celltrain as ct\n\nruns = [ct.run(${quoted}, seed=seed) for seed in ${range}]\nfor run in runs:\n    print(f"seed {run.seed}  {run.fingerprint}")`,
  };
}
