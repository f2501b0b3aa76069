/** Starts the page: colours, address, engine. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { start } from "../engine/engine.ts";
import { App } from "./app.tsx";
import { replace } from "./compare/state.ts";
import { fromFragment } from "./link/link.ts";
import "./styles/index.css";
import {
  colours,
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
  startFault,
  toml,
  watchText,
} from "./state.ts";

/** What stands on the bench of whoever comes without a link. */
const STANDARD = "lan-epd";

const DARK = "(prefers-color-scheme: dark)";

effect(() => {
  // The dark colours are a sheet of their own, so whether they hold is a matter of its media.
  const sheet = document.querySelector<HTMLStyleElement>("#dark");
  if (sheet !== null) {
    sheet.media = { auto: DARK, dark: "all", light: "not all" }[scheme.value];
  }
  colours.value = colours.peek() + 1;
});
matchMedia(DARK).addEventListener("change", () => {
  colours.value += 1;
});

addEventListener("hashchange", () => void follow());

/** Goes where the address says: to a place, or opens a link with a scenario in it. */
async function follow(): Promise<void> {
  const hash = location.hash;
  if (hash === "" || hash.startsWith("#/")) {
    // Whoever goes on has read it.
    linkFault.value = "";
    place.value = hash.slice(2);
    return;
  }
  try {
    const shared = await fromFragment(hash);
    toml.value = shared.toml;
    firstSeed.value = shared.seed;
    seedCount.value = shared.seeds;
    if (shared.settings.length > 0) {
      replace(shared.settings);
    }
    if (shared.formula !== "") {
      formula.value = shared.formula;
    }
    linkFault.value = "";
    place.value = shared.place === "" ? "run" : shared.place;
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
