/** The engine in this thread: the page's simulator and calls, without workers. */

import { readFileSync } from "node:fs";
import type { Engine } from "../../src/engine/api.ts";
import { engineOver } from "../../src/engine/calls.ts";
import { Core } from "../../src/engine/core.ts";
import { unpacked, type Data } from "../../src/engine/payload.ts";
import type { Backend } from "../../src/engine/pool.ts";

/** The page to test. */
export const PAGE = process.env["CELLTRAIN_LAB"] ?? "../dist/lab.html";

interface Request {
  limits?: { seconds: number };
}

/** Raises the time limit of a request so that tests also pass on busy machines, unless the limit itself is under test. */
function patient(request: Request): Request {
  const { limits } = request;
  return limits !== undefined && limits.seconds >= 10 ? { ...request, limits: { ...limits, seconds: 1e6 } } : request;
}

/** Returns the decompressed contents of a data block in the page. */
async function block(html: string, id: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = new RegExp(`id="${id}">([^<]*)</script>`).exec(html)?.[1];
  if (text === undefined) {
    throw new Error(`${PAGE} has no block ${id}`);
  }
  return unpacked(new Uint8Array(Buffer.from(text, "base64")));
}

export async function local(): Promise<{ engine: Engine; core: () => Promise<Core> }> {
  const html = readFileSync(PAGE, "utf8");
  const module = await WebAssembly.compile(await block(html, "celltrain-core"));
  const data = JSON.parse(new TextDecoder().decode(await block(html, "celltrain-data"))) as Data;
  const core = () => Core.of(module, data.schema);
  const one = await core();
  const backend: Backend = {
    size: 1,
    ask: async (request, options = {}) => one.answer(patient(request as Request), options.onProgress).value,
  };
  return { engine: engineOver(backend, backend, data), core };
}
