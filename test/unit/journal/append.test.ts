import { expect, test } from 'vitest';
import { base, between, collected, day, hour, minute, second, seeded } from '../../support/records.ts';
import { beside, gap, lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';
import { faultsOf, seenFaults } from '../../support/journal/recompute.ts';

test('each record of a page is fresh, known or outside, and received is their sum', async () => {
  const { journal } = await opened();
  const old = collected(1, base + second);
  await journal.append(pageOf([old]));
  const twice = collected(2, base + 2 * second);
  const result = await journal.append(
    pageOf([
      old, // known from the previous page
      twice,
      twice, // known from this page
      collected(3, base - 1), // before the start of the only range
      collected(4, base), // the range starts with it
      collected(5, base + 400 * day), // a node whose clock is ahead: the live range has no end
      collected(6, undefined),
    ]),
  );
  expect(result).toMatchObject({ received: 7, appended: 4, known: 2, outside: 1, late: 0 });
  expect(result.fresh.map(({ text }) => (JSON.parse(text) as { logId: number }).logId)).toEqual([2, 4, 5, 6]);
  expect(journal.head().seq).toBe(5);
});

test('pages in any order and overlap are counted as an oracle counts them, across buckets and a restart', async () => {
  const random = seeded(7);
  const all = Array.from({ length: 120 }, (_, i) => collected(i, base + between(random, -3, 60) * 10 * minute + i));
  let state = await opened();
  const known = new Set<string>();
  for (let round = 0; round < 60; round += 1) {
    if (round === 30) {
      await state.close();
      state = await opened({ directory: state.directory });
    }
    const records = Array.from({ length: between(random, 0, 10) }, () => all[between(random, 0, all.length)] ?? collected(0, base));
    const expected = { received: records.length, appended: 0, known: 0, outside: 0 };
    for (const { time, uid } of records) {
      if ((time ?? base) < base) expected.outside += 1;
      else if (known.has(uid)) expected.known += 1;
      else {
        expected.appended += 1;
        known.add(uid);
      }
    }
    expect(await state.journal.append(pageOf(records)), `round ${round}`).toMatchObject(expected);
  }
  expect(state.journal.head().seq).toBe(known.size);
  expect(seenFaults(state.beside())).toEqual([]);
  expect(faultsOf(state.beside())).toEqual([]);
});

test('a page without new records writes polledUntil only', async () => {
  const { journal } = await opened();
  const record = collected(1, base);
  await journal.append(pageOf([record], { polledUntil: base + second }));
  const { commits } = journal.usage();
  await journal.append(pageOf([record], { polledUntil: base + second }));
  await journal.append(pageOf([]));
  expect(journal.usage().commits).toBe(commits);
  await journal.append(pageOf([record], { polledUntil: base + 2 * second }));
  expect(journal.progress(source).polledUntil).toBe(base + 2 * second);
  expect(journal.head().seq).toBe(1);
});

test('a record of a closed window is late, and counted for that window and source', async () => {
  const { journal, directory, close } = await opened();
  await journal.close(source, span(0, 10), proven(), lastAge);
  await journal.close(source, span(10, 20), gap(), lastAge);
  const result = await journal.append(
    pageOf([
      collected(1, base), // the first instant of the closed window
      collected(2, base + 10 * second - 1), // its last
      collected(3, base + 10 * second), // the gap is not closed yet
      collected(4, base + 20 * second), // after closedUntil
    ]),
  );
  expect(result).toMatchObject({ appended: 4, late: 2 });
  const entries = await journal.read(2, { records: 10, bytes: 1e6 });
  expect(entries.map(({ late }) => late)).toEqual([true, true, false, false]);
  const rows = beside(directory).prepare('SELECT from_us - ? AS at, late FROM windows ORDER BY from_us').all(base);
  expect(rows).toEqual([
    { at: 0, late: 2 },
    { at: 10 * second, late: 0 },
  ]);
  await close();
  const again = await opened({ directory });
  expect(again.journal.progress(source)).toMatchObject({ late: 2, collected: 4, lastRecord: base + 20 * second });
});

test('a late counter survives the next revision of its window', async () => {
  const { journal, beside } = await opened();
  await journal.close(source, span(0, 10), proven(0, base, base + hour), lastAge);
  await journal.append(pageOf([collected(1, base)]));
  await journal.close(source, span(0, 10), { ...proven(1), recount: true }, lastAge);
  expect(beside().prepare('SELECT late, total, recounts FROM windows').get()).toEqual({ late: 1, total: 1, recounts: 1 });
});

test('records without a readable time are known on the day of receipt and on every later day', async () => {
  const { journal, beside } = await opened();
  const odd = collected(1, undefined);
  expect(await journal.append(pageOf([odd]))).toMatchObject({ appended: 1, outside: 0 });
  expect(await journal.append(pageOf([odd]))).toMatchObject({ appended: 0, known: 1 });
  expect(await journal.append(pageOf([odd], { serverNow: base + day }))).toMatchObject({ appended: 0, known: 1 });
  expect(await journal.append(pageOf([odd, odd], { serverNow: base + 3 * day }))).toMatchObject({ appended: 0, known: 2 });
  // 2026-11-20 is day 20,777 since 1970.
  const buckets = beside().prepare('SELECT bucket FROM seen WHERE bucket < 0 ORDER BY bucket DESC').all();
  expect(buckets).toEqual([{ bucket: -20777 }, { bucket: -20778 }, { bucket: -20780 }]);
  expect(journal.head().seq).toBe(1);
  expect(seenFaults(beside())).toEqual([]);
});

test('the day of a record without a time is that of closedUntil, if that is ahead of the service', async () => {
  const { journal, beside } = await opened();
  await journal.close(source, { from: base, to: base + 9 * day }, proven(), lastAge);
  await journal.append(pageOf([collected(1, undefined)], { serverNow: base }));
  expect(beside().prepare('SELECT bucket FROM seen').all()).toEqual([{ bucket: -20786 }]);
});

test('the bucket of a day of unreadable times is deleted five days after its end, not earlier', async () => {
  const { journal, beside } = await opened();
  await journal.append(pageOf([collected(1, undefined)]));
  const buckets = (): unknown[] => beside().prepare('SELECT bucket FROM seen').all();
  const endOfDay = base - (base % day) + day;
  await journal.close(source, { from: base, to: endOfDay + 5 * day }, proven(), 0);
  expect(buckets()).toEqual([{ bucket: -20777 }]);
  await journal.close(source, { from: endOfDay + 5 * day, to: endOfDay + 5 * day + second }, proven(), 0);
  expect(buckets()).toEqual([]);
  // Appended again: its uid was deleted with its only bucket.
  expect(await journal.append(pageOf([collected(1, undefined)], { serverNow: endOfDay + 6 * day }))).toMatchObject({ appended: 1 });
});

test('the uid of a record that arrives every day is never deleted', async () => {
  const { journal } = await opened();
  const odd = collected(1, undefined);
  let from = base;
  for (let i = 0; i < 20; i += 1) {
    const serverNow = from + day;
    expect((await journal.append(pageOf([odd], { serverNow }))).appended, `day ${i}`).toBe(i === 0 ? 1 : 0);
    await journal.close(source, { from, to: from + day }, proven(), 0);
    from += day;
  }
});
