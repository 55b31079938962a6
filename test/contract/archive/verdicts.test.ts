/**
 * The table of verdicts: archives that were changed, or signed anew by the holder of the key, each with the verdict of both verifiers,
 * `verifyArchive` and content/archive/verify.py. A changed file without the key is in tampering.test.ts.
 */
import { describe, expect, it } from 'vitest';
import type { EntryLine } from '../../../src/archive/line.ts';
import { formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyOptions, VerifyReport } from '../../../src/archive/verify/verify.ts';
import { keyFrom, MemoryStore, minute, openWriter, provenLine, recordLine, signedAnew, start, through } from '../../support/archive.ts';
import { hasPython, resultOf, secondVerifier } from '../../support/second-verifier.ts';

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
    expect(report.sources).toMatchObject([{ windows: 9, proven: 9, notChecked: 1 }]);
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
  async function after(former: Buffer | undefined): Promise<MemoryStore> {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'after');
    await writer.append([], { ...through(0), ...(former && { former: former.toString() }) });
    const record = recordLine(1, start);
    await writer.append([record, provenLine(2, start, start + minute, [record])], through(2));
    return store;
  }
  const cut = ({ files }: MemoryStore, from: number): MemoryStore => {
    const kept = [...files].filter(([path]) => path !== 'checkpoint' && !(Number(/^checkpoints\/(\d+)/.exec(path)?.[1]) >= from));
    return new MemoryStore(kept);
  };

  it.each<[string, (former: MemoryStore) => Buffer | undefined, (former: MemoryStore) => MemoryStore | undefined, string, RegExp]>([
    ['is whole', newest, (former) => former, 'intact', /^$/],
    ['was not given', newest, () => undefined, 'intact', /^$/],
    ['has more lines', ({ files }) => files.get('checkpoints/0000000003'), (former) => former, 'intact', /^$/],
    ['was cut', newest, (former) => cut(former, 4), 'altered', /^the first line: /],
    ['lacks a segment', newest, (former) => without(former, 1), 'altered', /^segments\/.*: it is missing/],
    ['is not named', () => undefined, (former) => former, 'unproven', /^the first line of the archive names no former archive/],
    ['is named by a text that is no checkpoint', () => Buffer.from('none'), (former) => former, 'altered', /^the first line: /],
  ])('%s', async (_name, note, given, result, message) => {
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
