/**
 * Links that contain a complete setup: the scenario and its seeds, the settings of a comparison and the formula of a
 * custom policy, compressed, after the `#` of the address.
 *
 * The fragment never leaves the browser. It consists of `#v1.` and a JSON object, which is deflated (raw) and encoded
 * as base64url. A link contains only numbers and text for editors, and this module validates every field.
 */

/** Contents of a link. */
export interface Shared {
  readonly toml: string;
  /** First seed; the others follow consecutively. */
  readonly seed: number;
  readonly seeds: number;
  /** View of the page, for example `learn/one-cell/2`. */
  readonly place: string;
  /** Compared settings; empty elsewhere. */
  readonly settings: readonly { readonly name: string; readonly toml: string }[];
  /** Formula of a custom policy; empty elsewhere. */
  readonly formula: string;
  /** View of the microscope; null elsewhere. */
  readonly view: View | null;
}

/** A port, a window of simulated seconds, and the number of steps completed in the window. */
export interface View {
  readonly port: string;
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** Maximum total number of characters in all texts. Larger scenarios are shared as files. */
export const MOST_CHARACTERS = 200_000;
/** Maximum total number of lines in all texts, since a file of a few kilobytes can consist of newlines. */
export const MOST_LINES = 10_000;
export const MOST_SEEDS = 200;
/** Maximum number of settings in a comparison. With more, their colours would be too similar. */
export const MOST_SETTINGS = 8;
const MARK = "v1.";

/** An error in a link, with a message for the page. */
export class LinkFault extends Error {}

export async function toFragment(shared: Shared): Promise<string> {
  if (isLarge(shared)) {
    throw new LinkFault(
      `This is too large for a link, which can hold ${formatted(MOST_CHARACTERS)} characters and ${formatted(MOST_LINES)} lines. ` +
        "Download it as a file and share that.",
    );
  }
  const { toml, seed, seeds, place, settings, formula, view } = shared;
  // Omit empty fields.
  const more = { ...(settings.length > 0 && { settings }), ...(formula !== "" && { formula }), ...(view !== null && { view }) };
  const json = JSON.stringify({ toml, seed, seeds, place, ...more });
  const packed = await through(new TextEncoder().encode(json), new CompressionStream("deflate-raw"));
  return `#${MARK}${toBase64Url(packed)}`;
}

/** Reads a fragment with or without its `#`. Throws a LinkFault that describes the error. */
export async function fromFragment(fragment: string): Promise<Shared> {
  const text = fragment.replace(/^#/, "");
  const version = /^v(\d{1,9})\./.exec(text);
  if (version === null) {
    throw new LinkFault("This link contains no scenario. The page shows a standard scenario instead.");
  }
  if (version[0] !== MARK) {
    throw new LinkFault(
      `This link was made by another version of the lab (link format ${version[1] ?? "?"}; this page reads format 1). ` +
        "Ask for the scenario as a file.",
    );
  }
  return checked(await unpacked(text.slice(MARK.length)));
}

/** A character can take several bytes in UTF-8 and JSON. */
const MOST_BYTES = 8 * MOST_CHARACTERS;

async function unpacked(body: string): Promise<unknown> {
  try {
    // Base64 makes incompressible data longer, but never longer than this.
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
      "This link is incomplete: it was probably truncated. Ask for it again, or for the scenario as a file.",
    );
  }
}

function checked(value: unknown): Shared {
  const fault = new LinkFault("This link does not contain a scenario and its seeds. Ask for the scenario as a file.");
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
    throw new LinkFault("This link is damaged: it contains half a character. Ask for it again, or for the scenario as a file.");
  }
  if (!whole(seed, 0, Number.MAX_SAFE_INTEGER) || !whole(seeds, 1, MOST_SEEDS)) {
    throw new LinkFault(`This link contains seeds that the page cannot run: their number must be from 1 to ${String(MOST_SEEDS)}.`);
  }
  if (!whole(seed + (seeds - 1), 0, Number.MAX_SAFE_INTEGER)) {
    throw new LinkFault("This link contains seeds that the page cannot run: the last is larger than 2^53 - 1.");
  }
  const known = typeof place === "string" && /^[a-z0-9/-]{0,60}$/.test(place);
  const named = settings.map(({ name, toml: text }) => ({ name: name.slice(0, MOST_NAME), toml: text }));
  return { toml, seed, seeds, place: known ? place : "", settings: named, formula, view };
}

/** An unpaired surrogate. It is not a character and has no UTF-8 encoding. */
const HALF = /\p{Surrogate}/u;

/** Maximum length of a setting's name. */
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

/** Maximum step in a view: more than the microscope ever records in a window. */
const MOST_STEPS = 1e9;

function isLarge({ toml, settings, formula }: Pick<Shared, "toml" | "settings" | "formula">): boolean {
  const texts = [toml, formula, ...settings.flatMap((s) => [s.name, s.toml])];
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return characters > MOST_CHARACTERS || texts.reduce((sum, text) => sum + text.split("\n").length, 0) > MOST_LINES;
}

function large(): LinkFault {
  return new LinkFault(
    `This link is too large: the page accepts ${formatted(MOST_CHARACTERS)} characters and ${formatted(MOST_LINES)} ` +
      "lines. Ask for the scenario as a file.",
  );
}

function formatted(number: number): string {
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
  // The code that reads the stream reports errors. Unhandled promises would report them a second time.
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
    // A few bytes can decompress to gigabytes.
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
