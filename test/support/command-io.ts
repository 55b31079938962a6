/** Commands that a test runs in its own process: their streams, environment, signal and output. */
import { PassThrough, Writable } from 'node:stream';
import type { Io } from '../../src/cli/io.ts';

export interface Output<Code = number> {
  readonly code: Code;
  readonly stdout: string;
  readonly stderr: string;
}

export function commandIo(parts: Partial<Io> = {}): Io {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  return { ...streams, env: {}, signal: new AbortController().signal, ...parts };
}

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** @param run  of a command, or `dispatch` for a whole command line */
export async function outputOf<Code>(
  run: (args: string[], io: Io) => Promise<Code>,
  args: readonly string[],
  parts: Partial<Io> = {},
): Promise<Output<Code>> {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const code = await run([...args], commandIo({ ...parts, stdout, stderr }));
  return { code, stdout: stdout.text, stderr: stderr.text };
}
