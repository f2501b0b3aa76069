/** Texts of rendered tables. */

import type { VNode } from "preact";

/** Renders a component and all components in it to the text of each table row, cell by cell. */
export function rows(node: unknown): string[][] {
  const found: string[][] = [];
  const text = (part: unknown): string => {
    if (Array.isArray(part)) {
      return part.map(text).join("");
    }
    if (typeof part === "string" || typeof part === "number") {
      return String(part);
    }
    if (typeof part !== "object" || part === null) {
      return "";
    }
    const { type, props } = part as VNode<{ children?: unknown }>;
    if (typeof type === "function") {
      return type.name === "Word" ? "" : text((type as (given: unknown) => unknown)(props));
    }
    if (type === "tr") {
      found.push([]);
    }
    const inner = text(props.children);
    if (type === "td" || type === "th") {
      found.at(-1)?.push(inner);
    }
    return inner;
  };
  text(node);
  return found;
}
