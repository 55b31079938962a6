/**
 * The child of journal-kill.test.ts: appends in a loop, closes windows and acknowledges, and
 * reports each commit. It runs until it is killed.
 */
import { flushCompileCache } from 'node:module';
import { systemClock } from '../../../src/time/clock.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { base, collected, second } from '../records.ts';

// Node writes its compile cache at exit, and this process is killed.
flushCompileCache();
const [directory = ''] = process.argv.slice(2);
const journal = await Journal.open(
  { directory, maxSize: 2 ** 30, retention: 50, version: '0.1.0', expectState: false, lockWait: 10_000 },
  systemClock,
  new AbortController().signal,
);
const source = 'production';
journal.registerSource(source, 'tenant', base);
// Stores in the same transactions as the first.
journal.registerSource('other', 'tenant', base);
journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
const at = {
  proven: true,
  proof: { query: {}, total: 0, inWindow: 0, digest: new Uint8Array(32), passes: 1, requests: 1, first: 0, last: 0 },
} as const;
for (let turn = journal.head().seq; ; turn += 1) {
  // Half of each page is already known; the ids continue where the last process ended.
  const records = Array.from({ length: 10 }, (_, i) => collected(turn * 5 + i, base + (turn * 5 + i) * 10 * second));
  const others = [collected(1e9 + turn, base + turn * second)];
  const received = systemClock.now() * 1000;
  await Promise.all([
    journal.append({ source, records, received, serverNow: base }),
    journal.append({ source: 'other', records: others, received, serverNow: base }),
  ]);
  if (turn % 3 === 0) {
    const { closedUntil: reached } = journal.progress(source).live;
    await journal.close(source, { from: reached, to: reached + second }, { verdict: at, next: undefined, at: reached, recount: false }, 0);
  }
  const { seq, chain } = journal.head();
  if (turn % 4 === 0)
    await journal.acknowledge('siem', { acknowledged: seq, delivered: { position: { seq, chain }, resumeNote: `at ${seq}` } }, []);
  if (turn % 16 === 0) journal.prune();
  process.stdout.write(
    `${seq} ${Buffer.from(chain).toString('hex')} ${journal.sinkProgress('siem').acknowledged} ${journal.progress(source).frontier}\n`,
  );
}
