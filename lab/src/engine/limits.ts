/** What a check, a run and a press may take where the user has not allowed more. */

const GIB = 1024 ** 3;

export const STANDARD = {
  /** Seconds of real time for a run. */
  seconds: 60,
  /** Bytes that the engine may have, of which a run may take three quarters. */
  memory: GIB,
  /** Seconds of real time for all runs that one press starts. */
  together: 300,
  /** Seconds for a check, which goes on while a person types. */
  check: 10,
} as const;

/** WebAssembly has addresses for 4 GiB. */
export const MOST_MEMORY = 3.5 * GIB;
