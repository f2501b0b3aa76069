/**
 * The page embedded in another page: one story or one microscope, without header and footer.
 *
 * An address requests embedding with `?embed`, or with `&embed` at the end of its fragment if it cannot have a query.
 * `embed=dark` and `embed=light` also set the colours.
 */

/** Colours of an embedded page. */
export type Embed = "auto" | "light" | "dark";

/** Size of the frame in the generated code. The page adapts to other sizes. */
export const FRAME = { width: 960, height: 540 } as const;

const FLAG = /(?:^[?]|&)embed(?:=(\w*))?(?=&|$)/;

/** Splits an address into the embedding request, if there is one, and the fragment without it. */
export function readEmbed(search: string, hash: string): { readonly embed: Embed | null; readonly hash: string } {
  const found = FLAG.exec(search) ?? FLAG.exec(hash);
  const colours = found?.[1];
  return {
    embed: found === null ? null : colours === "dark" || colours === "light" ? colours : "auto",
    hash: hash.replace(FLAG, ""),
  };
}

/** Returns whether an embedded page stays in its frame when it navigates from one place in the lab to another. */
export function staysInFrame(from: string, to: string): boolean {
  const story = (place: string): string => /^learn\/[^/]+/.exec(place)?.[0] ?? "";
  return to === "inside" || (story(to) !== "" && (story(from) === story(to) || from === "inside"));
}

/** Returns the page's address without its fragment, or a relative address if the page was opened from a file. */
function pageAddress(href: string): string {
  const page = href.split(/[?#]/)[0] ?? "";
  return page.startsWith("file:") ? (page.split("/").at(-1) ?? "lab.html") : page;
}

/** Returns the address of the same view in the full lab. */
export function unframed(address: Pick<Location, "href" | "search" | "hash">): string {
  return `${address.href.split(/[?#]/)[0] ?? ""}${readEmbed(address.search, address.hash).hash}`;
}

/** Returns the HTML element that embeds the page at a fragment. */
export function snippet(href: string, fragment: string, title: string): string {
  const text = (value: string): string =>
    value.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return (
    `<iframe src="${text(`${pageAddress(href)}?embed${fragment}`)}" title="${text(title)}"\n` +
    `  width="${String(FRAME.width)}" height="${String(FRAME.height)}" style="border: 0; max-width: 100%" loading="lazy"></iframe>`
  );
}
