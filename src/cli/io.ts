/** The streams, environment and stop signal of a command, from the process or from a test. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { messageOf, WaybillError } from '../errors.ts';
import { jsonText } from '../report/chunks.ts';
import { table, type Column } from '../report/text-table.ts';

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

/**
 * Columns of a stream. A terminal may report 0 (`script`, `expect`, `docker exec -t`).
 * @param elsewhere  columns of a file or pipe
 */
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
  stdout.write(`${table(columns, rows).join('\n')}\n`);
}

/**
 * The content of a file that an option names.
 * @throws WaybillError `usage`
 */
export function readInput(file: string, option: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new WaybillError('usage', `cannot read ${option} "${file}": ${messageOf(cause)}`, { cause });
  }
}

/**
 * Writes a long result at the reader's speed.
 * @throws the reason of the signal when it is aborted
 */
export async function writeResult({ stdout, signal }: Pick<Io, 'stdout' | 'signal'>, chunks: Iterable<string>): Promise<void> {
  for (const chunk of chunks) {
    signal.throwIfAborted();
    if (stdout.write(chunk)) continue;
    await once(stdout, 'drain', { signal }).catch((thrown: unknown) => {
      signal.throwIfAborted();
      throw thrown;
    });
  }
}
