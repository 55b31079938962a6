/**
 * Imports only the part of undici that sends requests. The package's index also loads fetch, WebSocket, caches and mocks: 2.6 MiB of heap
 * that the daemon does not need.
 */
import Dispatching from 'undici/lib/dispatcher/agent.js';
import request from 'undici/lib/api/api-request.js';
import type { Dispatcher } from 'undici';

type RequestOptions = Dispatcher.RequestOptions;
export type Exchange = Omit<RequestOptions, 'origin' | 'path'>;

/** Keep-alive HTTP/1.1 connections to one server. Does not follow redirects. */
export class Agent extends Dispatching {
  /** undici adds this method only in its index. */
  override async request(options: RequestOptions): Promise<Dispatcher.ResponseData> {
    return request.call(this, options);
  }
}
