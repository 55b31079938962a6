/**
 * Windows of the live range that were read before the clock of the service was known, each with its
 * pending proof. They are in memory only: after a restart they are read again once the clock is known.
 */
import type { Proof, Verdict, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';

export interface EarlyWindow {
  readonly window: Window;
  readonly proof: Proof;
}

export class EarlyWindows {
  readonly #windows = new Map<Micros, EarlyWindow>();
  #to: Micros;

  /** @param to  the end of the history that was read early before a restart, µs */
  constructor(to: Micros = 0) {
    this.#to = to;
  }

  /** The end of the history that was read early, µs. */
  get to(): Micros {
    return this.#to;
  }

  /** A window without a proof is read again later; its records are stored already. */
  add(window: Window, verdict: Verdict): void {
    this.#to = window.to;
    if (verdict.proven) this.#windows.set(window.from, { window, proof: verdict.proof });
  }

  at(from: Micros): EarlyWindow | undefined {
    return this.#windows.get(from);
  }

  /** The begin of the first window after a time. */
  after(time: Micros): Micros | undefined {
    for (const from of this.#windows.keys()) if (from > time) return from;
    return undefined;
  }

  drop({ from }: Window): void {
    this.#windows.delete(from);
  }
}
