/** The sink `stdout`: one message per line on standard output, for the log collector of a container. At least once. */
import { orAborted } from '../time/deadline.ts';
import { z } from 'zod';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { defineSink } from './define.ts';

const lineBreak = Buffer.from('\n');

/** The write that has not reached the pipe yet. A deadline cannot cancel it, and the next instance of the sink writes to the same pipe. */
let pending: Promise<unknown> | undefined;

export const stdout = defineSink('stdout', {
  summary: 'standard output, one message per line',
  config: z.strictObject({}),
  formats: 'any',
  batch: { records: 500, bytes: 1024 * 1024, wait: 1_000 },
  resolvable: () => false,
  deadline: 30_000,
  refusedInFleet: () =>
    'stdout is not possible with "fleet": each process has its own, and no reader gets all of them in order; use kafka, elasticsearch, splunk-hec or syslog',
  destination: () => 'stdout',
  guarantees: [
    {
      delivery: 'at least once',
      duplicates: 'one batch after a crash, or if the reader stops for 30 s',
      losses: 'what the reader of the pipe loses',
    },
  ],
  check: async () => [{ level: 'ok', message: 'standard output is open; a reader cannot be detected' }],
  open: async (_config, { id }) => {
    const stream = process.stdout;
    // An error between two writes (the reader has exited) appears at the next write.
    const ignore = (): void => undefined;
    stream.on('error', ignore);
    return {
      async send(batch, signal) {
        if (stream.destroyed || !stream.writable)
          throw new WaybillError('sink_blocked', `cannot write to standard output for sink "${id}": it is closed`);
        await untilConsumed(id, signal);
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

/** Waits for the previous write: while the reader does not read, each attempt would add its batch to the memory again. */
async function untilConsumed(id: string, signal: AbortSignal): Promise<void> {
  const before = pending;
  if (before === undefined) return;
  const message = `cannot write to standard output for sink "${id}": its reader has not consumed the previous batch`;
  await orAborted(before, signal).catch(() => {
    if (signal.aborted) throw new WaybillError('sink_unavailable', message);
  });
}

/** Resolves when the pipe has all bytes: bytes in this process are lost if it ends. */
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
