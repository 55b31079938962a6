/** The advice of `status` that no other test covers. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { actOf, problems, worstFirst } from '../../../src/report/advice.ts';
import { presentOf } from '../../../src/report/completeness.ts';
import { statusSummary } from '../../../src/report/status-summary.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import { coverage, micros, now, replay, sink, snapshot, source, windowStates } from '../../support/report/snapshots.ts';

const loss = { loss: '"a.ndjson" was truncated: entries 3 to 9 may be lost', lostEntries: { first: 1, last: 9 } };
const since = micros('2026-11-20T03:02:00Z');
const short = { id: 'siem', windows: 4, lacking: 4, lost: 4, ...loss, deadLetters: 0 };

test('the summary and the advice report a loss of delivered records, with the command that sends them again', () => {
  const other = { ...short, lostEntries: { first: 5, last: 12 } };
  const sources = [short, other].map((lacking, i) => source({ id: `s${i}`, coverage: coverage({ sinks: [lacking] }) }));
  const lost = snapshot({ sources });
  const [advice] = problems(lost);
  expect(advice?.what).toBe(`Sink siem lost delivered records: ${short.loss}.`);
  expect(advice?.operation).toContain('waybill replay --sink siem --from 1 --to 12;');
  expect(statusSummary(lost)).toContain('siem lacks 8 of 8 windows (lost 8)');
  expect(statusJson(lost).delivered).toBe(false);
  expect(problems(snapshot())).toEqual([]);
});

test('roll-backs of a database are named with shard, commits and time: lost ones first, and many are counted', () => {
  const rollback = (shard: number, repaired: boolean) => ({ shard, first: 5, last: 9, repaired, at: since });
  const rollbacks = [rollback(1, true), ...Array.from({ length: 6 }, (_, shard) => rollback(shard, false))];
  const fleet = { members: [], shards: [], rollbacks, page: { windows: new Map(), today: { records: 0, late: 0 } } };
  const [lost, repaired, ...others] = problems(snapshot({ fleet }));
  const at = (shard: number): string => `shard ${shard}, commits 5 to 9, 2026-11-20T03:02:00Z`;
  expect(lost).toMatchObject({
    what: `The database lost commits, and no owner could write them again: ${[0, 1, 2, 3].map(at).join('; ')}; and 2 more roll-backs.`,
    code: 'database_rolled_back',
  });
  expect(repaired?.what).toBe(`The database lost commits, and their owners wrote their rows again: ${at(1)}.`);
  expect(repaired?.lost).toBe('Nothing is lost: state and sinks agree.');
  expect(others).toEqual([]);
  expect(statusJson(snapshot({ fleet }))).toMatchObject({
    fleet: { rollbacks: [{ shard: 1, first: 5, at: '2026-11-20T03:02:00Z' }, {}, {}, {}, {}, {}, {}] },
  });
});

test.each([
  [{ state: 'active', attempts: 0 }, undefined],
  [{ state: 'stopped' }, undefined],
  [{ state: 'active', attempts: 1 }, 'refused'],
  [{ state: 'retrying', attempts: 2 }, 'refused'],
  [{ state: 'blocked' }, 'refused'],
])('an error is the reason only while the sink fails: %j', (change, lastError) => {
  expect(presentOf(snapshot({ sinks: [sink({ ...change, lastError: 'refused' })] })).sinks[0]?.lastError).toBe(lastError);
});

test('missing records without a window are named', () => {
  const summaryOf = (change: object): string =>
    statusSummary(snapshot({ sources: [source({ coverage: coverage({ sinks: [{ ...short, lacking: 0, lost: 0, ...change }] }) })] }));
  expect(summaryOf({ undated: 2 })).toContain('NOT ALL DELIVERED: siem lacks 2 records without a readable time');
  expect(summaryOf({ waits: true })).toContain('NOT ALL DELIVERED: 1 sink behind');
});

const secrets = {
  'sources.production.auth.clientSecret': '${file:./secret}',
  'sources.production.subscriptionKey': '${env:KEY}',
  'sinks.splunk.token': '${file:/run/token}',
};

test.each<[string, string, string, string]>([
  [
    'token_refused',
    'the token endpoint refuses: invalid_client; see sources.production.auth.clientSecret',
    'put a valid secret into ./secret (sources.production.auth.clientSecret); the daemon reads it within a minute',
    'token_refused',
  ],
  [
    'source_unauthorized',
    '401; see sources.production.subscriptionKey and sources.production.auth',
    'put a valid value into sources.production.subscriptionKey, which comes from ${env:KEY}; a variable needs a restart',
    'source_unauthorized',
  ],
  [
    'token_unreachable',
    'cannot reach it; see sources.production.auth.authUrl',
    'restore the service or the way to it, or correct sources.production.auth.authUrl; waybill check --source production tests every step',
    'token_unreachable',
  ],
  ['source_busy', '503 Server is busy', 'nothing here; attempts continue.', 'source_busy'],
  ['page_malformed', 'not JSON', 'waybill check --source production', 'page_malformed'],
])('a source that fails by %s names the act and the explanation', (code, message, act, explained) => {
  const failing = { code, message, since, nextAttempt: now + 13e6 };
  const [found] = problems(snapshot({ secrets, sources: [source({ failing, trouble: message })] }));
  expect(found?.what).toBe(`Source production has failed for 60 s: ${message}. Next attempt in 13 s.`);
  expect(found && actOf(found)).toContain(act);
  expect(found && actOf(found)).toMatch(new RegExp(`\\. More: waybill explain ${explained}$`));
});

test('a receiver that cannot be reached may be down: the address is not the only remedy', () => {
  const lastError = 'cannot send to "https://hec": cannot reach "https://hec": ECONNREFUSED; see sinks.splunk.url';
  const down = sink({ id: 'splunk', state: 'retrying', attempts: 3, hasDelivered: true, lastError, lastCode: 'sink_unavailable' });
  const [found] = problems(snapshot({ sinks: [down] }));
  expect(found && actOf(found)).toBe(
    'start the receiver or restore the way to it, or correct sinks.splunk.url; at once after a repair: waybill sinks retry --sink splunk. ' +
      'More: waybill explain sink_unavailable',
  );
});

test('a certificate is a problem from two weeks before its end on', () => {
  const ends = (days: number) => problems(snapshot({ certificates: [{ target: 'sources.production', at: now + days * 86_400e6 }] }));
  expect(ends(14.1)).toEqual([]);
  expect(ends(5)[0]?.what).toBe('The certificate of sources.production ends in 5 d (2026-11-25T03:03:00Z).');
  expect(ends(-1)[0]?.what).toMatch(/^The certificate of sources\.production has ended \(/);
});

test('a source whose proofs are behind is a problem, unless nothing was ever proven', () => {
  const liveFrom = now - 86_400e6;
  const behind = (frontier: number) => source({ frontier, serverNow: now, coverage: coverage({ liveFrom, startsAt: liveFrom }) });
  const [found] = problems(snapshot({ sources: [behind(now - 10_800e6)] }));
  expect(found?.what).toMatch(/^Source production is behind: read until .* \(3 h ago\)\.$/);
  expect(problems(snapshot({ sources: [behind(liveFrom)] }))).toEqual([]);
  expect(problems(snapshot({ sources: [behind(now - 60e6)] }))).toEqual([]);
});

test('a sink whose receiver refuses its only secret names the file', () => {
  const refused = sink({ id: 'splunk', state: 'blocked', lastError: '403 code 4 Invalid token', lastCode: 'sink_blocked' });
  const [found] = problems(snapshot({ secrets, sinks: [refused] }));
  expect(found && actOf(found)).toBe(
    'put a valid secret into /run/token (sinks.splunk.token); the daemon reads it within a minute. More: waybill explain sink_blocked',
  );
});

test('a rejected configuration is a problem with its time and number of problems', () => {
  const [found] = problems(snapshot({ rejected: { since, problems: ['sinks.a.pth: unknown key', 'b'] } }));
  expect(found?.what).toBe(
    'The configuration on disk is rejected for 60 s (since 2026-11-20T03:02:00Z), 2 problems: sinks.a.pth: unknown key.',
  );
  expect(found?.lost).toMatch(/runs with the configuration before it\. The next start would fail\.$/);
});

test('every problem is listed with an act, and every code is a heading of docs/operations.md', () => {
  const all = problems(
    snapshot({
      rejected: { since, problems: ['a'] },
      journal: { ...snapshot().journal, paused: 'disk' },
      sources: [
        source({ id: 'a', state: 'suspended' }),
        source({ id: 'b', windows: windowStates({ gap: 2 }), uncalibrated: '503', clockOffsetSeconds: -9_999 }),
        source({ id: 'c', state: 'unconfigured' }),
        source({ id: 'd', clockOffsetSeconds: 999, unread: { from: 0, to: 1, startsAt: 1 } }),
        source({ id: 'e', coverage: coverage({ sinks: [short] }) }),
      ],
      sinks: [
        sink({ id: 'f', state: 'blocked', deadLetters: 1 }),
        sink({ id: 'g', state: 'unconfigured' }),
        sink({ id: 'h', replays: [replay({ state: 'failed' })] }),
        sink({ id: 'i', state: 'retired', deadLetters: 4 }),
      ],
    }),
  );
  expect(all.map(({ source: id, sink: other }) => id ?? other ?? '')).toEqual([
    '',
    '',
    'a',
    'f',
    'b',
    'b',
    'c',
    'g',
    'siem',
    'h',
    'f',
    'd',
    'd',
    'b',
  ]);
  const headings = readFileSync('docs/operations.md', 'utf8').toLowerCase();
  for (const { operation, lost, code } of all) {
    expect(operation).not.toBe('');
    expect(lost).not.toBe('');
    if (code !== undefined) expect(headings).toMatch(new RegExp(`^#+ ${code}$`, 'm'));
  }
});

test('a full disk is one problem: no other accuses the sink or the rate of requests for what waits for space', () => {
  const waiting = {
    sources: [source({ recountsOverdue: 1 })],
    sinks: [sink({ state: 'retrying', attempts: 13, lastCode: 'journal_full', lastError: 'its disk is full' })],
  };
  const whats = (paused?: string): string[] =>
    problems(snapshot({ ...waiting, journal: { ...snapshot().journal, paused } })).map(({ what }) => what);
  expect(whats('disk')).toEqual([expect.stringMatching(/^The disk is full/)]);
  expect(whats()).toEqual([expect.stringMatching(/^Sink .* its disk is full/), expect.stringMatching(/^1 recount of .* overdue/)]);
});

test('with one problem of everything, rows with the worst come first and retired ones last', () => {
  const given = snapshot({
    sources: [
      source({ id: 'a', state: 'retired' }),
      source({ id: 'b' }),
      source({ id: 'c', windows: windowStates({ gap: 1 }) }),
      source({ id: 'd', trouble: 'x' }),
    ],
  });
  expect(worstFirst(given).sources.map(({ id }) => id)).toEqual(['d', 'c', 'b', 'a']);
});
