/** A worker: one instance of the simulator, which answers one request after another. */

import { EngineError } from "./api.ts";
import { Core, type Told } from "./core.ts";

/** What a worker is told: the compiled simulator first, then requests. */
export type ToWorker = { module: WebAssembly.Module; schema: string } | { request: unknown };

/** What it tells. */
export type FromWorker =
  | { done: number }
  | { value: unknown; bytes: number }
  | { error: Told };

/** Between two reports of progress, in milliseconds. */
const REPORT = 50;

let core: Promise<Core> | undefined;

function tell(message: FromWorker, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

async function answer(request: unknown): Promise<void> {
  try {
    if (core === undefined) {
      throw new EngineError("broken", "A worker was asked before it was started.");
    }
    const ready = await core;
    let reported = performance.now();
    const { value, columns } = ready.answer(request, (done) => {
      const now = performance.now();
      if (now - reported >= REPORT) {
        reported = now;
        tell({ done });
      }
    });
    tell({ value, bytes: ready.bytes }, columns.map((column) => column.buffer));
  } catch (error) {
    const told: Told =
      error instanceof EngineError
        ? { kind: error.kind, message: error.message, faults: error.faults }
        : { kind: "unsupported", message: `The simulator cannot be started here: ${String(error)}`, faults: [] };
    tell({ error: told });
  }
}

addEventListener("message", (event: MessageEvent<ToWorker>) => {
  if ("module" in event.data) {
    core = Core.of(event.data.module, event.data.schema);
    // Who asks next is told of it.
    core.catch(() => undefined);
  } else {
    void answer(event.data.request);
  }
});
