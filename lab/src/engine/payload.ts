/** What the page carries beside its program: the simulator and its data, compressed, in blocks of base64. */

import { EngineError, type Measures, type PaperRow } from "./api.ts";

/** Shipped texts; written by `build.mjs`. */
export interface Data {
  version: string;
  scenarios: Record<string, string>;
  /** By model the first paragraphs of its page. */
  help: Record<string, string>;
  /** The JSON Schema of a scenario, a JSON text. */
  schema: string;
  measures: Measures;
  papers: PaperRow[];
}

/** Bytes of a block of the page. */
export async function block(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = document.getElementById(id)?.textContent;
  if (text === undefined || text === null) {
    throw new EngineError("broken", `This page is not whole: it lacks its part "${id}". Load it again.`);
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
