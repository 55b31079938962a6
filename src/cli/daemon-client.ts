/** The client of the socket on which a running daemon serves commands, in its state directory. */
import { join } from 'node:path';
import type { LogLevelRequest } from '../daemon/operations/log-level.ts';
import type { OperationRequest, OperationResult } from '../daemon/operations/requests.ts';
import { codeOf, WaybillError, messageOf, type ErrorCode } from '../errors/errors.ts';
import { forbidden } from '../journal/state-errors.ts';
import type { SinkSnapshot, Snapshot } from '../model/snapshot.ts';
import { request } from '../connect/node-http.ts';
import { exchange, systemCode, type Answer } from './http-exchange.ts';

const timeouts = {
  probe: 30_000,
  snapshot: 5_000,
  operation: 30_000,
  /** Covers the batch in flight and the send itself, each up to the deadline of a send. */
  send: 240_000,
};

export const sendingOperations: ReadonlySet<OperationRequest['operation']> = new Set(['sinks test', 'dead-letters retry', 'replay']);

/** The snapshot of the running daemon; undefined when none runs. @throws WaybillError `state_unusable` when it does not respond */
export async function liveSnapshot(dataDir: string): Promise<Snapshot | undefined> {
  const answer = await ask(dataDir, '/snapshot', timeouts.snapshot);
  return answer && (resultOf(answer) as Snapshot);
}

export async function liveSink(dataDir: string, id: string): Promise<SinkSnapshot | undefined> {
  return (await liveSnapshot(dataDir))?.sinks.find((sink) => sink.id === id);
}

export async function isRunning(dataDir: string): Promise<boolean> {
  return (await ask(dataDir, '/healthz', timeouts.probe)) !== undefined;
}

/** Requests an operation from the running daemon; undefined when none runs. */
export async function performLive(dataDir: string, operation: OperationRequest): Promise<OperationResult | undefined> {
  return post(dataDir, operation, sendingOperations.has(operation.operation) ? timeouts.send : timeouts.operation);
}

/** Changes the log level of the running daemon; false when none runs. */
export async function setLogLevel(dataDir: string, request: LogLevelRequest): Promise<boolean> {
  return (await post(dataDir, request, timeouts.operation)) !== undefined;
}

async function post(dataDir: string, request: OperationRequest | LogLevelRequest, timeoutMs: number): Promise<OperationResult | undefined> {
  const answer = await ask(dataDir, '/operations', timeoutMs, JSON.stringify(request));
  return answer && (resultOf(answer) as OperationResult);
}

/** @throws the error in an answer with another status than 200 */
function resultOf({ status, body }: Answer): unknown {
  const result = JSON.parse(body) as { readonly error?: string; readonly code?: ErrorCode };
  if (status === 200) return result;
  throw new WaybillError(result.code ?? 'state_unusable', result.error ?? `the running daemon responded with status ${status}`);
}

/** @returns undefined when no daemon runs. @param body  JSON; makes the request a POST */
async function ask(dataDir: string, path: string, timeoutMs: number, body?: string): Promise<Answer | undefined> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const method = body === undefined ? 'GET' : 'POST';
  try {
    return await exchange(request({ socketPath: join(dataDir, 'waybill.sock'), path, method, headers }), timeoutMs, body);
  } catch (thrown) {
    const code = systemCode(thrown);
    // No socket, or the socket of a process that has ended.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ECONNREFUSED') return undefined;
    // The process ended before it answered. What an operation did by then is unknown: its error says so.
    if (code === 'ECONNRESET' && body === undefined) return undefined;
    if (code === 'EACCES') throw forbidden(dataDir, thrown);
    if (codeOf(thrown) !== undefined) throw thrown;
    throw new WaybillError('state_unusable', `cannot query the running daemon: ${messageOf(thrown)}`, { cause: thrown });
  }
}
