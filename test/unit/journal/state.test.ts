import { mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, expect, test } from 'vitest';
import { openReadOnly, StateReader } from '../../../src/journal/state.ts';
import { base, collected, second } from '../../support/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { beside, lastAge, onlyInFile, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';
import { faultsOf } from '../../support/journal/recompute.ts';

let umask: number | undefined;
afterEach(() => {
  if (umask !== undefined) process.umask(umask);
});

test('SQLite has the settings that the guarantees need, at the first open and at every later one', async (context) => {
  onlyInFile(context, 'its copy need not reach the disk (synchronous = OFF)');
  const directory = temporary();
  for (const quota of [2 ** 30, 2 ** 29]) {
    const { journal, close } = await opened({ directory, maxSize: quota });
    const pragma = (name: string): unknown => journal.db.pragma(name, { simple: true });
    const found = Object.fromEntries(
      [
        'journal_mode', 'synchronous', 'auto_vacuum', 'foreign_keys', 'trusted_schema', 'cell_size_check', 'mmap_size', 'journal_size_limit',
        'busy_timeout', 'wal_autocheckpoint', 'cache_size', 'max_page_count',
      ].map((name) => [name, pragma(name)]),
    ); // prettier-ignore
    expect(found).toEqual({
      journal_mode: 'wal',
      synchronous: 2,
      auto_vacuum: 2,
      foreign_keys: 1,
      trusted_schema: 0,
      cell_size_check: 1,
      mmap_size: 0,
      journal_size_limit: 16_000 * 4096,
      busy_timeout: 0,
      wal_autocheckpoint: 8000,
      cache_size: -8_192,
      // Space for the WAL is reserved.
      max_page_count: quota / 4096 - 16_000,
    });
    await close();
  }
});

test('only the owner may read the state: directory 0700, files 0600, with any umask', async () => {
  umask = process.umask(0);
  const directory = join(temporary(), 'a', 'state');
  const { journal } = await opened({ directory });
  await journal.append(pageOf([collected(1, base)]));
  const mode = (name: string): string => (statSync(join(directory, name)).mode & 0o777).toString(8);
  expect(mode('.')).toBe('700');
  for (const name of ['waybill.db', 'waybill.db-wal', 'waybill.db-shm', 'lock.db']) expect(`${name} ${mode(name)}`).toBe(`${name} 600`);
});

test('a lock of another program is reported once, and closing does not hide the error', async () => {
  const { journal, beside, close } = await opened();
  await journal.append(pageOf([collected(1, base)]));
  journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
  journal.acknowledgeLater('siem', { acknowledged: 1, delivered: undefined });
  const other = beside();
  other.exec('BEGIN IMMEDIATE');
  await expect(journal.append(pageOf([collected(2, base + second)]))).rejects.toMatchObject({
    code: 'state_unusable',
    message: expect.stringMatching(/another program has waybill\.db locked: end it/) as string,
  });
  other.exec('ROLLBACK');
  await close();
});

// promise: A state has one owner: a second process is refused, and the first continues.
test('a second owner is refused at once, or after lockWait; the first continues', async (context) => {
  onlyInFile(context, 'its lease, not the lock of a directory, decides on the owner');
  const { journal, directory, close } = await opened();
  // `base` is 2026-11-20T02:00:00Z.
  const words = `cannot lock the state in "${directory}": another running process owns it (pid ${process.pid}), since 2026-11-20T02:00:00Z`;
  await expect(opened({ directory })).rejects.toMatchObject({ code: 'state_locked', message: words });
  const clock = new VirtualClock(base / 1000);
  await expect(opened({ directory, lockWait: 5_000, clock })).rejects.toMatchObject({ code: 'state_locked' });
  expect(clock.monotonic()).toBe(5_000);
  expect(await journal.append(pageOf([collected(1, base)]))).toMatchObject({ appended: 1 });
  // A waiting process gets it when the first has ended.
  const manual = new VirtualClock(base / 1000, 'manual');
  let waits = 0;
  const waiting = opened({ directory, lockWait: 60_000, clock: manual, waits: () => (waits += 1) });
  await manual.advance(1_000);
  expect(waits, 'said once').toBe(1);
  await close();
  await manual.advance(1_000);
  expect((await waiting).journal.head().seq).toBe(1);
});

// promise: A process whose state another one has opened writes nothing more.
test('once another owner has opened the state, no call writes any more', async () => {
  const { journal, beside } = await opened();
  await journal.append(pageOf([collected(1, base)]));
  const head = journal.sinkPositions.register('siem', 'file', 'x', journal.head(), undefined);
  const db = beside();
  db.exec('UPDATE owner SET epoch = epoch + 1');
  const before = db
    .prepare('SELECT (SELECT count(*) FROM segments) AS segments, (SELECT acknowledged FROM sinks) AS acknowledged, seq FROM head')
    .get();
  await expect(journal.append(pageOf([collected(2, base)]))).rejects.toMatchObject({ code: 'internal_error' });
  db.exec('UPDATE owner SET epoch = epoch - 1');
  // Another process owned the state in between, so this process must never write again.
  await expect(journal.append(pageOf([collected(2, base)]))).rejects.toMatchObject({ code: 'internal_error' });
  await expect(journal.close(source, span(0, 10), proven(), lastAge)).rejects.toMatchObject({ code: 'internal_error' });
  await expect(journal.acknowledge('siem', { acknowledged: head.acknowledged, delivered: undefined }, [])).rejects.toMatchObject({
    code: 'internal_error',
  });
  await expect(journal.setProfile(source, '{}')).rejects.toMatchObject({ code: 'internal_error' });
  expect(
    db.prepare('SELECT (SELECT count(*) FROM segments) AS segments, (SELECT acknowledged FROM sinks) AS acknowledged, seq FROM head').get(),
  ).toEqual(before);
  expect(journal.head().seq).toBe(1);
});

test('every open is a new epoch', async (context) => {
  onlyInFile(context, 'each take-over makes the file anew; the database counts the epochs');
  const { directory, close } = await opened();
  const epoch = (): unknown => beside(directory).prepare('SELECT epoch FROM owner').get();
  expect(epoch()).toEqual({ epoch: 1 });
  await close();
  await opened({ directory });
  expect(epoch()).toEqual({ epoch: 2 });
});

test('a state of a newer release is refused by an error that names the release, and is not changed', async () => {
  const { directory, close } = await opened();
  await close();
  const db = beside(directory);
  db.exec("UPDATE meta SET value = 7 WHERE key IN ('schema', 'min_reader')");
  db.exec("UPDATE meta SET value = '3.1.0' WHERE key = 'written_by'; UPDATE meta SET value = '3.0.0' WHERE key = 'readable_from'");
  const words = /written by 3\.1\.0 .*schema 7, readable from 3\.0\.0.*this is 0\.1\.0.*Start 3\.0\.0 or later/;
  await expect(opened({ directory })).rejects.toMatchObject({ code: 'state_too_new', message: expect.stringMatching(words) as string });
  expect(() => openReadOnly(directory)).toThrow(/written by 3\.1\.0/);
  expect(db.prepare("SELECT value FROM meta WHERE key = 'written_by'").get()).toEqual({ value: '3.1.0' });
  expect(db.prepare('SELECT epoch FROM owner').get()).toEqual({ epoch: 1 });
});

test('a state of an older build is refused, and is not changed', async () => {
  const { directory, close } = await opened();
  await close();
  const db = beside(directory);
  db.exec("DELETE FROM meta WHERE key = 'format'; UPDATE meta SET value = 6 WHERE key = 'schema'");
  const refused = {
    code: 'state_unusable',
    message: `cannot use the state in "${directory}": it was written by an older build; start with a new dataDir`,
  };
  await expect(opened({ directory })).rejects.toMatchObject(refused);
  expect(() => openReadOnly(directory)).toThrow(refused.message);
  expect(db.prepare('SELECT epoch FROM owner').get()).toEqual({ epoch: 1 });
});

test.for([
  ['state_missing', 'a state is expected and none exists', (): Promise<unknown> => opened({ expectState: true })],
  [
    'state_unusable',
    'the directory is a file',
    (): Promise<unknown> => {
      const path = join(temporary(), 'file');
      writeFileSync(path, '');
      return opened({ directory: path });
    },
  ],
  [
    'state_unusable',
    'the file is another database',
    (): Promise<unknown> => {
      const directory = temporary();
      const db = new Database(join(directory, 'waybill.db'));
      db.exec('CREATE TABLE other (a)');
      db.close();
      return opened({ directory });
    },
  ],
  [
    'state_corrupt',
    'the file is not a database',
    (): Promise<unknown> => {
      const directory = temporary();
      writeFileSync(join(directory, 'waybill.db'), 'x'.repeat(8192));
      return opened({ directory });
    },
  ],
] as const)('%s: a state is refused when %s', async ([code, why, act], context) => {
  if (why.startsWith('the file')) onlyInFile(context, 'each take-over makes the file anew');
  await expect(act()).rejects.toMatchObject({ code });
});

test('a reopened state has the same journal, progress, chain and sources', async () => {
  const { journal, directory, close } = await opened();
  await journal.append(pageOf([collected(1, base), collected(2, base + second)], { polledUntil: base + second }));
  await journal.close(source, span(0, 10), proven(2), lastAge);
  await journal.setProfile(source, '{"a":1}');
  const before = { id: journal.id, created: journal.created, progress: journal.progress(source), head: journal.head() };
  expect(journal.fresh).toBe(true);
  await close();
  const again = (await opened({ directory })).journal;
  expect({ id: again.id, created: again.created, progress: again.progress(source), head: again.head() }).toEqual(before);
  expect(again.fresh).toBe(false);
  expect(again.progress(source)).toMatchObject({ polledUntil: base + second, profile: '{"a":1}', state: 'active' });
});

test('the same source with another destination is refused; a removed one is unconfigured and continues when it returns', async () => {
  const { journal } = await opened();
  expect(() => journal.registerSource(source, 'another tenant', base)).toThrow(/production.*"tenant".*"another tenant"/);
  await journal.close(source, span(0, 10), proven(), lastAge);
  expect(journal.markSourcesUnconfigured(new Set())).toEqual([source]);
  expect(journal.progress(source).state).toBe('unconfigured');
  journal.registerSource(source, 'tenant', base + 100 * second);
  expect(journal.progress(source)).toMatchObject({ state: 'active', live: { from: base, closedUntil: base + 10 * second } });
});

test('a source that is suspended when it is removed is suspended when it returns', async () => {
  const { journal } = await opened();
  const suspension = { reason: 'rows', message: 'less is shown', since: base } as const;
  await journal.setSuspension(source, suspension, base);
  journal.markSourcesUnconfigured(new Set());
  expect(journal.progress(source)).toMatchObject({ state: 'unconfigured', suspension });
  journal.registerSource(source, 'tenant', undefined);
  expect(journal.progress(source)).toMatchObject({ state: 'suspended', suspension });
});

test('concurrent readers see complete transactions and block no other process', async () => {
  const { journal, directory } = await opened();
  mkdirSync(join(directory, 'other'), { recursive: true });
  const reader = openReadOnly(directory);
  await journal.append(pageOf([collected(1, base)]));
  expect(faultsOf(reader)).toEqual([]);
  reader.close();
  expect(() => openReadOnly(join(directory, 'other'))).toThrow(/cannot find a state/);
});

test('a reader that stays open reads a replaced file, reports a removed one, and holds back neither checkpoint nor shutdown', async () => {
  const [one, other] = [await opened(), await opened()];
  const newestIn = (db: Database.Database): unknown => db.prepare('SELECT max(seq) FROM segments').pluck().get();
  for (const at of [1, 2, 3, 4]) await other.journal.append(pageOf([collected(at, base + at * second)]));
  const replaced = newestIn(other.journal.db);
  using reader = new StateReader(one.directory);
  const newest = (): unknown => reader.read(newestIn);
  await one.journal.append(pageOf([collected(1, base)]));
  const own = newest();
  await one.journal.append(pageOf([collected(2, base + second)]));
  expect(newest()).toBeGreaterThan(own as number);
  expect(one.journal.db.pragma('wal_checkpoint(TRUNCATE)')).toEqual([{ busy: 0, log: 0, checkpointed: 0 }]);

  const [file, away] = ['waybill.db', 'away.db'].map((name) => join(one.directory, name)) as [string, string];
  renameSync(file, away);
  expect(newest).toThrow(expect.objectContaining({ code: 'state_missing' }) as Error);
  await other.close();
  renameSync(join(other.directory, 'waybill.db'), file);
  expect(newest()).toBe(replaced);
  renameSync(away, file);
  expect(newest()).toBe(newestIn(one.journal.db));

  reader[Symbol.dispose]();
  await one.close();
  expect(readdirSync(one.directory).toSorted()).toEqual(['lock.db', 'waybill.db']);
});
