/**
 * A state that another process overwrote, truncated or emptied: every open and every running
 * journal reports it with one of our codes and a helpful message, and never with an error of
 * SQLite.
 */
import { closeSync, fstatSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { operationsOf } from '../../../src/journal/queries/operations.ts';
import { sourcesOf } from '../../../src/journal/queries/stored.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import { openReadOnly } from '../../../src/journal/state.ts';
import { randomOf } from '../../../src/reference/random.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { sized } from '../../support/long-run.ts';
import { base, collected, day, second } from '../../support/records.ts';
import { gap, lastAge, onlyInFile, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';

const seed = process.env['WAYBILL_SEED'] ?? 'damage';
const position = { seq: 0, chain: new Uint8Array(32) };

beforeEach((context) => onlyInFile(context, 'each take-over makes the file anew, so it finds no damage'));

/** A stopped state of some hundred KB, everything in its one file. */
async function stopped(): Promise<string> {
  const { journal, directory, close } = await opened();
  journal.db.pragma('synchronous = OFF');
  journal.sinkPositions.register('siem', 'file', 'x', position, undefined);
  for (let i = 0; i < 40; i += 1) {
    const records = Array.from({ length: 30 }, (_, k) =>
      collected(i * 30 + k, base + (i * 30 + k) * second, { name: `${i * k}`.repeat(40) }),
    );
    await journal.append(pageOf(records));
  }
  for (let i = 0; i < 100; i += 1) await journal.close(source, span(i * 10, i * 10 + 10), i % 20 === 7 ? gap() : proven(10), lastAge);
  await journal.operate({ at: base, actor: 'root', operation: 'replay', detail: {} });
  await journal.setProfile(
    source,
    JSON.stringify({ delays: { since: base, to: base + 10 * second, recent: [4, 3], before: [], longest: 4 } }),
  );
  await close();
  return directory;
}

function read(directory: string): void {
  const db = openReadOnly(directory);
  const live = {
    source: () => undefined,
    sink: () => undefined,
    closeDelaySeconds: () => 60,
    paused: undefined,
    maxSize: 1,
    configured: [source],
  };
  try {
    snapshotOf(db, '0.1.0', base + day, live);
    ledgerReport(db, { now: base + day, source: undefined, from: undefined, to: undefined });
    sourcesOf(db);
    operationsOf(db, 0, base + day);
  } finally {
    db.close();
  }
}

/** Opens it, reads every entry, appends, and examines all of it. */
async function run(directory: string): Promise<void> {
  const { journal, close } = await opened({ directory });
  try {
    journal.db.pragma('synchronous = OFF');
    const { seq } = journal.head();
    for (let at = 1; at <= seq; at += 1) await journal.chainAt(at);
    await journal.append(pageOf([collected(9_000, base + 5 * second)]));
    while (!(await journal.examine(day)));
  } finally {
    await close();
  }
}

async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    await act();
    return undefined;
  } catch (thrown) {
    return thrown;
  }
}

/** Replaces `length` bytes from `from` on with noise, or zeros. */
function overwritten(whole: Buffer, from: number, length: number, noise: () => number): Buffer {
  const bytes = Buffer.from(whole);
  for (let at = from; at < Math.min(bytes.length, from + length); at += 1) bytes[at] = noise();
  return bytes;
}

function stateOf(bytes: Buffer): string {
  const directory = temporary();
  writeFileSync(join(directory, 'waybill.db'), bytes);
  return directory;
}

// promise: A state that was overwritten anywhere leads to errors with a code, in reports and in the daemon.
test('overwritten anywhere: reports and daemons see only our errors, and most damage is found', { timeout: 300_000 }, async () => {
  const directory = await stopped();
  const whole = readFileSync(join(directory, 'waybill.db'));
  expect(whole.length).toBeGreaterThan(150_000);
  read(stateOf(whole));
  await run(stateOf(whole));
  const random = randomOf(`${seed}/anywhere`);
  const found = { read: 0, run: 0 };
  const rounds = sized(8, 90);
  for (let round = 0; round < rounds; round += 1) {
    const length = [30_000, 4_096, 8][round % 3] ?? 0;
    const from = Math.floor(random() * whole.length);
    const state = stateOf(overwritten(whole, from, length, round % 2 === 0 ? () => 0 : () => Math.floor(random() * 256)));
    for (const act of [read, run]) {
      const thrown = await thrownBy(() => act(state));
      if (thrown === undefined) continue;
      found[act === read ? 'read' : 'run'] += 1;
      const where = `${act.name}, ${length} bytes at ${from}: ${thrown instanceof Error ? thrown.stack : ''}`;
      expect(thrown, where).toBeInstanceOf(WaybillError);
      expect(['state_corrupt', 'state_unusable', 'state_too_new', 'state_missing', 'internal_error'], where).toContain(
        (thrown as WaybillError).code,
      );
    }
  }
  expect(found.read).toBeGreaterThan(rounds / 2);
  expect(found.run).toBeGreaterThan(rounds / 2);
});

test('30 KB of noise: the error names the directory and what to do', async () => {
  const whole = readFileSync(join(await stopped(), 'waybill.db'));
  const random = randomOf(`${seed}/noise`);
  const directory = stateOf(overwritten(whole, 20_000, 30_000, () => Math.floor(random() * 256)));
  const expected = {
    code: 'state_corrupt',
    message: expect.stringMatching(
      `^cannot read the state in "${directory}": it is damaged; keep the directory, .* start a new state`,
    ) as string,
  };
  await expect(run(directory)).rejects.toMatchObject(expected);
  expect(await thrownBy(() => read(directory))).toMatchObject(expected);
});

test('damage at run time is found by the next read of it', async () => {
  const directory = await stopped();
  const { journal } = await opened({ directory });
  const file = openSync(join(directory, 'waybill.db'), 'r+');
  writeSync(file, Buffer.alloc(fstatSync(file).size - 8_192, 0xa5), 0, undefined, 8_192);
  closeSync(file);
  const { seq } = journal.head();
  const thrown = await thrownBy(async () => {
    for (let at = 1; at <= seq; at += 1) await journal.chainAt(at);
  });
  expect(thrown).toMatchObject({ code: 'state_corrupt' });
});

describe('a file without a state', () => {
  const empty = (): string => stateOf(Buffer.alloc(0));
  const withoutTables = (): string => {
    const directory = temporary();
    const db = new Database(join(directory, 'waybill.db'));
    db.exec('CREATE TABLE a (b); DROP TABLE a; VACUUM');
    db.close();
    expect(statSync(join(directory, 'waybill.db')).size).toBeGreaterThan(0);
    return directory;
  };

  test.each([
    ['of 0 bytes', empty],
    ['of SQLite without a table', withoutTables],
  ])('%s: a new state starts in it and is logged; it is not the expected state, and no report reads it', async (_, make) => {
    const directory = make();
    const before = readFileSync(join(directory, 'waybill.db'));
    await expect(opened({ directory, expectState: true })).rejects.toMatchObject({ code: 'state_missing' });
    expect(() => openReadOnly(directory)).toThrow(/cannot find a state in/);
    expect(readFileSync(join(directory, 'waybill.db'))).toEqual(before);
    const { journal, close } = await opened({ directory });
    expect(journal.fresh).toBe(true);
    await close();
    expect((await opened({ directory, expectState: true })).journal.fresh).toBe(false);
  });
});
