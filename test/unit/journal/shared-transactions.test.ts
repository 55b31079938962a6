import { expect, test } from 'vitest';
import { codeOf } from '../../../src/errors/errors.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { base, between, collected, second, seeded } from '../../support/records.ts';
import { lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';
import { sized } from '../../support/long-run.ts';
import { faultsOf, seenFaults } from '../../support/journal/recompute.ts';

test('sources that store in the same turn share one transaction, and each has its own result', async () => {
  const { journal, beside } = await opened();
  journal.registerSource('second', 'tenant', base);
  journal.registerSource('third', 'tenant', base);
  const { commits } = journal.usage();
  const [first, other] = await Promise.all([
    journal.append(pageOf([collected(1, base), collected(2, base + 1)])),
    journal.append(pageOf([collected(3, base), collected(3, base)], { source: 'second' })),
    journal.close('third', span(0, 1), proven(), lastAge),
  ]);
  expect(journal.usage().commits).toBe(commits + 1);
  expect([first, other]).toMatchObject([
    { received: 2, appended: 2, known: 0 },
    { received: 2, appended: 1, known: 1 },
  ]);
  expect(journal.progress('third').live.closedUntil).toBe(base + second);
  const entries = await journal.read(0, { records: 10, bytes: 1e6 });
  expect(entries.map((entry) => [entry.seq, entry.kind, entry.source])).toEqual([
    [1, 'record', source],
    [2, 'record', source],
    [3, 'record', 'second'],
    [4, 'ledger', 'third'],
  ]);
  expect(faultsOf(beside())).toEqual([]);
  expect(seenFaults(beside())).toEqual([]);
});

test('a page that exceeds the quota does not prevent others of the same turn from being stored', async () => {
  const { journal, beside } = await opened({ maxSize: 256 * 1024 });
  journal.registerSource('second', 'tenant', base);
  journal.registerSource('third', 'tenant', base);
  // Random text: the journal compresses a page.
  const text = Array.from({ length: 40_000 }, (_, i) => Math.sin(i).toString(36)).join('');
  const large = pageOf([collected(7, base, { text })], { source: 'second' });
  const [before, refused, after] = await Promise.allSettled([
    journal.append(pageOf([collected(1, base)])),
    journal.append(large),
    journal.close('third', span(0, 1), proven(), lastAge),
  ]);
  expect(before).toMatchObject({ status: 'fulfilled', value: { appended: 1 } });
  expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'journal_full' } });
  expect(after.status).toBe('fulfilled');
  expect(journal.head().seq).toBe(2);
  expect(journal.progress('second').collected).toBe(0);
  expect(journal.progress('third').live.closedUntil).toBe(base + second);
  expect(faultsOf(beside())).toEqual([]);
  expect(seenFaults(beside())).toEqual([]);
});

test.each([1, 2, 3].slice(0, sized(1, 3)))(
  'a journal whose sources store together equals one whose sources store in turn (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    // Small, so that some pages do not fit.
    const [together, inTurn] = [await opened({ maxSize: 512 * 1024 }), await opened({ maxSize: 512 * 1024 })];
    const sources = [source, 'second', 'third', 'fourth'];
    for (const { journal } of [together, inTurn]) {
      for (const id of sources) journal.registerSource(id, 'tenant', base);
      // Keeps the newest segments in memory.
      journal.sinkPositions.register('file', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    }
    let stored = 0;
    let refused = 0;
    for (let round = 0; round < 60; round += 1) {
      const operations = sources.map((id, n): ((journal: Journal) => Promise<unknown>) => {
        const first = between(random, 0, 400);
        const records = Array.from({ length: between(random, 0, 12) }, (_, i) =>
          collected(n * 1_000 + first + i, base + (first + i) * second, { text: noise(random, 600) }),
        );
        const isPage = random() < 0.7;
        return (journal) => {
          const { closedUntil: from } = journal.progress(id).live;
          const done: Promise<unknown> = isPage
            ? journal.append(pageOf(records, { source: id }))
            : journal.close(id, { from, to: from + second }, proven(), lastAge);
          return done.catch(codeOf);
        };
      });
      const before = together.journal.head().seq;
      const results = await Promise.all(operations.map((operation) => operation(together.journal)));
      for (const [n, operation] of operations.entries()) expect(await operation(inTurn.journal), `round ${round}`).toEqual(results[n]);
      expect(together.journal.head(), `round ${round}`).toEqual(inTurn.journal.head());
      const [read, expected] = await Promise.all(
        [together, inTurn].map(({ journal }) => journal.read(before, { records: 100, bytes: 1e6 })),
      );
      expect(
        read?.map(({ text }) => text),
        `round ${round}`,
      ).toEqual(expected?.map(({ text }) => text));
      for (const id of sources) expect(together.journal.progress(id)).toEqual(inTurn.journal.progress(id));
      for (const result of results) {
        if (result === 'journal_full') refused += 1;
        else stored += 1;
      }
    }
    expect(stored).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(20);
    expect(together.journal.usage().commits).toBeLessThan(inTurn.journal.usage().commits);
    expect(faultsOf(together.beside())).toEqual([]);
    expect(seenFaults(together.beside())).toEqual([]);
  },
);

/** Text that the journal hardly compresses. */
function noise(random: () => number, length: number): string {
  return Array.from({ length }, () => String.fromCharCode(between(random, 0x30, 0x7b))).join('');
}

test('a source that stores without waiting for its first page is a fault of the program', async () => {
  const { journal } = await opened();
  const first = journal.append(pageOf([collected(1, base)]));
  await expect(journal.append(pageOf([collected(1, base)]))).rejects.toMatchObject({ code: 'internal_error' });
  expect(await first).toMatchObject({ appended: 1 });
});
