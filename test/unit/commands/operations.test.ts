/** What `operations list` shows of what the state keeps: every time is one that a person can read. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { run as runLedger } from '../../../src/commands/ledger.ts';
import { run as runOperations } from '../../../src/commands/operations.ts';
import { base, day } from '../../support/records.ts';
import { opened, source, temporary } from '../journal/opening.ts';

test('times of backfills and retirements are RFC 3339, in the text and as JSON', async () => {
  const { journal, directory } = await opened();
  const by = { who: 'j.doe', why: 'ticket 4711' };
  // base is 2026-11-20T02:00:00Z.
  journal.history.add(source, { from: base - day, until: base + day }, { rate: 3 }, by);
  journal.history.cancel(source, base - day, base - day / 2, { ...by, why: undefined });
  journal.orphanSources(new Set());
  journal.history.retire(source, by);
  const file = join(temporary(), 'waybill.yaml');
  const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 'hush', scopeAddress: 's' };
  const sources = [{ id: 'other', baseUrl: 'https://service.example/v2/api', auth }];
  writeFileSync(file, JSON.stringify({ state: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  const shown = async (...options: string[]): Promise<string> => {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const io = { stdin, stdout, stderr, env: {}, signal: new AbortController().signal };
    expect(await runOperations(['list', '--config', file, ...options], io)).toBe(0);
    return String(stdout.read());
  };
  const { operations } = JSON.parse(await shown('--json')) as { operations: object[] };
  expect(operations).toMatchObject([
    {
      ...{ what: 'backfill', source, why: 'ticket 4711' },
      detail: {
        ...{ from: '2026-11-19T02:00:00Z', until: '2026-11-21T02:00:00Z', rate: 3 },
        parts: [{ from: '2026-11-19T02:00:00Z', until: '2026-11-20T02:00:00Z' }],
      },
    },
    { what: 'backfill cancel', why: null, detail: { ends: '2026-11-19T14:00:00Z' } },
    { what: 'sources retire', detail: { reached: '2026-11-20T02:00:00Z' } },
  ]);
  const text = await shown();
  expect(text).toContain('parts 2026-11-19T02:00:00Z to 2026-11-20T02:00:00Z, rate 3');
  expect(text).toContain('ends 2026-11-19T14:00:00Z');
  expect(text).not.toMatch(/\d{13}/);
});

test('characters that a terminal would obey are escaped, in the text and as JSON', async () => {
  const { journal, directory } = await opened();
  // CSI as one C1 character, DEL, a line separator, marks of direction.
  const why = 'a\u009b2Jb\u007fc\u2028d\u202ee\u200ff\u061cg';
  journal.history.add(source, { from: base - day, until: base }, {}, { who: 'j\u009bdoe', why });
  const file = join(temporary(), 'waybill.yaml');
  const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 'hush', scopeAddress: 's' };
  const sources = [{ id: source, baseUrl: 'https://service.example/v2/api', auth }];
  writeFileSync(file, JSON.stringify({ state: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] }));
  for (const run of [runOperations, runLedger])
    for (const json of [true, false]) {
      const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
      const io = { stdin, stdout, stderr, env: {}, signal: new AbortController().signal };
      await run([...(run === runOperations ? ['list'] : []), '--config', file, ...(json ? ['--json'] : [])], io);
      const text = String(stdout.read());
      expect(text).toContain('2Jb');
      expect(text).not.toMatch(/[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
      // The value is the same for a program.
      if (json) expect(JSON.stringify(JSON.parse(text))).toContain(JSON.stringify(why));
    }
});
