/** The lines that give the same result outside the page. */

import { fileName } from "./files.ts";

export interface Lines {
  readonly command: string;
  readonly python: string;
}

/** `shipped`: the scenario's name if it is as celltrain ships it; otherwise the lines are for the downloaded file. */
export function lines(scenario: string, shipped: string | null, first: number, seeds: number): Lines {
  const source = shipped ?? `${fileName(scenario)}.toml`;
  const many = seeds === 1 ? "" : ` --seeds ${String(seeds)} --fingerprints`;
  const range = `range(${String(first)}, ${String(first + seeds)})`;
  return {
    command: `celltrain run ${source} --seed ${String(first)}${many}`,
    python:
      seeds === 1
        ? `import celltrain as ct\n\nresult = ct.run("${source}", seed=${String(first)})\nprint(result.efficiency, result.fairness, result.fingerprint)`
        : `import celltrain as ct\n\nruns = [ct.run("${source}", seed=seed) for seed in ${range}]\nfor run in runs:\n    print(f"seed {run.seed}  {run.fingerprint}")`,
  };
}
