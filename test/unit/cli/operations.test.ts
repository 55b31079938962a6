/** `operations list` shows every time in a readable form. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command as ledgerCommand } from '../../../src/cli/commands/ledger.ts';
import { command as operationsCommand } from '../../../src/cli/commands/operations.ts';
import { outputOf } from '../../support/command-io.ts';
import { base, day, hour } from '../../support/records.ts';
import { gap, lastAge, opened, source, temporary } from '../../support/journal/opening.ts';
import { service } from '../../support/offline-check.ts';

test('times of backfills and retirements are RFC 3339, in the text and as JSON', async () => {
  const { journal, directory } = await opened();
  const by = { actor: 'j.doe', reason: 'ticket 4711' };
  // base is 2026-11-20T02:00:00Z.
  journal.history.add(source, { from: base - day, to: base + day }, { rate: 3 }, by);
  journal.history.cancel(source, base - day, base - day / 2, { ...by, reason: undefined });
  journal.markSourcesUnconfigured(new Set());
  journal.history.retire(source, by);
  const file = join(temporary(), 'waybill.yaml');
  const sources = [{ id: 'other', ...service }];
  writeFileSync(file, JSON.stringify({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  const shown = async (...options: string[]): Promise<string> => {
    const { code, stdout } = await outputOf((given, io) => operationsCommand.run(given, io), ['list', '--config', file, ...options]);
    expect(code).toBe(0);
    return stdout;
  };
  const { operations } = JSON.parse(await shown('--json')) as { operations: object[] };
  expect(operations).toMatchObject([
    {
      ...{ operation: 'backfill', source, reason: 'ticket 4711' },
      detail: {
        ...{ from: '2026-11-19T02:00:00Z', to: '2026-11-21T02:00:00Z', rate: 3 },
        parts: [{ from: '2026-11-19T02:00:00Z', to: '2026-11-20T02:00:00Z' }],
      },
    },
    { operation: 'backfill cancel', reason: null, detail: { ends: '2026-11-19T14:00:00Z' } },
    { operation: 'sources retire', detail: { closedUntil: '2026-11-20T02:00:00Z' } },
  ]);
  const text = await shown();
  expect(text).toContain('parts 2026-11-19T02:00:00Z to 2026-11-20T02:00:00Z, rate 3');
  expect(text).toContain('ends 2026-11-19T14:00:00Z');
  expect(text).not.toMatch(/\d{13}/);
});

test('terminal control characters are escaped, in the text and as JSON', async () => {
  const { journal, directory } = await opened();
  // CSI as one C1 character, DEL, a line separator, direction marks.
  const why = 'a\u009b2Jb\u007fc\u2028d\u202ee\u200ff\u061cg';
  journal.history.add(source, { from: base - day, to: base }, {}, { actor: 'j\u009bdoe', reason: why });
  const file = join(temporary(), 'waybill.yaml');
  const sources = [{ id: source, ...service }];
  writeFileSync(file, JSON.stringify({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  for (const command of [operationsCommand, ledgerCommand])
    for (const json of [true, false]) {
      const args = [...(command === operationsCommand ? ['list'] : []), '--config', file, ...(json ? ['--json'] : [])];
      const { stdout: text } = await outputOf((given, io) => command.run(given, io), args);
      expect(text).toContain('2Jb');
      expect(text).not.toMatch(/[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
      // The JSON output has the same text.
      if (json) expect(JSON.stringify(JSON.parse(text))).toContain(JSON.stringify(why));
    }
});

test('the text has an outcome, one row for several windows of one command, and aligned times', async () => {
  const { journal, directory, clock, close } = await opened();
  const windows = [0, 1, 2].map((i) => ({ from: base + i * hour, to: base + (i + 1) * hour }));
  for (const window of windows) await journal.close(source, window, gap(), lastAge);
  const act = { actor: 'j.doe', reason: 'ticket 4711' };
  for (const [i, { from }] of windows.entries()) await journal.retryGap(source, from, { ...act, at: base + day + i * 40_000 });
  await clock.sleep(120_000, new AbortController().signal);
  journal.sinkPositions.register('siem', 'model', 'place', journal.positionFor('journal'), undefined);
  const test = {
    at: base + 2 * day,
    actor: 'j.doe',
    operation: 'sinks test',
    detail: { sink: 'siem', code: 'Decrypt:AccessDenied:TimeEmbargoFailed', count: 3 },
  };
  const failed = await journal.operate(test);
  await journal.writeOutcome(failed, 'failed: sink_blocked');
  const taken = await journal.operate({ ...test, at: base + 3 * day });
  await journal.writeOutcome(taken, 'delivered');
  await journal.operate({ ...test, at: base + 4 * day });
  const replay = { actor: 'j.doe', operation: 'replay' };
  await journal.operate({ ...replay, at: base + 5 * day, detail: { sink: 'siem', first: 2347, last: 2484 } });
  await journal.operate({ ...replay, at: base + 5 * day + 13_000_000, detail: { sink: 'siem', first: 1, last: 2346 } });
  await close();
  const { code, stdout } = await outputOf((given, io) => operationsCommand.run(given, io), ['list', '--data-dir', directory]);
  expect(code).toBe(0);
  const [head = '', ...rows] = stdout.trimEnd().split('\n');
  expect(rows).toHaveLength(6);
  const cell = (row: string, from: string, to?: string): string =>
    row.slice(head.indexOf(from), to === undefined ? undefined : head.indexOf(to)).trim();
  expect(rows.map((row) => cell(row, 'TIME', 'ACTOR'))).toEqual([
    '2026-11-21T02:00:00.000Z',
    '2026-11-22T02:00:00.000Z',
    '2026-11-23T02:00:00.000Z',
    '2026-11-24T02:00:00.000Z',
    '2026-11-25T02:00:00.000Z',
    '2026-11-25T02:00:13.000Z',
  ]);
  expect(rows.map((row) => cell(row, 'SOURCE OR SINK', 'OUTCOME').replace(/ +/, ' '))).toEqual([
    `${source} 3`,
    'siem 3',
    'siem 3',
    'siem 3',
    'siem 1',
    'siem 1',
  ]);
  expect(rows.map((row) => cell(row, 'OUTCOME', 'REASON'))).toEqual([
    'done',
    'failed: sink_blocked',
    'delivered',
    'unknown',
    'requested',
    'requested',
  ]);
  expect(rows.slice(4).map((row) => cell(row, 'DETAIL'))).toEqual(['first 2347, last 2484', 'first 1, last 2346']);
  expect(cell(rows[0] ?? '', 'DETAIL')).toBe('between 2026-11-20T02:00:00Z and 2026-11-20T05:00:00Z');
  expect(rows.join()).not.toContain('reason count');
});
