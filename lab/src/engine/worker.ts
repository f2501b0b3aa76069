/** A worker: one instance of the simulator, which answers one request after another. */

import { EngineError } from "./api.ts";
import { Core, type ErrorRecord } from "./core.ts";

/** Messages to a worker: first the compiled simulator, then requests. */
export type ToWorker = { module: WebAssembly.Module; schema: string } | { request: unknown };

export type FromWorker =
  | { done: number }
  | { value: unknown; bytes: number }
  | { error: ErrorRecord };

/** Minimum interval between progress reports, in milliseconds. */
const REPORT = 50;

let core: Promise<Core> | undefined;

function send(message: FromWorker, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

async function answer(request: unknown): Promise<void> {
  try {
    if (core === undefined) {
      throw new EngineError("broken", "A worker received a request before it was started.");
    }
    const ready = await core;
    let reported = performance.now();
    const { value, columns } = ready.answer(request, (done) => {
      const now = performance.now();
      if (now - reported >= REPORT) {
        reported = now;
        send({ done });
      }
    });
    send({ value, bytes: ready.bytes }, columns.map((column) => column.buffer));
  } catch (error) {
    const failure: ErrorRecord =
      error instanceof EngineError
        ? { kind: error.kind, message: error.message, faults: error.faults }
        : { kind: "unsupported", message: `The simulator could not be started: ${String(error)}`, faults: [] };
    send({ error: failure });
  }
}

addEventListener("message", (event: MessageEvent<ToWorker>) => {
  if ("module" in event.data) {
    core = Core.of(event.data.module, event.data.schema);
    // A failure is reported by the next request.
    core.catch(() => undefined);
  } else {
    void answer(event.data.request);
  }
});
