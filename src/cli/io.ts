/** What a command gets from the process that runs it: streams, environment, and the wish to stop. A test gives its own. */

import { once } from 'node:events';

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

/** One command: one file of this directory. */
export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** The whole text of `waybill help COMMAND`, with two examples. */
  readonly usage: string;
  /** @returns the exit code. @throws WaybillError, which becomes a message and an exit code */
  run(args: string[], io: Io): Promise<number>;
}

/**
 * A terminal may say that it has 0 columns (`script`, `expect`, `docker exec -t`); what is no terminal is read as lines.
 * @param elsewhere  columns of what is no terminal
 */
export function widthOf(stream: NodeJS.WritableStream, elsewhere = 120): number {
  const columns = 'columns' in stream && typeof stream.columns === 'number' ? stream.columns : undefined;
  if (columns === undefined) return elsewhere;
  return columns > 0 ? columns : 80;
}

/** Writes a long result as fast as it is read. Throws what the signal says when nobody wants it any more. */
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
