/** The page's programming interface: `window.celltrain`. */

import type { Answer, Engine } from "./api.ts";

interface Programs {
  /** Returns the object printed by `celltrain run --json`. */
  run(toml: string, seed: number): Promise<Answer>;
  /** Returns the shipped scenarios by name. */
  scenarios(): Promise<Record<string, string>>;
  version(): Promise<string>;
  /** The full engine, as used by the page itself. It may change in any version. */
  engine: Promise<Engine>;
}

declare global {
  interface Window {
    celltrain: Programs;
  }
}

/** Time limit in seconds for calls from programs: practically unlimited. */
const LONG = 1e6;

export function answerPrograms(engine: Promise<Engine>): void {
  // The code that starts the engine has already reported the failure.
  engine.catch(() => undefined);
  window.celltrain = {
    run: async (toml, seed) => (await (await engine).run(toml, seed, { limits: { seconds: LONG } })).answer,
    scenarios: async () => (await engine).scenarios(),
    version: async () => (await engine).version(),
    engine,
  };
}
