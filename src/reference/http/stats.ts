/** What was asked and what was served since the start: the figures of `GET /stats` on the control port. */

export class Stats {
  readonly #requests: Record<string, Record<string, number>> = {};
  readonly #faults: Record<string, number> = {};

  /** One request and the status it got; `none` when no answer was sent. */
  request(endpoint: string, status: number | 'none'): void {
    const statuses = (this.#requests[endpoint] ??= {});
    statuses[status] = (statuses[status] ?? 0) + 1;
  }

  fault(name: string): void {
    this.#faults[name] = (this.#faults[name] ?? 0) + 1;
  }

  show(): { requests: Record<string, Record<string, number>>; faults: Record<string, number> } {
    return { requests: this.#requests, faults: this.#faults };
  }
}
