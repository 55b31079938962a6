/** The report as the admin server gives it: the same as the one that is made in one go, and made while the daemon's thread goes on. */
import { text } from 'node:stream/consumers';
import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import { Reports } from '../../../src/daemon/reports.ts';
import { ledgerReport } from '../../../src/journal/ledger-report.ts';
import { ledgerDocument } from '../../../src/observe/ledger-document.ts';
import { base, collected, day, minute } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, source, span, temporary } from '../journal/opening.ts';

const options = { by: 'day', tz: 'Europe/Berlin', version: '0.1.0' } as const;
const query = { now: base + day, sinkSources: new Map([['siem', [source]]]), recountAges: new Map([[source, [3_600_000]]]) };

/** As many closed windows as a ledger may have, a minute each. */
function fill(db: Database, count: number): void {
  const insert = db.prepare(
    `INSERT INTO windows (source, from_us, until_us, query, state, total, own, proof, closed_us, seq)
     VALUES (1, ?, ?, '{"startTime":"2026-11-20T01:59:59.00"}', 'closed', 1, 1, '{"passes":1}', 0, 0)`,
  );
  db.transaction(() => {
    for (let i = 0; i < count; i += 1) insert.run(base + i * minute, base + (i + 1) * minute);
    db.prepare('UPDATE ranges SET reached_us = ?').run(base + count * minute);
  })();
}

test.each(['json', 'csv', 'html'] as const)('%s is the same as when it is made in one go', async (format) => {
  const { journal, directory } = await opened();
  journal.progress.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
  await journal.append(pageOf([collected(1, base), collected(2, base + day)]));
  await journal.close(source, span(0, 900), proven(1), lastAge);
  await journal.close(source, span(900, 1_800), gap({ words: 'naïve: 2 ≠ 3' }), lastAge);
  const { type, text: stream } = await new Reports().make({ state: directory, query, format, options });
  const whole = ledgerDocument(ledgerReport(journal.db, query), format, options);
  expect(type).toBe(whole.type);
  expect(await text(stream)).toBe(whole.text);
});

test('the thread that asks goes on meanwhile, and a long report comes in pieces; two reports are made one after the other', async () => {
  const { journal, directory } = await opened();
  fill(journal.db, 3_000);
  const reports = new Reports();
  let turns = 0;
  const turning = setInterval(() => (turns += 1), 1);
  const order = { state: directory, query, format: 'json', options } as const;
  const [first, second] = await Promise.all([reports.make(order), reports.make({ ...order, format: 'csv' })]);
  clearInterval(turning);
  expect(turns).toBeGreaterThan(5);
  const sizes: number[] = [];
  for await (const piece of first.text) sizes.push((piece as Uint8Array).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536);
  expect(sizes.length).toBeGreaterThan(10);
  // 50 hours of windows begin on three days in Berlin.
  expect((await text(second.text)).split('\r\n')).toHaveLength(1 + 3 + 1);
});

test('one that is too large for its memory is refused, and only its thread ends', async () => {
  const { journal, directory } = await opened();
  fill(journal.db, 20_000);
  const reports = new Reports(12);
  const order = { state: directory, query, format: 'json', options } as const;
  await expect(reports.make(order)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringMatching(/too large.*shorter/) as string,
  });
  const { text: stream } = await reports.make({ ...order, query: { ...query, to: base + 10 * minute } });
  expect(JSON.parse(await text(stream))).toMatchObject({ sources: [{ windows: { length: 10 } }] });
});

test('what is wrong with the state comes with its code', async () => {
  const order = { state: temporary(), query, format: 'json', options } as const;
  await expect(new Reports().make(order)).rejects.toMatchObject({ code: 'state_missing' });
});
