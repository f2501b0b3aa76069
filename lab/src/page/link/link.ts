/**
 * A link that holds the whole scenario: the file itself and the seeds, compressed, behind the `#` of the address.
 *
 * The fragment never leaves the browser. It is `#v1.` and, in base64url, the raw-deflate form of a JSON object. What
 * comes out of a link is a text for the editor and some numbers, nothing else: every field is checked here.
 */

/** What a link can hold. */
export interface Shared {
  readonly toml: string;
  /** The first seed; the others follow it. */
  readonly seed: number;
  readonly seeds: number;
  /** The place in the page, for example `learn/one-cell/2`. */
  readonly place: string;
}

/** Larger scenarios are shared as files. */
export const MOST_CHARACTERS = 200_000;
export const MOST_SEEDS = 200;
const MARK = "v1.";

/** What a link cannot be read for, in words for the page. */
export class LinkFault extends Error {}

export async function toFragment(shared: Shared): Promise<string> {
  const json = JSON.stringify({ toml: shared.toml, seed: shared.seed, seeds: shared.seeds, place: shared.place });
  if (json.length > MOST_CHARACTERS) {
    throw new LinkFault("This scenario is too large for a link. Download it as a file and share that.");
  }
  const packed = await through(new TextEncoder().encode(json), new CompressionStream("deflate-raw"));
  return `#${MARK}${toBase64Url(packed)}`;
}

/** Reads a fragment with or without its `#`; throws a LinkFault that says in words what is wrong. */
export async function fromFragment(fragment: string): Promise<Shared> {
  const text = fragment.replace(/^#/, "");
  const version = /^v(\d+)\./.exec(text);
  if (version === null) {
    throw new LinkFault("This link holds no scenario of the lab. A standard scenario is shown instead.");
  }
  if (version[0] !== MARK) {
    throw new LinkFault(
      `This link was made by another version of the lab (its form is ${version[1] ?? "?"}, this page reads 1). ` +
        "Ask for the scenario as a file.",
    );
  }
  return checked(await unpacked(text.slice(MARK.length)));
}

async function unpacked(body: string): Promise<unknown> {
  const short = new LinkFault(
    "This link is not complete: it was probably cut short on its way. Ask for it again, or for the scenario as a file.",
  );
  try {
    const bytes = await through(fromBase64Url(body), new DecompressionStream("deflate-raw"), 8 * MOST_CHARACTERS);
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw short;
  }
}

function checked(value: unknown): Shared {
  const fault = new LinkFault("This link holds something else than a scenario and its seeds.");
  if (typeof value !== "object" || value === null) {
    throw fault;
  }
  const { toml, seed, seeds, place } = value as { [key: string]: unknown };
  if (typeof toml !== "string" || toml.length > MOST_CHARACTERS) {
    throw fault;
  }
  if (!whole(seed, 0, Number.MAX_SAFE_INTEGER) || !whole(seeds, 1, MOST_SEEDS)) {
    throw new LinkFault(`This link holds seeds that the page cannot run: it takes 1 to ${String(MOST_SEEDS)} of them.`);
  }
  const known = typeof place === "string" && /^[a-z0-9/-]{0,60}$/.test(place);
  return { toml, seed, seeds, place: known ? place : "" };
}

function whole(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
  most = Number.POSITIVE_INFINITY,
): Promise<Uint8Array<ArrayBuffer>> {
  const writer = transform.writable.getWriter();
  // Faults of a stream appear where it is read; the ends that are not waited for would tell them twice.
  writer.write(bytes).catch(() => undefined);
  writer.close().catch(() => undefined);
  const reader = transform.readable.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    size += value.length;
    // A few bytes can unpack into gigabytes.
    if (size > most) {
      await reader.cancel();
      throw new RangeError("too large");
    }
    parts.push(value);
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}
