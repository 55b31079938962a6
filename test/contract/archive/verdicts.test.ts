/**
 * The table of verdicts: archives and proofs that were changed without the key, or signed anew by the holder of the key, each with the verdict of both
 * verifiers, `waybill archive verify` and content/archive/verify.py. The expected ones follow from docs/archive-format.md.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkpointPath, cosignaturePath, formatCheckpoint } from '../../../src/archive/checkpoint.ts';
import { formatEntry } from '../../../src/archive/entry.ts';
import type { EntryLine } from '../../../src/archive/line.ts';
import { leafHash } from '../../../src/archive/merkle.ts';
import { formatProof } from '../../../src/archive/proof-file.ts';
import { Prover } from '../../../src/archive/prove.ts';
import { cosignatureLine, formatVerifier, openNote, parseVerifier, signerOf, signNote } from '../../../src/archive/signed-note.ts';
import type { Signer } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyOptions, VerifyReport } from '../../../src/archive/verify/verify.ts';
import { command } from '../../../src/cli/commands/archive/index.ts';
import {
  keyFrom,
  MemoryStore,
  minute,
  openWriter,
  provenLine,
  recordLine,
  segmentPath,
  signedAnew,
  start,
  through,
} from '../../support/archive.ts';
import { outputOf } from '../../support/command-io.ts';
import type { Output } from '../../support/command-io.ts';
import { hasPython, resultOf, secondVerifier, secondVerify } from '../../support/second-verifier.ts';
import { Authority } from '../../support/time-stamp-authority.ts';

const day = 86_400_000_000;
const originOf = ({ files }: MemoryStore): string => files.get('checkpoints/0000000001')?.toString().split('\n')[0] ?? '';
const segmentsOf = ({ files }: MemoryStore): string[] => [...files.keys()].filter((path) => path.startsWith('segments/')).sort();

type Given = Omit<VerifyOptions, 'former'> & { readonly keys?: readonly number[]; readonly former?: MemoryStore | undefined };

/** The verdict of both verifiers, which must be equal, and what is not proven. */
async function judged(store: MemoryStore, { keys = [1], since, ...options }: Given = {}): Promise<VerifyReport> {
  const origins = [store, options.former ?? []].flat().map(originOf);
  const texts = origins.flatMap((origin) => keys.map((seed) => formatVerifier(signerOf(origin, keyFrom(seed)))));
  const report = await verifyArchive(
    store,
    texts.map((text) => parseVerifier(text) ?? expect.fail(text)),
    { ...options, since },
  );
  const { former, ...others } = options;
  const theirOptions = { ...others, since: [since ?? []].flat(), formerFiles: former?.files, key: texts.join('\n') };
  const [theirs = []] = await secondVerifier(store.files, theirOptions);
  expect(resultOf(theirs), JSON.stringify([theirs, report.findings])).toBe(report.result);
  return report;
}

/** Twelve segments, one a day, of one window with five records each. */
async function daily(days = 12, more: (i: number) => readonly EntryLine[] = () => []): Promise<MemoryStore> {
  const store = new MemoryStore();
  const writer = await openWriter(store, 'daily');
  for (let i = 0, seq = 0; i < days; i += 1) {
    const from = start + i * day;
    const records = Array.from({ length: 5 }, (_, k) => recordLine((seq += 1), from + k * 1_000_000));
    const others = more(i).map((line) => ({ ...line, seq: (seq += 1) }));
    const proof = provenLine((seq += 1), from, from + minute, records);
    await writer.append([...records, ...others, proof], { ...through(seq), at: from + 5 * minute });
  }
  return store;
}

const without = (store: MemoryStore, ...removed: readonly number[]): MemoryStore => {
  const paths = removed.map((i) => segmentsOf(store).at(i));
  return new MemoryStore([...store.files].filter(([path]) => !paths.includes(path)));
};
/** The lines of segment `i` of `daily`; each has seven and its position. */
const linesOf = (i: number, perSegment = 7): { first: number; last: number } => ({ first: i * perSegment + 1, last: (i + 1) * perSegment });
const operation = (name: string, store: string, detail: object, actor: string | null = 'm.weber'): EntryLine => ({
  kind: 'operation',
  seq: 0,
  at: start + 20 * day,
  actor,
  operation: name,
  detail: { archive: store, sink: 'archive', ...detail },
});

describe.skipIf(!hasPython)('missing segments', () => {
  const due = { removedBefore: start + 100 * day };
  const origin = (async () => originOf(await daily(1)))();

  it.each<[string, readonly number[], Given, string]>([
    ['the oldest', [0, 1], due, 'intact'],
    ['one in the middle, although older ones are there', [7], due, 'unproven'],
    ['two after the oldest, within three days', [1, 2], due, 'intact'],
    ['three after the oldest', [1, 2, 3], due, 'unproven'],
    ['every second one, over more days', [1, 3, 5, 7], due, 'unproven'],
    ['the oldest and a later one, further away', [0, 1, 8], due, 'unproven'],
    ['the newest', [-1], due, 'altered'],
    ['one that is not old enough', [0], { removedBefore: start + day }, 'altered'],
    ['the oldest, without --retention', [0], {}, 'altered'],
  ])('%s', async (_name, removed, options, result) => {
    const report = await judged(without(await daily(), ...removed), options);
    expect(report.result).toBe(result);
    const [first] = report.findings.filter(({ severity }) => severity !== 'note');
    if (result !== 'intact') expect(first?.object).toMatch(/^segments\//);
  });

  it('leave a proven gap in the verdict: the segment whose ledger line admits it', async () => {
    const store = signedAnew(await daily(), (text) =>
      text.includes('2026-07-06T00:00:00') && text.includes('"kind":"ledger"') ? text.replace('"proven"', '"gap"') : text,
    );
    expect((await judged(store, due)).result).toBe('unproven');
    expect((await judged(without(store, 5), due)).result).toBe('unproven');
  });

  it('are counted apart from what is proven', async () => {
    const report = await judged(without(await daily(), 0, 1), due);
    expect(report).toMatchObject({ missing: 14, sources: [{ windows: 9, proven: 9, notChecked: 1 }] });
  });

  it('of a quiet hour hide which entries the archive has: a window after them that lacks records is unproven', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'quiet');
    const position = (seq: number, hour: number): ReturnType<typeof through> => ({
      ...through(seq),
      at: start + hour * 60 * minute,
      completeSince: start + day,
    });
    await writer.append([recordLine(1, start)], position(1, 0));
    for (const hour of [1, 2]) await writer.append([], position(1, hour));
    const from = start + 3 * 60 * minute;
    await writer.append([provenLine(2, from, from + minute, [recordLine(9, from)])], position(2, 3));
    expect((await judged(store)).result).toBe('altered');
    expect((await judged(without(store, 1), due)).result).toBe('unproven');
  });

  const ordered = async (
    order: object,
    removed: readonly number[],
    others: readonly EntryLine[] = [],
    options: Given = {},
  ): Promise<VerifyReport> => {
    const prune = operation('archive prune', await origin, { before: '2026-07-10T00:00:00Z', reason: 'a year', ...order });
    return judged(without(await daily(12, (i) => (i === 10 ? [...others, prune] : [])), ...removed), options);
  };
  it('that an operation removed', async () => {
    const report = await ordered({ lines: [linesOf(4)] }, [4]);
    expect(report.result).toBe('intact');
    const [note] = report.findings.filter(({ object }) => object.startsWith('segments/'));
    expect(note?.message).toMatch(/^operation 66 removed it: m\.weber, .*, a year$/);
  });
  it.each<[string, object, readonly number[]]>([
    ['other lines', { lines: [linesOf(3)] }, [4]],
    ['a part of the lines', { lines: [{ first: 29, last: 34 }] }, [4]],
    ['the lines of another archive', { lines: [linesOf(4)], archive: 'waybill/other' }, [4]],
    ['ranges that are none', { lines: [linesOf(5), linesOf(4)] }, [4]],
    ['no lines', { lines: 'all' }, [4]],
  ])('are altered beside an operation on %s', async (_name, order, removed) => {
    expect((await ordered(order, removed)).result).toBe('altered');
  });

  it('that an operation removed although another held them', async () => {
    const held = operation('archive hold', await origin, { case: 'A-7', lines: [linesOf(4)], from: null, to: null });
    const released = operation('archive release', await origin, { case: 'A-7' });
    const other = operation('archive release', await origin, { case: 'B' });
    expect((await ordered({ lines: [linesOf(4)] }, [4], [held])).result).toBe('unproven');
    expect((await ordered({ lines: [linesOf(4)] }, [4], [held, other])).result).toBe('unproven');
    expect((await ordered({ lines: [linesOf(4)] }, [4], [held, released])).result).toBe('intact');
    expect((await ordered({ lines: [linesOf(4)] }, [4], [released, held])).result).toBe('unproven');
    const first = operation('archive hold', await origin, { case: 'A', lines: [linesOf(0)], from: null, to: null });
    expect((await judged(without(await daily(12, (i) => (i === 10 ? [first] : [])), 0), due)).result).toBe('unproven');
  });
});

describe.skipIf(!hasPython)('keys', () => {
  /** Two segments of the first key, one of both, and one of the second. */
  async function changedKey(): Promise<MemoryStore> {
    const store = new MemoryStore();
    for (const [i, key] of [keyFrom(1), keyFrom(2)].entries()) {
      const writer = await openWriter(store, `key ${i}`, { key, ...(i === 1 && { previousKey: keyFrom(1) }) });
      for (const seq of [1, 2]) await writer.append([recordLine(2 * i + seq, start)], through(2 * i + seq));
    }
    return store;
  }
  const cut = (store: MemoryStore, from: number): MemoryStore =>
    new MemoryStore([...store.files].filter(([path]) => path !== 'checkpoint' && !(Number(/^checkpoints\/(\d+)/.exec(path)?.[1]) >= from)));

  it.each<[string, number, readonly number[], string]>([
    ['that all signed', 5, [1, 2], 'intact'],
    ['of an archive that was cut before the change of key', 3, [1, 2], 'unproven'],
    ['of an archive that was cut before the change of key, and the former key alone', 3, [1], 'intact'],
    ['of which one never signed', 5, [1, 2, 3], 'unproven'],
    ['of another archive', 5, [4], 'unproven'],
  ])('%s', async (_name, from, keys, result) => {
    const report = await judged(cut(await changedKey(), from), { keys });
    expect(report.result).toBe(result);
    // Two checkpoints of the first key, one of both, and one of the second.
    const signed = keys.filter((seed) => seed < (from > 2 ? 3 : 2)).map((seed) => (seed === 1 ? [2, from === 5 ? 6 : 4] : [6, 8]));
    const history = report.keys.map(({ first, last }) => [first, last]);
    expect(history).toEqual(from === 5 ? signed : signed.filter(([first]) => first === 2));
    const severe = report.findings.filter(({ object, severity }) => severity === 'unproven' && object === '--key');
    expect(severe).toHaveLength(result === 'intact' ? 0 : 1);
  });

  it('of which the former one alone signed everything anew', async () => {
    const store = signedAnew(await changedKey(), (text) => text);
    expect((await judged(store, { keys: [1] })).result).toBe('intact');
    const { result, findings } = await judged(store, { keys: [1, 2] });
    expect(result).toBe('unproven');
    expect(findings.map(({ message }) => message)).toContainEqual(expect.stringMatching(/may have been cut before the change/));
  });
});

describe.skipIf(!hasPython)('a former archive, which the first line names', () => {
  const newest = ({ files }: MemoryStore): Buffer => files.get('checkpoint') ?? Buffer.alloc(0);
  async function after(former: Buffer | string | undefined): Promise<MemoryStore> {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'after');
    await writer.append([], { ...through(0), ...(former !== undefined && { former: former.toString() }) });
    const record = recordLine(1, start);
    await writer.append([record, provenLine(2, start, start + minute, [record])], through(2));
    return store;
  }
  const cut = ({ files }: MemoryStore, from: number): MemoryStore => {
    const kept = [...files].filter(([path]) => path !== 'checkpoint' && !(Number(/^checkpoints\/(\d+)/.exec(path)?.[1]) >= from));
    return new MemoryStore(kept);
  };

  it.each<[string, (former: MemoryStore) => Buffer | string | undefined, (former: MemoryStore) => MemoryStore | undefined, string, RegExp]>(
    [
      ['is whole', newest, (former) => former, 'intact', /^$/],
      ['was not given', newest, () => undefined, 'intact', /^$/],
      ['has more lines', ({ files }) => files.get('checkpoints/0000000003'), (former) => former, 'intact', /^$/],
      ['was cut', newest, (former) => cut(former, 4), 'altered', /^the first line: /],
      ['lacks a segment', newest, (former) => without(former, 1), 'altered', /^segments\/.*: it is missing/],
      ['is not named', () => undefined, (former) => former, 'unproven', /^the first line of the archive names no former archive/],
      ['is named by a text that is no checkpoint', () => 'none', (former) => former, 'altered', /^the first line: /],
      ['is named by an empty text', () => '', (former) => former, 'altered', /^the first line: /],
      ['is named by a lone surrogate', () => '\ud800', (former) => former, 'altered', /^the first line: /],
    ],
  )('%s', async (_name, note, given, result, message) => {
    const former = await daily(4);
    const report = await judged(await after(note(former)), { former: given(former) });
    expect(report.result).toBe(result);
    const [first] = report.findings.filter(({ severity }) => severity !== 'note');
    expect(first?.message ?? '').toMatch(message);
    if (first) expect(first.object).toBe('--former');
  });

  it('is another archive of the same key', async () => {
    const other = await daily(4, () => [operation('replay', '', {})]);
    expect(originOf(other)).toBe(originOf(await daily(4)));
    const report = await judged(await after(newest(await daily(4))), { former: other });
    expect([report.result, report.findings.find(({ severity }) => severity === 'altered')?.object]).toEqual(['altered', '--former']);
  });

  it('is told of when it was not given', async () => {
    const { findings } = await judged(await after(newest(await daily(4))));
    expect(findings.filter(({ object }) => object === '--former').map(({ severity }) => severity)).toEqual(['note']);
  });
});

describe.skipIf(!hasPython)('checkpoints from elsewhere', () => {
  it('must all be in the archive, and the largest tells what is confirmed', async () => {
    const { files } = await daily(4);
    const note = (number: number): Buffer => files.get(`checkpoints/000000000${number}`) ?? Buffer.alloc(0);
    expect(await judged(new MemoryStore(files), { since: [note(3), note(2)] })).toMatchObject({ result: 'intact', confirmed: 21 });
    const other = (await daily(3, () => [operation('replay', '', {})])).files.get('checkpoint') ?? Buffer.alloc(0);
    const report = await judged(new MemoryStore(files), { since: [note(3), other] });
    expect([report.result, report.confirmed]).toEqual(['altered', 21]);
  });
});

describe.skipIf(!hasPython)('an archive that the holder of the key signed anew', () => {
  const changed = async (change: (text: string) => string | readonly string[]): Promise<VerifyReport> =>
    judged(signedAnew(await daily(4), change));
  const once = (pattern: RegExp, replacement: string): ((text: string) => string) => {
    let isDone = false;
    return (text) => {
      if (isDone || !pattern.test(text)) return text;
      isDone = true;
      return text.replace(pattern, replacement);
    };
  };
  const lateBesideNoTime = (text: string): string =>
    text.replace(/(?<="seq":1,.*"received":")2026/, '2099').replace(/(?<="seq":2,.*"received":")2026-07/, '9999-99');
  const window = 'production 2026-07-02T00:00:00.000Z/2026-07-02T00:01:00.000Z';
  const inSecond = '("kind":"ledger".*"from":"2026-07-02T00:00:00.*?)';

  it.each<[string, (text: string) => string | readonly string[], string, string | RegExp]>([
    ['without a change', (text) => text, 'intact', ''],
    ['with another logId and the former uid', once(/"logId":3\b/, '"logId":4000'), 'altered', /^segments\/0{16}-/],
    ['with another time and the former uid', once(/T00:00:03\.000"/, 'T00:00:03.500"'), 'altered', /^segments\/0{16}-/],
    ['with another result and the former uid', once(/"logId":3,/, '"logId":3,"result":"AccessGranted",'), 'altered', /^segments\/0{16}-/],
    ['with another user', once(/"userName":"/, '"userName":"other '), 'intact', ''],
    [
      'with the uid of another record',
      once(/"seq":3,"uid":"[\w-]{22}"/, `"seq":3,"uid":"${'A'.repeat(22)}"`),
      'altered',
      /^segments\/0{16}-/,
    ],
    ['with a key twice in a record', once(/"logId":3,/, '"logId":9,"logId":3,'), 'intact', ''],
    ['whose window counted fewer records than it proves', once(new RegExp(`${inSecond}"total":5`), '$1"total":4'), 'altered', window],
    ['whose window counted more records', once(new RegExp(`${inSecond}"total":5`), '$1"total":9'), 'intact', ''],
    [
      'whose window was asked for another day',
      once(new RegExp(`${inSecond}"startTime":"[^"]*"`), '$1"startTime":"2026-07-03T00:00:00"'),
      'altered',
      window,
    ],
    [
      'whose query ends before its window',
      once(new RegExp(`${inSecond}"endTime":"[^"]*"`), '$1"endTime":"2026-07-02T00:00:30"'),
      'altered',
      window,
    ],
    ['whose window states no total', once(new RegExp(`${inSecond}"total":5`), '$1"total":null'), 'intact', ''],
    ['whose window has another digest', once(new RegExp(`${inSecond}"digest":"...`), '$1"digest":"000'), 'altered', window],
    ['whose window says one record fewer', once(new RegExp(`${inSecond}"records":5`), '$1"records":4'), 'unproven', window],
    ['without a record', (text) => (text.includes('"seq":8,') ? [] : text), 'altered', window],
    ['with a record twice', (text) => (text.includes('"seq":8,') ? [text, text] : text), 'altered', /^segments\//],
    ['without a window', (text) => (/"kind":"ledger"/.test(text) && text.includes('"from":"2026-07-02') ? [] : text), 'intact', ''],
    [
      'without a position',
      (text) => (text.includes('"seq":6,') && text.includes('"kind":"position"') ? [] : text),
      'altered',
      /^segments\/0{16}-/,
    ],
    ['with a position of 1999', once(/("kind":"position".*"seq":12,.*"at":")2026-07-02/, '$11999-07-02'), 'unproven', /^segments\/0{15}7-/],
    [
      'with a position a minute before the one before',
      once(/("kind":"position".*"seq":12,.*"at":")2026-07-02T00:05/, '$12026-07-01T00:04'),
      'intact',
      '',
    ],
    ['with a record received in 2099', once(/"received":"2026/, '"received":"2099'), 'unproven', /^segments\/0{16}-/],
    ['with a record received in 2099 beside one received at no time', lateBesideNoTime, 'unproven', /^segments\/0{16}-/],
    // At the edges of the calendar, in UTC outside of it.
    ['with a window of 10000', once(/("kind":"ledger".*"from":")[^"]*/, '$19999-12-31T23:59:59-01:00'), 'altered', /^segments\/0{16}-/],
    ['with a window of year 0', once(/("kind":"ledger".*"from":")[^"]*/, '$10001-01-01T00:00:00+10:00'), 'altered', /^segments\/0{16}-/],
    ['with a query of 10000', once(/("startTime":")[^"]*/, '$19999-12-31T23:59:59-01:00'), 'intact', ''],
    ['with a filter', once(/"filtered":false/, '"filtered":true'), 'intact', ''],
    ['with an empty line', (text) => (text.includes('"seq":8,') ? [text, ''] : text), 'altered', /^segments\//],
    ['with other line breaks', (text) => `${text}\r`, 'altered', /^segments\//],
  ])('%s', async (_name, change, result, object) => {
    const report = await changed(change);
    expect([report.result, JSON.stringify(report.findings)]).toEqual([result, JSON.stringify(report.findings)]);
    const [first] = report.findings.filter(({ severity }) => severity !== 'note');
    if (result === 'intact') expect(first).toBeUndefined();
    else expect(first?.object).toMatch(object);
  });

  it.each<[string, (text: string) => string | readonly string[], RegExp]>([
    [
      'records in no window',
      (text) => (/"kind":"ledger"/.test(text) && text.includes('"from":"2026-07-02') ? [] : text),
      /^production: no window covers the times of 5 records$/,
    ],
    ['a filter', once(/"filtered":false/, '"filtered":true'), /^segments\/.*: since then a filter/],
    [
      'a record that was archived twice',
      (text) => (text.includes('"seq":8,') ? [text, text.replace('"seq":8,', '"seq":9,')] : text),
      /^ledger: 1 records in windows are copies of earlier records, and count once$/,
    ],
    ['a repeated key', once(/"logId":3,/, '"logId":9,"logId":3,'), /^segments\/.*: line 3: the record has a key twice/],
    ['a missing total', once(/"total":5/, '"total":null'), /^ledger: 1 lines prove a window without/],
    ['a record without a logId', once(/"logId":3,/, ''), /^segments\/: 1 records have no logId/],
    [
      'a clock that was set back',
      once(/("kind":"position".*"seq":12,.*"at":")2026-07-02T00:05/, '$12026-07-01T00:04'),
      /^segments\/0{15}7-.*: it was archived on 2026-07-01/,
    ],
  ])('tells of %s', async (_name, change, note) => {
    const { findings } = await changed(change);
    expect(findings.map(({ object, message }) => `${object}: ${message}`)).toContainEqual(expect.stringMatching(note));
  });
});

/**
 * Eight segments, one a day. Both keys sign the fifth checkpoint, and the second key the later ones. Every second checkpoint has a time stamp, which the next
 * segment names.
 * @returns the archive after each day
 */
async function twoKeys({
  dropped = 0,
  changeAt = 4,
  tokenOf,
}: {
  /** The sequence number of a record that was left out before its window was counted. */
  readonly dropped?: number;
  readonly changeAt?: number;
  readonly tokenOf: (day: number, checkpoint: Buffer) => Buffer | undefined;
}): Promise<readonly MemoryStore[]> {
  const [store, states] = [new MemoryStore(), [] as MemoryStore[]];
  let writer = await openWriter(store, 'two keys');
  let timestamp: { checkpoint: number; sha256: string } | undefined;
  for (let i = 0; i < 8; i += 1) {
    if (i === changeAt) writer = await openWriter(store, 'second key', { key: keyFrom(2), previousKey: keyFrom(1) });
    const from = start + i * day;
    const all = Array.from({ length: 5 }, (_, k) => recordLine(i * 6 + k + 1, from + k * 1_000_000));
    const records = all.filter(({ seq }) => seq !== dropped);
    const seq = i * 6 + 6;
    const position = { ...through(seq), at: from + 5 * minute, ...(timestamp && { timestamp }) };
    await writer.append([...records, provenLine(seq, from, from + minute, records)], position);
    const token = tokenOf(i, noteOf(store, i + 1));
    if (token) {
      store.files.set(tokenPath(i + 1), token);
      timestamp = { checkpoint: i + 1, sha256: createHash('sha256').update(token).digest('hex') };
    }
    states.push(new MemoryStore(store.files));
  }
  return states;
}

const noteOf = ({ files }: MemoryStore, number: number): Buffer => files.get(checkpointPath(number)) ?? Buffer.alloc(0);
const tokenPath = (number: number): string => `timestamps/${String(number).padStart(10, '0')}.tsr`;
const witness = signerOf('witness.example/w', keyFrom(11), 4);

/**
 * The findings and the conclusions in a report, in the order of their letters. Waybill adds a title, a table of the sources, and how long ago a time was; verify.py
 * cuts fractions of a second, escapes what is not ASCII, and has the number of lines after its verdict.
 */
function sentencesIn(report: string): string[] {
  const [verdict, sentence] = [
    /^(INTACT|INTACT for what remains|ALTERED OR MISSING|NOT PROVEN): .*/,
    /^(?:archive "|SOURCE |\S+ +\d+ +\d+ +\d+ |$)/,
  ];
  const lines = report
    .replaceAll(String.raw`\u2026`, '\u2026')
    .split('\n')
    .filter((line) => !sentence.test(line));
  const texts = lines.map((line) =>
    line
      .replace(verdict, '$1')
      .replace(/(:\d\d)\.\d+Z/g, '$1Z')
      .replace(/^(the newest line .*Z), .* ago$/, '$1'),
  );
  return texts.sort();
}

/** Both verifiers as commands, on files in a folder: their exit codes and texts. */
class Commands implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'archive-verdicts-'));

  write(name: string, bytes: Uint8Array | string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    return path;
  }

  /** Compares their sentences too. */
  async verify(args: readonly string[]): Promise<readonly [ours: number, theirs: number, text: string]> {
    const { code, stdout } = await outputOf((given, io) => command.run(given, io), ['verify', ...args]);
    const theirs = await secondVerify(...args);
    const text = `${stdout}${theirs.text}`;
    const [own, other] = [stdout, theirs.text].map(sentencesIn) as [string[], string[]];
    // verify.py ends at the first altered checkpoint or segment: the first sentence of this severity is the same.
    const compared = code === 1 ? [other.find((line) => line.startsWith('altered ')) ?? ''] : other;
    const told = code === 1 ? [own.find((line) => line.startsWith('altered ')) ?? ''] : own;
    expect(compared.length, text).toBe(told.length);
    for (const [i, line] of compared.entries()) {
      expect(told[i]?.slice(0, line.length), text).toBe(line);
      // A detail may follow, not another word.
      expect(told[i]?.slice(line.length), text).toMatch(/^$|^[,;:]? [^ ]|^[,:;] /);
    }
    return [code, theirs.code ?? -1, text];
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

describe.skipIf(!hasPython)('both commands', () => {
  let commands: Commands;
  let authority: Authority;
  let states: readonly MemoryStore[];
  let archive: MemoryStore;
  let other: MemoryStore;
  /** Files whose paths the options of a row name. */
  const given: Record<string, string> = {};
  const fileOf = (name: string): string => given[name] ?? expect.fail(name);

  beforeAll(async () => {
    commands = new Commands();
    const [validFrom, validTo] = [start / 1_000 - 30 * 86_400_000, start / 1_000 + 36_500 * 86_400_000];
    authority = new Authority('Example', { validFrom, validTo });
    const stamped = (i: number, note: Buffer): Buffer | undefined =>
      i % 2 === 1 ? authority.responseAt((start + i * day) / 1_000 + 600_000, note) : undefined;
    states = await twoKeys({ tokenOf: stamped });
    archive = states.at(-1) ?? expect.fail();
    other = await daily(8);
    const key = (seed: number, of = archive): string => `${formatVerifier(signerOf(originOf(of), keyFrom(seed)))}\n`;
    given['keys'] = commands.write('keys', key(1) + key(2));
    given['former key'] = commands.write('former-key', key(1));
    given['three keys'] = commands.write('three-keys', key(1) + key(2) + key(3));
    given['key of the attacker'] = commands.write('attacker', key(3));
    given['daily'] = commands.write('daily', key(1, other));
    given['since'] = commands.write('since', noteOf(archive, 7));
    given['authority'] = commands.write('authority', authority.root);
    given['witness'] = commands.write('witness', `${formatVerifier(witness)}\n`);
    given['stranger'] = commands.write('stranger', `${formatVerifier(signerOf('witness.example/s', keyFrom(12), 4))}\n`);
  });
  afterAll(() => {
    commands[Symbol.dispose]();
    authority[Symbol.dispose]();
  });

  const since = (): string[] => ['--since', fileOf('since')];
  const stamps = (): string[] => ['--timestamp-ca', fileOf('authority')];
  const witnessed = (): string[] => ['--witness', fileOf('witness')];
  const untouched = (): MemoryStore => new MemoryStore(archive.files);
  const state = (days: number): MemoryStore => new MemoryStore(states[days - 1]?.files);
  const lately = (): string[] => [...witnessed(), '--stamped-within', '400d'];
  /** The position of the last segment has another day; the witness cosigned it on 2026-07-08. */
  function dated(date: string): MemoryStore {
    const change = (text: string): string => text.replace(/("kind":"position".*"seq":48,.*"at":")[^T]*/, `$1${date}`);
    const store = signedAnew(other, change, [signerOf(originOf(other), keyFrom(1))]);
    const note = noteOf(store, 8).toString();
    const line = cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), witness, (start + 7 * day) / 1_000_000 + 600);
    store.files.set(cosignaturePath(8, witness), Buffer.from(note + line));
    return store;
  }
  const linesIn = (file: Buffer): string[] => gunzipSync(file).toString().trimEnd().split('\n');
  const packed = (lines: readonly string[]): Buffer => gzipSync(`${lines.join('\n')}\n`);

  /** @returns the archive with other bytes in segment `i`, under their right name or under the former one */
  function segment(i: number, change: (file: Buffer) => Buffer, isRenamed = true): MemoryStore {
    const store = untouched();
    const path = segmentsOf(store)[i] ?? '';
    const file = change(store.files.get(path) ?? Buffer.alloc(0));
    store.files.delete(path);
    store.files.set(isRenamed ? segmentPath(Number(path.slice(9, 25)), file) : path, file);
    return store;
  }
  const textOf = (i: number, change: (lines: readonly string[]) => readonly string[], isRenamed = true): MemoryStore =>
    segment(i, (file) => packed(change(linesIn(file))), isRenamed);
  function file(pattern: RegExp, change: (bytes: Buffer) => Buffer | undefined): MemoryStore {
    const store = untouched();
    const paths = [...store.files.keys()].filter((path) => pattern.test(path));
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) {
      const changed = change(store.files.get(path) ?? Buffer.alloc(0));
      if (changed) store.files.set(path, changed);
      else store.files.delete(path);
    }
    return store;
  }
  const added = (path: string, bytes: Uint8Array): MemoryStore => new MemoryStore([...archive.files, [path, Buffer.from(bytes)]]);
  const flipped = (bytes: Buffer): Buffer => Buffer.concat([bytes.subarray(0, 30), Buffer.of((bytes[30] ?? 0) ^ 1), bytes.subarray(31)]);
  /** Rewritten from the first line on, without one record, and with the ledger adjusted. */
  const forked = async (
    changeAt: number,
    tokenOf: (i: number, note: Buffer) => Buffer | undefined = (i) => archive.files.get(tokenPath(i + 1)),
  ): Promise<MemoryStore> => (await twoKeys({ dropped: 9, changeAt, tokenOf })).at(-1) ?? expect.fail();
  const signers = (...seeds: readonly number[]): readonly Signer[] => seeds.map((seed) => signerOf(originOf(archive), keyFrom(seed)));
  /** Every line signed anew; the time stamps are copied. */
  function anew(change: (text: string) => string | readonly string[], ...seeds: readonly number[]): MemoryStore {
    const store = signedAnew(archive, change, signers(...seeds));
    for (const [path, bytes] of archive.files) if (path.startsWith('timestamps/')) store.files.set(path, bytes);
    return store;
  }
  /** Checkpoint `number` with another text, signed by its key. */
  const checkpointWith = (number: number, seed: number, change: (text: string) => string): MemoryStore =>
    file(new RegExp(`^${checkpointPath(number)}$`), (note) =>
      Buffer.from(signNote(change(note.subarray(0, note.indexOf('\n\n') + 1).toString()), signers(seed))),
    );
  const signatureWith = (number: number, change: (line: string) => string): MemoryStore =>
    file(new RegExp(`^${checkpointPath(number)}$`), (note) => {
      const at = note.indexOf('\n\n') + 2;
      return Buffer.from(note.subarray(0, at).toString() + change(note.subarray(at).toString()));
    });
  /** S + L in place of S: the same signature for a verifier that does not compare S with the order of the group (RFC 8032, section 5.1.7). */
  function malleable(line: string): string {
    const [, name, text = ''] = line.trimEnd().split(' ');
    const bytes = Buffer.from(text, 'base64');
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const s = BigInt(`0x${Buffer.from(bytes.subarray(36)).reverse().toString('hex')}`) + order;
    const changed = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();
    return `\u2014 ${name} ${Buffer.concat([bytes.subarray(0, 36), changed]).toString('base64')}\n`;
  }
  /** The first and the last checkpoint, cosigned by the witness. */
  function cosigned(store: MemoryStore, by = witness): MemoryStore {
    for (const number of [1, 8]) {
      const note = noteOf(archive, number).toString();
      const line = cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), by, (start + (number - 1) * day) / 1_000_000 + 600);
      store.files.set(cosignaturePath(number, by), Buffer.from(note + line));
    }
    return store;
  }
  /** The daily archive from which operations on its fifth segment remain, and this segment not. */
  async function pruned(...names: readonly string[]): Promise<MemoryStore> {
    const origin = originOf(other);
    const orders: Record<string, EntryLine> = {
      hold: operation('archive hold', origin, { case: 'A-7', lines: [linesOf(4)], from: null, to: null }),
      release: operation('archive release', origin, { case: 'A-7' }),
      prune: operation('archive prune', origin, { before: '2026-07-10T00:00:00Z', lines: [linesOf(4)], reason: 'a year' }),
    };
    return without(await daily(8, (i) => (i === 6 ? names.map((name) => orders[name] ?? expect.fail(name)) : [])), 4);
  }

  type Row = readonly [name: string, make: () => MemoryStore | Promise<MemoryStore>, options: () => readonly string[], code: number];
  const ours = (): string[] => ['--key', fileOf('keys')];
  const theKey = (name: string, of?: () => readonly string[]) => (): string[] => ['--key', fileOf(name), ...(of?.() ?? [])];
  const rows: readonly Row[] = [
    ['an archive as it was written', untouched, ours, 0],
    ['the same, with a checkpoint from elsewhere and time stamps', untouched, () => [...ours(), ...since(), ...stamps()], 0],
    [
      'a record edited, and the segment renamed',
      () => textOf(2, ([a = '', ...rest]) => [a.replace('"userName":"', '"userName":"x'), ...rest]),
      ours,
      1,
    ],
    [
      'a record edited, under the former name',
      () => textOf(2, ([a = '', ...rest]) => [a.replace('logId', 'logIt'), ...rest], false),
      ours,
      1,
    ],
    ['the last line dropped', () => textOf(7, (lines) => lines.slice(0, -1)), ours, 1],
    ['the first segment dropped', () => without(archive, 0), ours, 1],
    ['a segment in the middle dropped', () => without(archive, 3), ours, 1],
    ['the last segment dropped', () => without(archive, -1), ours, 1],
    // Documented: only a checkpoint from elsewhere, a witness or an age shows that the newest lines were removed.
    ['an older state', () => state(6), ours, 0],
    ['an older state, with its time stamps', () => state(6), () => [...ours(), ...stamps()], 0],
    ['an older state, and a checkpoint from elsewhere', () => state(6), () => [...ours(), ...since()], 1],
    ['an older state, which must be fresh', () => state(6), () => [...ours(), '--fresh', '26h'], 3],
    ['two lines swapped', () => textOf(2, ([a = '', b = '', ...rest]) => [b, a, ...rest]), ours, 1],
    [
      'two segments swapped',
      () => {
        const [one = '', two = ''] = segmentsOf(archive).slice(2, 4);
        const [first, second] = [one, two].map((path) => archive.files.get(path) ?? Buffer.alloc(0)) as [Buffer, Buffer];
        const rest = [...archive.files].filter(([path]) => path !== one && path !== two);
        const leaf = (path: string): number => Number(path.slice(9, 25));
        return new MemoryStore([...rest, [segmentPath(leaf(one), second), second], [segmentPath(leaf(two), first), first]]);
      },
      ours,
      1,
    ],
    [
      'a segment of another archive of the same key',
      () => segment(2, () => other.files.get(segmentsOf(other)[2] ?? '') ?? Buffer.alloc(0)),
      ours,
      1,
    ],
    ['a checkpoint of another archive of the same key', () => file(/^checkpoints\/0{9}3$/, () => noteOf(other, 3)), ours, 1],
    ['everything signed by another key', () => anew((text) => text, 3), ours, 3],
    [
      'the same without a record, and the auditor takes the key from the archive',
      () => anew((text) => (text.includes('"seq":9,') ? [] : text), 3),
      theKey('key of the attacker'),
      1,
    ],
    ['cut before the change of key', () => state(4), ours, 3],
    ['cut before the change of key, with the former key alone', () => state(4), theKey('former key'), 0],
    ['rewritten by the former key alone', () => forked(Infinity), ours, 3],
    ['without a record, signed by the former key alone', () => anew((text) => (text.includes('"seq":9,') ? [] : text), 1), ours, 1],
    ['rewritten by both keys, with the ledger adjusted', () => forked(4), ours, 0],
    ['the same, and a checkpoint from elsewhere', () => forked(4), () => [...ours(), ...since()], 1],
    ['the same, and time stamps', () => forked(4), () => [...ours(), ...stamps()], 3],
    ['the same without time stamps', () => forked(4, () => undefined), () => [...ours(), ...stamps()], 3],
    [
      'the same, and the newest checkpoint stamped today',
      () => forked(4, (i, note) => (i === 7 ? authority.responseAt(Date.now(), note) : undefined)),
      () => [...ours(), ...stamps()],
      3,
    ],
    ['a byte of a time stamp changed', () => file(/^timestamps\/0{9}2/, flipped), ours, 1],
    ['a time stamp deleted', () => file(/^timestamps\/0{9}2/, () => undefined), ours, 1],
    [
      'a time stamp under another number',
      () => new MemoryStore([...archive.files].map(([path, bytes]) => [path === tokenPath(2) ? tokenPath(3) : path, bytes])),
      ours,
      1,
    ],
    ['a checkpoint with the number 40 added', () => added(checkpointPath(40), noteOf(archive, 8)), ours, 1],
    ['a checkpoint of another archive as the next one', () => added(checkpointPath(9), noteOf(other, 8)), ours, 3],
    ['the newest checkpoint again as the next one', () => added(checkpointPath(9), noteOf(archive, 8)), ours, 1],
    ['a second segment at the same leaf', () => added(segmentPath(14, packed(['{}'])), packed(['{}'])), ours, 0],
    [
      'a key twice in a line',
      () => anew((text) => text.replace('"record":{"logId":9,', '"record":{},"record":{"logId":9,'), 1, 2),
      ours,
      1,
    ],
    [
      'the kind of a line twice',
      () => anew((text) => (text.includes('"seq":9,') ? text.replace('{', '{"kind":"record",') : text), 1, 2),
      ours,
      1,
    ],
    ['a letter composed otherwise', () => textOf(2, (lines) => lines.map((line) => line.replaceAll('Łucja', 'Łucja\u0301'))), ours, 1],
    ['bytes behind the gzip stream', () => segment(2, (bytes) => Buffer.concat([bytes, Buffer.from('x')])), ours, 1],
    ['a second gzip member', () => segment(2, (bytes) => Buffer.concat([bytes, packed(['{}'])])), ours, 1],
    ['an empty second gzip member', () => segment(2, (bytes) => Buffer.concat([bytes, gzipSync('')])), ours, 1],
    [
      'text in the comment of the gzip header',
      () =>
        segment(2, (bytes) =>
          Buffer.concat([
            bytes.subarray(0, 3),
            Buffer.of(16),
            bytes.subarray(4, 10),
            Buffer.alloc(1_024, 'a'),
            Buffer.of(0),
            bytes.subarray(10),
          ]),
        ),
      ours,
      1,
    ],
    ['a segment compressed again', () => segment(2, (bytes) => gzipSync(gunzipSync(bytes), { level: 1 })), ours, 0],
    [
      'a wrong checksum in the gzip trailer',
      () => segment(2, (bytes) => Buffer.concat([bytes.subarray(0, -8), Buffer.alloc(4), bytes.subarray(-4)])),
      ours,
      1,
    ],
    ['plain text in place of gzip', () => segment(2, (bytes) => gunzipSync(bytes)), ours, 1],
    ['the copy of the newest checkpoint set back', () => file(/^checkpoint$/, () => noteOf(archive, 5)), ours, 0],
    ['a changed tile', () => file(/^tile\/0\/.*\/56$/, flipped), ours, 1],
    ['a changed bundle of entries', () => file(/^tile\/entries\/.*\/56$/, flipped), ours, 1],
    ['all tiles removed', () => file(/^tile\//, () => undefined), ours, 1],
    ['CR LF in a checkpoint', () => file(/^checkpoints\/0{9}3$/, (note) => Buffer.from(note.toString().replaceAll('\n', '\r\n'))), ours, 1],
    [
      'one more signature of an unknown key',
      () => signatureWith(3, (line) => `${line}${line.replace(/\u2014 \S+/, '\u2014 witness.example/w')}`),
      ours,
      0,
    ],
    ['a signature with S + L', () => signatureWith(3, malleable), ours, 1],
    ['the same signature twice', () => signatureWith(3, (line) => line + line), ours, 0],
    ['a signed extension line', () => checkpointWith(3, 1, (text) => `${text}extension\n`), ours, 1],
    ['a signed number of lines with a zero before it', () => checkpointWith(3, 1, (text) => text.replace('\n21\n', '\n021\n')), ours, 1],
    // The name of a key is the only origin for which it signs: nothing proves this checkpoint, and nothing contradicts it.
    ['a signed checkpoint of another origin', () => checkpointWith(3, 1, (text) => text.replace(/^.*/, 'waybill/another')), ours, 3],
    [
      'a segment left out, and everything signed anew',
      () => anew((text) => (Number(/"seq":(\d+)/.exec(text)?.[1]) <= 12 && Number(/"seq":(\d+)/.exec(text)?.[1]) > 6 ? [] : text), 1, 2),
      ours,
      3,
    ],
    [
      'file names in upper case',
      () =>
        new MemoryStore(
          [...archive.files].map(([path, bytes]) => [path.replace(/-[0-9a-f]{64}/, (digest) => digest.toUpperCase()), bytes]),
        ),
      ours,
      1,
    ],
    ['records in a segment that no checkpoint commits', () => added(segmentPath(3, packed(['{}'])), packed(['{}'])), ours, 0],
    // Keys.
    ['a key that signed nothing', untouched, theKey('three keys'), 3],
    [
      'a time stamp ten minutes after the archiving, and none allowed',
      untouched,
      () => [...ours(), ...stamps(), '--stamped-within', '0s'],
      3,
    ],
    [
      'a time stamp of a checkpoint of an unknown key, earlier than the one before it',
      () => {
        const store = checkpointWith(8, 3, (text) => text);
        store.files.set('checkpoint', noteOf(archive, 7));
        store.files.set(tokenPath(8), authority.responseAt(start / 1_000 + 600_000, noteOf(store, 8)));
        return store;
      },
      () => [...ours(), ...stamps()],
      3,
    ],
    ['a key stolen before the last time stamp', untouched, () => [...ours(), ...stamps(), '--key-until', '2026-07-06'], 3],
    ['a key stolen after the last time stamp', untouched, () => [...ours(), ...stamps(), '--key-until', '2026-07-09'], 0],
    // Witnesses.
    ['an archive that a witness cosigned', () => cosigned(untouched()), () => [...ours(), ...witnessed(), '--stamped-within', '200h'], 0],
    ['the same, and a week without a cosignature', () => cosigned(untouched()), () => [...ours(), ...witnessed()], 3],
    ['cosignatures of a witness that nobody named', () => cosigned(untouched()), () => [...ours(), '--witness', fileOf('stranger')], 3],
    ['an older state of a cosigned archive', () => cosigned(state(6)), () => [...ours(), ...witnessed()], 1],
    ['a cosigned archive, cut before the change of key', () => cosigned(state(4)), () => [...theKey('former key')(), ...witnessed()], 1],
    ['another history than the cosigned one', async () => cosigned(await forked(4)), () => [...ours(), ...witnessed()], 1],
    ['an archive dated after today, which must be fresh', () => dated('2200-01-01'), theKey('daily', () => ['--fresh', '400d']), 3],
    ['an archive dated years after its cosignature', () => dated('2200-01-01'), theKey('daily', lately), 3],
    ['an archive dated a day after its cosignature', () => dated('2026-07-09'), theKey('daily', lately), 0],
    // Orders, of the archive of one key.
    ['a segment that an operation removed', () => pruned('prune'), theKey('daily'), 0],
    ['a segment that nobody removed', () => pruned('hold'), theKey('daily'), 1],
    ['a removed segment that an operation held', () => pruned('hold', 'prune'), theKey('daily'), 3],
    ['a removed segment whose hold was released', () => pruned('hold', 'release', 'prune'), theKey('daily'), 0],
    ['a removed segment whose hold was released later', () => pruned('hold', 'prune', 'release'), theKey('daily'), 3],
    [
      'a held segment that retention removed',
      async () => without(await pruned('hold'), 0, 1, 2, 3),
      theKey('daily', () => ['--retention', '1d']),
      3,
    ],
    ['the oldest segments removed by retention', () => without(other, 0, 1), theKey('daily', () => ['--retention', '1d']), 0],
    ['a segment in the middle removed by retention', () => without(other, 5), theKey('daily', () => ['--retention', '1d']), 3],
  ];

  async function run(
    store: MemoryStore,
    args: readonly string[],
    then?: (directory: string) => void,
  ): Promise<readonly [number, number, string]> {
    const directory = join(commands.folder, 'archive');
    for (const [path, bytes] of store.files) commands.write(`archive/${path}`, bytes);
    then?.(directory);
    try {
      return await commands.verify(['--directory', directory, ...args]);
    } finally {
      rmSync(directory, { recursive: true });
      rmSync(join(commands.folder, 'elsewhere'), { recursive: true, force: true });
    }
  }

  it.each(rows)('%s', async (_name, make, options, code) => {
    const [ours, theirs, text] = await run(await make(), options());
    expect([ours, theirs], text).toEqual([code, code]);
  });

  it.each<[string, (directory: string, path: string) => void]>([
    [
      'a segment',
      (directory, path) => {
        renameSync(join(directory, path), join(commands.folder, 'elsewhere'));
        symlinkSync(join(commands.folder, 'elsewhere'), join(directory, path));
      },
    ],
    ...['segments', 'checkpoints', 'tile', 'timestamps'].map((folder): [string, (directory: string) => void] => [
      `the folder ${folder}`,
      (directory) => {
        renameSync(join(directory, folder), join(commands.folder, 'elsewhere'));
        symlinkSync(join(commands.folder, 'elsewhere'), join(directory, folder));
      },
    ]),
  ])('%s that is a link', async (_name, change) => {
    const [path = ''] = segmentsOf(archive);
    const [one, two, text] = await run(archive, ours(), (directory) => change(directory, path));
    expect([one, two], text).toEqual([1, 1]);
  });

  it('a segment that is a pipe', async () => {
    const [path = ''] = segmentsOf(archive);
    const [one, two, text] = await run(archive, ours(), (directory) => {
      rmSync(join(directory, path));
      execFileSync('mkfifo', [join(directory, path)]);
    });
    expect([one, two], text).toEqual([1, 1]);
  });

  const falseLine = '{\\"kind\\":\\"record\\"}';
  const base64Of = (text: string): string => Buffer.from(text).toString('base64');
  const replaced =
    (from: RegExp | string, to: string) =>
    (text: string): string =>
      text.replace(from, () => to);
  const proofs: readonly (readonly [name: string, change: (text: string, line: string) => string, code: number])[] = [
    ['as it was made', (text) => text, 0],
    ['with another line', (text) => text.replace('logId', 'logIt'), 1],
    ['with a false line before the true one', replaced('{"format"', `{"line":"${falseLine}","format"`), 1],
    ['with a false line after the true one', replaced(/}\n$/, `,"line":"${falseLine}"}\n`), 1],
    ['with a false lineBase64 beside the line', replaced('"entry"', `"lineBase64":"${base64Of('{}')}","entry"`), 1],
    [
      'with a true lineBase64 beside a false line',
      (text, line) => text.replace(/"line":"(?:[^"\\]|\\.)*"/, () => `"line":"{}","lineBase64":"${base64Of(line)}"`),
      1,
    ],
    ['with another index', replaced(/"index":\d+/, '"index":3'), 1],
    ['without a hash', replaced(/"hashes":\["[^"]*",/, '"hashes":['), 1],
    ['with one more hash', replaced('"hashes":[', `"hashes":["${Buffer.alloc(32).toString('base64')}",`), 1],
    ['with 0.0 as index', replaced(/"index":\d+/, '"index":0.0'), 1],
    ['with a text as index', (text) => text.replace(/"index":(\d+)/, '"index":"$1"'), 1],
    [
      'with another checkpoint',
      (text) => text.replace(/"checkpoint":".*"}/, () => `"checkpoint":${JSON.stringify(noteOf(archive, 5).toString())}}`),
      1,
    ],
    ['with text before the signed one', replaced('"checkpoint":"', '"checkpoint":"text\\n'), 1],
    ['with another member', replaced('{"format"', '{"comment":"","format"'), 1],
    ['with an empty time stamp', replaced(/waybill-proof\/1"/, 'waybill-proof/2","timeStamp":""'), 1],
    ['twice in a file', (text) => text + text, 0],
    [
      'with the entry of another kind',
      (text) =>
        text.replace(/"entry":"([^"]*)"/, (_, entry: string) => {
          const bytes = Buffer.from(entry, 'base64');
          bytes[0] = 2;
          return `"entry":"${bytes.toString('base64')}"`;
        }),
      1,
    ],
  ];
  it.each(proofs)('a proof %s', async (_name, change, code) => {
    const proof = (await (await Prover.open(archive)).record(recordLine(9, start + day + 2_000_000).uid)) ?? expect.fail();
    const text = change(formatProof(proof), proof.line.toString());
    if (code === 1) expect(text).not.toBe(formatProof(proof));
    const [one, two, printed] = await commands.verify(['--proof', commands.write('proof', text), ...ours()]);
    expect([one, two], printed).toEqual([code, code]);
  });

  it('a proof of an operation with a member that verify.py uses for records', async () => {
    const line = Buffer.from('{"kind":"operation","seq":1,"at":"2026-07-01T00:00:00Z","actor":"m.weber","operation":"replay","twice":"x"}');
    const entry = formatEntry({ kind: 'operation', seq: 1 }, line);
    const root = formatCheckpoint({ origin: originOf(archive), size: 1, root: leafHash(entry) });
    const proof = formatProof({ line, entry, index: 0, hashes: [], checkpoint: Buffer.from(signNote(root, signers(1))) });
    const [one, two, text] = await commands.verify(['--proof', commands.write('proof', proof), ...ours()]);
    expect([one, two], text).toEqual([0, 0]);
  });

  it('a proof that one witness cosigned three times: the first time counts', async () => {
    const proof = (await (await Prover.open(archive)).record(recordLine(9, start + day + 2_000_000).uid)) ?? expect.fail();
    const note = proof.checkpoint.toString();
    const cosignature = (hours: number): string =>
      cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), witness, start / 1_000_000 + hours * 3_600);
    const checkpoint = Buffer.from(note + cosignature(300) + cosignature(200) + cosignature(400));
    const file = commands.write('proof', formatProof({ ...proof, checkpoint }));
    const [one, two, text] = await commands.verify(['--proof', file, ...ours(), ...witnessed()]);
    expect([one, two], text).toEqual([0, 0]);
    expect(text.match(/existed on .*/g)).toEqual(Array(2).fill('existed on 2026-07-09T08:00:00Z'));
  });

  it('an archive without windows, whose first segment retention removed: say so', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'daily');
    await writer.append([recordLine(1, start)], through(1));
    await writer.append([], { ...through(1), at: start + day });
    expect(originOf(store)).toBe(originOf(other));
    const [, , whole] = await run(store, theKey('daily')());
    expect(whole).toMatch(/^INTACT: everything is as signed, and no window was checked$/m);
    const [one, two, text] = await run(without(store, 0), theKey('daily', () => ['--retention', '1d'])());
    expect([one, two], text).toEqual([0, 0]);
    expect(text.match(/^INTACT for what remains|^2 lines were not read/gm)).toHaveLength(4);
    save(without(store, 0));
    const { stdout } = await archiveCommand('verify', ...place(), ...theKey('daily')(), '--retention', '1d', '--format', 'html');
    expect(stdout).toContain('<li>The content of 2 lines whose segments are missing: only hashes of them were checked.</li>');
  });

  it('a key file with another text: say what is expected', async () => {
    const { code, text } = await secondVerify(...place(), '--key', commands.write('wrong', 'archive.pub\n'));
    expect([code, text]).toEqual([2, expect.stringContaining('"archive.pub" is not name+id+base64 of an Ed25519 key')]);
  });

  const place = (): string[] => ['--directory', join(commands.folder, 'proven')];
  const save = ({ files }: MemoryStore): void => {
    rmSync(join(commands.folder, 'proven'), { recursive: true, force: true });
    for (const [path, bytes] of files) commands.write(`proven/${path}`, bytes);
  };
  const archiveCommand = (...args: readonly string[]): Promise<Output> => outputOf((all, io) => command.run(all, io), args);
  const uidOn = (i: number, seq: number): string => recordLine(seq, start + i * day + 2_000_000).uid;

  // The archive has time stamps of every second checkpoint, and cosignatures of the first and the last one, ten minutes after the start of their days.
  it.each<[string, string, () => readonly string[], number, string]>([
    ['the time stamp of its own checkpoint', uidOn(1, 9), stamps, 14, '2026-07-02T00:10:00Z'],
    ['the time stamp of the next checkpoint', uidOn(2, 15), stamps, 28, '2026-07-04T00:10:00Z'],
    ['a cosignature', uidOn(0, 3), witnessed, 7, '2026-07-01T00:10:00Z'],
  ])('prove --stamped: a line with %s', async (_name, uid, options, size, time) => {
    save(cosigned(untouched()));
    const { code, stdout } = await archiveCommand('prove', ...place(), '--uid', uid, '--stamped');
    expect(code).toBe(0);
    const proof = ['--proof', commands.write('proof', stdout), ...ours()];
    const [one, two, text] = await commands.verify([...proof, ...options()]);
    expect([one, two], text).toEqual([0, 0]);
    const told = text.split('\n').filter((line) => line.startsWith('proof 1: '));
    expect(told).toEqual(
      Array(2).fill(expect.stringMatching(new RegExp(`^proof 1: line \\d+ of ${size}: record, ${uid}, .*; it existed on ${time}$`))),
    );
    // The other kind of date is not in it.
    const [three, four, other] = await commands.verify([...proof, ...(options === stamps ? witnessed() : stamps())]);
    expect([three, four], other).toEqual([3, 3]);
  });

  it('prove --stamped --format tlog-proof: has the first cosigned checkpoint, and no time stamp', async () => {
    save(cosigned(untouched()));
    const { code, stdout } = await archiveCommand('prove', ...place(), `--uid=${uidOn(1, 9)}`, '--stamped', '--format', 'tlog-proof');
    expect(code).toBe(0);
    const end = stdout.indexOf('\n\n');
    // C2SP tlog-proof: a header, then, after an empty line, the checkpoint with its signatures.
    expect(stdout.slice(0, end)).toMatch(/^c2sp\.org\/tlog-proof@v1\nextra \S+\nindex 9(\n[A-Za-z0-9+/]{43}=)+$/);
    const note = stdout.slice(end + 2);
    expect(note).toBe(cosigned(untouched()).files.get(cosignaturePath(8, witness))?.toString());
    expect(openNote(Buffer.from(note), [witness])).toMatchObject({ cosignedBy: [{ time: start + 7 * day + 10 * minute }] });
  });

  it('prove --stamped: needs a time stamp or a cosignature that covers the line', async () => {
    save(state(5));
    const asked = (...more: readonly string[]): Promise<Output> => archiveCommand('prove', ...place(), '--stamped', ...more);
    await expect(asked('--uid', uidOn(4, 27))).rejects.toMatchObject({
      code: 'archive_broken',
      message: /no time stamp or cosignature covers it$/,
    });
    expect(await asked('--uid', uidOn(3, 21))).toMatchObject({ code: 0 });
    await expect(asked('--uid', uidOn(3, 21), '--format', 'tlog-proof')).rejects.toMatchObject({ message: /no cosignature covers it$/ });
  });

  it('verify --format html: shows the history of the keys, the time stamps and the cosignatures', async () => {
    save(cosigned(untouched()));
    const page = async (...more: readonly string[]): Promise<readonly string[]> => {
      const { code, stdout } = await archiveCommand('verify', ...place(), ...ours(), '--format', 'html', ...more);
      expect(code, stdout).toBe(0);
      return Array.from(stdout.matchAll(/<li>(.*?)<\/li>/g), ([, text]) => text ?? '');
    };
    const keys = signers(1, 2).map(({ name, id }) => `the key ${name}+${id.toString('hex')} signed checkpoints of`);
    const history = [`${keys[0]} 7 to 35 lines`, `${keys[1]} 35 to 56 lines`];
    const dates = [
      '4 time stamps: 56 of 56 lines existed on 2026-07-08T00:10:00Z',
      '1 witness: 56 of 56 lines cosigned, last on 2026-07-08T00:10:00Z',
      // The first segment has a cosignature five minutes after its archiving; the third one has its first time stamp a day after.
      'each line that they cover was stamped or cosigned within 25 h of its archiving',
    ];
    const open = [/^When the lines existed: no roots/, /^Whether somebody else was shown another history: no keys of witnesses/];
    const whole = await page(...stamps(), ...witnessed());
    expect(whole).toEqual(expect.arrayContaining([...history, ...dates]));
    for (const pattern of open) expect(whole).not.toContainEqual(expect.stringMatching(pattern));
    const bare = await page();
    expect(bare).toEqual(expect.arrayContaining([...history, ...open.map((pattern) => expect.stringMatching(pattern) as string)]));
    for (const date of dates) expect(bare).not.toContain(date);
  });
});
