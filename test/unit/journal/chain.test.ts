import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import type { Position } from '../../../src/model/ledger.ts';
import { base, between, collected, hour, seeded } from '../../support/records.ts';
import { beside, gap, lastAge, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';
import { faultsOf, seenFaults, tilingFaults } from '../../support/journal/recompute.ts';

const original = mkdtempSync(join(tmpdir(), 'waybill-chain-'));
afterAll(() => rmSync(original, { recursive: true, force: true }));

let making: Promise<Position> | undefined;
/**
 * Builds the state that the tests damage, once, in the first test that needs it. @returns its head
 */
function made(): Promise<Position> {
  return (making ??= make());
}

async function copied(): Promise<string> {
  await made();
  const directory = temporary();
  cpSync(original, directory, { recursive: true });
  return directory;
}

async function make(): Promise<Position> {
  const { journal, close } = await opened({ directory: original });
  const random = seeded(11);
  let id = 0;
  const lines = [proven(2), gap(), proven(4)];
  for (let i = 0; i < 10; i += 1) {
    const records = Array.from({ length: between(random, 1, 12) }, () => {
      id += 1;
      return collected(id, base + between(random, 0, 40) * 1_000_000 + id, { payloadName: 'é'.repeat(between(random, 0, 60)) });
    });
    records.push(collected(1000 + i, undefined));
    await journal.append(pageOf(records, { received: base + i }));
    const line = lines[i / 3 - 1];
    if (line) await journal.close(source, span((i / 3 - 1) * 10, (i / 3) * 10), line, lastAge);
  }
  await journal.append(
    pageOf([{ ...collected(5000, undefined), bytes: Buffer.from('"no object"'), text: '"no object"', isObject: false }]),
  );
  const head = journal.head();
  await close();
  return head;
}

test('the chain of records and ledger entries follows from the rows, and the segments tile', async () => {
  const head = await made();
  const db = beside(original, true);
  expect(faultsOf(db)).toEqual([]);
  expect(seenFaults(db)).toEqual([]);
  expect(tilingFaults(db)).toEqual([]);
  const count = db.prepare('SELECT count(*) AS rows, sum(kind & 255 = 2) AS lines, max(length(flags)) AS flags FROM segments').get();
  expect(count).toMatchObject({ rows: 14, lines: 3 });
  expect((count as { flags: number }).flags).toBeGreaterThan(0);
  expect(head.seq).toBe((db.prepare('SELECT sum(n) AS n FROM segments').get() as { n: number }).n);
});

/**
 * Every column of the table that the chain must cover, and a change that leaves the row plausible.
 */
const changes: readonly (readonly [what: string, sql: string])[] = [
  ['seq', 'UPDATE segments SET seq = seq + 1000000 WHERE seq = (SELECT max(seq) FROM segments)'],
  ['n', 'UPDATE segments SET n = n - 1 WHERE n > 2'],
  ['kind', 'UPDATE segments SET kind = kind + 1 WHERE seq = 1'],
  ['number', 'UPDATE segments SET number = number + 1 WHERE number IS NOT NULL'],
  ['source', "UPDATE sources SET id = 'producer'"],
  ['received_us', 'UPDATE segments SET received_us = received_us + 1 WHERE seq = 1'],
  ['received_us of a ledger entry', `UPDATE segments SET received_us = received_us - ${hour} WHERE kind & 255 = 2`],
  ['flags', "UPDATE segments SET flags = zeroblob(length(flags)) WHERE hex(flags) LIKE '%04%'"],
  ['flags taken away', "UPDATE segments SET flags = x'' WHERE length(flags) > 0"],
  [
    'uids',
    'UPDATE segments SET uids = CAST(substr(uids, 17, 16) || substr(uids, 1, 16) || substr(uids, 33) AS BLOB) WHERE length(uids) >= 32',
  ],
  ['body', 'UPDATE segments SET body = changed(kind, body), kind = kind & 255 WHERE seq = 1'],
  ['ends', 'UPDATE segments SET ends = moved(ends) WHERE n > 2'],
  ['chain', 'UPDATE segments SET chain = zeroblob(32) WHERE seq = 1'],
  ['the last segment', 'DELETE FROM segments WHERE seq = (SELECT max(seq) FROM segments)'],
  ['a segment between', 'DELETE FROM segments WHERE seq = (SELECT max(seq) FROM segments WHERE kind & 255 = 2)'],
  ['the first segment', 'DELETE FROM segments WHERE seq = 1'],
];

// promise: A changed record, entry or segment in the state breaks its hash chain.
test.each(changes)('a change of %s breaks the chain', async (_what, sql) => {
  const db = beside(await copied());
  // A different letter, without a change of length; and the first border between two entries moved
  // by one byte.
  db.function('changed', (kind: unknown, body: unknown) => {
    const plain = Number(kind) >> 8 === 1 ? zstdDecompressSync(body as Buffer) : (body as Buffer);
    return Buffer.from(plain.toString('latin1').replace('Decrypt', 'Encrypt'), 'latin1');
  });
  db.function('moved', (ends: unknown) => {
    const copy = Buffer.from(ends as Buffer);
    copy.writeUInt32LE(copy.readUInt32LE(0) + 1, 0);
    return copy;
  });
  expect(faultsOf(db)).toEqual([]);
  expect(db.prepare(sql).run().changes).toBeGreaterThan(0);
  expect(faultsOf(db)).not.toEqual([]);
});

test.each([
  ['its last segment is missing', 'DELETE FROM segments WHERE seq = (SELECT max(seq) FROM segments)'],
  ['its head was set back', 'UPDATE head SET seq = seq - 1'],
  ['the chain of its head was changed', 'UPDATE head SET chain = zeroblob(32)'],
])('a state is refused when %s', async (_what, sql) => {
  const directory = await copied();
  beside(directory).exec(sql);
  await expect(opened({ directory })).rejects.toMatchObject({ code: 'state_corrupt' });
});
