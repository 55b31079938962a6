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

/** What a body may have besides its texts: no shape needs more, and much of it costs the reader a hundred times its size. */
const besideTextsMax = 64 * 1024;
const levelsMax = 32;

/** @throws Problem 400, 408, 413, 415 */
export async function jsonOf(request: IncomingMessage, limits: BodyLimits): Promise<unknown> {
  const { headers } = request;
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(headers['content-type'] ?? '')) {
    throw new Problem(415, 'The body must be application/json in UTF-8: header Content-Type', { parameter: 'Content-Type' });
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    const parameter = 'Content-Encoding';
    throw new Problem(415, `The body must not be encoded: header ${parameter}`, { parameter, headers: { 'accept-encoding': 'identity' } });
  }
  const bytes = await wholeOf(request, limits);
  checkStructure(bytes);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) as unknown;
  } catch (error) {
    const what = error instanceof SyntaxError ? 'JSON' : 'UTF-8';
    throw new Problem(400, `The body is not ${what}`, { cause: error });
  }
}

/** The bytes of the body. @throws Problem 408, 413 */
export function wholeOf(request: IncomingMessage, { bytesMax, patienceMs }: BodyLimits): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.reject(tooLarge({ bytesMax, patienceMs }));
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

/** Before anything is made of the bytes. @throws Problem 400 */
function checkStructure(bytes: Buffer): void {
  const [quote, backslash, opening, closing] = [0x22, 0x5c, [0x5b, 0x7b], [0x5d, 0x7d]] as const;
  let [inText, levels, besideTexts] = [false, 0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inText) {
      if (byte === backslash) at += 1;
      else if (byte === quote) inText = false;
      continue;
    }
    besideTexts += 1;
    if (byte === quote) inText = true;
    else if (byte === opening[0] || byte === opening[1]) levels += 1;
    else if (byte === closing[0] || byte === closing[1]) levels -= 1;
    if (levels > levelsMax) throw new Problem(400, `The body is nested deeper than ${levelsMax} levels`);
    if (besideTexts > besideTextsMax) throw new Problem(400, `The body has more than ${besideTextsMax} bytes besides its texts`);
  }
}

function tooLarge({ bytesMax }: BodyLimits): Problem {
  return new Problem(413, `The body is larger than ${bytesMax} bytes`);
}
