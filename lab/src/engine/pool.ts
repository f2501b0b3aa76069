/** A pool of workers, one per processor, with a queue of requests. */

import { EngineError, type Asked } from "./api.ts";
import type { FromWorker, ToWorker } from "./worker.ts";

/** Handles requests to the simulator. */
export interface Backend {
  /** Number of requests handled at once. */
  readonly size: number;
  ask(request: unknown, asked?: Pick<Asked, "signal" | "onProgress">): Promise<unknown>;
}

/** A queued or running request. */
interface Job {
  request: unknown;
  onProgress: ((done: number) => void) | undefined;
  resolve: (value: unknown) => void;
  reject: (error: EngineError) => void;
}

/** If a worker has used more memory than this, it is replaced, because WebAssembly never releases memory. */
const KEPT_BYTES = 96 * 1024 * 1024;

export class Pool implements Backend {
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

  /** Jobs in progress, each with its worker. */
  private readonly running = new Map<Job, Worker>();

  private stop(job: Job): void {
    const at = this.waiting.indexOf(job);
    if (at >= 0) {
      this.waiting.splice(at, 1);
    }
    const worker = this.running.get(job);
    if (worker !== undefined) {
      // A running simulation cannot be interrupted, so its worker is terminated.
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
        job.reject(new EngineError("unsupported", `This browser could not start a worker: ${String(error)}`));
        continue;
      }
      this.running.set(job, worker);
      this.hand(job, worker);
    }
  }

  private hand(job: Job, worker: Worker): void {
    worker.onmessage = (event: MessageEvent<FromWorker>) => {
      const reply = event.data;
      if ("done" in reply) {
        job.onProgress?.(reply.done);
        return;
      }
      this.end(job);
      if ("error" in reply) {
        const { kind, message, faults } = reply.error;
        const isReusable = kind === "refused" || kind === "too_long";
        this.keep(worker, isReusable);
        job.reject(new EngineError(kind, message, faults));
      } else {
        this.keep(worker, reply.bytes <= KEPT_BYTES);
        job.resolve(reply.value);
      }
      this.serve();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.end(job);
      this.keep(worker, false);
      job.reject(new EngineError("unsupported", `This browser ended a worker: ${event.message || "it gave no reason"}`));
      this.serve();
    };
    worker.postMessage({ request: job.request } satisfies ToWorker);
  }

  private keep(worker: Worker, isReusable: boolean): void {
    if (isReusable) {
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
      // Revoke the URL later, because the worker reads its source asynchronously.
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    }
  }
}

function stopped(): EngineError {
  return new EngineError("stopped", "It was stopped.");
}
