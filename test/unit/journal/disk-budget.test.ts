/** maxSize limits the data on disk: the state file and SQLite's WAL next to it. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import { diskBudgetOf } from '../../../src/journal/disk-budget.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import { base, collected } from '../../support/records.ts';
import { beside, opened, pageOf } from '../../support/journal/opening.ts';
import type { Opened } from '../../support/journal/opening.ts';

const mebi = 2 ** 20;
const maxSize = 16 * mebi;

/** A text of a quarter of a mebibyte, which compresses to half. */
function noise(salt: number): string {
  return Array.from({ length: 2_048 }, (_, i) => createHash('sha512').update(`${salt} ${i}`).digest('hex')).join('');
}

function onDisk({ directory }: Opened, name = '*'): number {
  const names = name === '*' ? ['waybill.db', 'waybill.db-wal'] : [name];
  return names.reduce((sum, each) => sum + (statSync(join(directory, each), { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** Counted by another connection: the pages with content, and the WAL, which is at least its reserve. */
function measured(state: Opened, db: Database): number {
  const [pages, free] = ['page_count', 'freelist_count'].map((name) => db.pragma(name, { simple: true }) as number);
  return ((pages ?? 0) - (free ?? 0)) * 4_096 + Math.max(2 * mebi, onDisk(state, 'waybill.db-wal'));
}

/**
 * Appends until the journal refuses; calls `each` after every step. @returns the number of appended
 * pages
 */
async function fill({ journal }: Opened, from: number, each: () => void): Promise<number> {
  for (let i = from; ; i += 1) {
    if ((await journal.paused()) !== undefined) return i - from;
    try {
      await journal.append(pageOf([collected(i, base + i, { noise: noise(i) })]));
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'journal_full' });
      return i - from;
    }
    each();
  }
}

test('a large maxSize gives the WAL 64 MB, a small one an eighth; a checkpoint runs at half of that', () => {
  expect(diskBudgetOf(10 * 1024 * mebi)).toEqual({ filePages: 2_621_440 - 16_000, checkpointPages: 8_000, walBytes: 16_000 * 4_096 });
  expect(diskBudgetOf(maxSize)).toEqual({ filePages: 3_584, checkpointPages: 256, walBytes: 2 * mebi });
});

test('file and WAL together stay within the quota', async () => {
  const state = await opened({ maxSize: maxSize });
  const other = state.beside();
  let most = 0;
  const pages = await fill(state, 0, () => {
    most = Math.max(most, onDisk(state));
    expect(state.journal.usage().bytes).toBe(measured(state, other));
  });
  expect(pages).toBeGreaterThan(70);
  expect(most).toBeGreaterThan(14 * mebi);
  expect(most).toBeLessThanOrEqual(maxSize);
  expect(await state.journal.paused()).toBe('journal_full');
});

test('a page that exceeds the WAL reserve does not stay in the WAL', async () => {
  const state = await opened({ maxSize: maxSize });
  const large = Array.from({ length: 40 }, (_, i) => collected(i, base + i, { noise: noise(i) }));
  await state.journal.append(pageOf(large));
  expect(onDisk(state, 'waybill.db')).toBeGreaterThan(5 * mebi);
  expect(onDisk(state, 'waybill.db-wal')).toBeLessThanOrEqual(2 * mebi);
  expect(await state.journal.paused()).toBeUndefined();
});

test('a WAL that a reader blocks counts as used: collection pauses, and resumes after the reader ends', async () => {
  const state = await opened({ maxSize: maxSize });
  const { journal, directory } = state;
  // This sink acknowledges nothing, so that nothing can be pruned.
  journal.sinkPositions.register('siem', 'kafka', 'x', journal.positionFor('journal'), undefined);
  await journal.append(pageOf([collected(0, base)]));
  const reader = beside(directory, true);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM segments').get();
  const held = await fill(state, 1, () => undefined);
  expect(await journal.paused()).toBe('journal_full');
  expect(onDisk(state)).toBeLessThanOrEqual(maxSize);
  expect(onDisk(state, 'waybill.db-wal')).toBeGreaterThan(6 * mebi);
  expect(journal.usage().bytes).toBeGreaterThan(0.9 * maxSize);
  const live = { source: () => undefined, sink: () => undefined, closeDelaySeconds: () => 900, paused: undefined, maxSize, configured: [] };
  expect(snapshotOf(journal.db, '0.1.0', base, live).journal.bytes).toBe(journal.usage().bytes);
  // A checkpoint is not possible yet; and no later write may start one by itself.
  expect(journal.prune()).toBe(0);
  expect(await journal.paused()).toBe('journal_full');
  reader.exec('COMMIT');
  journal.prune();
  expect(onDisk(state, 'waybill.db-wal')).toBe(0);
  expect(journal.usage().bytes).toBe(measured(state, reader));
  expect(await journal.paused()).toBeUndefined();
  expect(await fill(state, held + 1, () => undefined)).toBeGreaterThan(0);
});
