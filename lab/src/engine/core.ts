/** The WebAssembly simulator, called in this thread. See `docs/design/lab.md` for the interface. */

import { EngineError, type Fault, type Kind } from "./api.ts";

/** Functions exported by the WebAssembly module. */
interface Exports {
  memory: WebAssembly.Memory;
  celltrain_start(): void;
  celltrain_request(length: number): number;
  celltrain_call(): number;
  celltrain_answer(): number;
  celltrain_answer_length(): number;
  celltrain_column_type(column: number): number;
  celltrain_column(column: number): number;
  celltrain_column_length(column: number): number;
  celltrain_forget(): void;
}

export type NumberColumn = Float64Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Int8Array<ArrayBuffer>;

/** A reply and its columns, which a worker can transfer without copying. */
export interface Reply {
  value: unknown;
  columns: NumberColumn[];
}

/** An error in the form sent by a worker. */
export interface ErrorRecord {
  kind: Kind;
  message: string;
  faults: Fault[];
}

export class Core {
  private constructor(
    private readonly exports: Exports,
    private readonly words: { panic: string; progress: (done: number) => void },
  ) {}

  /** @param schema The JSON Schema of scenarios, which the simulator cannot generate itself. */
  static async of(module: WebAssembly.Module, schema: string): Promise<Core> {
    const words: { panic: string; progress: (done: number) => void } = { panic: "", progress: () => undefined };
    let memory: WebAssembly.Memory | undefined;
    const instance = await WebAssembly.instantiate(module, {
      celltrain: {
        now: () => performance.now(),
        progress: (done: number) => words.progress(done),
        panicked: (at: number, length: number) => {
          words.panic = text(memory, at >>> 0, length >>> 0);
        },
      },
    });
    const exports = instance.exports as unknown as Exports;
    memory = exports.memory;
    exports.celltrain_start();
    const core = new Core(exports, words);
    core.answer({ call: "start", schema });
    return core;
  }

  /** Memory allocated from the browser, in bytes. It is not released while the instance exists. */
  get bytes(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /**
   * Answers a request, and blocks for as long as the run takes. After an error of kind `broken` or `too_large`, the
   * instance must not be used again.
   */
  answer(request: unknown, progress: (done: number) => void = () => undefined): Reply {
    const { exports, words } = this;
    words.progress = progress;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    try {
      const room = exports.celltrain_request(bytes.length) >>> 0;
      new Uint8Array(exports.memory.buffer, room, bytes.length).set(bytes);
      const count = exports.celltrain_call();
      const columns = Array.from({ length: count }, (_, column) => this.column(column));
      const answer = text(exports.memory, exports.celltrain_answer() >>> 0, exports.celltrain_answer_length());
      exports.celltrain_forget();
      return read(answer, columns);
    } catch (error) {
      if (error instanceof EngineError) {
        throw error;
      }
      throw broken(words.panic, error);
    }
  }

  private column(column: number): NumberColumn {
    const { exports } = this;
    const at = exports.celltrain_column(column) >>> 0;
    const length = exports.celltrain_column_length(column);
    const { buffer } = exports.memory;
    switch (exports.celltrain_column_type(column)) {
      case 0:
        return new Float64Array(buffer, at, length).slice() as Float64Array<ArrayBuffer>;
      case 1:
        return new Int32Array(buffer, at, length).slice() as Int32Array<ArrayBuffer>;
      default:
        return new Int8Array(buffer, at, length).slice() as Int8Array<ArrayBuffer>;
    }
  }
}

/**
 * Decodes a reply and inserts its columns. A scenario may itself contain the key `$column`, but such a reply has no
 * columns.
 */
export function read(answer: string, columns: NumberColumn[]): Reply {
  const placed = (_: string, value: unknown): unknown => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, "$column")) {
      return value;
    }
    return columns[(value as { $column: number }).$column];
  };
  const parsed = JSON.parse(answer, columns.length === 0 ? undefined : placed) as { ok?: unknown; error?: ErrorRecord };
  if (parsed.error !== undefined) {
    const { kind, message, faults } = parsed.error;
    throw new EngineError(kind, message, faults.map(whole));
  }
  return { value: parsed.ok, columns };
}

/** Restores an empty excerpt, which the core omits. */
export function whole(fault: Fault): Fault {
  return { ...fault, excerpt: fault.excerpt ?? [] };
}

function broken(panic: string, error: unknown): EngineError {
  if (panic !== "") {
    return new EngineError("broken", `The simulator failed because of a bug. Please report it: ${panic}`);
  }
  // A WebAssembly trap without a panic message means that the browser did not provide enough memory.
  if (error instanceof WebAssembly.RuntimeError) {
    return new EngineError("too_large", "The browser has run out of memory for this run.");
  }
  return new EngineError("broken", `The simulator failed because of a bug. Please report it: ${String(error)}`);
}

function text(memory: WebAssembly.Memory | undefined, at: number, length: number): string {
  return memory === undefined ? "" : new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
}
