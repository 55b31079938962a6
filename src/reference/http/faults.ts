/**
 * Simulated faults between the API and the client. A separate random stream selects the fault of
 * each request in the order of arrival, so the same seed and the same requests give the same
 * faults.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { encodedSlices, fileCarrierBytes } from './base64.ts';
import { Problem } from './problem.ts';
import { randomOf, type Random } from '../random.ts';
import { faultNames, type SwitchValues } from '../switches.ts';

type Fault = (typeof faultNames)[number];

/** A response before it is sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | FileBody;
}

/** The JSON before and after a content that is sent as Base64. */
interface FileBody {
  readonly before: Buffer;
  readonly content: Buffer;
  readonly after: Buffer;
}

const slowParts = 20;
const html = Buffer.from(
  '<!DOCTYPE html>\n<html><head><title>Service gateway</title></head><body><h1>Our service is being looked after</h1></body></html>\n',
);

export class Faults {
  readonly #values: SwitchValues;
  readonly #random: Random;

  constructor(values: SwitchValues, seed: string) {
    this.#values = values;
    this.#random = randomOf(`${seed}/faults`);
  }

  /**
   * The fault of the next request, if any. Draws one number for each request, so that shares do not
   * shift the stream.
   */
  next(): Fault | undefined {
    let left = this.#random();
    return faultNames.find((name) => (left -= this.#values[name]) < 0);
  }
}

/** The response that replaces the real one; undefined for faults of the transmission. */
export function answerOf(fault: Fault): Answer | undefined {
  switch (fault) {
    case 'fault500':
    case 'fault502':
    case 'fault503':
    case 'fault504':
      return answerOfProblem(new Problem(Number(fault.slice(5)), 'Simulated fault'));
    case 'faultHtml200':
    case 'faultHtml502':
      return { status: Number(fault.slice(9)), headers: { 'content-type': 'text/html; charset=utf-8' }, body: html };
    default:
      return undefined;
  }
}

export function answerOfProblem(problem: Problem): Answer & { readonly body: Buffer } {
  const headers = { 'content-type': 'application/problem+json', ...problem.headers };
  return { status: problem.status, headers, body: Buffer.from(problem.body()) };
}

/** Sends the response with the fault. `reset` closes the connection with a TCP reset. */
export function send(response: ServerResponse, answer: Answer, fault: Fault | undefined, slowForMs: number, reset: () => void): void {
  if (fault === undefined && !Buffer.isBuffer(answer.body)) {
    const { before, content, after } = answer.body;
    const length = before.length + fileCarrierBytes(content.length) + after.length;
    response.writeHead(answer.status, { ...answer.headers, 'content-length': length });
    void sendFile(response, answer.body);
    return;
  }
  const body = Buffer.isBuffer(answer.body) ? answer.body : Buffer.concat([...partsOf(answer.body)]);
  const half = body.subarray(0, Math.floor(body.length / 2));
  const begin = (length: number): unknown => response.writeHead(answer.status, { ...answer.headers, 'content-length': length });
  switch (fault) {
    case 'faultReset':
      reset();
      return;
    case 'faultTruncated':
      begin(body.length);
      response.write(half, () => response.socket?.end());
      return;
    case 'faultCut':
      begin(half.length);
      response.end(half);
      return;
    case 'faultStalled':
      begin(body.length);
      response.write(half);
      return;
    case 'faultSlow':
      begin(body.length);
      sendSlowly(response, body, slowForMs / slowParts);
      return;
    default:
      begin(body.length);
      response.end(body);
  }
}

function* partsOf({ before, content, after }: FileBody): Generator<Buffer> {
  yield before;
  yield* encodedSlices(content);
  yield after;
}

/** Writes at the speed of the client; other requests are served between two parts. */
async function sendFile(response: ServerResponse, body: FileBody): Promise<void> {
  for (const part of partsOf(body)) {
    if (response.destroyed) return;
    if (response.write(part)) await setImmediate();
    else await drained(response);
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off('drain', end).off('close', end);
      resolve();
    };
    response.on('drain', end).on('close', end);
  });
}

function sendSlowly(response: ServerResponse, body: Buffer, pauseMs: number): void {
  const size = Math.max(1, Math.ceil(body.length / slowParts));
  let sent = 0;
  const timer = setInterval(() => {
    response.write(body.subarray(sent, sent + size));
    sent += size;
    if (sent < body.length) return;
    clearInterval(timer);
    response.end();
  }, pauseMs);
  response.once('close', () => clearInterval(timer));
}
