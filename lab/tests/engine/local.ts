/** The engine in this thread: the same simulator and calls as in the page, without workers. */

import { readFileSync } from "node:fs";
import type { Engine } from "../../src/engine/api.ts";
import { engineOver } from "../../src/engine/calls.ts";
import { Core } from "../../src/engine/core.ts";
import { unpacked, type Data } from "../../src/engine/payload.ts";
import type { Answers } from "../../src/engine/pool.ts";

/** The page that the tests are of. */
export const PAGE = process.env["CELLTRAIN_LAB"] ?? "../dist/lab.html";

interface Request {
  limits?: { seconds: number };
}

/** The same request with time for a busy machine, where its limit of time is not what a test is about. */
function patient(request: Request): Request {
  const { limits } = request;
  return limits !== undefined && limits.seconds >= 10 ? { ...request, limits: { ...limits, seconds: 1e6 } } : request;
}

/** The bytes of a block of the page. */
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
  const answers: Answers = {
    size: 1,
    ask: async (request, asked = {}) => one.answer(patient(request as Request), asked.onProgress).value,
  };
  return { engine: engineOver(answers, answers, data), core };
}
