/**
 * Hostile records, and files that someone with the storage plants in an archive: `verifyArchive` and
 * content/archive/verify.py end with the same result, and in bounded time.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkProofs, formatProof, worstOf } from '../../../src/archive/proof-file.ts';
import { Prover } from '../../../src/archive/prove.ts';
import { formatVerifier, parseVerifier, signerOf, signNote } from '../../../src/archive/signed-note.ts';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { RecordLine } from '../../../src/archive/line.ts';
import {
  keyFrom,
  MemoryStore,
  minute,
  openWriter,
  provenLine,
  recordLine,
  linesIn,
  segmentPath,
  signedArchive,
  start,
  through,
  windowLines,
  writeArchive,
} from '../../support/archive.ts';
import type { SignedLine } from '../../support/archive.ts';
import { hasPython, resultOf, secondProofCheck, secondVerifier, verifyProgram, verifyWithPython } from '../../support/second-verifier.ts';

const originOf = ({ files }: MemoryStore): string => files.get('checkpoints/0000000001')?.toString().split('\n')[0] ?? 'waybill/unknown';
const keyText = (store: MemoryStore, seed = 1): string => formatVerifier(signerOf(originOf(store), keyFrom(seed)));

/** The result of both verifiers, and the first finding of each that is not a note. */
async function judged(store: MemoryStore, key = keyText(store)): Promise<readonly [result: string, ...firsts: string[]]> {
  const verifier = parseVerifier(key);
  const { result, findings } = await verifyArchive(store, verifier ? [verifier] : []);
  const [theirs = []] = await secondVerifier(store.files, { key });
  const severe = [findings.map(({ severity, object }) => [severity, object] as const), theirs].map((all) =>
    all.filter(([each]) => each !== 'note'),
  );
  expect([resultOf(theirs), JSON.stringify(theirs)], JSON.stringify(findings)).toEqual([result, JSON.stringify(theirs)]);
  return [result, ...severe.map(([first]) => first?.[1] ?? '')];
}

describe.skipIf(!hasPython)('a hostile record', () => {
  const time = '"logTimestamp":"2026-07-01T00:00:01"';
  const nested = (depth: number): string => `{${time},"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  const bytes = (...parts: (string | number[])[]): Buffer => Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  // A window counts a record by its time. A record without a readable time belongs to no window.
  const records: readonly (readonly [string, string | Buffer, number])[] = [
    ['has a number of 5,000 digits', `{${time},"a":${'9'.repeat(5_000)}}`, 1],
    ['has a number beyond every double', `{${time},"a":1e999999}`, 1],
    ['repeats a key', `{"logTimestamp":"2020-01-01T00:00:00",${time}}`, 1],
    ['repeats a key, the last with null', `{${time},"logTimestamp":null}`, 0],
    ['has an escaped key', '{"logTimest\\u0061mp":"2026-07-01T00:00:01"}', 1],
    ['has lone surrogates', `{${time},"\\ud800":"\\udfff"}`, 1],
    ['has a name of 64 KiB', `{${time},"${'n'.repeat(65_536)}":1}`, 1],
    ['has line breaks between tokens', `{\r\n${time}\n,\r"a"\t: 1\n}`, 1],
    ['has characters that end lines elsewhere', `{${time},"a":"\u0085\u2028\u2029"}`, 1],
    ['is invalid UTF-8', bytes(`{${time},"a":"`, [0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80], '"}'), 1],
    ['has invalid UTF-8 in a key', bytes('{"logTimestamp', [0xff], `":"2020-01-01T00:00:00",${time}}`), 1],
    ['is nested 64 levels deep', nested(64), 1],
    ['is nested 65 levels deep', nested(65), 0],
    ['is nested 100,000 levels deep', nested(100_000), 0],
    ['has the key of a prototype', `{"__proto__":1,${time}}`, 1],
    ['is an array', `[{${time}}]`, 0],
    ['looks like the fields before it', `{"record":{${time}},"kind":"position"}`, 0],
    ['is not JSON', `{${time},"a":NaN}`, 0],
    ['has millions of escapes', `{${time},"a":"${'\\n'.repeat(4_000_000)}"}`, 1],
  ];
  it.each(records)('that %s is archived, and counted as Waybill counts it', async (_name, record, counted) => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'hostile');
    const line: RecordLine = { ...recordLine(1, start), record: Buffer.from(record) };
    await writer.append([line, provenLine(2, start, start + minute, counted === 1 ? [line] : [])], through(2));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });
});

describe.skipIf(!hasPython)('a signed line', () => {
  const uid = 'A'.repeat(22);
  const time = '2026-07-01T00:00:00.000000Z';
  const digest = createHash('sha256').digest('hex');
  const position = (after: number, seq: number, more: object = {}): SignedLine => {
    const fields = { journal: 'j', after, seq, chain: digest, at: time, completeSince: time, sources: null, filtered: false, ...more };
    return { kind: 'position', seq, text: JSON.stringify({ kind: 'position', ...fields }) };
  };
  const ledger = (more: object = {}, seq = 1): SignedLine => {
    const window = { source: 'production', from: time, to: '2026-07-01T00:01:00Z', state: 'proven', records: 0, digest, reason: null };
    return { kind: 'ledger', seq, text: JSON.stringify({ kind: 'ledger', seq, ...window, ...more }) };
  };
  const record = (from: string, to: string): SignedLine => {
    const fields = `"kind":"record","seq":1,"uid":"${uid}","source":"a","received":"${time}","late":false,"salt":"${uid}","record":{}`;
    expect(fields).toContain(from);
    return { kind: 'record', seq: 1, uid, text: `{${fields.replace(from, to)}}` };
  };
  const operation = (detail: string): SignedLine => ({
    ...{ kind: 'operation', seq: 1, text: `{"kind":"operation","seq":1,"at":"${time}","detail":${detail}}` },
  });
  const alone = (line: SignedLine): readonly (readonly SignedLine[])[] => [[line, position(0, 1)]];
  const lacking = { records: 1, digest: 'a'.repeat(64) };
  const early = { completeSince: '2026-08-01T00:00:00Z' };
  it.each<[name: string, segments: readonly (readonly SignedLine[])[], result: string]>([
    ['a usual record', alone(record('{}', '{}')), 'intact'],
    ['a usual window', alone(ledger()), 'intact'],
    ['a window without a digest', alone(ledger({ digest: undefined })), 'altered'],
    ['a gap without a digest', alone(ledger({ digest: undefined, state: 'gap' })), 'altered'],
    ['a gap with the digest null', alone(ledger({ digest: null, state: 'gap' })), 'unproven'],
    ['a window without a reason', alone(ledger({ reason: undefined })), 'altered'],
    ['a position without sources', [[ledger(), position(0, 1, { sources: undefined })]], 'altered'],
    ['a position with the time stamp null', [[ledger(), position(0, 1, { timestamp: null })]], 'altered'],
    ['a uid with unused bits', alone(record(`"uid":"${uid}"`, `"uid":"${'A'.repeat(21)}B"`)), 'altered'],
    ['a source beyond ASCII', alone(record('"a"', '"é"')), 'altered'],
    ['a time of receipt that is none', alone(record(`"received":"${time}"`, '"received":"x"')), 'altered'],
    ['a record that is neither late nor in time', alone(record('false', 'null')), 'altered'],
    ['a short salt', alone(record(`"salt":"${uid}"`, '"salt":"x"')), 'altered'],
    ['a number with a zero before it', alone(record('"seq":1', '"seq":01')), 'altered'],
    ['an operation of 64 levels', alone(operation(`${'['.repeat(63)}${']'.repeat(63)}`)), 'intact'],
    ['an operation of 65 levels', alone(operation(`${'['.repeat(64)}${']'.repeat(64)}`)), 'altered'],
    ['an operation of 100,000 levels', alone(operation(`${'['.repeat(99_999)}${']'.repeat(99_999)}`)), 'altered'],
    ['an operation of more than 1 MiB', alone(operation(`"${'x'.repeat(1_048_576)}"`)), 'altered'],
    [
      'a window that lacks a record of a source that is not selected',
      [[ledger(lacking, 5), position(4, 5, { ...early, sources: [] })]],
      'altered',
    ],
    ['a window that lacks a record of before the archive', [[ledger(lacking, 5), position(4, 5, early)]], 'unproven'],
    [
      'a source with a name like a selection of all',
      [[position(4, 5, { ...early, sources: ['null'] })], [ledger(lacking, 6), position(5, 6, early)]],
      'unproven',
    ],
  ])('of %s has the same result in both verifiers', async (_name, segments, result) => {
    const store = signedArchive(segments);
    expect((await judged(store))[0]).toBe(result);
  });
});

// Without a limit, each takes minutes in one of the verifiers.
describe.skipIf(!hasPython)('signed lines', () => {
  it('of many windows of 280 years are verified', { timeout: 60_000 }, async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'wide');
    const record = recordLine(1, start);
    const windows = Array.from({ length: 50 }, (_, i) => provenLine(i + 2, i, Date.UTC(2250, 0) * 1_000, [record]));
    await writer.append([record, ...windows], through(51));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  it('of 100,000 uids with the same beginning, in descending order, are verified', { timeout: 120_000 }, async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'uids');
    const records = Array.from({ length: 100_000 }, (_, i) => {
      const uid = Buffer.alloc(16);
      uid.writeUInt32BE(100_000 - i, 8);
      // The uid of a record without a logId is not computed again.
      const record = Buffer.from('{"logTimestamp":"2026-07-01T00:00:00"}');
      return { ...recordLine(i + 1, start), record, uid: uid.toString('base64url') };
    });
    await writer.append([...records, provenLine(100_001, start, start + minute, records)], through(100_001));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });
});

describe.skipIf(!hasPython)('an archive', () => {
  let store: MemoryStore;
  beforeEach(async () => {
    store = new MemoryStore();
    await writeArchive(store, windowLines(3, 2), 4);
  });
  const checkpoint = (number: number): string => `checkpoints/${String(number).padStart(10, '0')}`;
  const segmentAt = (leaf: number): [string, Buffer] =>
    [...store.files].find(([path]) => path.startsWith(`segments/${String(leaf).padStart(16, '0')}`)) ?? ['', Buffer.alloc(0)];
  const plant = (firstLeaf: number, file: Uint8Array): void => {
    // Before the files of the archive: verifiers read it first.
    store = new MemoryStore([[segmentPath(firstLeaf, file), Buffer.from(file)], ...store.files]);
  };

  it('with a planted segment without a line is intact', async () => {
    plant(0, gzipSync(''));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  it('with a planted segment that unpacks to 300 MB is intact', async () => {
    plant(0, gzipSync(Buffer.alloc(300_000_000, 0x0a), { level: 1 }));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  it('with a planted segment of 250 million line breaks is intact', async () => {
    plant(0, gzipSync(Buffer.alloc(250_000_000, 0x0a), { level: 1 }));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  const operation = (more: string): string => `{"kind":"operation","seq":1,"at":"2026-07-01T00:00:00Z","detail":[${more}]}\n`;
  it.each([
    ['of one line of 150 MB', () => operation(`${'[],'.repeat(50_000_000)}0`)],
    [
      'of as many lines as the real one, one of them with 50 million elements',
      () => operation(`${'[],'.repeat(50_000_000)}0`) + operation('0').repeat(4),
    ],
    ['of 4 million lines', () => operation('').repeat(4_000_000)],
  ])('with a planted segment %s is intact', { timeout: 60_000 }, async (_name, text) => {
    plant(0, gzipSync(text(), { level: 1 }));
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  it('with 20,000 planted segments of one leaf is intact', { timeout: 60_000 }, async () => {
    const planted = Array.from({ length: 20_000 }, (_, i) => {
      const digest = createHash('sha256').update(String(i)).digest('hex');
      return [`segments/${'0'.repeat(16)}-${digest}.ndjson.gz`, Buffer.alloc(0)] as const;
    });
    store = new MemoryStore([...planted, ...store.files]);
    expect(await judged(store)).toEqual(['intact', '', '']);
  });

  it('is not delayed by planted segments that form very many ways between two checkpoints', async () => {
    for (let leaf = 0; leaf < 8; leaf += 1)
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'])
        plant(leaf, gzipSync(`{"kind":"operation","seq":1,"at":"2026-07-01T00:00:00Z","operation":"${name}"}\n`));
    expect(await judged(store)).toEqual(['intact', '', '']);
    for (const number of [1, 2]) store.files.delete(checkpoint(number));
    expect(await judged(store)).toEqual(['altered', checkpoint(1), checkpoint(1)]);
  });

  it.each<[string, (file: Buffer, lines: Buffer) => Buffer]>([
    ['after which zeros follow', (file) => Buffer.concat([file, Buffer.alloc(20)])],
    ['in two parts', (_file, lines) => Buffer.concat([gzipSync(lines.subarray(0, 9)), gzipSync(lines.subarray(9))])],
    [
      'with a file name',
      (file) => Buffer.concat([file.subarray(0, 3), Buffer.of(8), file.subarray(4, 10), Buffer.from('x\0'), file.subarray(10)]),
    ],
    ['without its last line break', (_file, lines) => gzipSync(lines.subarray(0, -1))],
    ['and 300 MB after them', (_file, lines) => gzipSync(Buffer.concat([lines, Buffer.alloc(300_000_000)]), { level: 1 })],
  ])('is altered by a gzip file with the signed lines %s', async (_name, change) => {
    const [path, file] = segmentAt(5);
    const changed = change(file, gunzipSync(file));
    store.files.delete(path);
    store.files.set(segmentPath(5, changed), changed);
    expect(await judged(store)).toEqual(['altered', segmentPath(5, changed), segmentPath(5, changed)]);
  });

  const foreign = (text: string, name = originOf(store)): Buffer => Buffer.from(signNote(text, [signerOf(name, keyFrom(9))]));
  const textOf = (number: number): string => `${store.files.get(checkpoint(number))?.toString().split('\n\n')[0] ?? ''}\n`;
  it.each<[string, string, () => Buffer | string]>([
    ['the same text, signed by an unknown key', 'unproven', () => foreign(textOf(2))],
    ['the same text, signed by a key whose name has a byte-order mark', 'unproven', () => foreign(textOf(2), 'waybill/\ufeff')],
    ['the same text, signed by a key whose name has a blank of Unicode', 'altered', () => foreign(textOf(2), 'waybill/\u0085')],
    ['another size, signed by an unknown key', 'altered', () => foreign(textOf(2).replace('\n10\n', '\n11\n'))],
    ['another root, signed by an unknown key', 'altered', () => foreign(textOf(2).replace(/.{43}=\n$/, `${'A'.repeat(43)}=\n`))],
    ['a size that is not a number', 'altered', () => foreign(textOf(2).replace('\n10\n', '\nNaN\n'))],
    ['a size of 5,000 digits', 'altered', () => foreign(textOf(2).replace('\n10\n', `\n${'9'.repeat(5_000)}\n`))],
    ['nothing but signatures', 'altered', () => foreign(textOf(2)).toString().split('\n\n')[1] ?? ''],
    ['a signature of four bytes', 'altered', () => `${textOf(2)}\n— name AAAAAA==\n`],
    ['no bytes', 'altered', () => ''],
  ])('whose second checkpoint has %s is %s', async (_name, result, content) => {
    expect(textOf(2)).toContain('\n10\n');
    store.files.set(checkpoint(2), Buffer.from(content()));
    expect(await judged(store)).toEqual([result, checkpoint(2), checkpoint(2)]);
  });

  it('followed by a checkpoint of an unknown key is unproven', async () => {
    store.files.set(checkpoint(4), foreign(textOf(3).replace('\n12\n', '\n99\n')));
    expect(await judged(store)).toEqual(['unproven', checkpoint(4), checkpoint(4)]);
  });

  it('names the files that prove nothing', async () => {
    const paths = [
      'index/0000000000',
      'index/x',
      'notes',
      'segments/x',
      'checkpoints/0000000000',
      'timestamps/1.tsr',
      '\u001b[2J\nintact',
      'keys/a',
    ];
    for (const path of paths) store.files.set(path, Buffer.from('text'));
    const verifier = parseVerifier(keyText(store));
    const { result, findings } = await verifyArchive(store, verifier ? [verifier] : []);
    const [theirs = []] = await secondVerifier(store.files, { key: keyText(store) });
    const named = ['index/', ...paths.slice(2)].map((path) => ['note', path]).sort();
    expect(result).toBe('intact');
    expect(findings.map(({ severity, object }) => [severity, object]).sort()).toEqual(named);
    expect(theirs.toSorted()).toEqual(named);
  });

  /** More than Python permits in a recursion, 1,000. */
  const many = 1_100;
  it(
    `of ${many + 3} checkpoints is verified without the key of the first ${many}, and reports that they are missing`,
    { timeout: 120_000 },
    async () => {
      store = new MemoryStore();
      let writer = await openWriter(store, 'many');
      for (let seq = 1; seq <= many; seq += 1) await writer.append([recordLine(seq, start)], through(seq));
      writer = await openWriter(store, 'more', { key: keyFrom(2), previousKey: keyFrom(1) });
      for (let seq = many + 1; seq <= many + 3; seq += 1) await writer.append([recordLine(seq, start)], through(seq));
      expect(await judged(store, keyText(store, 2))).toEqual(['unproven', checkpoint(1), checkpoint(1)]);
      const key = keyText(store, 2);
      for (let number = 1; number <= many; number += 1) store.files.delete(checkpoint(number));
      expect(await judged(store, key)).toEqual(['altered', checkpoint(1), checkpoint(1)]);
    },
  );
});

describe.skipIf(!hasPython)('a directory', () => {
  let folder: string;
  let key: string;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'waybill-hostile-'));
    const store = new MemoryStore();
    await writeArchive(store, windowLines(3, 2), 4);
    key = keyText(store);
    for (const [path, bytes] of store.files) {
      mkdirSync(join(folder, 'archive', dirname(path)), { recursive: true });
      writeFileSync(join(folder, 'archive', path), bytes);
    }
    writeFileSync(join(folder, 'key'), `${key}\n`);
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const at = (path: string): string => join(folder, 'archive', path);
  const newest = 'checkpoints/0000000003';

  it.each<[string, string, number, () => void]>([
    ['a link in place of a checkpoint', 'altered', 1, () => replaceBy(() => symlinkSync(at('checkpoint'), at(newest)))],
    ['a pipe in place of a checkpoint', 'altered', 1, () => replaceBy(() => execFileSync('mkfifo', [at(newest)]))],
    ['a folder in place of a checkpoint', 'altered', 1, () => replaceBy(() => mkdirSync(at(newest)))],
    ['a checkpoint of 10 TB', 'altered', 1, () => truncateSync(at(newest), 10_000_000_000_000)],
    [
      'a file in place of the checkpoints',
      'altered',
      1,
      () => {
        rmSync(at('checkpoints'), { recursive: true });
        writeFileSync(at('checkpoints'), '');
      },
    ],
    ['a link in place of the segments', 'altered', 1, () => linkFolder('segments')],
    ['a link in place of the checkpoints', 'altered', 1, () => linkFolder('checkpoints')],
    ['a link in place of the archive itself', 'intact', 0, () => linkFolder('')],
    ['1,200 planted folders, each within the other', 'intact', 0, () => mkdirSync(at('a/'.repeat(1_200)), { recursive: true })],
    ['40 planted folders with long names', 'intact', 0, () => makeDeep(40, 'n'.repeat(200))],
    ['2,500 planted folders below the tiles', 'intact', 0, () => makeDeep(2_500, 'd', 'tile')],
    ['a planted copy of 298 MB', 'intact', 0, () => writeFileSync(at('checkpoint'), 'text\n\n'.padEnd(298_000_000, 'a\n'))],
    ['a planted pipe', 'intact', 0, () => execFileSync('mkfifo', [at('segments/pipe')])],
    ['a planted link to a folder', 'intact', 0, () => symlinkSync('/', at('segments/root'))],
    ['a planted segment of 10 TB', 'intact', 0, () => plantEmpty()],
    ['a name that is not UTF-8', 'intact', 0, () => writeFileSync(Buffer.concat([Buffer.from(at('keys/')), Buffer.of(0xff, 0x0a)]), '')],
    ['a name that looks like a report', 'intact', 0, () => writeFileSync(at('\u001b[2J\nintact: 9 lines'), '')],
  ])('with %s is %s', async (_name, result, code, change) => {
    change();
    const verifier = parseVerifier(key);
    expect((await verifyArchive(new DirectoryStore(join(folder, 'archive')), verifier ? [verifier] : [])).result).toBe(result);
    const run = verifyWithPython('--directory', join(folder, 'archive'), '--key', join(folder, 'key'));
    expect(run.code, run.text).toBe(code);
    expect(verdictIn(run.text)).toBe(result);
    expect(run.text).not.toMatch(/Traceback|\u001b|\nintact: 9/);
  });

  // The largest answer of an authority that Waybill stores has 64 KiB.
  it.each([
    [65_536, 'intact'],
    [65_537, 'altered'],
  ])('with a time stamp of %i bytes that a signed line names is %s', async (length, result) => {
    const store = new DirectoryStore(join(folder, 'stamped'));
    const writer = await openWriter(store, 'stamped');
    const [stamp, path] = [Buffer.alloc(length), 'timestamps/0000000001.tsr'];
    await writer.append([recordLine(1, start)], through(1));
    await store.create(path, stamp);
    await writer.append([recordLine(2, start)], {
      ...through(2),
      timestamp: { checkpoint: 1, sha256: createHash('sha256').update(stamp).digest('hex') },
    });
    const verifier = formatVerifier(signerOf(writer.origin, keyFrom(1)));
    writeFileSync(join(folder, 'key'), `${verifier}\n`);
    const parsed = parseVerifier(verifier);
    const report = await verifyArchive(store, parsed ? [parsed] : []);
    const run = verifyWithPython('--directory', join(folder, 'stamped'), '--key', join(folder, 'key'));
    expect([report.result, verdictIn(run.text)]).toEqual([result, result]);
    const altered = report.findings.filter(({ severity }) => severity === 'altered').map(({ object }) => object);
    expect(altered).toEqual(result === 'altered' ? [path] : []);
  });

  // As in a volume that only its owner, root, may read. The other user is `nobody`.
  it.runIf(process.getuid?.() === 0)('with an unreadable folder beside the archive is intact, and within it unproven', () => {
    chmodSync(folder, 0o755);
    const judgements = (): unknown[] => {
      const args = ['--directory', join(folder, 'archive'), '--key', join(folder, 'key')];
      const runs = [
        [process.execPath, join(process.env['WAYBILL_TEST_PROGRAM'] ?? '', 'bin/waybill.js'), 'archive', 'verify', ...args],
        ['python3', verifyProgram, ...args],
      ].map(([program = '', ...given]) => spawnSync(program, given, { uid: 65_534, gid: 65_534, encoding: 'utf8' }));
      return runs.map(({ status, stdout }) => [status, /^ *note +lost\+found\b/m.test(stdout)]);
    };
    mkdirSync(at('lost+found'), { mode: 0o700 });
    expect(judgements()).toEqual([
      [0, true],
      [0, true],
    ]);
    chmodSync(at('segments'), 0o700);
    expect(judgements()).toEqual([
      [3, true],
      [3, false],
    ]);
  });

  function verdictIn(text: string): string | undefined {
    const verdicts = { INTACT: 'intact', 'ALTERED OR MISSING': 'altered' };
    return Object.entries(verdicts).find(([name]) => text.split('\n').some((line) => line.startsWith(`${name}: `)))?.[1];
  }

  /** Step by step: a path of this length is too long for the system. */
  function makeDeep(depth: number, name: string, below = ''): void {
    const script =
      'import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(int(sys.argv[2])):\n os.mkdir(sys.argv[3])\n os.chdir(sys.argv[3])';
    execFileSync('python3', ['-c', script, at(below), String(depth), name]);
  }

  function linkFolder(name: string): void {
    const elsewhere = join(folder, 'elsewhere');
    renameSync(join(folder, 'archive', name), elsewhere);
    symlinkSync(elsewhere, join(folder, 'archive', name));
  }

  function replaceBy(create: () => void): void {
    rmSync(at(newest));
    create();
  }

  function plantEmpty(): void {
    const path = at(segmentPath(0, Buffer.alloc(0)));
    writeFileSync(path, '');
    truncateSync(path, 10_000_000_000_000);
  }
});

describe.skipIf(!hasPython)('a file of proofs', () => {
  it('has the same result by both verifiers', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(3, 2), 4);
    const found = await (await Prover.open(store)).record(recordLine(1, start).uid);
    const proof = formatProof(found ?? expect.fail('expected a proof'));
    const fields = JSON.parse(proof) as { index: number; entry: string; line: string };
    const falseLine = fields.line.replace('"logId":1', '"logId":2');
    const key = keyText(store);
    const verifier = parseVerifier(key);
    const cases: Readonly<Record<string, readonly [text: string, result: string]>> = {
      unchanged: [proof, 'intact'],
      'with an integer in another form': [proof.replace(`"index":${fields.index}`, `"index":${fields.index}.0`), 'intact'],
      'with an index between two lines': [proof.replace(`"index":${fields.index}`, `"index":${fields.index}.5`), 'altered'],
      'with another field': [proof.replace('{', '{"note":"x",'), 'altered'],
      'with an index that is true': [proof.replace(`"index":${fields.index}`, '"index":true'), 'altered'],
      'with an index of 5,000 digits': [proof.replace(`"index":${fields.index}`, `"index":${'9'.repeat(5_000)}`), 'altered'],
      // Not of the format, so no altered proof.
      'with an empty line after it': [`${proof}\n`, 'unproven'],
      'with a repeated key': [proof.replace('{', '{"entry":"AAAA",'), 'altered'],
      'with a false line before the true one': [proof.replace('{', `{"line":${JSON.stringify(falseLine)},`), 'altered'],
      'with a false line before the true one, whose key has an escape': [
        proof.replace('{', `{"l\\u0069ne":${JSON.stringify(falseLine)},`),
        'altered',
      ],
      'with millions of escapes in its line': [proof.replace('"line":"', () => `"line":"${'\\n'.repeat(4_000_000)}`), 'altered'],
      'with the signature of an unknown key with a long name': [
        proof.replace(/\\n"}\n$/, () => `\\n\u2014 ${'a'.repeat(20_000_000)} AAAAAAA=\\n"}\n`),
        'intact',
      ],
      'nested very deep': ['['.repeat(100_000), 'unproven'],
      'with an empty line alone': ['\n', 'unproven'],
      empty: ['', 'unproven'],
    };
    for (const [name, [text, result]] of Object.entries(cases)) {
      const ours = worstOf(await checkProofs(linesIn(text), verifier ? [verifier] : []));
      expect([name, ours, resultOf(await secondProofCheck(text, key))]).toEqual([name, result, result]);
    }
  });
});
