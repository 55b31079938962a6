/** Counts of requests and responses since the start: `GET /stats` on the control port. */

export class Stats {
  readonly #requests: Record<string, Record<string, number>> = {};
  readonly #faults: Record<string, number> = {};

  /** Counts a request by its status; `none` if no response was sent. */
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
