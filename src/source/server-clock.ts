/**
 * A lower bound of the service's clock, made of the `Date` headers of its answers. One node of the service whose clock is wrong can neither lead
 * it nor, once the bound stands, hold it back. Windows are planned on it, and on our own clock where that is behind it: never on that alone. Pure on the `Clock`:
 * collect shows every answer and reads the bound (docs/guarantees.md, "Server time").
 */
import type { ServerClock as Boundary, ClockMeasurement, Page } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';

/** What is kept of an established bound in the source's profile. */
export interface ClockProfile {
  /** The bound less the wall clock, ms. */
  readonly offsetMs: number;
  /** Whether answers carried a `Date`. */
  readonly dated: boolean;
  /** Without a `Date`: the bound itself. The records that it rests on may not be read again. */
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

/** Answers that a bound is made of, at least. */
const answersMin = 20;
const windowMaxMs = 5 * 60_000;
/** How much an answer's `Date` may lie before the bound, and how well a restored bound must agree. */
const toleranceMs = 5_000;
/** A `Date` is cut to the second. */
const marginMs = 1_000;
const aheadMs = 3_600_000;
/** Answers that must agree with a restored bound. */
const agreeing = 3;

/** One answer: its lower bound of the service's clock less our monotonic clock, ms. */
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
  /** Until the first answers have confirmed or refuted it. */
  #restored: ClockProfile | undefined;
  #answers: Answer[] = [];
  /** When the answers too far in the past arrived. */
  #refused: number[] = [];
  #first: number | undefined;
  #count = 0;
  #dated = false;
  /** The most that the wall clock was ever ahead of the monotonic one, ms. */
  #furthest = -Infinity;
  /** The newest `logTimestamp` less the monotonic clock when it was read, ms: stands for `Date` where there is none. */
  #newest: number | undefined;
  /** The greatest bound given since it was established, µs; undefined while it is being built. */
  #floor: Micros | undefined;
  /** The last answers whose `Date` was newer than that of the answer before. */
  #moved: Answer[] = [];
  /** The `Date` that answers have repeated for longer than `closeDelay`, ms; undefined while it moves on. */
  #stood: number | undefined;
  #lastDate: number | undefined;

  constructor({ source, closeDelay, clock, log, profile }: ServerClockOptions) {
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
    this.#closeDelay = closeDelay;
    this.#windowMs = Math.min(windowMaxMs, closeDelay / 3);
    this.#restored = profile;
    // The service's clock has not gone back since; how long the process was away only our own could tell, and it may have jumped.
    if (profile?.dated === false && profile.bound !== undefined) this.#newest = profile.bound / 1000 - clock.monotonic();
    // Where the clock has stood still since an earlier run its first answer here would look like a clock that is behind.
    if (profile?.dated === true) this.#moved = [{ at: clock.monotonic(), offset: profile.offsetMs + clock.now() - clock.monotonic() }];
    this.#local();
  }

  /**
   * Takes an answer into account. One that is `cached` (an `Age` above 0, or a `Date` more than 5 s before the established bound) proves
   * nothing and must be asked for again.
   * @param newest  the newest readable `logTimestamp` of the page
   */
  observe(page: Pick<Page, 'date' | 'age' | 'received' | 'receivedMonotonic'>, newest?: Micros): 'accepted' | 'cached' {
    if (page.age > 0) return 'cached';
    const at = page.receivedMonotonic;
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

  /**
   * The bound. It never goes back once it is established; undefined before there was an answer to make it of (without `Date` headers: a
   * record with a readable time).
   */
  now(): Micros | undefined {
    const bound = this.#bound();
    if (bound === undefined || !this.#established()) return this.#floor ?? bound;
    this.#floor = Math.max(this.#floor ?? bound, bound);
    return this.#floor;
  }

  /**
   * What both clocks have reached: the bound, or our own clock where that is behind it. A service whose every node is ahead cannot be told by `Date`;
   * so long as one of the two clocks is not ahead nothing is closed, counted for the last time or forgotten before its time. A jump of our own clock
   * while the process lives changes nothing: one ahead is not followed beyond the bound, and one back is not followed at all.
   */
  agreed(): Micros | undefined {
    const bound = this.now();
    return bound === undefined ? undefined : /* mutant: agreed-time */ Math.min(bound, Math.floor(this.#local() * 1000));
  }

  /**
   * What time it is where windows should be closed by now, µs: as `agreed()`, but a clock of the service that stands still does not hold it back.
   * Only answers whose `Date` moves on say how far the service is behind our own clock; since the last of them our monotonic clock goes on.
   */
  expected(): Micros | undefined {
    const agreed = this.agreed();
    const least = this.#moved.reduce((least, { offset }) => Math.min(least, offset), Infinity);
    if (agreed === undefined || !this.#dated || least === Infinity) return agreed;
    return Math.max(agreed, Math.floor(Math.min(this.#local(), least + this.#clock.monotonic()) * 1000));
  }

  /** The `Date` that the service has repeated for longer than `closeDelay`, µs; undefined while its clock moves on. */
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

  /** Our own clock: the furthest that it ever was beside the monotonic one, ms. */
  #local(): number {
    const monotonic = this.#clock.monotonic();
    this.#furthest = Math.max(this.#furthest, this.#clock.now() - monotonic);
    return this.#furthest + monotonic;
  }

  /** False while the bound is being built: records flow, but nothing may be closed, recounted, retried or forgotten. */
  established(): boolean {
    return this.now() !== undefined && this.#established();
  }

  /**
   * How many answers the bound still lacks that will not come by themselves in the time that it takes (`remainingMs`); collect asks for them by
   * counts. Those that confirm or refute a restored bound are wanted at once.
   * @param everyMs  how often an answer comes by itself; left out: never
   */
  missing(everyMs = Infinity): number {
    if (this.#floor !== undefined) return 0;
    const urgent = this.#restored === undefined ? 0 : agreeing - this.#count;
    return Math.max(urgent, answersMin - this.#count - Math.floor(this.remainingMs() / everyMs), 0);
  }

  /** How long the bound must still be built, however many answers there are, ms. */
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

  /**
   * Whether the service claims to be more than an hour ahead of our own clock: a gateway that sticks to one wrong node, or our clock was wrong from
   * the start. One that is set back while the process lives makes no difference.
   */
  ahead(): boolean {
    const bound = this.now();
    return bound !== undefined && bound / 1000 - this.#local() > aheadMs;
  }

  /** Whether answers carry a `Date`; undefined before there was one. */
  dated(): boolean | undefined {
    return this.#first === undefined ? undefined : this.#dated;
  }

  /** The bound less the wall clock in ms; undefined before there is one. */
  offsetMs(): number | undefined {
    const bound = this.now();
    return bound === undefined ? undefined : bound / 1000 - this.#clock.now();
  }

  /** What a restart should find; undefined while the bound is being built. */
  profile(): ClockProfile | undefined {
    const offsetMs = this.offsetMs();
    const bound = this.now();
    // What was kept before the clock stood still says more than the clock that stands still.
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

  /** Keeps the answers of the window, and at least the last twenty. */
  #forget(now: number): void {
    const spare = this.#answers.length - answersMin;
    if (spare <= 0) return;
    const young = this.#answers.findIndex(({ at }) => at >= now - this.#windowMs);
    this.#answers.splice(0, young === -1 ? spare : Math.min(young, spare));
  }

  /** Counts an answer that is too far in the past. True when there are more of them than the bound rests on: then it is built anew. */
  #refuse(at: number): boolean {
    this.#refused = [...this.#refused.filter((each) => each >= at - windowMaxMs), at];
    if (this.#refused.length <= this.#answers.length) return false;
    this.#log.write('source.clock_reset', { source: this.#source, refused: this.#refused.length, accepted: this.#answers.length });
    this.#answers = [];
    this.#refused = [];
    this.#first = undefined;
    this.#count = 0;
    this.#newest = undefined;
    this.#floor = undefined;
    return true;
  }

  /** Whether the first answers after a restart agree with the bound that was kept: then it stands at once. */
  #compare(page: Pick<Page, 'date' | 'received' | 'receivedMonotonic'>): void {
    const { offsetMs = 0, dated, bound: closedUntil } = this.#restored ?? {};
    const bound = page.date === undefined ? this.#bound() : (page.date - marginMs) * 1000;
    const kept = page.received / 1000 + offsetMs;
    // A bound that was kept itself holds as it is: there is no `Date` to compare it with.
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
