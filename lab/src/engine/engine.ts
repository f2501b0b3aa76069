/** The page's engine: unpacks the simulator from the page and runs it in workers. */

import { EngineError, type Engine, type Start } from "./api.ts";
import { engineOver } from "./calls.ts";
import { block, type Data } from "./payload.ts";
import { Pool } from "./pool.ts";
import { answerPrograms } from "./programs.ts";

/** Source of the worker, inserted by the build. */
declare const WORKER_SOURCE: string;

/** More workers would need more memory than phones have. */
const MOST_WORKERS = 8;

async function started(): Promise<Engine> {
  const missing = [
    typeof WebAssembly === "object" ? "" : "WebAssembly",
    typeof Worker === "function" ? "" : "workers",
    unpacks() ? "" : "DecompressionStream",
  ].filter((name) => name !== "");
  if (missing.length > 0) {
    const what = missing.join(" and ");
    throw new EngineError(
      "unsupported",
      `This browser lacks ${what}, or has it disabled, so nothing can be simulated here. ` +
        "Firefox 113, Chromium 103 and Safari 16.4 or later work.",
    );
  }
  const [core, text] = await Promise.all([block("celltrain-core"), block("celltrain-data")]);
  const data = JSON.parse(new TextDecoder().decode(text)) as Data;
  let module: WebAssembly.Module;
  try {
    module = await WebAssembly.compile(core);
  } catch (error) {
    throw new EngineError("unsupported", `This browser does not compile the simulator: ${String(error)}`);
  }
  const processors = Math.max(1, Math.min(navigator.hardwareConcurrency || 2, MOST_WORKERS));
  const pool = (size: number) => new Pool(size, module, data.schema, WORKER_SOURCE);
  return engineOver(pool(processors), pool(1), data);
}

/**
 * Returns whether the browser can decompress gzip (used by the page's data) and deflate-raw (used by links), which
 * browsers supported later.
 */
function unpacks(): boolean {
  try {
    return [new DecompressionStream("gzip"), new DecompressionStream("deflate-raw")].length > 0;
  } catch {
    return false;
  }
}

export const start: Start = () => {
  const engine = started();
  answerPrograms(engine);
  return engine;
};
