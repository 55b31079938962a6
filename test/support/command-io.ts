/** Streams, environment and signal for a command that a test runs in its own process. */
import { PassThrough } from 'node:stream';
import type { Io } from '../../src/cli/io.ts';

export function commandIo(parts: Partial<Io> = {}): Io {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  return { ...streams, env: {}, signal: new AbortController().signal, ...parts };
}
