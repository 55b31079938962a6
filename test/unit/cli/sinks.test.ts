/**
 * Operations on sinks from the command line, on a state without a daemon: the real commands, the
 * real journal, the real file sink. An end-to-end test covers the same with a running daemon.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { known } from '../../../src/cli/catalog.ts';
import { loadCommand } from '../../../src/cli/registry.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { Rejection } from '../../../src/model/sink.ts';
import { KafkaModel } from '../../support/kafka-model.ts';
import { append, openJournal, source } from '../../support/model-journal.ts';

let directory: string;

const configuration = (more = ''): string => `
dataDir: ${join(directory, 'state')}
sources:
  - { id: ${source}, baseUrl: https://service.test/v2/api, start: 2026-11-20T00:00:00Z,
      auth: { authUrl: https://login.test, tenantId: t, clientId: c, clientSecret: s, scopeAddress: a } }
sinks:
  - { id: siem, type: file, path: ${join(directory, 'siem.ndjson')}, format: raw${more} }
`;

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function waybill(name: string, ...args: string[]): Promise<Said> {
  const output = { stdout: '', stderr: '' };
  const into = (key: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        output[key] += chunk.toString('utf8');
        done();
      },
    });
  const command = await loadCommand(known(name));
  const io = { stdin: new PassThrough(), stdout: into('stdout'), stderr: into('stderr'), env: {}, signal: new AbortController().signal };
  try {
    const code = await command.run([...args, '--config', join(directory, 'waybill.yaml')], io);
    return { code, ...output };
  } catch (thrown) {
    const { code, message } = thrown as { code?: string; message: string };
    return { code: code === 'usage' || code === 'config_invalid' ? 2 : 1, ...output, stderr: `${output.stderr}${message}` };
  }
}

async function json<Value>(name: string, ...args: string[]): Promise<Value> {
  const { code, stdout, stderr } = await waybill(name, ...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as Value;
}

/** A state as a daemon leaves it: 20 records, delivered to the sink except for some rejections. */
async function leave(
  refused: readonly number[],
  change?: (journal: Journal) => Promise<void>,
  [type, destination] = ['file', join(directory, 'siem.ndjson')],
): Promise<void> {
  const journal = await openJournal(join(directory, 'state'), systemClock);
  journal.sinkPositions.register('siem', type, destination, journal.positionFor('journal'), undefined);
  await append(journal, 20, () => ({ payloadName: 'salaries.xlsx' }));
  const entries = await journal.read(0, { records: 20, bytes: 1e9 });
  const letters = entries
    .filter(({ seq }) => refused.includes(seq))
    .map((entry) => {
      const rejection: Rejection = { seq: entry.seq, code: 'bad_document', message: `cannot parse "salaries.xlsx" of ${entry.seq}` };
      return { entry, rejection, attempts: 1 };
    });
  await journal.acknowledge('siem', { acknowledged: 20, delivered: undefined }, letters);
  await change?.(journal);
  await journal[Symbol.asyncDispose]();
}

const lines = (): string[] =>
  existsSync(join(directory, 'siem.ndjson')) ? readFileSync(join(directory, 'siem.ndjson'), 'utf8').split('\n').slice(0, -1) : [];
const numbers = (): unknown[] => lines().map((line) => (JSON.parse(line) as { logId: number }).logId);
const operations = async (): Promise<unknown[]> => (await json<{ operations: unknown[] }>('operations', 'list')).operations;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waybill-sinks-'));
  mkdirSync(join(directory, 'state'), { mode: 0o700 });
  writeFileSync(join(directory, 'waybill.yaml'), configuration());
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('dead-letters', () => {
  test('list shows the dead letters without the records; show prints the records unchanged', async () => {
    await leave([3, 7]);
    const listed = await waybill('dead-letters', 'list');
    expect(listed.stdout).toMatch(/siem +3 +records +2026-11-20T00:00:03Z .* bad_document +1 +stored\n/);
    const inJson = await waybill('dead-letters', 'list', '--sink', 'siem', '--json');
    expect((JSON.parse(inJson.stdout) as { deadLetters: unknown[] }).deadLetters).toMatchObject([{ seq: 3 }, { seq: 7 }]);
    // The list shows neither a record nor the message of the sink, which quotes the record.
    expect(listed.stdout + listed.stderr + inJson.stdout).not.toContain('salaries');
    const shown = await waybill('dead-letters', 'show', '7');
    expect(JSON.parse(shown.stdout)).toMatchObject({ logId: 7, payloadName: 'salaries.xlsx' });
    expect(shown.stderr).toContain('cannot parse "salaries.xlsx" of 7');
    const { deadLetters } = await json<{ deadLetters: { record: string }[] }>('dead-letters', 'show', '--all');
    expect(deadLetters.map(({ record }) => (JSON.parse(record) as { logId: number }).logId)).toEqual([3, 7]);
  });

  test('retry sends them; a delivered one is removed, and operations lists the retry', async () => {
    await leave([3, 7]);
    expect((await waybill('dead-letters', 'retry', '--all')).code, 'not a terminal').toBe(2);
    expect(lines()).toEqual([]);
    const { code, stdout, stderr } = await waybill('dead-letters', 'retry', '--all', '--yes', '--actor', 'j.doe', '--reason', 'fixed');
    expect([code, stdout], stderr).toEqual([0, '2 records delivered\n']);
    expect(numbers()).toEqual([3, 7]);
    expect(await json('dead-letters', 'list')).toEqual({ deadLetters: [] });
    expect(await operations()).toMatchObject(
      [3, 7].map((seq) => ({
        actor: 'j.doe',
        operation: 'dead-letters retry',
        reason: 'fixed',
        sink: 'siem',
        detail: { seq, delivered: true },
      })),
    );
    // Once: the next open of the file truncates nothing and repeats nothing.
    expect((await waybill('sinks', 'test', '--sink', 'siem', '--yes')).code).toBe(0);
    expect(numbers().slice(0, 2)).toEqual([3, 7]);
    expect(lines()).toHaveLength(3);
  });

  test('discard deletes the copy and keeps the rest', async () => {
    await leave([3, 7]);
    expect(await waybill('dead-letters', 'discard', '3', '--yes')).toMatchObject({ code: 0, stdout: 'done\n' });
    const { deadLetters } = await json<{ deadLetters: unknown[] }>('dead-letters', 'list');
    expect(deadLetters).toMatchObject([
      { seq: 3, state: 'discarded', code: 'bad_document' },
      { seq: 7, state: 'stored' },
    ]);
    const shown = await waybill('dead-letters', 'show', '3');
    expect([shown.stdout, shown.stderr.includes('discarded')]).toEqual(['', true]);
    expect((await waybill('dead-letters', 'retry', '3', '--yes')).code).toBe(2);
    expect(await operations()).toMatchObject([{ operation: 'dead-letters discard', sink: 'siem', detail: { count: 1, seqs: [3] } }]);
    expect((await waybill('status', '--json')).stdout).toMatch(/"deadLetters": 1/);
  });

  test.each([
    [['retry', '4', '--yes'], /cannot find the dead letter "4"/],
    [['retry', '--yes'], /no entry given/],
    [['show', '3', '--all'], /cannot combine --all with entries/],
    [['list', '--sink', 'other'], /cannot find the sink "other"/],
    [['repair'], /expected one of list, show, retry, discard/],
  ])('%j ends with 2', async (args, words) => {
    await leave([3]);
    const { code, stderr } = await waybill('dead-letters', ...args);
    expect([code, stderr]).toEqual([2, expect.stringMatching(words)]);
  });
});

describe('replay', () => {
  test('sends a range again, by positions and by times', async () => {
    await leave([7]);
    const output = await waybill('replay', '--sink', 'siem', '--from', '5', '--to', '8', '--yes');
    expect([output.code, output.stdout], output.stderr).toEqual([0, 'replay to siem finished: 3 records sent\n']);
    expect(numbers()).toEqual([5, 6, 8]);
    const done = await json('replay', '--sink', 'siem', '--from', '2026-11-20T00:00:10Z', '--to', '2026-11-20T00:00:12Z', '--yes');
    expect(done).toMatchObject({ state: 'done', sent: 2, refused: 0 });
    expect(numbers()).toEqual([5, 6, 8, 10, 11]);
    expect(await operations()).toMatchObject([
      { operation: 'replay', sink: 'siem', detail: { first: 5, last: 8 } },
      { operation: 'replay', sink: 'siem', detail: { from: '2026-11-20T00:00:10Z', to: '2026-11-20T00:00:12Z' } },
    ]);
    const nothing = await waybill('replay', '--sink', 'siem', '--from', '2020', '--to', '2021-01-01', '--yes');
    expect(nothing.code).toBe(2);
    for (const [from, to] of [
      ['10', '5'],
      ['2026-11-20T00:00:12Z', '2026-11-20T00:00:10Z'],
    ] as const)
      expect(await waybill('replay', '--sink', 'siem', '--from', from, '--to', to, '--yes')).toEqual({
        ...{ code: 2, stdout: '', stderr: `cannot replay: --from ${from} is after --to ${to}` },
      });
  });
});

describe('sinks', () => {
  test('list', async () => {
    await leave([7]);
    const { sinks } = await json<{ sinks: unknown[] }>('sinks', 'list');
    expect(sinks).toEqual([
      {
        ...{ id: 'siem', type: 'file', state: 'stopped', configured: true, destination: join(directory, 'siem.ndjson'), since: null },
        ...{ acknowledged: 20, lagEntries: 0, lagRecords: 0, deadLetters: 1, adopt: false, reconcile: null },
      },
    ]);
    expect((await waybill('sinks', 'list')).stdout).toMatch(/siem +file +active +yes +the start +20 +0 +1 /);
  });

  test('retire requires an unconfigured sink, which then no longer blocks pruning', async () => {
    await leave([], async (journal) => {
      journal.sinkPositions.register('old', 'stdout', 'stdout', journal.positionFor('now'), undefined);
      await append(journal, 5);
    });
    expect((await waybill('sinks', 'retire', '--sink', 'siem', '--yes')).stderr).toContain('it is configured');
    const output = await waybill('sinks', 'retire', '--sink', 'old', '--yes', '--reason', 'replaced');
    expect([output.code, output.stdout]).toEqual([0, 'done\n']);
    expect(output.stderr).toContain('5 records after that will not be sent');
    expect((await json<{ sinks: unknown[] }>('sinks', 'list')).sinks[0]).toMatchObject({ id: 'old', state: 'retired' });
    expect(await operations()).toMatchObject([
      { operation: 'sinks retire', sink: 'old', reason: 'replaced', detail: { acknowledged: 20 } },
    ]);
    expect((await waybill('sinks', 'retire', '--sink', 'old', '--yes')).stderr).toContain('retired already');
  });

  test('an impossible operation is refused before the confirmation', async () => {
    await leave([]);
    expect(await waybill('sinks', 'reconcile', '--sink', 'siem', '--from', '2026-11-20', '--yes')).toEqual({
      ...{ code: 2, stdout: '', stderr: 'cannot reconcile the sink "siem": a sink of type file cannot look up which records it has' },
    });
    writeFileSync(join(directory, 'waybill.yaml'), configuration().replace(/- \{ id: siem.*/, '- { id: siem, type: stdout }'));
    expect(await waybill('sinks', 'adopt', '--sink', 'siem', '--yes')).toEqual({
      ...{ code: 2, stdout: '', stderr: 'cannot adopt the sink "siem": a sink of type file stores no position; adopt does not apply' },
    });
  });

  test('test sends recognizable test events in the format of the sink', async () => {
    writeFileSync(join(directory, 'waybill.yaml'), configuration().replace('raw', 'ecs'));
    await leave([]);
    const output = await waybill(
      'sinks',
      'test',
      '--sink',
      'siem',
      '--count',
      '2',
      '--as',
      'Decrypt:AccessDenied:TimeEmbargoFailed',
      '--yes',
    );
    expect([output.code, output.stdout], output.stderr).toEqual([0, '2 events delivered\n']);
    const events = lines().map(
      (line) => JSON.parse(line) as { tags: string[]; source: { ip: string }; dpas: { uid: string; result_reason: string } },
    );
    expect(events).toHaveLength(2);
    for (const event of events) {
      expect(event.tags).toContain('waybill_test');
      expect(event.source.ip).toMatch(/^192\.0\.2\./);
      expect(event.dpas.result_reason).toBe('TimeEmbargoFailed');
    }
    expect(new Set(events.map(({ dpas }) => dpas.uid)).size).toBe(2);
    const { sinks } = await json<{ sinks: { acknowledged: number }[] }>('sinks', 'list');
    expect(sinks[0]?.acknowledged).toBe(20);
    expect((await waybill('sinks', 'test', '--sink', 'siem', '--as', 'Nothing', '--yes')).code).toBe(2);
  });

  test('reconcile requires a sink that can look up records', async () => {
    await leave([]);
    const { code, stderr } = await waybill('sinks', 'reconcile', '--sink', 'siem', '--from', '2026-11-20', '--yes');
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot look up which records it has')]);
  });

  test('adopt after a lost state continues the file; without it the sink stays blocked', async () => {
    await leave([7]);
    await waybill('dead-letters', 'retry', '--all', '--yes');
    // Half a line, as after a kill.
    writeFileSync(join(directory, 'siem.ndjson'), '{"logId":', { flag: 'a' });
    rmSync(join(directory, 'state'), { recursive: true });
    await leave([3]);
    const blocked = await waybill('dead-letters', 'retry', '--all', '--yes');
    expect([blocked.code, blocked.stderr]).toEqual([1, expect.stringMatching(/another state.*sinks adopt/s)]);
    const output = await waybill('sinks', 'adopt', '--sink', 'siem', '--yes', '--reason', 'volume lost');
    expect([output.code, output.stdout], output.stderr).toEqual([0, 'done\n']);
    expect(output.stderr).toContain('0 records after entry 20, and records still to be collected, may be delivered twice');
    expect((await waybill('sinks', 'list')).stdout).toContain('adoption pending');
    expect(await waybill('dead-letters', 'retry', '--all', '--yes')).toMatchObject({ code: 0 });
    expect(lines().map((line, i) => (i === 1 ? line : (JSON.parse(line) as { logId: number }).logId))).toEqual([7, '{"logId":', 3]);
    expect((await json<{ sinks: unknown[] }>('sinks', 'list')).sinks[0]).toMatchObject({ adopt: false });
    // From now on the file belongs to this state.
    expect(await waybill('replay', '--sink', 'siem', '--from', '1', '--to', '2', '--yes')).toMatchObject({ code: 0 });
    expect(lines()).toHaveLength(5);
  });

  test('adopt for kafka; and a dead letter delivered before a kill is not sent again', async () => {
    await using broker = await new KafkaModel().create('audit').listen();
    const sink = `  - { id: siem, type: kafka, brokers: ['127.0.0.1:${broker.port}'], topic: audit, format: raw }`;
    writeFileSync(join(directory, 'waybill.yaml'), configuration().replace(/^ {2}- \{ id: siem.*$/m, sink));
    const taken = (): number[] =>
      broker.committed('audit').flatMap((one) => one.map(({ value }) => (JSON.parse(value) as { logId: number }).logId));
    await leave([7, 8], undefined, ['kafka', 'audit']);
    // The power fails between the broker's commit and ours.
    const state = join(directory, 'state');
    cpSync(state, join(directory, 'before'), { recursive: true });
    expect(await waybill('dead-letters', 'retry', '8', '--yes')).toMatchObject({ code: 0 });
    rmSync(state, { recursive: true });
    renameSync(join(directory, 'before'), state);
    expect(await waybill('dead-letters', 'retry', '--all', '--yes')).toMatchObject({ code: 0, stdout: '2 records delivered\n' });
    expect(taken()).toEqual([8, 7]);
    expect(await operations()).toMatchObject([{ actor: null, detail: { seq: 8, found: true } }, { detail: { seq: 7, delivered: true } }]);

    rmSync(state, { recursive: true });
    await leave([3], undefined, ['kafka', 'audit']);
    const blocked = await waybill('dead-letters', 'retry', '--all', '--yes');
    expect([blocked.code, blocked.stderr]).toEqual([1, expect.stringMatching(/belongs to another state.*sinks adopt/s)]);
    expect(await waybill('sinks', 'adopt', '--sink', 'siem', '--yes', '--reason', 'volume lost')).toMatchObject({ code: 0 });
    expect(await waybill('dead-letters', 'retry', '--all', '--yes')).toMatchObject({ code: 0 });
    expect((await json<{ sinks: unknown[] }>('sinks', 'list')).sinks[0]).toMatchObject({ adopt: false });
    expect(await waybill('replay', '--sink', 'siem', '--from', '1', '--to', '2', '--yes')).toMatchObject({ code: 0 });
    expect(taken()).toEqual([8, 7, 3, 1, 2]);
    expect((await waybill('sinks', 'reconcile', '--sink', 'siem', '--from', '2026-11-20', '--yes')).stderr).toContain('cannot look up');
  });
});
