/**
 * One source's use of the token of its login. It judges the token by the answers to its own requests: another source may ask another
 * service, with other rights and another clock. A replacement is for all, so a source alone cannot cause many.
 */
import { WaybillError } from '../errors/errors.ts';
import type { Token, TokenStore } from './token.ts';

export class SourceToken implements AsyncDisposable {
  readonly #source: string;
  readonly #store: TokenStore;
  /** Refusals since the last request that was accepted. */
  #refusals = 0;
  /** The first failure since the last request that was accepted, ms of the monotonic clock. */
  #failingSince: number | undefined;
  /** Until then another token is not expected to help after 401, ms of the monotonic clock. */
  #vainUntil = -Infinity;
  #hasObtained = false;

  constructor(source: string, store: TokenStore) {
    this.#source = source;
    this.#store = store;
    store.sharers.add(this);
  }

  /** See TokenStore.get. Errors name the settings of this source. */
  async get(signal: AbortSignal): Promise<string> {
    try {
      const { token, since, lifeMs } = await this.#store.get(signal);
      const seconds = Math.round((since + lifeMs - this.#store.clock.monotonic()) / 1000);
      if (!this.#hasObtained) this.#store.log?.write('source.first_token', { source: this.#source, seconds });
      this.#hasObtained = true;
      return token;
    } catch (thrown) {
      const { source } = this.#store;
      if (!(thrown instanceof WaybillError) || signal.aborted || source === this.#source) throw thrown;
      throw new WaybillError(thrown.code, thrown.message.replaceAll(`sources.${source}.`, `sources.${this.#source}.`), thrown);
    }
  }

  /** The next refusals of an accepted token have another reason, until they are all that comes. */
  accepted(token: string): void {
    this.#refusals = 0;
    this.#failingSince = undefined;
    if (this.#store.current?.token !== token) return;
    this.#store.current.acceptedBy.add(this);
    this.#store.doubters.delete(this);
  }

  /**
   * The service refused a request with this token. True if another token may help: the next call obtains one. Gateways answer an expired
   * token with any status, so after some refusals in a row the token is suspected, at most once a minute. A token that was never accepted
   * is suspected at once if it may be too long for a gateway's headers (431, or 400). A token that may be too new, because the clocks
   * differ, is replaced once and then kept.
   * @param kind  `unauthorized`: 401; `refused`: the code `page_refused`
   * @param date  the time of the service, ms since 1970
   */
  refused(token: string, kind: 'unauthorized' | 'refused' | 'other', date?: number): boolean {
    const { current, doubters } = this.#store;
    // Another request has replaced it already.
    if (current?.token !== token) return kind === 'unauthorized';
    this.#refusals += 1;
    if (/* mutant: early-token */ doubters.size > 0 && this.#isEarly(current, date)) return false;
    const isAccepted = current.acceptedBy.has(this);
    if (kind === 'unauthorized') {
      return this.#replace(current, this.#isShared && !(isAccepted && this.#store.clock.monotonic() >= this.#vainUntil), date);
    }
    const isSuspect = /* mutant: suspected-token */ this.#refusals >= refusalsMax || (kind === 'refused' && !isAccepted);
    return isSuspect && this.#replace(current, true, date);
  }

  /**
   * A request with this token failed in any way: a gateway may answer an expired token with a status that asks to wait, or end the
   * connection. After `doubtMs` of failures only, the next call obtains another token, at most once a minute; while none can be obtained
   * this one serves.
   */
  failed(token: string): void {
    const { current, doubters, clock } = this.#store;
    this.#failingSince ??= clock.monotonic();
    if (current?.token !== token || (doubters.size > 0 && this.#isEarly(current))) return;
    const isSuspect = /* mutant: token-of-failures */ clock.monotonic() - this.#failingSince >= doubtMs;
    if (isSuspect && this.#replace(current, true)) this.#store.doubted = current;
  }

  /** The service answered the replacement of a token with 401 too. */
  replacedInVain(): void {
    this.#vainUntil = this.#store.clock.monotonic() + replaceMs;
  }

  /** Makes the next call obtain a new token, which may carry other rights; at most once a minute if other sources share it. */
  renew(): void {
    const { current, doubters } = this.#store;
    if (current && !(doubters.size > 0 && this.#isEarly(current))) this.#replace(current, this.#isShared);
  }

  /** How long the token is not valid yet by the time of the service, ms; at most 0 if it is valid, or states no time. */
  earlyMs(token: string, date: number): number {
    const { current } = this.#store;
    return current?.token === token ? (current.validFrom ?? 0) - date : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#store.sharers.delete(this);
    this.#store.doubters.delete(this);
    if (this.#store.sharers.size === 0) await this.#store[Symbol.asyncDispose]();
  }

  get #isShared(): boolean {
    return this.#store.sharers.size > 1;
  }

  /** @param isLimited  all sources of the login together: once a minute */
  #replace(current: Token, isLimited: boolean, date?: number): boolean {
    const now = this.#store.clock.monotonic();
    // mutant: limited-replacement
    if (isLimited && now < this.#store.replaceAt) return false;
    if (isLimited || this.#isShared) this.#store.replaceAt = now + replaceMs;
    if (this.#isEarly(current, date)) this.#store.doubters.add(this);
    this.#store.current = undefined;
    return true;
  }

  #isEarly({ token, since, acceptedBy }: Token, date = Infinity): boolean {
    return !acceptedBy.has(this) && (this.#store.clock.monotonic() - since < earlyMs || this.earlyMs(token, date) > 0);
  }
}

/** Minimum time between two limited replacements, ms. */
const replaceMs = 60_000;
/** Failures for so long make a token suspect, ms. Pauses between attempts double, so an attempt has another token after about a minute at most. */
const doubtMs = 15_000;
/** So many refusals in a row, of whatever requests, make an accepted token suspect. */
const refusalsMax = 4;
/** The clocks of issuer and service may differ by as much: a token that was not accepted may become valid, ms. */
const earlyMs = 120_000;
