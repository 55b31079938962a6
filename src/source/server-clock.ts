/**
 * A lower bound of the service's clock from the `Date` headers of its responses. A single node with a wrong clock can neither advance the
 * bound nor, once it is established, hold it back. Windows are planned with the bound, or with the local clock if that is earlier
 * (docs/guarantees.md, "Server time").
 */
import type { ServerClock as Boundary, ClockMeasurement, Page } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';

/** The part of an established bound that the profile of the source stores. */
export interface ClockProfile {
  /** Bound minus wall clock, ms. */
  readonly offsetMs: number;
  /** True if responses carry a `Date`. */
  readonly dated: boolean;
  /** Without `Date`: the bound itself, because the records that it was taken from may not be read again. */
  readonly bound?: Micros;
}

interface ServerClockOptions {
  /** The id of the source, for the log. */
  readonly source: string;
  /** ms */
  readonly closeDelay: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly profile?: ClockProfile | undefined;
}

/** Minimum number of responses for a bound. */
const answersMin = 20;
const windowMaxMs = 5 * 60_000;
/** Tolerance for a `Date` before the bound, and for the agreement with a restored bound. */
const toleranceMs = 5_000;
/** A `Date` is truncated to the second. */
const marginMs = 1_000;
const aheadMs = 3_600_000;
/** So many answers with an `Age` are asked again at first. */
const agedMin = 2;
/** Number of responses that must agree with a restored bound. */
const agreeing = 3;

/** A response: its lower bound of the service's clock minus the local monotonic clock, ms. */
interface Answer {
  readonly at: number;
  readonly offset: number;
}

export class ServerClock implements Boundary {
  readonly #source: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #windowMs: number;
  readonly #closeDelay: number;
  /** Set until the first responses confirm or refute it. */
  #restored: ClockProfile | undefined;
  #answers: Answer[] = [];
  /** Arrival times of the responses that were too old. */
  #refused: number[] = [];
  #first: number | undefined;
  #count = 0;
  #dated = false;
  /** The maximum of wall clock minus monotonic clock, ms. */
  #furthest = -Infinity;
  /** Without `Date`: the newest `logTimestamp` minus the monotonic clock at its receipt, ms. */
  #newest: number | undefined;
  /** The greatest bound so far, µs; undefined until a bound is established. */
  #floor: Micros | undefined;
  /** The last responses whose `Date` advanced. */
  #moved: Answer[] = [];
  /** The `Date` that responses have repeated for longer than `closeDelay`, ms; undefined while it advances. */
  #stood: number | undefined;
  #lastDate: number | undefined;
  #areAged = false;

  constructor({ source, closeDelay, clock, log, profile }: ServerClockOptions) {
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
    this.#closeDelay = closeDelay;
    this.#windowMs = Math.min(windowMaxMs, closeDelay / 3);
    this.#restored = profile;
    // The clock of the service has reached this time. How much later it is now is unknown: only the local
    // clock, which may have jumped, knows how long the process was down.
    if (profile?.dated === false && profile.bound !== undefined) this.#newest = profile.bound / 1000 - clock.monotonic();
    // Without this, a clock that has stood still since an earlier run would look slow at its first response.
    if (profile?.dated === true) this.#moved = [{ at: clock.monotonic(), offset: profile.offsetMs + clock.now() - clock.monotonic() }];
    this.#local();
  }

  /**
   * See ServerClock.observe. `cached`: its `Age` is above 0 while most have none, or its `Date` is more than 5 s before the established
   * bound. It proves nothing and must be requested again.
   * @param newest  the newest readable `logTimestamp` of the page
   */
  observe(page: Pick<Page, 'date' | 'age' | 'received' | 'receivedMonotonic'>, newest?: Micros): 'accepted' | 'cached' {
    const at = page.receivedMonotonic;
    if (page.age > 0) return this.#aged(page, at);
    if (this.#areAged) this.#measureAgain();
    if (newest !== undefined) this.#newest = Math.max(this.#newest ?? -Infinity, newest / 1000 - at);
    if (page.date !== undefined) {
      this.#follow(page.date, at);
      const offset = page.date - marginMs - at;
      const bound = this.#established() ? this.now() : undefined;
      if (bound !== undefined && page.date + (this.#clock.monotonic() - at) < bound / 1000 - toleranceMs) {
        if (!this.#refuse(at)) return 'cached';
      }
      this.#dated = true;
      this.#answers.push({ at, offset });
      this.#forget(at);
    }
    this.#first ??= at;
    this.#count += 1;
    if (this.#restored !== undefined) this.#compare(page);
    return 'accepted';
  }

  /** See ServerClock.now. Without `Date` it is undefined before the first record with a readable time. */
  now(): Micros | undefined {
    const bound = this.#bound();
    if (bound === undefined || !this.#established()) return this.#floor ?? bound;
    this.#floor = Math.max(this.#floor ?? bound, bound);
    return this.#floor;
  }

  /**
   * See ServerClock.agreed. `Date` cannot show that every node of a service is ahead. While the service's clock or the local one is not
   * ahead, nothing is closed, recounted for the last time or forgotten too early. A jump of the local clock while the process runs has no
   * effect: the bound limits a jump ahead, and a jump back is ignored.
   */
  agreed(): Micros | undefined {
    const bound = this.now();
    return bound === undefined ? undefined : /* mutant: agreed-time */ Math.min(bound, Math.floor(this.#local() * 1000));
  }

  /** See ServerClock.expected: the monotonic clock continues from the last response with an advancing `Date`. */
  expected(): Micros | undefined {
    const agreed = this.agreed();
    const least = this.#moved.reduce((least, { offset }) => Math.min(least, offset), Infinity);
    if (agreed === undefined || !this.#dated || least === Infinity) return agreed;
    return Math.max(agreed, Math.floor(Math.min(this.#local(), least + this.#clock.monotonic()) * 1000));
  }

  /** See ServerClock.stoodSince; µs. */
  stoodSince(): Micros | undefined {
    return this.#stood === undefined ? undefined : this.#stood * 1000;
  }

  #follow(date: number, at: number): void {
    const isFirst = this.#lastDate === undefined;
    const isNewer = this.#lastDate !== undefined && date > this.#lastDate;
    this.#lastDate = date;
    if (isNewer || (isFirst && this.#moved.length === 0)) {
      this.#moved = [...this.#moved, { at, offset: date - marginMs - at }].slice(-answersMin);
      this.#stood = undefined;
      return;
    }
    const since = this.#moved.at(-1)?.at ?? at;
    if (this.#stood !== undefined || at - since <= this.#closeDelay + toleranceMs) return;
    this.#stood = date;
    this.#log.write('source.clock_stopped', { source: this.#source, since: new Date(date).toISOString() });
  }

  /** The maximum of the local wall clock, carried on by the monotonic clock, ms. */
  #local(): number {
    const monotonic = this.#clock.monotonic();
    this.#furthest = Math.max(this.#furthest, this.#clock.now() - monotonic);
    return this.#furthest + monotonic;
  }

  /** See ServerClock.established. */
  established(): boolean {
    return this.now() !== undefined && this.#established();
  }

  /** See ServerClock.missing. Responses that confirm or refute a restored bound are needed at once. @param everyMs  of regular responses */
  missing(everyMs = Infinity): number {
    if (this.#floor !== undefined || this.#areAged) return 0;
    const urgent = this.#restored === undefined ? 0 : agreeing - this.#count;
    return Math.max(urgent, answersMin - this.#count - Math.floor(this.remainingMs() / everyMs), 0);
  }

  /** See ServerClock.remainingMs. */
  remainingMs(): number {
    if (this.#floor !== undefined) return 0;
    return this.#first === undefined ? this.#windowMs : Math.max(this.#first + this.#windowMs - this.#clock.monotonic(), 0);
  }

  measuring(): ClockMeasurement | undefined {
    if (this.established()) return undefined;
    const needed = this.#restored === undefined ? answersMin : agreeing;
    const remainingMs = this.#restored === undefined ? this.remainingMs() : 0;
    return { remainingMs, answersMissing: Math.max(needed - this.#count, 0) };
  }

  /** See ServerClock.ahead: a gateway that always routes to one wrong node, or a local clock that was wrong from the start. */
  ahead(): boolean {
    const bound = this.now();
    return bound !== undefined && bound / 1000 - this.#local() > aheadMs;
  }

  /** True if responses carry a `Date`; undefined before the first response. */
  dated(): boolean | undefined {
    return this.#first === undefined ? undefined : this.#dated;
  }

  /** Bound minus wall clock, ms. */
  offsetMs(): number | undefined {
    const bound = this.now();
    return bound === undefined ? undefined : bound / 1000 - this.#clock.now();
  }

  /** The data for the next start; undefined until the bound is established. */
  profile(): ClockProfile | undefined {
    const offsetMs = this.offsetMs();
    const bound = this.now();
    // While the clock stands still, the profile stored earlier is more accurate.
    if (offsetMs === undefined || bound === undefined || this.#stood !== undefined || !this.#established()) return undefined;
    return this.#dated ? { offsetMs, dated: true } : { offsetMs, dated: false, bound };
  }

  #established(): boolean {
    if (this.#floor !== undefined) return true;
    return this.#count >= answersMin && this.#first !== undefined && this.#clock.monotonic() - this.#first >= this.#windowMs;
  }

  #bound(): Micros | undefined {
    const monotonic = this.#clock.monotonic();
    if (!this.#dated) {
      if (this.#newest === undefined) return undefined;
      return Math.floor(Math.min(this.#local(), this.#newest + monotonic) * 1000);
    }
    this.#forget(monotonic);
    const least = this.#answers.reduce((least, { offset }) => /* mutant: least-offset */ Math.min(least, offset), Infinity);
    return least === Infinity ? undefined : Math.floor((least + monotonic) * 1000);
  }

  /** Keeps the responses of the measuring window, at least the last twenty. */
  #forget(now: number): void {
    const spare = this.#answers.length - answersMin;
    if (spare <= 0) return;
    const young = this.#answers.findIndex(({ at }) => at >= now - this.#windowMs);
    this.#answers.splice(0, young === -1 ? spare : Math.min(young, spare));
  }

  /** Counts a response that is too old. True when these outnumber the responses of the bound, which is then measured again. */
  #refuse(at: number): boolean {
    if (!this.#outnumber(at, 0)) return false;
    this.#log.write('source.clock_reset', { source: this.#source, refused: this.#refused.length, accepted: this.#answers.length });
    this.#refused = [];
    this.#measureAgain();
    return true;
  }

  #outnumber(at: number, least: number): boolean {
    this.#refused = [...this.#refused.filter((each) => each >= at - windowMaxMs), at];
    return this.#refused.length > Math.max(this.#answers.length, least);
  }

  /**
   * A response with an `Age` was not made for this request (RFC 9111 section 5.1). A few are requested again. When most have one, a cache
   * gives it to every response: the records are real, so they are accepted, but the bound is not established, and no window is proven.
   */
  #aged({ date, age }: Pick<Page, 'date' | 'age'>, at: number): 'accepted' | 'cached' {
    if (!this.#areAged) {
      if (/* mutant: aged-answers */ !this.#outnumber(at, agedMin)) return 'cached';
      this.#log.write('source.answers_aged', { source: this.#source, age });
      this.#measureAgain();
      this.#areAged = true;
    }
    this.#dated = date !== undefined;
    // As old as it says: enough to read history.
    if (date !== undefined) this.#answers = [{ at, offset: date - age * 1000 - marginMs - at }];
    return 'accepted';
  }

  #measureAgain(): void {
    this.#answers = [];
    this.#first = undefined;
    this.#count = 0;
    this.#newest = undefined;
    this.#floor = undefined;
    this.#restored = undefined;
    this.#areAged = false;
  }

  /** After a restart, the stored bound is used if the first responses agree with it. */
  #compare(page: Pick<Page, 'date' | 'received' | 'receivedMonotonic'>): void {
    const { offsetMs = 0, dated, bound: closedUntil } = this.#restored ?? {};
    const bound = page.date === undefined ? this.#bound() : (page.date - marginMs) * 1000;
    const kept = page.received / 1000 + offsetMs;
    // A restored bound without `Date` is accepted, as nothing can be compared.
    const agrees =
      bound !== undefined && this.#dated === dated && (closedUntil !== undefined || Math.abs(bound / 1000 - kept) <= toleranceMs);
    if (!agrees) {
      this.#restored = undefined;
      return;
    }
    if (this.#count < agreeing) return;
    this.#restored = undefined;
    this.#floor = this.#bound();
  }
}
