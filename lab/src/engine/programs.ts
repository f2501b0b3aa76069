/** What the page answers to programs: `window.celltrain`. */

import type { Answer, Engine } from "./api.ts";

interface Programs {
  /** The object of `celltrain run --json`. */
  run(toml: string, seed: number): Promise<Answer>;
  /** Shipped scenarios by name. */
  scenarios(): Promise<Record<string, string>>;
  version(): Promise<string>;
  /** All that the page itself asks; may change with any version. */
  engine: Promise<Engine>;
}

declare global {
  interface Window {
    celltrain: Programs;
  }
}

/** Who asks programs asks without a limit of time. */
const LONG = 1e6;

export function answerPrograms(engine: Promise<Engine>): void {
  // Whoever starts the engine is told why it cannot be.
  engine.catch(() => undefined);
  window.celltrain = {
    run: async (toml, seed) => (await (await engine).run(toml, seed, { limits: { seconds: LONG } })).answer,
    scenarios: async () => (await engine).scenarios(),
    version: async () => (await engine).version(),
    engine,
  };
}
