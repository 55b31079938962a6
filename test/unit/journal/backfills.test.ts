import { describe, expect, test } from 'vitest';
import { uncovered } from '../../../src/journal/sources.ts';
import { backfillsOf, uncoveredOf } from '../../../src/journal/queries/backfills.ts';
import { operationsOf } from '../../../src/journal/queries/operations.ts';
import { sourcesOf } from '../../../src/journal/queries/stored.ts';
import { base, collected, day, hour, minute, second } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, source } from '../../support/journal/opening.ts';

const operation = { actor: 'j.doe', reason: 'ticket 4711' };

describe('uncovered time', () => {
  const live = { from: 1000, to: null };
  test.each([
    ['all of it before the live range', [live], [0, 1000], [[0, 1000]]],
    ['only the part before the live range', [live], [500, 5000], [[500, 1000]]],
    ['nothing within the live range', [live], [1000, 5000], []],
    [
      'around a range in between',
      [{ from: 200, to: 300 }, live],
      [100, 2000],
      [
        [100, 200],
        [300, 1000],
      ],
    ],
    ['ranges that touch leave nothing between them', [{ from: 200, to: 300 }, { from: 300, to: 1000 }, live], [100, 2000], [[100, 200]]],
    ['the inside of a range', [{ from: 200, to: 900 }, live], [300, 400], []],
    ['a begin inside of a range', [{ from: 200, to: 900 }, live], [300, 950], [[900, 950]]],
    ['an end inside of a range', [{ from: 200, to: 900 }, live], [100, 400], [[100, 200]]],
    [
      'in whatever order ranges come',
      [live, { from: 600, to: 700 }, { from: 200, to: 300 }],
      [0, 1000],
      [
        [0, 200],
        [300, 600],
        [700, 1000],
      ],
    ],
  ] as const)('%s', (_, ranges, [from, to], expected) => {
    expect(uncovered(ranges, { from, to })).toEqual(expected.map(([a, b]) => ({ from: a, to: b })));
  });
});

describe('a backfill', () => {
  test('is added in the uncovered parts, with its operation and ledger entry in one transaction', async () => {
    const { journal, beside } = await opened();
    const { history } = journal;
    expect(history.add(source, { from: base - 3 * hour, to: base - 2 * hour }, {}, operation)).toEqual([
      { from: base - 3 * hour, to: base - 2 * hour },
    ]);
    const parts = history.add(
      source,
      { from: base - 5 * hour, to: base + hour },
      { rate: 2, expected: 400 },
      { actor: 'a', reason: undefined },
    );
    expect(parts).toEqual([
      { from: base - 5 * hour, to: base - 3 * hour },
      { from: base - 2 * hour, to: base },
    ]);
    expect(history.add(source, { from: base - 5 * hour, to: base + hour }, {}, operation)).toEqual([]);
    // The start of the ledger, in lists as in the report.
    expect(sourcesOf(journal.db)).toMatchObject([{ id: source, startsAt: base - 5 * hour }]);
    // Newest first: the ranges nearest to the present matter most.
    expect(journal.backfills(source).map(({ from, to }) => [from, to])).toEqual([
      [base - 2 * hour, base],
      [base - 3 * hour, base - 2 * hour],
      [base - 5 * hour, base - 3 * hour],
    ]);
    expect(journal.backfills(source)[0]?.order).toMatchObject({ rate: 2, expected: 200, paused: false });
    const db = beside();
    expect(
      operationsOf(db, 0, Number.MAX_SAFE_INTEGER).map(({ actor, operation, detail }) => ({
        actor,
        operation,
        ...(JSON.parse(detail ?? '') as object),
      })),
    ).toMatchObject([
      { actor: 'j.doe', operation: 'backfill', source, reason: 'ticket 4711', from: base - 3 * hour, to: base - 2 * hour },
      { actor: 'a', operation: 'backfill', source, rate: 2, expected: 400 },
    ]);
    const entries = await journal.read(0, { records: 10, bytes: 1e6 });
    expect(entries.map(({ kind, text }) => ({ kind, ...(JSON.parse(text) as object) }))).toMatchObject([
      { kind: 'ledger', ledger: 'operation', source, actor: 'j.doe', operation: 'backfill' },
      { kind: 'ledger', ledger: 'operation', source, actor: 'a', operation: 'backfill' },
    ]);
    expect(new Set(entries.map(({ uid }) => uid)).size).toBe(2);
  });

  test('survives a restart with its options', async () => {
    const first = await opened();
    first.journal.history.add(source, { from: base - hour, to: base }, { rate: 3, sinks: ['a'] }, operation);
    first.journal.history.pause(source, base - hour, true, operation);
    const before = first.journal.backfills(source);
    await first.close();
    const { journal } = await opened({ directory: first.directory, clock: first.clock });
    expect(journal.backfills(source)).toEqual(before);
    expect(before[0]?.order).toMatchObject({ rate: 3, sinks: ['a'], paused: true });
    expect(() => journal.history.pause(source, base - hour, true, operation)).toThrow(/already paused/);
    journal.history.pause(source, base - hour, false, operation);
    expect(journal.backfills(source)[0]?.order.paused).toBe(false);
  });

  test('collects records that were outside before, closes its windows and moves no frontier', async () => {
    const { journal } = await opened();
    const old = collected(1, base - hour);
    expect(await journal.append(pageOf([old]))).toMatchObject({ outside: 1 });
    journal.history.add(source, { from: base - 2 * hour, to: base }, {}, operation);
    expect(await journal.append(pageOf([old], { window: { from: base - 2 * hour, to: base } }))).toMatchObject({ appended: 1, late: 0 });
    await journal.close(source, { from: base - 2 * hour, to: base - hour }, proven(), lastAge);
    expect(journal.progress(source)).toMatchObject({ frontier: base, live: { closedUntil: base } });
    expect(journal.backfills(source)).toMatchObject([{ from: base - 2 * hour, closedUntil: base - hour, to: base }]);
    await expect(journal.close(source, { from: base - hour, to: base + second }, proven(), lastAge)).rejects.toMatchObject({
      code: 'internal_error',
    });
  });

  test('deletes its uids when it is complete and resolved, not with a pending recount or a gap', async () => {
    const { journal, beside } = await opened();
    const buckets = (): number => (beside().prepare('SELECT count(*) AS n FROM seen').get() as { n: number }).n;
    journal.history.add(source, { from: base - 2 * day, to: base }, {}, operation);
    await journal.append(pageOf([collected(1, base - 2 * day), collected(2, base - day)], { window: { from: base - 2 * day, to: base } }));
    await journal.close(source, { from: base - 2 * day, to: base - day }, proven(1, base + day, base + 2 * day), lastAge);
    await journal.close(source, { from: base - day, to: base }, gap(), lastAge);
    expect(journal.backfills(source)).toEqual([]);
    expect(buckets()).toBe(2);
    await journal.confirm(source, { from: base - 2 * day, to: base - day }, undefined, base + 2 * day, lastAge);
    expect(buckets()).toBe(2);
    await journal.close(source, { from: base - day, to: base }, proven(1), lastAge);
    expect(buckets()).toBe(0);
    // When the padding of a neighbouring query returns a record of the backfill, it counts as outside, and is not sent again.
    expect(await journal.append(pageOf([collected(2, base - day)]))).toMatchObject({ appended: 0, outside: 1 });
    expect(backfillsOf(beside(), true)).toMatchObject([{ source, state: 'done', windows: 2, gaps: 0 }]);
    expect(backfillsOf(beside(), false)).toEqual([]);
  });

  test('keeps its uids while it runs, however far the live range is', async () => {
    const { journal } = await opened();
    journal.history.add(source, { from: base - 40 * day, to: base }, {}, operation);
    const page = pageOf([collected(1, base - 40 * day)], { window: { from: base - 40 * day, to: base - 39 * day } });
    await journal.append(page);
    await journal.close(source, { from: base, to: base + 60 * day }, proven(), lastAge);
    expect(await journal.append(page)).toMatchObject({ known: 1 });
  });
});

describe('cancelling', () => {
  test('a backfill without collected records is deleted', async () => {
    const { journal } = await opened();
    journal.history.add(source, { from: base - hour, to: base }, {}, operation);
    // A record of the live range in the bucket that both share.
    await journal.append(pageOf([collected(1, base + second)]));
    expect(journal.history.cancel(source, base - hour, undefined, operation)).toBe(base - hour);
    expect(journal.backfills(source)).toEqual([]);
    expect(uncoveredOf(journal.db, source, { from: base - hour, to: base })).toHaveLength(1);
  });

  test('the range ends after the last collected record, so that adding it again sends nothing twice', async () => {
    const { journal } = await opened();
    journal.history.add(source, { from: base - 4 * hour, to: base }, {}, operation);
    await journal.close(source, { from: base - 4 * hour, to: base - 3 * hour }, proven(), 0);
    // Records of the window in progress when the daemon was killed.
    const begun = [collected(1, base - 3 * hour + second), collected(2, base - 3 * hour + 25 * minute)];
    await journal.append(pageOf(begun, { window: { from: base - 3 * hour, to: base - 2 * hour } }));
    const ends = journal.history.cancel(source, base - 4 * hour, undefined, operation);
    expect(ends).toBe(base - 3 * hour + 25 * minute + second);
    expect(journal.backfills(source)).toMatchObject([{ closedUntil: base - 3 * hour, to: ends }]);
    await journal.close(source, { from: base - 3 * hour, to: ends }, proven(2), 0);
    expect(journal.history.add(source, { from: base - 4 * hour, to: base }, {}, operation)).toEqual([{ from: ends, to: base }]);
    expect(await journal.append(pageOf(begun))).toMatchObject({ appended: 0, outside: 2 });
  });

  test('records near its end from a poll or from padding do not prevent the cancellation', async () => {
    const { journal } = await opened();
    const window = { from: base - 4 * hour, to: base - 3 * hour };
    journal.history.add(source, { from: base - 4 * hour, to: base }, {}, operation);
    await journal.append(pageOf([collected(1, base - 4 * hour)], { window }));
    await journal.close(source, window, proven(1), 0);
    const last = [collected(2, base - minute), collected(3, base - 1)];
    expect(await journal.append(pageOf([...last, collected(4, base + second)]))).toMatchObject({ appended: 1, outside: 2 });
    const newer = { from: base, to: base + minute };
    expect(await journal.append(pageOf(last, { window: newer }))).toMatchObject({ appended: 0, outside: 2 });
    const padding = collected(5, base - 3 * hour);
    expect(await journal.append(pageOf([padding], { window }))).toMatchObject({ appended: 0, outside: 1 });
    expect(journal.history.cancel(source, base - 4 * hour, undefined, operation)).toBe(base - 3 * hour);
    // No record was collected outside its ledger: a second request delivers all of it, once.
    const again = { from: base - 3 * hour, to: base };
    expect(journal.history.add(source, again, {}, operation)).toEqual([again]);
    expect(await journal.append(pageOf([padding, ...last], { window: again }))).toMatchObject({ appended: 3 });
  });

  test('the range ends after collected records that were pruned, also after a restart', async () => {
    const it = await opened({ retention: 0 });
    it.journal.history.add(source, { from: base - hour, to: base }, {}, operation);
    // Records of the range and of the live range, in the bucket that both share.
    const window = { from: base - hour, to: base };
    await it.journal.append(
      pageOf([collected(1, base - 5 * minute), collected(2, base - minute + 1), collected(3, base + second)], { window }),
    );
    await it.journal.append(pageOf([collected(4, base - 2 * minute)], { window }));
    it.clock.wall += 1_000;
    expect(it.journal.prune()).toBe(5);
    await it.close();
    const { journal } = await opened(it);
    expect(journal.history.cancel(source, base - hour, undefined, operation)).toBe(base - minute + second);
    expect(uncoveredOf(journal.db, source, { from: base - hour, to: base })).toEqual([{ from: base - minute + second, to: base }]);
  });

  test('the range does not end inside the window that is being read', async () => {
    const { journal } = await opened();
    journal.history.add(source, { from: base - 4 * hour, to: base }, {}, operation);
    expect(journal.history.cancel(source, base - 4 * hour, base - 3 * hour, operation)).toBe(base - 3 * hour);
    await journal.close(source, { from: base - 4 * hour, to: base - 3 * hour }, proven(), lastAge);
    expect(journal.backfills(source)).toEqual([]);
  });

  test('if the last record lies within the last second of a bucket shared with the live range, it ends there', async () => {
    const { journal } = await opened();
    const start = base - (base % (600 * second)) - 300 * second;
    journal.history.add(source, { from: start - hour, to: base }, {}, operation);
    await journal.append(pageOf([collected(1, base - 5 * second)], { window: { from: start - hour, to: base } }));
    expect(journal.history.cancel(source, start - hour, undefined, operation)).toBeGreaterThan(base - 5 * second);
  });
});

test('a backfill for one sink is withheld from the others, and nothing else is', async () => {
  const { journal } = await opened();
  journal.history.add(source, { from: base - hour, to: base }, { sinks: ['archive'] }, operation);
  const withheld = (sink: string, time: number): boolean =>
    journal.withheld(sink, source).some(({ from, to }) => from <= time && time < to);
  expect(withheld('siem', base - minute)).toBe(true);
  expect(withheld('archive', base - minute)).toBe(false);
  expect(withheld('siem', base)).toBe(false);
  expect(journal.withheld('siem', 'another')).toEqual([]);
});

test('only an unconfigured source can be retired, and it continues when it returns', async () => {
  const { journal } = await opened();
  expect(() => journal.history.retire(source, operation)).toThrow(/the running daemon collects it/);
  journal.markSourcesUnconfigured(new Set());
  journal.history.retire(source, operation);
  expect(journal.progress(source).state).toBe('retired');
  expect(() => journal.history.retire(source, operation)).toThrow(/already retired/);
  journal.markSourcesUnconfigured(new Set());
  expect(journal.progress(source).state).toBe('retired');
  journal.registerSource(source, 'tenant', undefined);
  expect(journal.progress(source).state).toBe('active');
  expect(() => journal.history.retire('nobody', operation)).toThrow(/cannot find the source "nobody"/);
});
