/** Standard output, one message a line: for a container's log collector, and for trying things out. At least once. */
import { z } from 'zod';
import { WaybillError, messageOf } from '../errors.ts';
import { defineSink } from './define.ts';

const lineBreak = Buffer.from('\n');

/** What was given to standard output and is not in the reader's pipe yet. A deadline takes nothing back, and there is one standard output: it stays over lives. */
let pending: Promise<unknown> | undefined;

export const stdout = defineSink('stdout', {
  summary: 'standard output, one message per line',
  config: z.strictObject({}),
  formats: 'any',
  batch: { records: 500, bytes: 1024 * 1024, wait: 1_000 },
  resolvable: () => false,
  deadline: 30_000,
  destination: () => 'stdout',
  guarantee: () => ({
    delivery: 'at least once',
    duplicates: 'one batch after a crash, or for a reader that stops for 30 s',
    losses: 'what the reader of the pipe loses',
  }),
  check: async () => [{ level: 'ok', message: 'standard output is open; a reader cannot be detected' }],
  open: async (_config, { id }) => {
    const stream = process.stdout;
    // An error that nobody waits for (the reader is gone) is found by the next write.
    const ignore = (): void => undefined;
    stream.on('error', ignore);
    return {
      async send(batch, signal) {
        if (stream.destroyed || !stream.writable)
          throw new WaybillError('sink_blocked', `cannot write to standard output for sink "${id}": it is closed`);
        await untilTaken(id, signal);
        try {
          await written(stream, Buffer.concat(batch.messages.flatMap(({ bytes }) => [bytes, lineBreak])), signal);
        } catch (cause) {
          throw new WaybillError('sink_outcome_unknown', `cannot write to standard output for sink "${id}": ${messageOf(cause)}`, {
            cause,
          });
        }
        return { rejections: [] };
      },
      async [Symbol.asyncDispose]() {
        stream.off('error', ignore);
      },
    };
  },
});

/** What is written behind bytes that nobody reads would stay in memory, and come again with each attempt. */
async function untilTaken(id: string, signal: AbortSignal): Promise<void> {
  const before = pending;
  if (before === undefined) return;
  const message = `cannot write to standard output for sink "${id}": its reader has not consumed the previous batch`;
  await orAborted(before, signal).catch(() => {
    if (signal.aborted) throw new WaybillError('sink_unavailable', message);
  });
}

/** Resolves when the reader's pipe has all of it: what only lies in this process would be lost with it. */
function written(stream: NodeJS.WriteStream, bytes: Buffer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const writing = new Promise<void>((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
  const settled = writing
    .catch(() => undefined)
    .then(() => {
      if (pending === settled) pending = undefined;
    });
  pending = settled;
  return orAborted(writing, signal);
}

function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
