/**
 * The look-ups of names of a thread. The system's `getaddrinfo` holds a thread of libuv's pool while a name server is silent, and cannot be
 * ended: without limits, a few dead names hold up every other look-up of the process.
 */
import { AsyncResource } from 'node:async_hooks';
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

type Addresses = (thrown: NodeJS.ErrnoException | null, found?: readonly LookupAddress[]) => void;
type Answered = (thrown: NodeJS.ErrnoException | null, address?: string | readonly LookupAddress[], family?: number) => void;
/** `dns.lookup` with `all: true`. */
type Resolve = (name: string, options: LookupOptions & { readonly all: true }, answered: Addresses) => void;

/** The last look-up of a name: the later ones may use fewer of the slots. */
const states = ['resolved', 'new', 'failed'] as const;
type State = (typeof states)[number];

interface LookUp {
  readonly name: string;
  readonly options: LookupOptions & { readonly all: true };
  readonly state: State;
  readonly waiting: Addresses[];
  isRunning: boolean;
}

/** A look-up that takes longer counts as failed, ms. */
const slowMs = 2_000;

export class Names {
  readonly #resolve: Resolve;
  readonly #slots: number;
  readonly #now: () => number;
  readonly #states = new Map<string, State>();
  /** In the order of arrival, by name and options. */
  readonly #lookUps = new Map<string, LookUp>();

  /** @param slots  look-ups that may run at the same time, at least 2 @param now  a monotonic clock, ms */
  constructor(resolve: Resolve, slots: number, now: () => number) {
    this.#resolve = resolve;
    this.#slots = slots;
    this.#now = now;
  }

  pending(): readonly string[] {
    return [...new Set([...this.#lookUps.values()].map(({ name }) => name))];
  }

  /** In place of `dns.lookup`. Requests for a name that is being looked up wait for the same answer. */
  readonly lookup = (name: string, given: LookupOptions | number | Answered, last?: Answered): void => {
    const answered = AsyncResource.bind(last ?? (given as Answered));
    const options = typeof given === 'object' ? given : { family: typeof given === 'number' ? given : 0 };
    const take: Addresses = (thrown, found) => {
      const [first] = found ?? [];
      if (thrown !== null || first === undefined) answered(thrown);
      else if (options.all === true) answered(null, found);
      else answered(null, first.address, first.family);
    };
    const all = { ...options, all: true } as const;
    if (!name || isIP(name) !== 0) {
      this.#resolve(name, all, take);
      return;
    }
    const key = JSON.stringify([name, options.family ?? 0, options.hints ?? 0, options.order]);
    const same = this.#lookUps.get(key);
    if (/* mutant: shared-look-up */ same !== undefined) {
      same.waiting.push(take);
      return;
    }
    const state = this.#states.get(name) ?? 'new';
    this.#lookUps.set(key, { name, options: all, state, waiting: [take], isRunning: false });
    this.#startNext();
  };

  #startNext(): void {
    for (const state of states)
      for (const [key, lookUp] of this.#lookUps)
        if (lookUp.state === state && !lookUp.isRunning && this.#hasSlot(state)) this.#start(key, lookUp);
  }

  /** Names that have resolved always find a slot: new ones leave an eighth of the slots, and names that failed leave half. */
  #hasSlot(state: State): boolean {
    const running = [...this.#lookUps.values()].filter(({ isRunning }) => isRunning);
    const worse = running.filter((each) => states.indexOf(each.state) >= states.indexOf(state)).length;
    const share = { resolved: 1, new: 7 / 8, failed: /* mutant: failed-names-share */ 1 / 2 }[state];
    return running.length < this.#slots && worse < this.#slots * share;
  }

  #start(key: string, lookUp: LookUp): void {
    const since = this.#now();
    lookUp.isRunning = true;
    this.#resolve(lookUp.name, lookUp.options, (thrown, found) => {
      this.#lookUps.delete(key);
      this.#states.set(lookUp.name, thrown === null && this.#now() - since < slowMs ? 'resolved' : 'failed');
      for (const take of lookUp.waiting) take(thrown, found);
      this.#startNext();
    });
  }
}

/** Threads of libuv's pool (bin/waybill.js sets the variable), of which libuv lets half run look-ups. Two threads of the daemon connect. */
const slots = Math.max(Math.floor((Number(process.env['UV_THREADPOOL_SIZE']) || 4) / 4), 2);
export const names = new Names(dns.lookup, slots, () => performance.now());

/** How long one address may take to connect before the next is tried, ms. Node's 250 ms never reach a distant host with two addresses. */
const attemptMs = 2_000;

/** The same for a connection with this timeout: another address must still find time. */
export function attemptOf(timeoutMs: number): number {
  return Math.min(attemptMs, timeoutMs / 4);
}

/** Applies to every connection of this thread, also those of libraries. Call once, before the first connection. */
export function shareNames(): void {
  dns.lookup = names.lookup as typeof dns.lookup;
  setDefaultAutoSelectFamilyAttemptTimeout(attemptMs);
}
