/**
 * Reads the body of a request: JSON in UTF-8, within limits of size and time. The rest of a refused
 * body is discarded as it arrives, so that the client can read the response.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { decodedInSlices, type Decoded } from './base64.ts';
import { Problem } from './problem.ts';

export interface BodyLimits {
  readonly bytesMax: number;
  readonly patienceMs: number;
}

/**
 * Maximum bytes outside of strings: parsing many small values takes a hundred times their size in
 * memory.
 */
const besideTextsMax = 64 * 1024;
const levelsMax = 32;

/** A text of at least this length is decoded in slices. */
const longTextBytes = 64 * 1024;
const fileField = '"base64FileData"';

/**
 * The JSON of a request body. A short placeholder replaces a long `base64FileData`; `files` maps
 * the placeholder to the content.
 */
export interface JsonBody {
  readonly json: unknown;
  readonly files: Decoded;
}

/** @throws Problem 400, 408, 413, 415 */
export async function jsonOf(request: IncomingMessage, limits: BodyLimits): Promise<JsonBody> {
  const { headers } = request;
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(headers['content-type'] ?? '')) {
    throw new Problem(415, 'The body must be application/json in UTF-8: header Content-Type', { parameter: 'Content-Type' });
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    const parameter = 'Content-Encoding';
    throw new Problem(415, `The body must not be encoded: header ${parameter}`, { parameter, headers: { 'accept-encoding': 'identity' } });
  }
  let bytes = await wholeOf(request, limits);
  const files = new Map<string, Buffer | undefined>();
  for (const [begin, end] of checkStructure(bytes).reverse()) {
    const name = randomUUID();
    files.set(name, await decodedInSlices(bytes.subarray(begin, end)));
    bytes = Buffer.concat([bytes.subarray(0, begin), Buffer.from(name), bytes.subarray(end)]);
  }
  try {
    return { json: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) as unknown, files };
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
      // An error of the connection after the response has no effect.
      request.on('error', () => undefined).resume();
      how();
    };
    const take = (part: Buffer): void => {
      bytes += part.length;
      if (bytes <= bytesMax) parts.push(part);
      else end(() => reject(tooLarge({ bytesMax, patienceMs })));
    };
    const whole = (): void => end(() => resolve(Buffer.concat(parts)));
    const gone = (): void => end(() => reject(new Error('the client has disconnected')));
    const tooSlow = new Problem(408, `The body was not complete within ${patienceMs} ms`, { headers: { connection: 'close' } });
    const timer = setTimeout(() => end(() => reject(tooSlow)), patienceMs);
    request.on('data', take).once('end', whole).once('error', gone).once('close', gone);
  });
}

/**
 * Checks the limits before the body is parsed. Returns the positions of long `base64FileData` texts
 * without escapes in the outermost object.
 * @throws Problem 400
 */
function checkStructure(bytes: Buffer): [begin: number, end: number][] {
  const [quote, backslash, opening, closing] = [0x22, 0x5c, [0x5b, 0x7b], [0x5d, 0x7d]] as const;
  const files: [number, number][] = [];
  let [levels, besideTexts, nameBegin, nameEnd, nextBackslash] = [0, 0, 0, 0, -1];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    besideTexts += 1;
    if (byte === opening[0] || byte === opening[1]) levels += 1;
    else if (byte === closing[0] || byte === closing[1]) levels -= 1;
    if (levels > levelsMax) throw new Problem(400, `The body is nested deeper than ${levelsMax} levels`);
    if (besideTexts > besideTextsMax) throw new Problem(400, `The body has more than ${besideTextsMax} bytes outside of its strings`);
    if (byte !== quote) continue;
    const begin = at + 1;
    let hasEscapes = false;
    let end = indexOr(bytes, quote, begin);
    for (;;) {
      if (nextBackslash < at + 1) nextBackslash = indexOr(bytes, backslash, at + 1);
      if (nextBackslash > end) break;
      hasEscapes = true;
      at = nextBackslash + 1;
      if (at >= end) end = indexOr(bytes, quote, at + 1);
    }
    if (levels === 1 && !hasEscapes && end < bytes.length && end - begin >= longTextBytes) {
      const before = bytes.toString('latin1', Math.max(nameBegin, nameEnd - fileField.length), begin - 1);
      if (before.startsWith(fileField) && before.slice(fileField.length).trim() === ':') files.push([begin, end]);
    }
    [nameBegin, nameEnd] = [begin - 1, end + 1];
    at = end;
  }
  return files;
}

/** The next position of the byte, or the end. */
function indexOr(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

function tooLarge({ bytesMax }: BodyLimits): Problem {
  return new Problem(413, `The body is larger than ${bytesMax} bytes`);
}
