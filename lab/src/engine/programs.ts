/** The page's interface for programs: `window.celltrain`. */

import type { Answer, Engine } from "./api.ts";

interface Programs {
  /** Returns the object printed by `celltrain run --json`. */
  run(toml: string, seed: number): Promise<Answer>;
  /** Returns the shipped scenarios by name. */
  scenarios(): Promise<Record<string, string>>;
  version(): Promise<string>;
  /** The full engine, as the page itself uses it; may change with any version. */
  engine: Promise<Engine>;
}

declare global {
  interface Window {
    celltrain: Programs;
  }
}

/** Time limit for calls from programs: in effect unlimited. */
const LONG = 1e6;

export function answerPrograms(engine: Promise<Engine>): void {
  // The code that starts the engine reports why it failed.
  engine.catch(() => undefined);
  window.celltrain = {
    run: async (toml, seed) => (await (await engine).run(toml, seed, { limits: { seconds: LONG } })).answer,
    scenarios: async () => (await engine).scenarios(),
    version: async () => (await engine).version(),
    engine,
  };
}
