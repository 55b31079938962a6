/**
 * Stamps the newest checkpoint of an archive once a UTC day (RFC 3161), in parallel to the sink: an authority that is down never stops
 * archiving. The position line of each segment has the hash of the newest token, so that the next checkpoint and its token cover it
 * (docs/evidence.md, "Time stamps"). Only then a new token is requested.
 */
import { createHash } from 'node:crypto';
import { checkpointPath, tokenNumber, tokenPath } from '../../archive/checkpoint.ts';
import type { PositionLine } from '../../archive/line.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { TimeStampState } from '../../model/sink.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';

export interface Authority extends AsyncDisposable {
  /** @throws unless the authority grants a valid token for these bytes */
  stamp(content: Uint8Array, signal: AbortSignal): Promise<{ readonly bytes: Uint8Array; readonly time: Micros }>;
  /** The time of a stored token. @throws for bytes that are not a token for this content */
  timeOf(token: Uint8Array, content: Uint8Array): Micros;
}

interface StamperParts {
  readonly id: string;
  readonly store: WritableArchiveStore;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly log: Log;
}

/** When the newest readable token was signed. */
interface Signed {
  readonly time: Micros;
  /** The monotonic clock at this time, ms; undefined for a token of an earlier request. */
  readonly at: number | undefined;
  readonly path: string;
}

const dayUs = 86_400_000_000;
/** Unreadable ones that are read at the start. */
const maxUnreadable = 100;
/** Pauses after failed attempts, ms: the first one doubles up to the last. */
const [firstPause, lastPause] = [60_000, 3_600_000];

export class TimeStamper implements AsyncDisposable {
  readonly #parts: StamperParts;
  readonly #stop = new AbortController();
  #newest: PositionLine['timestamp'];
  #signed: Signed | undefined;
  #lastError: string | undefined;
  #checkpoint = 0;
  /** The checkpoint of the last change of key that this process knows. */
  #keyChangedAt = 0;
  #work: Promise<void> | undefined;

  private constructor(parts: StamperParts) {
    this.#parts = parts;
  }

  /** @param checkpoint  the newest one */
  static async open(parts: StamperParts, checkpoint: number): Promise<TimeStamper> {
    const stamper = new TimeStamper(parts);
    await stamper.#readNewest(checkpoint);
    return stamper;
  }

  /** The newest token, for the next position line. */
  get newest(): PositionLine['timestamp'] {
    return this.#newest;
  }

  get state(): TimeStampState {
    return { newest: this.#signed?.time, lastError: this.#lastError };
  }

  /**
   * Stamps the newest checkpoint if a time stamp is due.
   * @param position  the last line that the checkpoint signs
   * @param isKeyChange  two keys signed it: no signature alone shows when the new key began
   */
  consider(checkpoint: number, position: PositionLine | undefined, isKeyChange: boolean): void {
    this.#checkpoint = checkpoint;
    if (isKeyChange) this.#keyChangedAt = checkpoint;
    const isCovered = this.#newest === undefined || position?.timestamp?.checkpoint === this.#newest.checkpoint;
    if (checkpoint === 0 || this.#work || !isCovered || !this.#isDue()) return;
    this.#work = this.#stampInTime().finally(() => (this.#work = undefined));
  }

  /** Abandons a request in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new WaybillError('aborted', 'the sink is closed'));
    await this.#work;
    await this.#parts.authority[Symbol.asyncDispose]();
  }

  /** By the authority's clock: the local one may be wrong by days. After a restart only that is known, which may cost one more token. */
  #isDue(): boolean {
    const { clock } = this.#parts;
    if (!this.#signed || (this.#newest?.checkpoint ?? 0) < this.#keyChangedAt) return true;
    const { time, at } = this.#signed;
    const now = at === undefined ? clock.now() * 1_000 : time + (clock.monotonic() - at) * 1_000;
    return dayOf(now) !== dayOf(time);
  }

  /** Retries until the authority grants a token, or the sink is closed. */
  async #stampInTime(): Promise<void> {
    const { id, clock, log } = this.#parts;
    const { signal } = this.#stop;
    for (let pause = firstPause; !signal.aborted; pause = Math.min(pause * 2, lastPause)) {
      try {
        await this.#stamp(signal);
        return;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#lastError = messageOf(error);
        log.write('archive.time_stamp_failed', { sink: id, retryInMs: pause, error });
      }
      await clock.sleep(pause, signal).catch(() => undefined);
    }
  }

  async #stamp(signal: AbortSignal): Promise<void> {
    const { id, store, authority, clock, log } = this.#parts;
    const checkpoint = this.#checkpoint;
    const content = await store.read(checkpointPath(checkpoint));
    if (!content) throw new WaybillError('archive_broken', `cannot stamp "${checkpointPath(checkpoint)}": it is missing`);
    const path = tokenPath(checkpoint);
    // An earlier request whose response was lost may have stored it.
    const stored = await store.read(path);
    const { bytes, time } = stored ? { bytes: stored, time: this.#timeOf(path, stored, content) } : await authority.stamp(content, signal);
    this.#assertInOrder(time);
    if (!stored && !(await store.create(path, bytes)))
      throw new WaybillError('sink_unavailable', `cannot store the time stamp "${path}": something else has this name`);
    this.#newest = { checkpoint, sha256: digestOf(bytes) };
    this.#signed = { time, at: stored ? undefined : clock.monotonic(), path };
    this.#lastError = undefined;
    log.write('archive.time_stamped', { sink: id, path });
  }

  /** For verifiers, a token from before the previous one is an alteration, and a stored one stays. */
  #assertInOrder(time: Micros): void {
    if (!this.#signed || time >= this.#signed.time) return;
    throw new WaybillError(
      'sink_unavailable',
      `cannot store the time stamp of the authority (sinks.${this.#parts.id}.timestamp): its time ${iso(time)} is before ` +
        `${iso(this.#signed.time)}, the time of "${this.#signed.path}"`,
    );
  }

  /** Treats an unreadable token as missing: the next token is for another checkpoint, and is after the newest readable one. */
  async #readNewest(last: number): Promise<void> {
    const { store } = this.#parts;
    const numbers: number[] = [];
    for await (const path of store.list('timestamps/')) numbers.push(tokenNumber(path) ?? 0);
    const recent = numbers.filter((number) => number > 0 && number <= last).sort((a, b) => b - a);
    let newest: PositionLine['timestamp'];
    for (const checkpoint of recent.slice(0, maxUnreadable)) {
      const content = await store.read(checkpointPath(checkpoint));
      const path = tokenPath(checkpoint);
      const token = content && (await store.read(path));
      if (!token) continue;
      this.#newest = newest ??= { checkpoint, sha256: digestOf(token) };
      try {
        this.#signed = { time: this.#timeOf(path, token, content), at: undefined, path };
        return;
      } catch (thrown) {
        this.#lastError ??= messageOf(thrown);
      }
    }
  }

  #timeOf(path: string, token: Uint8Array, content: Uint8Array): Micros {
    try {
      return this.#parts.authority.timeOf(token, content);
    } catch (cause) {
      throw new WaybillError('sink_unavailable', `cannot read "${path}": ${messageOf(cause)}`, { cause });
    }
  }
}

function dayOf(time: Micros): number {
  return Math.floor(time / dayUs);
}

function iso(time: Micros): string {
  return new Date(time / 1_000).toISOString();
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
