/**
 * The report of the admin server: equal to a report generated at once, and generated while the
 * daemon's main thread continues.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Database } from 'better-sqlite3';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { command as gapsCommand } from '../../../src/cli/commands/gaps.ts';
import type { Command } from '../../../src/cli/form.ts';
import { command as operationsCommand } from '../../../src/cli/commands/operations.ts';
import type { Reported } from '../../../src/daemon/admin/messages.ts';
import { adminReports } from '../../../src/daemon/admin/reports.ts';
import { Reports } from '../../../src/daemon/admin/report-maker.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { ledgerDocument } from '../../../src/report/ledger/document.ts';
import { outputOf } from '../../support/command-io.ts';
import { ledgerReport, running } from '../../support/ledger-report.ts';
import { base, collected, day, minute } from '../../support/records.ts';
import { service } from '../../support/offline-check.ts';
import { gap, lastAge, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';

const options = { by: 'day', tz: 'Europe/Berlin', version: '0.1.0' } as const;
const query = { now: base + day, sinkSources: new Map([['siem', [source]]]), recountAges: new Map([[source, [3_600_000]]]) };

/** As many closed windows as a ledger may have, a minute each. */
function fill(db: Database, count: number): void {
  const insert = db.prepare(
    `INSERT INTO windows (source, from_us, to_us, query, state, total, records, proof, closed_us, seq)
     VALUES (1, ?, ?, '{"startTime":"2026-11-20T01:59:59.00"}', 'proven', 1, 1, '{"passes":1}', 0, 0)`,
  );
  db.transaction(() => {
    for (let i = 0; i < count; i += 1) insert.run(base + i * minute, base + (i + 1) * minute);
    db.prepare('UPDATE ranges SET closed_until_us = ?').run(base + count * minute);
  })();
}

test.each(['json', 'csv', 'html'] as const)('%s equals the report created at once', async (format) => {
  const { journal, directory } = await opened();
  journal.sinkPositions.register('siem', 'file', 'x', { seq: 0, chain: new Uint8Array(32) }, undefined);
  await journal.append(pageOf([collected(1, base), collected(2, base + day)]));
  await journal.close(source, span(0, 900), proven(1), lastAge);
  await journal.close(source, span(900, 1_800), gap({ message: 'naïve: 2 ≠ 3' }), lastAge);
  const { type, text: stream } = await new Reports(systemClock).make({
    kind: 'ledger',
    state: directory,
    present: running,
    query,
    format,
    options,
  });
  const whole = ledgerDocument(ledgerReport(journal.db, query, running, format === 'html' ? options.tz : 'UTC'), format, options);
  expect(type).toBe(whole.type);
  expect(await text(stream)).toBe([...whole.chunks].join(''));
});

test('the requesting thread is not blocked, a long report arrives in chunks, and reports are created one at a time', async () => {
  const { journal, directory } = await opened();
  fill(journal.db, 3_000);
  const reports = new Reports(systemClock);
  let turns = 0;
  const turning = setInterval(() => (turns += 1), 1);
  const order = { kind: 'ledger', state: directory, present: running, query, format: 'json', options } as const;
  const first = await reports.make(order);
  const second = reports.make({ ...order, format: 'csv' });
  const sizes: number[] = [];
  for await (const piece of first.text) sizes.push((piece as Uint8Array).length);
  const rows = (await text((await second).text)).split('\r\n');
  clearInterval(turning);
  expect(turns).toBeGreaterThan(5);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536);
  expect(sizes.length).toBeGreaterThan(10);
  // 50 hours of windows start on three days in Berlin. The summary, the column names, the days, and
  // the text after the last line break.
  expect(rows).toHaveLength(1 + 1 + 3 + 1);
});

test('a slowly read report shows one point in time and does not block checkpoints', async () => {
  const { journal, directory } = await opened();
  fill(journal.db, 3_000);
  const { text: stream } = await new Reports(systemClock).make({
    kind: 'ledger',
    state: directory,
    present: running,
    query,
    format: 'json',
    options,
  });
  journal.db.prepare('UPDATE windows SET records = 5').run();
  // `busy` is 1 if a reader blocks the checkpoint.
  expect(journal.db.pragma('wal_checkpoint(TRUNCATE)')).toMatchObject([{ busy: 0 }]);
  const report = JSON.parse(await text(stream)) as { sources: [{ collected: number; windows: { records: number }[] }] };
  const [{ collected: sum, windows }] = report.sources;
  expect([sum, windows.reduce((total, { records }) => total + records, 0)]).toEqual([3_000, 3_000]);
});

test('a closed or stalled reader does not block the next report', async () => {
  const { journal, directory } = await opened();
  fill(journal.db, 3_000);
  const reports = new Reports(systemClock, 20);
  const order = { kind: 'ledger', state: directory, present: running, query, format: 'json', options } as const;
  (await reports.make(order)).text.destroy();
  const { text: stalled } = await reports.make(order);
  await expect(once(stalled, 'close')).rejects.toThrow('the client has read nothing for 0.02 s');
  const { text: stream } = await reports.make({ ...order, query: { ...query, to: base + 10 * minute } });
  expect(JSON.parse(await text(stream))).toMatchObject({ sources: [{ windows: { length: 10 } }] });
});

test('an error of the state has its code', async () => {
  const order = { kind: 'ledger', state: temporary(), present: running, query, format: 'json', options } as const;
  await expect(new Reports(systemClock).make(order)).rejects.toMatchObject({ code: 'state_missing' });
});

test('gaps and operations equal the output of the commands', async () => {
  const { journal, directory } = await opened();
  await journal.close(source, span(0, 900), gap({ message: 'naïve: 2 ≠ 3' }), lastAge);
  journal.history.add(source, { from: base - day, to: base }, { rate: 3 }, { actor: 'j.doe', reason: 'ticket 4711' });
  const file = join(temporary(), 'waybill.yaml');
  const sources = [{ id: source, ...service }];
  writeFileSync(file, JSON.stringify({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  const printed = async (command: Command): Promise<string> => {
    return (await outputOf((args, io) => command.run(args, io), ['list', '--json', '--config', file])).stdout;
  };
  const reports = new Reports(systemClock);
  const gaps = await reports.make({ kind: 'gaps', state: directory, source: undefined });
  expect(gaps.type).toBe('application/json; charset=utf-8');
  const gapsText = await text(gaps.text);
  expect(JSON.parse(gapsText)).toMatchObject({ gaps: [{ source, state: 'gap' }] });
  expect(gapsText).toBe(await printed(gapsCommand));
  const operations = await reports.make({ kind: 'operations', state: directory, from: 0, to: Number.MAX_SAFE_INTEGER });
  const operationsText = await text(operations.text);
  expect(JSON.parse(operationsText)).toMatchObject({ operations: [{ actor: 'j.doe', operation: 'backfill', reason: 'ticket 4711' }] });
  expect(operationsText).toBe(await printed(operationsCommand));
});

test('a source that does not exist, a period that ends before it starts and an unknown zone are refused', async () => {
  const snapshot = { sources: [{ id: 'production' }, { id: 'other' }] } as unknown as Snapshot;
  const reported = { settings: {}, services: {} } as unknown as Reported;
  const reports = adminReports(new Reports(systemClock), {
    ...{ state: () => Promise.resolve('/nowhere'), version: '0.1.0', clock: systemClock },
    reported: () => reported,
    snapshot: () => Promise.resolve(snapshot),
  });
  for (const source of ['nope', '']) {
    const refused = { code: 'usage', message: expect.stringContaining(`cannot find the source "${source}"`) as string };
    await expect(reports.ledger({ source })).rejects.toMatchObject(refused);
    await expect(reports.gaps({ source })).rejects.toMatchObject(refused);
  }
  const reversed = { from: '2026-11-22', to: '2026-11-21' };
  await expect(reports.ledger(reversed)).rejects.toMatchObject({ code: 'usage' });
  await expect(reports.operations(reversed)).rejects.toMatchObject({ code: 'usage' });
  await expect(reports.ledger({ tz: 'X' })).rejects.toThrow('cannot use tz "X"');
});
