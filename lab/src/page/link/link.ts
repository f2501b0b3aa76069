/**
 * A link that holds what one has set up: the scenario itself and the seeds, at the place of a comparison its settings, at
 * that of a policy of one's own its formula, compressed, behind the `#` of the address.
 *
 * The fragment never leaves the browser. It is `#v1.` and, in base64url, the raw-deflate form of a JSON object. What
 * comes out of a link is texts for editors and some numbers, nothing else: every field is checked here.
 */

/** What a link can hold. */
export interface Shared {
  readonly toml: string;
  /** The first seed; the others follow it. */
  readonly seed: number;
  readonly seeds: number;
  /** The place in the page, for example `learn/one-cell/2`. */
  readonly place: string;
  /** What is compared; none elsewhere. */
  readonly settings: readonly { readonly name: string; readonly toml: string }[];
  /** A policy of one's own; empty elsewhere. */
  readonly formula: string;
  /** The view of the microscope; null elsewhere. */
  readonly view: View | null;
}

/** A port, a window of simulated seconds, and the number of steps of it that have been done. */
export interface View {
  readonly port: string;
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** Of all texts together. Larger scenarios are shared as files. */
export const MOST_CHARACTERS = 200_000;
/** Of all texts together: a file of a few kilobytes can be all lines. */
export const MOST_LINES = 10_000;
export const MOST_SEEDS = 200;
/** Settings of a comparison: more could not be told apart by their colours. */
export const MOST_SETTINGS = 8;
const MARK = "v1.";

/** What a link cannot be read for, in words for the page. */
export class LinkFault extends Error {}

export async function toFragment(shared: Shared): Promise<string> {
  if (isLarge(shared)) {
    throw new LinkFault(
      `This is too large for a link, which has ${told(MOST_CHARACTERS)} characters and ${told(MOST_LINES)} lines at most. ` +
        "Download it as a file and share that.",
    );
  }
  const { toml, seed, seeds, place, settings, formula, view } = shared;
  // What says nothing takes no room.
  const more = { ...(settings.length > 0 && { settings }), ...(formula !== "" && { formula }), ...(view !== null && { view }) };
  const json = JSON.stringify({ toml, seed, seeds, place, ...more });
  const packed = await through(new TextEncoder().encode(json), new CompressionStream("deflate-raw"));
  return `#${MARK}${toBase64Url(packed)}`;
}

/** Reads a fragment with or without its `#`; throws a LinkFault that says in words what is wrong. */
export async function fromFragment(fragment: string): Promise<Shared> {
  const text = fragment.replace(/^#/, "");
  const version = /^v(\d{1,9})\./.exec(text);
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

/** In UTF-8 and JSON a character can take several bytes. */
const MOST_BYTES = 8 * MOST_CHARACTERS;

async function unpacked(body: string): Promise<unknown> {
  try {
    // Base64 of what does not become smaller, at most.
    if (body.length > 2 * MOST_BYTES) {
      throw large();
    }
    const bytes = await through(fromBase64Url(body), new DecompressionStream("deflate-raw"), MOST_BYTES);
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch (error) {
    if (error instanceof LinkFault) {
      throw error;
    }
    throw new LinkFault(
      "This link is not complete: it was probably cut short on its way. Ask for it again, or for the scenario as a file.",
    );
  }
}

function checked(value: unknown): Shared {
  const fault = new LinkFault("This link holds something else than a scenario and its seeds.");
  if (typeof value !== "object" || value === null) {
    throw fault;
  }
  const { toml, seed, seeds, place, settings = [], formula = "", view = null } = value as { [key: string]: unknown };
  if (typeof toml !== "string" || typeof formula !== "string" || !isSettings(settings) || !isView(view)) {
    throw fault;
  }
  if (isLarge({ toml, settings, formula })) {
    throw large();
  }
  if ([toml, formula, ...settings.flatMap((s) => [s.name, s.toml]), view?.port ?? ""].some((text) => HALF.test(text))) {
    throw new LinkFault("This link holds half a character, so it was damaged on its way. Ask for it again, or for the scenario as a file.");
  }
  if (!whole(seed, 0, Number.MAX_SAFE_INTEGER) || !whole(seeds, 1, MOST_SEEDS)) {
    throw new LinkFault(`This link holds seeds that the page cannot run: it takes 1 to ${String(MOST_SEEDS)} of them.`);
  }
  if (!whole(seed + (seeds - 1), 0, Number.MAX_SAFE_INTEGER)) {
    throw new LinkFault("This link holds seeds that the page cannot run: the last is larger than 2^53 - 1.");
  }
  const known = typeof place === "string" && /^[a-z0-9/-]{0,60}$/.test(place);
  const named = settings.map(({ name, toml: text }) => ({ name: name.slice(0, MOST_NAME), toml: text }));
  return { toml, seed, seeds, place: known ? place : "", settings: named, formula, view };
}

/** A surrogate without its other half: not a character, and not to be had in UTF-8. */
const HALF = /\p{Surrogate}/u;

/** Of a setting. */
const MOST_NAME = 120;

function isSettings(value: unknown): value is Shared["settings"] {
  const isSetting = (one: unknown): boolean => {
    const { name, toml } = (one ?? {}) as { [key: string]: unknown };
    return typeof name === "string" && typeof toml === "string";
  };
  return Array.isArray(value) && value.length <= MOST_SETTINGS && value.every(isSetting);
}

function isView(value: unknown): value is View | null {
  if (value === null) {
    return true;
  }
  const { port, from, to, step } = value as { [key: string]: unknown };
  const isTime = (time: unknown): time is number => typeof time === "number" && Number.isFinite(time) && time >= 0;
  return typeof port === "string" && port.length <= MOST_CHARACTERS && isTime(from) && isTime(to) && from < to && whole(step, 0, MOST_STEPS);
}

/** Steps of a window, beyond what the microscope keeps. */
const MOST_STEPS = 1e9;

function isLarge({ toml, settings, formula }: Pick<Shared, "toml" | "settings" | "formula">): boolean {
  const texts = [toml, formula, ...settings.flatMap((s) => [s.name, s.toml])];
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return characters > MOST_CHARACTERS || texts.reduce((sum, text) => sum + text.split("\n").length, 0) > MOST_LINES;
}

function large(): LinkFault {
  return new LinkFault(
    `This link holds more than the page takes from a link: ${told(MOST_CHARACTERS)} characters and ${told(MOST_LINES)} ` +
      "lines. Ask for the scenario as a file.",
  );
}

function told(number: number): string {
  return number.toLocaleString("en");
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
      throw large();
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
