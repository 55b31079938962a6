/**
 * The body of a request: JSON in UTF-8, not larger than is allowed, and not slower. What is refused is not kept; what is left of it on the
 * way is thrown away as it comes, so that the client can read the answer.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from './problem.ts';

/** How much of a body is taken, and how long one may take to come. */
export interface BodyLimits {
  readonly bytesMax: number;
  readonly patienceMs: number;
}

/** @throws Problem 400, 408, 413, 415 */
export async function jsonOf(request: IncomingMessage, limits: BodyLimits): Promise<unknown> {
  const { headers } = request;
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(headers['content-type'] ?? '')) {
    throw new Problem(415, 'The body must be application/json in UTF-8: header Content-Type');
  }
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new Problem(415, 'The body must not be encoded: header Content-Encoding', { headers: { 'accept-encoding': 'identity' } });
  }
  if (Number(headers['content-length'] ?? 0) > limits.bytesMax) throw tooLarge(limits);
  const bytes = await bytesOf(request, limits);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) as unknown;
  } catch (error) {
    const what = error instanceof SyntaxError ? 'JSON' : 'UTF-8';
    throw new Problem(400, `The body is not ${what}`, { cause: error });
  }
}

function bytesOf(request: IncomingMessage, { bytesMax, patienceMs }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const end = (how: () => void): void => {
      clearTimeout(timer);
      request.off('data', take).off('end', whole).off('error', gone).off('close', gone);
      // An error of the connection after the answer is nobody's concern any more.
      request.on('error', () => undefined).resume();
      how();
    };
    const take = (part: Buffer): void => {
      bytes += part.length;
      if (bytes <= bytesMax) parts.push(part);
      else end(() => reject(tooLarge({ bytesMax, patienceMs })));
    };
    const whole = (): void => end(() => resolve(Buffer.concat(parts)));
    const gone = (): void => end(() => reject(new Error('the client is gone')));
    const tooSlow = new Problem(408, `The body did not come within ${patienceMs} ms`, { headers: { connection: 'close' } });
    const timer = setTimeout(() => end(() => reject(tooSlow)), patienceMs);
    request.on('data', take).once('end', whole).once('error', gone).once('close', gone);
  });
}

function tooLarge({ bytesMax }: BodyLimits): Problem {
  return new Problem(413, `The body is larger than ${bytesMax} bytes`);
}
