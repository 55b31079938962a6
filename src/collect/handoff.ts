/**
 * Lets long work hand control back to the scheduler between two requests, also while one request is retried. The work does not know what
 * the scheduler does in the meantime. The scheduler iterates over the work and decides at each step.
 */
export class Handoff {
  #scheduler: { readonly isWanted: () => boolean; readonly handedBack: (handedBack: HandedBack) => void } | undefined;

  /** True while the scheduler has other work. Then the work should not request its next page ahead. */
  get isWanted(): boolean {
    return this.#scheduler?.isWanted() ?? false;
  }

  /** For the work: hands control back if the scheduler wants it, and resolves when the work may continue; at once without a scheduler. */
  async offer(): Promise<void> {
    const scheduler = this.#scheduler;
    // mutant: poll-between-pages
    if (!scheduler?.isWanted()) return;
    this.#scheduler = undefined;
    await new Promise<void>((resume, abandon) => {
      scheduler.handedBack({ resume, abandon });
    });
  }

  /**
   * For the scheduler: starts the work, and yields each time that the work hands control back,
   * until the work is done. Requests that the scheduler sends between two steps cannot hand control
   * back. A scheduler that leaves the iteration early abandons the work: its offer rejects.
   */
  async *run(isWanted: () => boolean, work: () => Promise<void>): AsyncGenerator<void, void, void> {
    let handedBack: HandedBack | undefined;
    let offered = this.#listen(isWanted);
    const done = work();
    // A failure while the scheduler is busy must not count as unhandled; `race` reports it afterwards.
    done.catch(() => undefined);
    try {
      for (;;) {
        const next = await Promise.race([done, offered]);
        if (!next) return;
        handedBack = next;
        yield;
        offered = this.#listen(isWanted);
        handedBack = undefined;
        next.resume();
      }
    } finally {
      this.#scheduler = undefined;
      if (handedBack) {
        handedBack.abandon(new Error('the scheduler has abandoned this work'));
        await done.catch(() => undefined);
      }
    }
  }

  #listen(isWanted: () => boolean): Promise<HandedBack> {
    return new Promise((handedBack) => {
      this.#scheduler = { isWanted, handedBack };
    });
  }
}

interface HandedBack {
  readonly resume: () => void;
  readonly abandon: (reason: Error) => void;
}
