/** Workers, as many as there are processors, and requests that wait for one. */

import { EngineError, type Asked } from "./api.ts";
import type { FromWorker, ToWorker } from "./worker.ts";

/** Who answers requests. */
export interface Answers {
  /** How many are answered at once. */
  readonly size: number;
  ask(request: unknown, asked?: Pick<Asked, "signal" | "onProgress">): Promise<unknown>;
}

/** A request that waits or is being answered. */
interface Job {
  request: unknown;
  onProgress: ((done: number) => void) | undefined;
  resolve: (value: unknown) => void;
  reject: (error: EngineError) => void;
}

/** A worker that took more than this is replaced: WebAssembly gives no memory back. */
const KEPT_BYTES = 96 * 1024 * 1024;

export class Pool implements Answers {
  private readonly waiting: Job[] = [];
  private readonly idle: Worker[] = [];
  private busy = 0;

  constructor(
    readonly size: number,
    private readonly module: WebAssembly.Module,
    private readonly schema: string,
    private readonly source: string,
  ) {}

  ask(request: unknown, { signal, onProgress }: Pick<Asked, "signal" | "onProgress"> = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const job: Job = { request, onProgress, resolve, reject };
      if (signal?.aborted === true) {
        reject(stopped());
        return;
      }
      signal?.addEventListener("abort", () => this.stop(job), { once: true });
      this.waiting.push(job);
      this.serve();
    });
  }

  /** The jobs under way, each with its worker. */
  private readonly running = new Map<Job, Worker>();

  private stop(job: Job): void {
    const at = this.waiting.indexOf(job);
    if (at >= 0) {
      this.waiting.splice(at, 1);
    }
    const worker = this.running.get(job);
    if (worker !== undefined) {
      // A run looks at nothing from outside, so its worker goes with it.
      worker.terminate();
      this.end(job);
    }
    job.reject(stopped());
    this.serve();
  }

  private end(job: Job): void {
    if (this.running.delete(job)) {
      this.busy -= 1;
    }
  }

  private serve(): void {
    while (this.busy < this.size) {
      const job = this.waiting.shift();
      if (job === undefined) {
        return;
      }
      this.busy += 1;
      let worker: Worker;
      try {
        worker = this.idle.pop() ?? this.made();
      } catch (error) {
        this.busy -= 1;
        job.reject(new EngineError("unsupported", `This browser starts no worker: ${String(error)}`));
        continue;
      }
      this.running.set(job, worker);
      this.hand(job, worker);
    }
  }

  private hand(job: Job, worker: Worker): void {
    worker.onmessage = (event: MessageEvent<FromWorker>) => {
      const told = event.data;
      if ("done" in told) {
        job.onProgress?.(told.done);
        return;
      }
      this.end(job);
      if ("error" in told) {
        const { kind, message, faults } = told.error;
        const isFit = kind === "refused" || kind === "too_long";
        this.keep(worker, isFit);
        job.reject(new EngineError(kind, message, faults));
      } else {
        this.keep(worker, told.bytes <= KEPT_BYTES);
        job.resolve(told.value);
      }
      this.serve();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.end(job);
      this.keep(worker, false);
      job.reject(new EngineError("unsupported", `This browser ended a worker: ${event.message || "without a word"}`));
      this.serve();
    };
    worker.postMessage({ request: job.request } satisfies ToWorker);
  }

  private keep(worker: Worker, isFit: boolean): void {
    if (isFit) {
      this.idle.push(worker);
    } else {
      worker.terminate();
    }
  }

  private made(): Worker {
    const address = URL.createObjectURL(new Blob([this.source], { type: "text/javascript" }));
    try {
      const worker = new Worker(address, { name: "celltrain" });
      worker.postMessage({ module: this.module, schema: this.schema } satisfies ToWorker);
      return worker;
    } finally {
      // Not before the worker has read it, which it does on its own time.
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    }
  }
}

function stopped(): EngineError {
  return new EngineError("stopped", "It was stopped.");
}
