/** `waybill detections try` on events of a sink, and on an archive. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import type { EntryLine, LedgerLine, RecordLine } from '../../../src/archive/line.ts';
import { command } from '../../../src/cli/commands/detections/index.ts';
import { command as encodeCommand } from '../../../src/cli/commands/encode.ts';
import { provenLine, start, writeArchive } from '../../support/archive.ts';
import { commandIo, outputOf, type Output } from '../../support/command-io.ts';
import { uidOfParts } from '../../support/uid-of-parts.ts';
import { PassThrough, Readable } from 'node:stream';
import { existsSync, readdirSync, unlinkSync } from 'node:fs';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'waybill-detections-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]): Promise<Output> => outputOf((given, io) => command.run(['try', ...given], io), args);

/** An open of a file by Ann, `minutes` after 2026-07-01T00:00Z. */
function record(logId: number, minutes: number, user = 'ann'): string {
  return JSON.stringify({
    ...{ logId, userId: user, userEmailAddress: `${user}@example.com`, payloadId: `file-${logId}`, payloadName: `Plan ${logId}.docx` },
    ...{ currentPayloadOwnerId: 'olga', actionAttempted: 'Decrypt', result: 'AccessGranted', resultReason: 'Success' },
    logTimestamp: timeAt(minutes),
  });
}

function timeAt(minutes: number): string {
  return new Date(start / 1_000 + minutes * 60_000).toISOString().slice(0, 19);
}

/** Ann opens 26 files in 9 minutes of the first day, and 13 of the third; Bob 19 of the third. */
const records = [
  ...Array.from({ length: 26 }, (_, i) => record(i, i * 0.35)),
  ...Array.from({ length: 13 }, (_, i) => record(100 + i, 2_880 + i * 0.5)),
  ...Array.from({ length: 19 }, (_, i) => record(200 + i, 2_900 + i * 0.5, 'bob')),
];

async function eventsFile(lines: readonly string[]): Promise<string> {
  const stdin = Readable.from([`${lines.join('\n')}\n`]);
  const { code, stdout } = await outputOf((given, io) => encodeCommand.run(given, io), ['--format', 'ecs', '--source', 'production'], {
    stdin,
  });
  expect(code).toBe(0);
  const file = join(folder, 'events.ndjson');
  writeFileSync(file, stdout);
  return file;
}

const rowOf = (text: string, id: string): string | undefined =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${id} `))
    ?.replace(/ +/g, ' ');

// promise: `waybill detections try` says how often each rule would have fired in one's own history, and with other thresholds.
test('the alerts of a history are shown by day, with the user, and for other thresholds', async () => {
  const { code, stdout } = await run('--file', await eventsFile(records));
  expect(code).toBe(0);
  expect(stdout).toMatch(/^58 events from 2026-07-01 to 2026-07-03 \(UTC\)$/m);
  // In 10 minutes: Ann 26, then 13 files, Bob 19. The suspension of an alert is an hour.
  expect(rowOf(stdout, 'opened-many')).toBe('opened-many high 1 1 1 13: 3, 19: 2, [25: 1], 38: 0, 50: 0');
  expect(stdout).toMatch(/^2026-07-01 +opened-many +1 +ann@example\.com$/m);
  expect(rowOf(stdout, 'owner-changed-many')).toBe('owner-changed-many high 0 0 0 4: 0, 5: 0, [7: 0], 11: 0, 14: 0');
  expect(stdout).toMatch(/^1 alert, at most 1 a day$/m);
});

test('a record that the file has twice counts once, a foreign line is left out and told', async () => {
  const file = await eventsFile([...records.slice(0, 24), ...records.slice(0, 24)]);
  writeFileSync(file, 'no event\n{"@timestamp":"2026-07-01T00:00:00Z"}\n', { flag: 'a' });
  const { stdout, stderr } = await run('--file', file, '--rule', 'opened-many');
  expect(rowOf(stdout, 'opened-many')).toBe('opened-many high 0 0 0 13: 1, 19: 1, [25: 0], 38: 0, 50: 0');
  expect(stderr).toBe('warning: 2 of the lines are no events of the format ecs, and were left out\n');
});

test('a long history has a line of progress', async () => {
  const file = join(folder, 'long.ndjson');
  const lines = Array.from({ length: 10_001 }, (_, i) => `{"@timestamp":"2026-07-01T00:00:00Z","dpas":{"uid":"${i}"}}\n`);
  writeFileSync(file, lines.join(''));
  const { stderr } = await run('--file', file, '--rule', 'opened-many');
  expect(stderr).toBe('10000 events read\n');
});

test('an exception list takes users out, and service accounts have hours', async () => {
  const file = await eventsFile(records);
  const lists = join(folder, 'lists.yaml');
  writeFileSync(lists, 'trusted-users: [ann]\nservice-accounts:\n  bob: { hours: 1-5 }\n');
  const { stdout } = await run('--file', file, '--lists', lists, '--rule', 'opened-many', '--rule', 'service-account-outside');
  expect(rowOf(stdout, 'opened-many')).toBe('opened-many high 0 0 0 13: 1, 19: 1, [25: 0], 38: 0, 50: 0');
  // Bob works from 00:20 to 00:29.
  expect(rowOf(stdout, 'service-account-outside')).toBe('service-account-outside medium 1 1 1');
});

function archiveLines(): readonly EntryLine[] {
  const kept = records.map((text, i): RecordLine => {
    const { logId, logTimestamp } = JSON.parse(text) as { logId: number; logTimestamp: string };
    const uid = uidOfParts(['waybill/1', 'production', String(logId), logTimestamp, 'Decrypt', 'AccessGranted', 'Success']);
    const received = (Date.parse(`${logTimestamp}Z`) + 1_000) * 1_000;
    return { kind: 'record', seq: i + 1, uid, source: 'production', received, late: false, record: Buffer.from(text) };
  });
  const day = 86_400_000_000;
  const gap: Partial<LedgerLine> = { state: 'gap', digest: null, reason: 'count' };
  return [...kept, provenLine(59, start, start + day, []), provenLine(60, start + day, start + day + 900_000_000, [], gap)];
}

test('an archive gives the same alerts as the events, and those of its ledger', async () => {
  const directory = join(folder, 'archive');
  await writeArchive(new DirectoryStore(directory), archiveLines(), 30);
  const { code, stdout, stderr } = await run('--archive', directory);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const fromEvents = await run('--file', await eventsFile(records));
  expect(rowOf(stdout, 'opened-many')).toBe(rowOf(fromEvents.stdout, 'opened-many'));
  expect(stdout).toMatch(/^2026-07-02 +trail-broken +1 +production$/m);

  const [first = ''] = readdirSync(join(directory, 'segments')).sort().slice(1);
  expect(existsSync(join(directory, 'segments', first))).toBe(true);
  unlinkSync(join(directory, 'segments', first));
  const damaged = await run('--archive', directory);
  expect(damaged.code).toBe(3);
  expect(damaged.stderr).toContain('lines of the archive are missing');
});

test('the ledger of an archive has the times of its entries, and a window in doubt is no proof', async () => {
  const directory = join(folder, 'archive');
  const quarter = 900_000_000;
  // From 02:00 to 08:00 nothing was proven; at 08:00 all windows of that time were.
  const writtenAt = (i: number): number => start + (i >= 8 && i < 32 ? 32 * quarter + i * 1_000_000 : (i + 1) * quarter + 60_000_000);
  const reasons: Readonly<Record<number, string>> = { 40: 'shrunk', 41: 'reread' };
  const lines = Array.from({ length: 48 }, (_, i) =>
    provenLine(i + 1, start + i * quarter, start + (i + 1) * quarter, [], { at: writtenAt(i), reason: reasons[i] ?? null }),
  );
  await writeArchive(new DirectoryStore(directory), lines, 30);
  const { stdout } = await run('--archive', directory);
  expect(rowOf(stdout, 'no-proof')).toMatch(/^no-proof high 1 1 1 .*\[60: 1\]/);
  expect(rowOf(stdout, 'trail-broken')).toMatch(/^trail-broken high 2 /);
});

test('a signal ends the command within a rule', async () => {
  const stopped = new AbortController();
  const file = join(folder, 'long.ndjson');
  writeFileSync(file, Array.from({ length: 10_001 }, (_, i) => `{"@timestamp":"2026-07-01T00:00:00Z","dpas":{"uid":"${i}"}}\n`).join(''));
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  stderr.on('data', (text) => {
    if (String(text).includes('rule any-denied')) setImmediate(() => stopped.abort(new Error('stopped')));
  });
  await expect(command.run(['try', '--file', file, '--rule', 'any-denied'], commandIo({ stderr, signal: stopped.signal }))).rejects.toThrow(
    'stopped',
  );
});

test.each([
  ['no history', [], 'pass one of --archive DIR, --sink ID and --file FILE'],
  ['an unknown rule', ['--file', '/dev/null', '--rule', 'opened-mny'], 'cannot find the rule "opened-mny": the nearest is "opened-many"'],
  ['a missing file', ['--file', '/nowhere/events.ndjson'], 'cannot read --file "/nowhere/events.ndjson"'],
  ['an empty history', ['--file', '/dev/null'], 'the history has no event with a time and a dpas.uid'],
])('%s is refused', async (_, args, message) => {
  await expect(run(...args)).rejects.toThrow(message);
});

test.each([
  ['trusted_users: [ann]', 'no rule uses a list "trusted_users"; they use help-desk, '],
  ['service-accounts:\n  bob: { hours: 25-3 }', 'two hours in UTC such as 22-5'],
  ['offices: [192.0.2.1', 'cannot use --lists'],
])('lists with "%s" are refused', async (text, message) => {
  const lists = join(folder, 'lists.yaml');
  writeFileSync(lists, text);
  await expect(run('--file', '/dev/null', '--lists', lists)).rejects.toThrow(message);
});
