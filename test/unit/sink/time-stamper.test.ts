/** The requests for time stamps of an archive, by their log. test/contract/archive/timestamps.test.ts judges the tokens with OpenSSL. */
import { expect, test } from 'vitest';
import { checkpointPath, tokenPath } from '../../../src/archive/checkpoint.ts';
import type { WritableArchiveStore } from '../../../src/archive/store.ts';
import { TimeStamper } from '../../../src/sink/archive/time-stamper.ts';
import type { Authority } from '../../../src/sink/archive/time-stamper.ts';
import { base } from '../../support/records.ts';
import { noting } from '../../support/telemetry/written-events.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('an authority that fails is asked again after a minute, then two, and its token is stored', async () => {
  const clock = new VirtualClock(base / 1000);
  const files = new Map([[checkpointPath(7), Buffer.from('a checkpoint')]]);
  const store = {
    read: (path: string) => Promise.resolve(files.get(path)),
    create: (path: string, bytes: Uint8Array) => Promise.resolve(!files.has(path) && Boolean(files.set(path, Buffer.from(bytes)))),
    list: async function* () {
      yield* files.keys();
    },
  } as unknown as WritableArchiveStore;
  const down = new Error('the authority is down');
  let failures = 2;
  const authority: Authority = {
    stamp: () => ((failures -= 1) < 0 ? Promise.resolve({ bytes: Buffer.from('a token'), time: base }) : Promise.reject(down)),
    timeOf: () => base,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const lines: unknown[] = [];
  const log = noting({ write: (event, ...[fields]) => void lines.push([clock.monotonic(), event, fields]) });
  await using stamper = await TimeStamper.open({ id: 'evidence', store, authority, clock, log }, 7);
  stamper.consider(7, undefined, false);
  await expect.poll(() => lines.length).toBe(3);
  expect(lines).toEqual([
    [0, 'archive.time_stamp_failed', { sink: 'evidence', retryInMs: 60_000, error: down }],
    [60_000, 'archive.time_stamp_failed', { sink: 'evidence', retryInMs: 120_000, error: down }],
    [180_000, 'archive.time_stamped', { sink: 'evidence', path: tokenPath(7) }],
  ]);
  expect(files.get(tokenPath(7))?.toString()).toBe('a token');
});
