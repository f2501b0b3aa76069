/** The frame of the page: the header with navigation and tools, and the current place. */

import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Compare } from "./compare/compare.tsx";
import { Keep } from "./keep/keep.tsx";
import { Learn } from "./learn/learn.tsx";
import { staysInFrame } from "./link/embed.ts";
import { Notice } from "./parts/parts.tsx";
import { Bench } from "./run/bench.tsx";
import { Inside } from "./see/inside.tsx";
import { embed, engine, go, linkFault, message, place, said, scheme, startFault, type Scheme } from "./state.ts";

const PLACES = [
  { at: "learn", text: "Learn", before: "" },
  { at: "run", text: "Run", before: "" },
  { at: "inside", text: "inside", before: "Look " },
  { at: "compare", text: "Compare", before: "" },
] as const;

export function App(): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const here = place.value.split("/")[0] ?? "";
  const first = useRef(true);
  useEffect(() => {
    // After navigation, move the focus to the start of the content, also for screen readers. Do not change it on the
    // first visit.
    if (!first.current) {
      main.current?.focus();
      scrollTo(0, 0);
    }
    first.current = false;
  }, [place.value]);
  if (embed.value !== null) {
    return (
      <>
        <main id="main" ref={main} tabIndex={-1} class={`at-${here}`} onClick={leaveFrame}>
          {linkFault.value !== "" && <Notice sort="bad">{linkFault.value}</Notice>}
          <Guard key={here}>
            <Place here={here === "inside" ? here : "learn"} />
          </Guard>
        </main>
        <Status />
      </>
    );
  }
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain(main)}>
        To the content
      </a>
      <header class="masthead">
        <a class="brand" href="#/learn" aria-label="celltrain lab">
          <span class="brand-mark" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span class="brand-name">celltrain lab</span>
        </a>
        <nav aria-label="Main navigation">
          <ul class="places">
            {PLACES.map((p) => (
              <li key={p.at}>
                <a href={`#/${p.at}`} aria-current={here === p.at ? "page" : undefined}>
                  {/* On a phone the first word is only there for screen readers. */}
                  {p.before !== "" && <span class="wide">{p.before}</span>}
                  <span class="first-letter">{p.text}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="masthead-tools">
          <Keep />
          <SchemeChoice />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} class={`at-${here}`}>
        {linkFault.value !== "" && <Notice sort="bad">{linkFault.value}</Notice>}
        <Guard key={here}>
          <Place here={here} />
        </Guard>
      </main>
      <footer class="foot">
        celltrain {engine.value?.version() ?? ""}: this page computes every number here itself, with the same engine as the
        command line. It loads nothing from the network and sends nothing.
      </footer>
      <Status />
    </>
  );
}

function Status(): JSX.Element {
  return (
    <div class="unseen" role="status" aria-live="polite">
      {said.value}
    </div>
  );
}

/** If a link in an embedded page leaves the story or the microscope, opens the whole lab in another window. */
function leaveFrame(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#/"]') : null;
  const to = link?.getAttribute("href")?.slice(2);
  if (to !== undefined && !staysInFrame(place.peek(), to)) {
    event.preventDefault();
    go(to);
  }
}

function Place(props: { readonly here: string }): JSX.Element {
  if (startFault.value !== "") {
    return <Notice sort="bad">{startFault.value}</Notice>;
  }
  if (engine.value === null) {
    return <p role="status">Starting the engine …</p>;
  }
  switch (props.here) {
    case "run":
      return <Bench />;
    case "inside":
      return <Inside />;
    case "compare":
      return <Compare />;
    default:
      return <Learn />;
  }
}

function SchemeChoice(): JSX.Element {
  const next: Record<Scheme, Scheme> = { auto: "dark", dark: "light", light: "auto" };
  return (
    <button
      type="button"
      onClick={() => {
        scheme.value = next[scheme.value];
      }}
    >
      <span class="unseen">Colours: </span>
      {scheme.value === "auto" ? "◐ " : scheme.value === "dark" ? "● " : "○ "}
      <span class="tool-text">{scheme.value === "auto" ? "Auto" : scheme.value === "dark" ? "Dark" : "Light"}</span>
    </button>
  );
}

function focusMain(main: { readonly current: HTMLElement | null }): (event: Event) => void {
  return (event) => {
    // The fragment of the URL is used for navigation, so a link to a fragment would leave the current place.
    event.preventDefault();
    main.current?.focus();
  };
}

/** Catches an error in one view and shows it there. The other views remain usable. */
class Guard extends Component<{ readonly children: ComponentChildren }, { readonly fault: string }> {
  override state = { fault: "" };

  override componentDidCatch(error: unknown): void {
    this.setState({ fault: message(error) });
  }

  render(): ComponentChildren {
    return this.state.fault === "" ? (
      this.props.children
    ) : (
      <Notice sort="bad">
        This part of the page has failed: {this.state.fault}. The other parts still work. If it happens again, please report
        it.
      </Notice>
    );
  }
}
