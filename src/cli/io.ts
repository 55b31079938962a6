/** The streams, environment and stop signal of a command: those of the process, or a test's own. */
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

/**
 * Columns of a stream. A terminal may report 0 (`script`, `expect`, `docker exec -t`).
 * @param elsewhere  columns of a file or pipe
 */
export function widthOf(stream: NodeJS.WritableStream, elsewhere = 120): number {
  const columns = 'columns' in stream && typeof stream.columns === 'number' ? stream.columns : undefined;
  if (columns === undefined) return elsewhere;
  return columns > 0 ? columns : 80;
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
