/** The part of undici that sends requests. Its index also loads fetch, WebSocket, caches and mocks: 2.6 MiB of heap for nothing. */
import Dispatching from 'undici/lib/dispatcher/agent.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import request from 'undici/lib/api/api-request.js';
import type { Agent as AgentOfIndex, Dispatcher } from 'undici';
import { orAborted } from '../time/deadline.ts';

type DispatchingOptions = Omit<AgentOfIndex.Options, 'factory'>;
type RequestOptions = Dispatcher.RequestOptions;
export type Exchange = Omit<RequestOptions, 'origin' | 'path'>;

/** So many refusals in a row end a connection: the name of the server may have moved to another address. */
const refusalsMax = 3;

/** Keep-alive HTTP/1.1 connections to one server. Does not follow redirects. */
export class Agent extends Dispatching {
  #refusals = 0;
  #isSuspect = false;

  constructor(options: DispatchingOptions) {
    // A pool also for one connection: only a pool gives its connections an age (`clientTtl`).
    super({ ...options, factory: (origin, pool) => new Pool(origin, pool) });
  }

  /** undici adds this method only in its index. It ends a request only once a connection is open, so an abort is noticed here. */
  override async request(options: RequestOptions): Promise<Dispatcher.ResponseData> {
    const isLast = /* mutant: refusals-end-connection */ this.#isSuspect || (this.#refusals > 0 && this.#refusals % refusalsMax === 0);
    this.#isSuspect = false;
    const sent = request.call(this, isLast ? { ...options, reset: true } : options);
    const { signal } = options;
    const answer = await (signal instanceof AbortSignal ? orAborted(sent, signal) : sent);
    this.#refusals = answer.statusCode < 300 ? 0 : this.#refusals + 1;
    return answer;
  }

  /** The last answer was a success that makes no sense: the next request is the last one of its connection. */
  suspect(): void {
    this.#isSuspect = true;
  }
}
