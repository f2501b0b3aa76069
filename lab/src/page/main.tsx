/** Starts the page: colours, address, engine. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { start } from "../engine/engine.ts";
import { App } from "./app.tsx";
import { replace } from "./compare/state.ts";
import { lighten } from "./keep/files.ts";
import { readEmbed } from "./link/embed.ts";
import { fromFragment } from "./link/link.ts";
import * as lens from "./see/lens.ts";
import "./styles/index.css";
import {
  cameFrom,
  colours,
  embed,
  engine,
  firstSeed,
  formula,
  linkFault,
  message,
  papers,
  place,
  schema,
  scenarios,
  scheme,
  seedCount,
  seedInside,
  startFault,
  toml,
  watchText,
} from "./state.ts";

/** Scenario under "Run" for visitors who do not follow a link. */
const STANDARD = "lan-epd";

const DARK = "(prefers-color-scheme: dark)";

effect(() => {
  // The dark colours are in a separate style sheet, switched by its media attribute.
  const sheet = document.querySelector<HTMLStyleElement>("#dark");
  if (sheet !== null) {
    sheet.media = { auto: `screen and ${DARK}`, dark: "screen", light: "not all" }[scheme.value];
  }
  colours.value = colours.peek() + 1;
});
matchMedia(DARK).addEventListener("change", () => {
  colours.value += 1;
});

// Printing uses the light colours, but canvases keep the colours with which they were drawn.
addEventListener("beforeprint", lighten);
addEventListener("afterprint", () => {
  colours.value += 1;
});

addEventListener("hashchange", () => void follow());

/** Moves to a view, and records the view from which the microscope was opened. */
function arrive(at: string): void {
  if (at === "inside" && place.peek() !== "inside") {
    cameFrom.value = place.peek();
  }
  place.value = at;
}

/** Follows the address: goes to a view, or opens a link that contains a scenario. */
async function follow(): Promise<void> {
  const address = readEmbed(location.search, location.hash);
  const { hash } = address;
  if (address.embed !== null) {
    // An embedded page remains embedded, whatever its links contain.
    embed.value = address.embed;
    scheme.value = address.embed;
    document.documentElement.classList.add("embed");
  }
  if (hash === "" || hash.startsWith("#/")) {
    // The user has moved to another view, so the error is no longer relevant.
    linkFault.value = "";
    arrive(hash.slice(2));
    // In an embedded microscope, there is no other way to start the run.
    lens.lookSoon.value ||= embed.peek() !== null && hash === "#/inside" && lens.overview.peek() === null;
    return;
  }
  try {
    const shared = await fromFragment(hash);
    toml.value = shared.toml;
    firstSeed.value = shared.seed;
    seedInside.value = shared.seed;
    seedCount.value = shared.seeds;
    if (shared.settings.length > 0) {
      replace(shared.settings);
    }
    if (shared.formula !== "") {
      formula.value = shared.formula;
    }
    linkFault.value = "";
    lens.wanted.value = shared.view;
    lens.lookSoon.value = shared.place === "inside" && (shared.view !== null || embed.peek() !== null);
    arrive(shared.place === "" ? "run" : shared.place);
  } catch (error) {
    linkFault.value = message(error);
    place.value = "run";
  }
}

async function begin(): Promise<void> {
  const app = document.getElementById("app");
  if (app === null) {
    return;
  }
  app.replaceChildren();
  render(<App />, app);
  try {
    const e = await start();
    const [all, shape] = await Promise.all([e.scenarios(), e.schema()]);
    scenarios.value = all;
    schema.value = shape;
    if (toml.value === "") {
      toml.value = all[STANDARD] ?? "";
    }
    engine.value = e;
    watchText();
    papers.value = await e.papers();
  } catch (error) {
    startFault.value = message(error);
  }
}

void follow().then(begin);
