/**
 * The time of the service: the clock of the machine, or with `--clock manual` a clock that only
 * moves by `POST /clock`. TLS certificates, fault delays and the activity of people stay on the
 * real time.
 */
export class ServiceClock {
  /** The time of a manual clock, nanoseconds since 1970. */
  #stopped: bigint | undefined;

  constructor(mode: 'system' | 'manual') {
    this.#stopped = mode === 'manual' ? systemNanos() : undefined;
  }

  get isManual(): boolean {
    return this.#stopped !== undefined;
  }

  /** Nanoseconds since 1970; never goes back. */
  nanos(): bigint {
    return this.#stopped ?? systemNanos();
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.#stopped === undefined ? Date.now() : Number(this.#stopped / 1000n) / 1000;
  }

  advance(ms: number): void {
    if (this.#stopped === undefined) throw new Error('cannot advance the clock: it is not manual');
    this.#stopped += BigInt(Math.round(ms * 1e6));
  }
}

/** Microseconds are the resolution of the machine. */
function systemNanos(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
}
