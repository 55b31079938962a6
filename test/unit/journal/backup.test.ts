import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { backUp } from '../../../src/journal/backup.ts';
import { base, collected, second } from '../../support/records.ts';
import { lastAge, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';
import type { Opened } from '../../support/journal/opening.ts';

async function used(): Promise<Opened> {
  const it = await opened();
  await it.journal.append(pageOf(Array.from({ length: 50 }, (_, i) => collected(i, base + i * second))));
  await it.journal.close(source, span(0, 60), proven(50), lastAge);
  return it;
}

const idle = { clock: systemClock, copied: () => undefined, verifying: () => undefined, signal: new AbortController().signal };
const target = (): string => join(temporary(), 'copy');

test('the copy is the state at its start, although the owner continues to write', async () => {
  const it = await used();
  const { seq, chain } = it.journal.head();
  const to = target();
  let written = 0;
  const copied = (): void => {
    written += 1;
    // Synchronous up to its COMMIT.
    void it.journal.append(pageOf([collected(1_000 + written, base + (100 + written) * second)]));
  };
  const backup = await backUp(it.directory, to, { ...idle, copied });
  expect(written).toBeGreaterThan(0);
  expect(it.journal.head().seq).toBe(seq + written);
  expect(backup).toMatchObject({ journal: it.journal.id, seq });
  expect(backup.chain.equals(chain)).toBe(true);
  expect(readdirSync(to)).toEqual(['waybill.db']);
  expect([statSync(to).mode & 0o777, statSync(join(to, 'waybill.db')).mode & 0o777]).toEqual([0o700, 0o600]);

  const copy = await opened({ directory: to });
  expect(copy.journal.id).toBe(it.journal.id);
  expect(copy.journal.head()).toEqual({ seq, chain });
  expect(await copy.journal.read(0, { records: 1_000, bytes: 2 ** 20 })).toEqual(
    (await it.journal.read(0, { records: 1_000, bytes: 2 ** 20 })).slice(0, seq),
  );
  expect(await copy.journal.window(source, base)).toEqual(await it.journal.window(source, base));
});

test('an existing directory is refused and not changed', async () => {
  const it = await used();
  const to = temporary();
  writeFileSync(join(to, 'waybill.db'), 'mine');
  await expect(backUp(it.directory, to, idle)).rejects.toMatchObject({ code: 'usage' });
  expect(readdirSync(to)).toEqual(['waybill.db']);
  expect(statSync(join(to, 'waybill.db')).size).toBe(4);
});

test('a directory inside the state is refused, also through a symlink', async () => {
  const it = await used();
  const before = readdirSync(it.directory);
  const link = target();
  symlinkSync(it.directory, link);
  for (const [from, parent] of [
    [it.directory, it.directory],
    [it.directory, link],
    [link, it.directory],
  ] as const)
    await expect(backUp(from, join(parent, 'copy'), idle)).rejects.toMatchObject({ code: 'usage' });
  expect(readdirSync(it.directory)).toEqual(before);
});

test.each([
  [
    'a changed record',
    (it: Opened) => it.beside().exec('UPDATE segments SET body = zeroblob(length(body)) WHERE seq = 1'),
    'state_corrupt',
  ],
  ['a window that is missing', (it: Opened) => it.beside().exec('DELETE FROM windows'), 'internal_error'],
  [
    'an index that lacks a row',
    (it: Opened) => {
      const db = it.beside();
      db.unsafeMode();
      db.pragma('writable_schema = ON');
      db.exec("UPDATE sqlite_schema SET sql = replace(sql, '(source, next_us)', '(source, to_us)') WHERE name = 'windows_due'");
    },
    'backup_failed',
  ],
] as const)('%s fails the verification, and no copy is left', async (_what, damage, code) => {
  const it = await used();
  await it.close();
  damage(it);
  const to = target();
  await expect(backUp(it.directory, to, idle)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(/damaged|violates/) as string,
  });
  expect(existsSync(to)).toBe(false);
});

test('a cancelled backup leaves no copy', async () => {
  const it = await used();
  const stop = new AbortController();
  const to = target();
  const copied = (): void => stop.abort(new WaybillError('aborted', 'received SIGINT'));
  const verifying = (): void => expect.fail('cancelled during the copy');
  await expect(backUp(it.directory, to, { ...idle, copied, verifying, signal: stop.signal })).rejects.toMatchObject({ code: 'aborted' });
  expect(existsSync(to)).toBe(false);
});

test('a directory that cannot be created is named with its reason', async () => {
  const it = await used();
  const parent = temporary();
  mkdirSync(join(parent, 'file'), { recursive: true });
  await expect(backUp(it.directory, join(parent, 'none', 'copy'), idle)).rejects.toMatchObject({
    code: 'backup_failed',
    message: expect.stringContaining('ENOENT') as string,
  });
  await expect(backUp(parent, target(), idle)).rejects.toMatchObject({ code: 'state_missing' });
});
