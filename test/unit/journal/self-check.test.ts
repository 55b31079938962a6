import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import { base, collected, day, hour, second } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';
import type { Opened } from '../../support/journal/opening.ts';

/**
 * A state with records, known and late ones, windows of all kinds, a suspension, an operation, a
 * sink, and a pruned start.
 */
async function used(): Promise<Opened> {
  const it = await opened({ retention: 0 });
  const { journal, clock } = it;
  journal.db.pragma('synchronous = OFF');
  journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
  for (let i = 0; i < 60; i += 1) await journal.append(pageOf([collected(i, base + i * hour), collected(i + 1, base + (i + 1) * hour)]));
  await journal.append(pageOf([collected(500, undefined), collected(501, base + 5 * second)]));
  for (let i = 0; i < 40; i += 1) await journal.close(source, span(i * 10, i * 10 + 10), i === 17 || i === 30 ? gap() : proven(2), lastAge);
  await journal.acceptGap(source, base + 170 * second, { at: base, actor: 'j.doe', reason: 'known' });
  await journal.setSuspension(source, { reason: 'clock', message: 'ahead', since: base }, base);
  await journal.operate({ at: base, actor: 'root', operation: 'replay', detail: {} });
  await journal.acknowledge('siem', { acknowledged: 20, delivered: undefined }, []);
  const refused = await Promise.all([45, 61, 62].map(async (seq) => (await journal.read(seq - 1, { records: 1, bytes: 1 }))[0]));
  const deadLetters = refused
    .filter((entry) => entry !== undefined)
    .map((entry) => ({ entry, rejection: { seq: entry.seq, code: '400', message: '' }, attempts: 1 }));
  expect(deadLetters).toHaveLength(3);
  journal.sinkPositions.register('other', 'file', 'y', { seq: 0, chain: new Uint8Array(32) }, undefined);
  const at = { seq: 60, chain: (await journal.chainAt(60)) ?? new Uint8Array(32) };
  await journal.acknowledge('other', { acknowledged: 70, delivered: { position: at, resumeNote: undefined } }, deadLetters);
  clock.wall += 1_000;
  expect(journal.prune()).toBe(20);
  return it;
}

/** The number of steps until the round ends. */
async function round(it: Opened): Promise<number> {
  for (let steps = 1; steps < 1_000; steps += 1) if (await it.journal.examine(1)) return steps;
  throw new Error('the round does not end');
}

test('an intact state passes, a few segments at a time, and the next round starts a day later', async () => {
  const it = await used();
  expect(await round(it)).toBeGreaterThan(3);
  expect(await it.journal.examine(1)).toBe(false);
  await it.journal.append(pageOf([collected(900, base + 90 * hour)]));
  it.clock.wall += 86_400_000;
  expect(await it.journal.examine(1)).toBe(false);
  await it.clock.sleep(86_400_000, new AbortController().signal);
  expect(await round(it)).toBeGreaterThan(3);
});

test('it continues while pages are appended, windows closed and the start is pruned', async () => {
  const it = await used();
  for (let step = 0; !(await it.journal.examine(1)); step += 1) {
    if (step > 10) continue;
    await it.journal.append(pageOf([collected(1_000 + step, base + step * second), collected(2_000 + step, base + 100 * day)]));
    await it.journal.close(source, span(400 + step, 401 + step), proven(), lastAge);
    await it.journal.acknowledge('siem', { acknowledged: 40 + step, delivered: undefined }, []);
    it.journal.prune();
  }
  const forgotten = await used();
  await forgotten.journal.setSuspension(source, undefined, base);
  await forgotten.journal.close(source, span(300, 310), proven(3), lastAge);
  await forgotten.journal.close(source, { from: base + 400 * second, to: base + 90 * day }, proven(), lastAge);
  expect(forgotten.journal.progress(source).live.uidsKeptSince).toBe(base + 60 * day);
  expect(await round(forgotten)).toBeGreaterThan(0);
});

test.each([false, true])('correctly deleted uids are not reported when an older range is added (pruned: %s)', async (isPruned) => {
  const it = await opened({ retention: 0 });
  const { journal, clock } = it;
  const operation = { actor: 'j.doe', reason: undefined };
  const first = { from: base - 3 * day, to: base - day };
  journal.history.add(source, first, {}, operation);
  await journal.append(pageOf([collected(1, base - 3 * day), collected(2, base - 2 * day)], { window: first }));
  await journal.append(pageOf([collected(3, base - 2 * day + hour), collected(4, base - day - 1)], { window: first }));
  await journal.close(source, first, proven(4), lastAge);
  await journal.append(pageOf([collected(5, base)]));
  expect(journal.db.prepare('SELECT bucket FROM seen').all()).toHaveLength(1);
  if (isPruned) {
    journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
    await journal.acknowledge('siem', { acknowledged: 3, delivered: undefined }, []);
    clock.wall += 1_000;
    expect(journal.prune()).toBe(3);
  }
  const older = { from: base - 6 * day, to: base - 4 * day };
  journal.history.add(source, older, {}, operation);
  await journal.append(pageOf([collected(6, base - 5 * day)], { window: older }));
  await round(it);
  // The uids of records collected in the older range must be stored.
  await clock.sleep(86_400_000, new AbortController().signal);
  journal.db.prepare('DELETE FROM seen WHERE bucket = ?').run(Math.floor((base - 5 * day) / (600 * second)));
  await expect(round(it)).rejects.toThrow(/has 1 records but 0 stored uids/);
});

const damages: readonly (readonly [string, string, RegExp, (db: Database) => void])[] = [
  [
    'a byte of a body',
    'state_corrupt',
    /segment 55/,
    (db) => void db.exec("UPDATE segments SET body = CAST(body || x'20' AS BLOB) WHERE seq = 55"),
  ],
  ['a flag', 'state_corrupt', /chain value/, (db) => void db.exec("UPDATE segments SET flags = x'01' WHERE seq = 55")],
  [
    'a missing segment',
    'state_corrupt',
    /segment \d+ does not follow entry 49/,
    (db) => void db.exec('DELETE FROM segments WHERE seq = 50'),
  ],
  ['a uid that is not known', 'internal_error', /has 1 records but 0/, (db) => void db.exec('DELETE FROM seen WHERE seq = 45')],
  [
    'a uid that was never appended',
    'internal_error',
    /stored uid without a record/,
    (db) => void db.exec('UPDATE seen SET uids = randomblob(16) WHERE seq = 45'),
  ],
  [
    'a hole in the ledger',
    'internal_error',
    /hole or an overlap/,
    (db) => void db.exec(`DELETE FROM windows WHERE from_us = ${base + 50 * second}`),
  ],
  [
    'a ledger that ends early',
    'internal_error',
    /ends at/,
    (db) => void db.exec(`DELETE FROM windows WHERE from_us = ${base + 390 * second}`),
  ],
  [
    'a window without a proof',
    'internal_error',
    /without proof/,
    (db) => void db.exec(`UPDATE windows SET proof = NULL WHERE from_us = ${base}`),
  ],
  [
    'a frontier behind a gap',
    'internal_error',
    /frontier/,
    (db) => void db.exec(`UPDATE sources SET frontier_us = ${base + 400 * second}`),
  ],
  ['a sink ahead of the journal', 'internal_error', /sink "siem"/, (db) => void db.exec('UPDATE sinks SET acknowledged = 100000')],
  [
    'a dead letter of another record',
    'internal_error',
    /dead letter of sink "other" for entry 62/,
    (db) => void db.exec('UPDATE dead_letters SET uid = randomblob(16) WHERE seq = 62'),
  ],
  [
    'a dead letter with another text',
    'internal_error',
    /dead letter of sink "other" for entry 61/,
    (db) => void db.exec("UPDATE dead_letters SET body = CAST(body || ' ' AS BLOB) WHERE seq = 61"),
  ],
  [
    'a dead letter of another source',
    'internal_error',
    /dead letter of sink "other" for entry 45/,
    (db) => void db.exec('UPDATE dead_letters SET source = 7 WHERE seq = 45'),
  ],
  [
    'a dead letter that was not acknowledged',
    'internal_error',
    /dead letters of entries 45 to 90/,
    (db) => void db.exec('UPDATE dead_letters SET seq = 90 WHERE seq = 62'),
  ],
  [
    'a dead letter from before its sink began',
    'internal_error',
    /dead letters of entries 45 to 62, but has acknowledged entries 45 to 70/,
    (db) => void db.exec("UPDATE sinks SET from_seq = 45 WHERE id = 'other'"),
  ],
  [
    'a sink that has delivered an entry unknown to this journal',
    'internal_error',
    /delivered entry 60, which is not in this journal/,
    (db) => void db.exec("UPDATE sinks SET delivered_chain = zeroblob(32) WHERE id = 'other'"),
  ],
  ['a sink whose position was pruned', 'internal_error', /sink "siem"/, (db) => void db.exec('UPDATE sinks SET acknowledged = 3')],
];

// promise: The daily self-check finds damage of each part of the state that it reads.
test.each(damages)('%s is found', async (_what, code, words, damage) => {
  const it = await used();
  const db = it.beside();
  expect(db.prepare('SELECT seq FROM segments WHERE seq IN (45, 50, 55)').all()).toHaveLength(3);
  damage(db);
  let thrown: unknown;
  try {
    await round(it);
  } catch (caught) {
    thrown = caught;
  }
  expect(thrown).toMatchObject({ code, message: expect.stringMatching(words) as string });
});

test.each([
  ['more than there is', { acknowledged: 10_000, delivered: undefined }],
  [
    'less than it has accepted',
    { acknowledged: 22, delivered: { position: { seq: 23, chain: new Uint8Array(32) }, resumeNote: undefined } },
  ],
])('a sink that acknowledges %s violates an invariant', async (_what, acknowledgement) => {
  const it = await used();
  await expect(it.journal.acknowledge('siem', acknowledgement, [])).rejects.toMatchObject({ code: 'internal_error' });
  expect(() => it.journal.acknowledgeLater('siem', acknowledgement)).toThrow(/siem/);
  expect(it.journal.sinkProgress('siem').acknowledged).toBe(20);
});
