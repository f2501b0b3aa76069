/** Default limits for a check, a run, and all runs started by one button. */

const GIB = 1024 ** 3;

export const STANDARD = {
  /** Seconds of real time for a run. */
  seconds: 60,
  /** Memory of the engine in bytes, of which a run may use three quarters. */
  memory: GIB,
  /** Seconds of real time for all runs started by one button. */
  together: 300,
  /** Time limit in seconds for a check, which runs while the user types. */
  check: 10,
} as const;

/** WebAssembly addresses at most 4 GiB. */
export const MOST_MEMORY = 3.5 * GIB;
