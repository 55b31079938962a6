/** The streams, environment and stop signal of a command, from the process or from a test. */
import { once } from 'node:events';
import { constants, createReadStream, openSync, readFileSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import { messageOf, WaybillError } from '../errors/errors.ts';
import { jsonText } from '../report/chunks.ts';
import { fittedTable, type Column } from '../report/text-table.ts';

const lineFeed = 0x0a;

export interface Io {
  readonly stdin: NodeJS.ReadableStream;
  /** Results. */
  readonly stdout: NodeJS.WritableStream;
  /** Diagnostics. */
  readonly stderr: NodeJS.WritableStream;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** A terminal may report 0 columns (`script`, `expect`, `docker exec -t`). @param elsewhere  columns of a file or pipe */
export function widthOf(stream: NodeJS.WritableStream, elsewhere = 120): number {
  const columns = 'columns' in stream && typeof stream.columns === 'number' ? stream.columns : undefined;
  if (columns === undefined) return elsewhere;
  return columns > 0 ? columns : 80;
}

export function isTerminal(stream: NodeJS.ReadableStream | NodeJS.WritableStream): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}

export function usesColor({ stdout, env }: Pick<Io, 'stdout' | 'env'>): boolean {
  return isTerminal(stdout) && !env['NO_COLOR'];
}

export function printJson({ stdout }: Pick<Io, 'stdout'>, value: unknown): void {
  stdout.write(jsonText(value));
}

export function printTable({ stdout }: Pick<Io, 'stdout'>, columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  stdout.write(`${fittedTable(columns, rows, widthOf(stdout, Infinity)).join('\n')}\n`);
}

/** @param option  names the file, for messages. @throws WaybillError `usage` */
export function readInput(file: string, option: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new WaybillError('usage', `cannot read ${option} "${file}": ${messageOf(cause)}`, { cause });
  }
}

/** Does not wait for a pipe that nobody writes. @throws WaybillError `usage`; the reason of the signal when it is aborted */
export async function readAbortable(file: string, option: string, signal: AbortSignal): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunksOf(file, option, signal)));
}

/** A pipe is read as a socket: no signal ends a read of a file that waits. */
function contentOf(file: string): Readable {
  if (statSync(file, { throwIfNoEntry: false })?.isFIFO() !== true) return createReadStream(file);
  return new Socket({ fd: openSync(file, constants.O_RDONLY | constants.O_NONBLOCK), readable: true, writable: false });
}

async function* chunksOf(file: string, option: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* addAbortSignal(signal, contentOf(file)) as AsyncIterable<Buffer>;
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    throw new WaybillError('usage', `cannot read ${option} "${file}": ${messageOf(cause)}`, { cause });
  }
}

/** Far more than a line of any input has. */
const maxLineBytes = 256 * 1024 * 1024;

/** Without their line feeds; '' for a line above 256 MiB. @throws WaybillError `usage`; the reason of the signal when it is aborted */
export async function* inputLines(file: string, option: string, signal: AbortSignal): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    length += part.length;
    if (length > maxLineBytes) parts = [];
    else parts.push(part);
  };
  const line = (): string => {
    const text = length > maxLineBytes ? '' : Buffer.concat(parts).toString();
    [parts, length] = [[], 0];
    return text;
  };
  for await (const chunk of chunksOf(file, option, signal)) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      add(chunk.subarray(start, end));
      yield line();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield line();
}

/** At the reader's speed, for a long result. @throws the reason of the signal when it is aborted */
export async function writeResult({ stdout, signal }: Pick<Io, 'stdout' | 'signal'>, chunks: Iterable<string | Uint8Array>): Promise<void> {
  for (const chunk of chunks) {
    signal.throwIfAborted();
    if (stdout.write(chunk)) continue;
    await once(stdout, 'drain', { signal }).catch((thrown: unknown) => {
      signal.throwIfAborted();
      throw thrown;
    });
  }
}
