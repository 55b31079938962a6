/** One HTTP exchange of a command with the daemon. */
import type { ClientRequest } from 'node:http';
import { WaybillError } from '../errors/errors.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The largest accepted body; a report of years has some tens of MB. */
const maxBytes = 1_000_000_000;

export function exchange(request: ClientRequest, timeoutMs: number, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request.setTimeout(timeoutMs, () =>
      request.destroy(new WaybillError('state_unusable', `cannot query the running daemon: no response within ${timeoutMs / 1000} s`)),
    );
    request.on('response', (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes > maxBytes) request.destroy(new Error(`the response exceeds ${maxBytes} bytes`));
        else parts.push(part);
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** The code of a system error; undefined for an error of Waybill. */
export function systemCode(thrown: unknown): string | undefined {
  return thrown instanceof Error && !(thrown instanceof WaybillError) && 'code' in thrown ? String(thrown.code) : undefined;
}
