import { readdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/time/clock.ts';
import { codeOf } from '../../src/errors/errors.ts';
import { openState } from '../../src/journal/state.ts';
import { Place } from '../support/e2e-place.ts';
import { mounted } from '../support/e2e-tmpfs.ts';

test('an owner of a state on a full disk has a stored epoch, or an error that names the disk', async ({ skip }) => {
  await using place = new Place('full-disk');
  await using disk = mounted(place, 'disk', 'size=2m');
  if (disk === undefined) return skip();
  const directory = join(disk.path, 'state');
  const options = { maxSize: 1 << 20, lockWait: 0, version: '0', expectState: false };
  const open = async () => openState(directory, options, systemClock, new AbortController().signal);
  const close = ({ db, lock }: Awaited<ReturnType<typeof open>>): void => [db, lock].forEach((each) => each.close());
  close(await open());
  const codes = new Set<string | undefined>();
  // Each round leaves one page of the disk more than the round before.
  for (let pages = 0; pages < 24; pages += 1) {
    const { bavail, bsize } = statfsSync(disk.path);
    writeFileSync(join(disk.path, 'filler'), Buffer.alloc((bavail - pages) * bsize));
    const opened = await open().catch((thrown: unknown) => codeOf(thrown));
    if (typeof opened !== 'object') codes.add(opened);
    else {
      expect(opened.db.prepare('SELECT epoch FROM owner').pluck().get(), `with ${pages} free pages`).toBe(opened.epoch);
      close(opened);
    }
    writeFileSync(join(disk.path, 'filler'), '');
  }
  // SQLite reports a full disk as SQLITE_FULL, or as an I/O error of a file that it cannot extend.
  expect([...codes].filter((code) => code !== 'journal_full' && code !== 'state_unusable')).toEqual([]);
  expect(readdirSync(directory)).toContain('waybill.db');
  close(await open());
  expect(new Database(join(directory, 'waybill.db'), { readonly: true }).prepare('SELECT count(*) FROM owner').pluck().get()).toBe(1);
});
