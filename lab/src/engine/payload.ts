/** Data embedded in the page: the simulator and the shipped text, compressed, as base64 blocks. */

import { EngineError, type Measures, type PaperRow } from "./api.ts";

/** Shipped texts; written by `build.mjs`. */
export interface Data {
  version: string;
  scenarios: Record<string, string>;
  /** First paragraphs of each model's page. */
  help: Record<string, string>;
  /** JSON Schema of scenarios, as JSON text. */
  schema: string;
  measures: Measures;
  papers: PaperRow[];
}

/** Returns the bytes of an embedded block. */
export async function block(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = document.getElementById(id)?.textContent;
  if (text === undefined || text === null) {
    throw new EngineError("broken", `This page is incomplete: its part "${id}" is missing. Reload the page.`);
  }
  return unpacked(bytes(text.trim()));
}

export async function unpacked(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const all = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) {
    all[at] = text.charCodeAt(at);
  }
  return all;
}
