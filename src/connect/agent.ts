/**
 * The part of undici that sends requests. The index of the package also loads fetch, WebSocket, caches and mocks, which the daemon does not
 * use: 2.6 MiB of its heap.
 */
import Dispatching from 'undici/lib/dispatcher/agent.js';
import request from 'undici/lib/api/api-request.js';
import type { Dispatcher } from 'undici';

type RequestOptions = Dispatcher.RequestOptions;
export type Exchange = Omit<RequestOptions, 'origin' | 'path'>;

/** Keep-alive connections to one server. Follows no redirect; HTTP/1.1. */
export class Agent extends Dispatching {
  /** The index of undici would add this method. */
  override async request(options: RequestOptions): Promise<Dispatcher.ResponseData> {
    return request.call(this, options);
  }
}
