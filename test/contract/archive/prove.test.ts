import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkProof, checkProofs, formatProof, formatTlogProof, parseProof, worstOf } from '../../../src/archive/proof-file.ts';
import type { InclusionProof } from '../../../src/archive/proof-file.ts';
import { formatEntry } from '../../../src/archive/entry.ts';
import { leafHash } from '../../../src/archive/merkle.ts';
import { parseLine } from '../../../src/archive/parse-line.ts';
import { Prover } from '../../../src/archive/prove.ts';
import type { LeftOut } from '../../../src/archive/prove.ts';
import { formatVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { bundlePath, tileAt } from '../../../src/archive/tiles.ts';
import { Turns } from '../../../src/archive/verify/turns.ts';
import type { EntryLine } from '../../../src/archive/line.ts';
import { statementOf } from '../../../src/cli/commands/archive/verify-text.ts';
import { keyFrom, linesIn, MemoryStore, minute, openWriter, provenLine, recordLine } from '../../support/archive.ts';
import { segmentPath, start, through, uidOf, windowLines, writeArchive } from '../../support/archive.ts';
import { hasPython, resultOf, secondProofCheck, verifyProgram, verifyWithPython } from '../../support/second-verifier.ts';

const store = new MemoryStore();
const lines = windowLines(100, 9);
beforeAll(() => writeArchive(store, lines, 170));

const verifier = (seed = 1): ReturnType<typeof signerOf> =>
  signerOf(store.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(seed));
const records = lines.flatMap((line) => (line.kind === 'record' ? [line] : []));

async function small(): Promise<MemoryStore> {
  const archive = new MemoryStore();
  await writeArchive(archive, windowLines(3, 2), 4);
  return archive;
}

async function proofOf(uid: string, from = store): Promise<InclusionProof> {
  const proof = await (await Prover.open(from)).record(uid);
  if (!proof) throw new Error(`expected a proof of ${uid}`);
  return proof;
}

function parsed(text: string): InclusionProof {
  const proof = parseProof(text);
  if (!proof) throw new Error('expected a proof');
  return proof;
}

const none = ({ from }: LeftOut): void => expect.fail(`leaf ${from} is left out`);

/** All lines of an archive, and what is left out. Every proof is checked. */
async function exported(from: MemoryStore): Promise<{ readonly indexes: readonly number[]; readonly leftOut: readonly LeftOut[] }> {
  const leftOut: LeftOut[] = [];
  const indexes: number[] = [];
  const key = signerOf(from.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(1));
  const prover = await Prover.open(from);
  const texts: string[] = [];
  for await (const proof of prover.lines(
    () => true,
    (part) => leftOut.push(part),
  )) {
    texts.push(formatProof(proof));
    indexes.push(proof.index);
  }
  expect((await checkProofs(texts, [key])).filter(({ result }) => result !== 'intact')).toEqual([]);
  return { indexes, leftOut };
}

function segmentsOf({ files }: MemoryStore): readonly string[] {
  return [...files.keys()].filter((path) => path.startsWith('segments/')).sort();
}

const sizeOf = (checkpoint: Buffer | undefined): number => Number(checkpoint?.toString().split('\n')[1]);
const leafOf = (path: string): number => Number(path.slice(9, 25));
const flipped = (bytes: Buffer): Buffer => Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) ?? 0) ^ 1)]);

describe('a proof', () => {
  // promise: A proof shows that a record is in an archive, and reveals no other record.
  it('proves that a record is in the archive, and reveals no other record', async () => {
    for (const [i, { uid, seq }] of records.entries()) {
      if (i % 97 !== 0) continue;
      const text = formatProof(await proofOf(uid));
      const proof = parsed(text);
      expect(checkProof(proof, [verifier()])).toMatchObject({ result: 'intact', message: undefined });
      expect(JSON.parse(proof.line.toString())).toMatchObject({ kind: 'record', seq, uid });
      expect(records.filter((other) => text.includes(other.uid))).toHaveLength(1);
    }
  });

  it('is refused with a bit of any byte changed', async () => {
    const bytes = Buffer.from(formatProof(await proofOf(records[400]?.uid ?? '')));
    const accepted: string[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += 5) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const proof = parseProof(changed.toString());
      if (proof && checkProof(proof, [verifier()]).result === 'intact')
        accepted.push(`${bit}: ${JSON.stringify(changed.subarray((bit >> 3) - 3, (bit >> 3) + 3).toString())}`);
    }
    // A space between JSON tokens may be a line break, and a letter of an escape may be upper case.
    expect(accepted).toEqual([]);
  });

  it('does not exist for a record that is absent', async () => {
    const prover = await Prover.open(store);
    // The entry of a ledger line has this uid, but no record has it.
    expect(await prover.record('AAAAAAAAAAAAAAAAAAAAAA')).toBeUndefined();
    expect(await prover.record('BBBBBBBBBBBBBBBBBBBBBA')).toBeUndefined();
  });

  it('is not returned from a damaged archive', async () => {
    const { uid } = records[0] ?? { uid: '' };
    for (const damaged of [/^tile\/0\/000$/, /^tile\/entries\/000$/, /^segments\/0{16}/]) {
      const files = new MemoryStore([...store.files].filter(([path]) => !damaged.test(path)));
      expect(files.files.size).toBe(store.files.size - 1);
      const proof = await Prover.open(files)
        .then((prover) => prover.record(uid))
        .catch((thrown: unknown) => thrown);
      expect(proof).toMatchObject({ code: 'archive_broken' });
    }
  });

  it('has the newest checkpoint with stored tiles, and the last one if the copy is lost', async () => {
    const { uid } = records[0] ?? { uid: '' };
    const files = new MemoryStore(store.files);
    const before = store.files.get('checkpoints/0000000005') ?? Buffer.alloc(0);
    files.files.set('checkpoint', before);
    const size = Number(store.files.get('checkpoints/0000000006')?.toString().split('\n')[1]);
    const last = bundlePath(tileAt(0, Math.floor(size / 256), size));
    expect(files.files.delete(last)).toBe(true);
    expect(await (await Prover.open(files)).record(uid)).toMatchObject({ checkpoint: before });
    files.files.set(last, store.files.get(last) ?? Buffer.alloc(0));
    files.files.delete('checkpoint');
    expect(await (await Prover.open(files)).record(uid)).toMatchObject({ checkpoint: store.files.get('checkpoints/0000000006') });
  });

  it('is returned for each requested line, in order', async () => {
    const prover = await Prover.open(store);
    const proofs = await Array.fromAsync(prover.lines(({ kind, seq }) => kind === 'ledger' || seq % 50 === 1, none));
    const seqs = proofs.map(({ line }) => (JSON.parse(line.toString()) as { seq: number }).seq);
    expect(seqs).toEqual(lines.filter(({ kind, seq }) => kind === 'ledger' || seq % 50 === 1).map(({ seq }) => seq));
    expect(seqs.length).toBeGreaterThan(100);
    for (const proof of proofs) expect(checkProof(proof, [verifier()])).toMatchObject({ result: 'intact' });
  });

  it('is made for the lines of the present segments, and the others are named', async () => {
    const paths = segmentsOf(store);
    const [, second = 0, third = 0] = paths.map(leafOf);
    const last = leafOf(paths.at(-1) ?? '');
    const size = (await exported(store)).indexes.length;
    const [first, next, end, every] = [paths.slice(0, 1), paths.slice(1, 2), paths.slice(-1), paths];
    for (const [name, lost, leftOut] of [
      ['the oldest one', first, [{ from: 0, to: second, result: 'removed', problem: undefined }]],
      ['the two oldest', [...first, ...next], [{ from: 0, to: third, result: 'removed', problem: undefined }]],
      ['one between others', next, [{ from: second, to: third, result: 'missing', problem: undefined }]],
      ['the newest one', end, [{ from: last, to: size, result: 'missing', problem: undefined }]],
      [
        'the first and the last',
        [...first, ...end],
        [
          { from: 0, to: second, result: 'removed' },
          { from: last, to: size, result: 'missing' },
        ],
      ],
      ['all', every, [{ from: 0, to: size, result: 'missing', problem: undefined }]],
    ] as const) {
      const found = await exported(new MemoryStore([...store.files].filter(([path]) => !lost.includes(path))));
      expect(found.leftOut, name).toMatchObject(leftOut);
      const expected = Array.from({ length: size }, (_, i) => i).filter((i) => !leftOut.some(({ from, to }) => from <= i && i < to));
      expect(found.indexes, name).toEqual(expected);
    }
  });

  it('is made beside the segment of an unfinished attempt', async () => {
    const attempt = new MemoryStore(store.files);
    attempt.files.set((segmentsOf(store)[1] ?? '').replace(/-[0-9a-f]{2}/, '-00'), gzipSync('{"kind":"operation","seq":171}\n'));
    expect(await exported(attempt)).toEqual(await exported(store));
  });

  it('is not made for the lines of an altered segment, and a planted file never makes lines look removed', async () => {
    const [first = '', second = ''] = segmentsOf(store);
    const file = store.files.get(first) ?? Buffer.alloc(0);
    const text = gunzipSync(file).toString();
    const without = [...store.files].filter(([path]) => path !== first);
    for (const [name, path, bytes] of [
      ['another line', first, gzipSync(text.replace('"seq":1,', '"seq":2,'))],
      ['no gzip', first, Buffer.from('text')],
      ['a segment under the number of a line within it', segmentPath(5, file), file],
      ['a file within it', segmentPath(leafOf(second) - 1, Buffer.from('x')), Buffer.from('x')],
    ] as const) {
      const { leftOut, indexes } = await exported(new MemoryStore([...without, [path, bytes]]));
      expect(leftOut, name).toMatchObject([
        { from: 0, to: leafOf(second), result: 'altered', problem: expect.stringContaining(`"${path}"`) as string },
      ]);
      expect(indexes[0], name).toBe(leafOf(second));
    }
    // No line of the log: not a part of what is left out.
    const size = Number(store.files.get('checkpoint')?.toString().split('\n')[1]);
    const after = new MemoryStore([...without, [segmentPath(size, Buffer.from('x')), Buffer.from('x')]]);
    expect((await exported(after)).leftOut).toMatchObject([{ result: 'removed' }]);
  });

  it.each<[string, (files: MemoryStore['files'], forged: Buffer, last: number) => void]>([
    ['entries', () => undefined],
    [
      'entries and hashes',
      (files, forged) => {
        const [path, tile] = [...files].findLast(([each]) => each.startsWith('tile/0/')) ?? ['', Buffer.alloc(0)];
        files.set(path, Buffer.concat([leafHash(forged), tile.subarray(32)]));
      },
    ],
  ])('is refused with forged lines beside forged %s: they would hide others', async (_name, forge) => {
    const { files } = await small();
    const [path = ''] = segmentsOf(new MemoryStore(files));
    const [first = '', ...others] = gunzipSync(files.get(path) ?? Buffer.alloc(0))
      .toString()
      .split('\n');
    const line = first.replace('"source":"production"', '"source":"other"');
    const facts = parseLine(Buffer.from(line));
    if (facts?.kind !== 'record') throw new Error('expected a record');
    const entry = formatEntry(facts, Buffer.from(line));
    files.delete(path);
    const segment = gzipSync([line, ...others].join('\n'));
    files.set(segmentPath(0, segment), segment);
    const [bundle, bytes] = [...files].findLast(([each]) => each.startsWith('tile/entries/')) ?? ['', Buffer.alloc(0)];
    files.set(bundle, Buffer.concat([bytes.subarray(0, 2), entry, bytes.subarray(2 + entry.length)]));
    forge(files, entry, 0);
    await expect(exported(new MemoryStore(files))).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it.each([/^tile\/0\/000$/, /^tile\/0\/001$/, /^tile\/1\/000/, /^tile\/0\/.*\.p/, /^tile\/entries\/001$/])(
    'of each line is refused with a changed byte in %s',
    async (name) => {
      const files = new MemoryStore([...store.files].map(([path, bytes]) => [path, name.test(path) ? flipped(bytes) : bytes]));
      await expect(exported(files)).rejects.toMatchObject({ code: 'archive_broken' });
    },
  );

  it('has the bytes of a line that is not UTF-8, which verify.py reads too', async () => {
    const record = Buffer.from('{"logId":1,"userName":"\xff\xed\xa0\x80"}', 'latin1');
    const line = { ...recordLine(1, start), record };
    const archive = new MemoryStore();
    await writeArchive(archive, [line], 1);
    const proof = await (await Prover.open(archive)).record(line.uid);
    if (!proof) throw new Error('expected a proof');
    const text = formatProof(proof);
    expect(Buffer.from((JSON.parse(text) as { lineBase64: string }).lineBase64, 'base64').includes(record)).toBe(true);
    const key = signerOf(archive.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(1));
    for (const [changed, result] of [
      [text, 'intact'],
      [text.replace(/"lineBase64":"./, '"lineBase64":"A'), 'altered'],
      [text.replace('"lineBase64"', '"line":"","lineBase64"'), 'altered'],
    ] as const) {
      expect((await checkProofs(linesIn(changed), [key])).map((each) => each.result)).toEqual([result]);
      if (hasPython) expect(resultOf(await secondProofCheck(changed, formatVerifier(key)))).toBe(result);
    }
  });

  it('of each line is made beside planted files that are read first', async () => {
    const { files } = await small();
    const [path, file] = [...files].find(([each]) => each.startsWith(`segments/${'0'.repeat(16)}`)) ?? ['', Buffer.alloc(0)];
    const real = gunzipSync(file).toString().trimEnd().split('\n');
    const position = real.at(-1) ?? '';
    const planted = [[real[0], ...real.slice(1).map(() => position)], [...real.slice(0, -1), ...real], real.slice(0, 2), ['text']].map(
      (lines) => gzipSync(`${lines.join('\n')}\n`),
    );
    const beside = new MemoryStore([
      ...[...planted, Buffer.from('no gzip'), Buffer.alloc(0)].map((each) => [segmentPath(0, each), each] as const),
      ...files,
    ]);
    expect(await exported(beside)).toEqual(await exported(new MemoryStore(files)));
    expect(await (await Prover.open(beside)).record(recordLine(1, start).uid)).toBeDefined();
    beside.files.delete(path);
    expect((await exported(beside)).leftOut).toMatchObject([{ from: 0, result: 'altered' }]);
  });

  it.each([
    [
      'of very many lines',
      (files: MemoryStore['files']) =>
        files
          .get('checkpoint')
          ?.toString()
          .replace(/\n\d+\n/, '\n999999999967232\n'),
      'checkpoint',
    ],
    ['of fewer lines', (files: MemoryStore['files']) => files.get('checkpoints/0000000001')?.toString(), undefined],
    ['that is none', () => 'text', undefined],
  ])('is of the newest lines beside a copy of the checkpoint %s', async (_name, copy, newer) => {
    const { files } = await small();
    files.set('checkpoint', Buffer.from(copy(files) ?? ''));
    const prover = await Prover.open(new MemoryStore(files));
    expect(prover.newer?.path).toBe(newer);
    const newest = windowLines(3, 2).findLast(({ kind }) => kind === 'record') as { uid: string } | undefined;
    expect(await prover.record(newest?.uid ?? '')).toBeDefined();
  });

  it('leaves out lines whose tiles are missing, and names their checkpoint', async () => {
    const { files } = await small();
    const former = files.get('checkpoints/0000000002');
    files.set('checkpoint', former ?? Buffer.alloc(0));
    const size = sizeOf(files.get('checkpoints/0000000003'));
    expect(files.delete(bundlePath(tileAt(0, 0, size)))).toBe(true);
    const { newer } = await Prover.open(new MemoryStore(files));
    expect(newer).toEqual({ path: 'checkpoints/0000000003', lines: size - sizeOf(former) });
    files.delete('checkpoint');
    expect((await Prover.open(new MemoryStore(files))).newer).toEqual(newer);
  });

  // A writer creates a checkpoint only after it has stored the tiles of the one before.
  it('never leaves out the lines of more than one checkpoint', async () => {
    for (const lost of [[], ['checkpoints/0000000002']]) {
      const { files } = await small();
      const size = sizeOf(files.get('checkpoints/0000000003'));
      files.set('checkpoint', files.get('checkpoints/0000000001') ?? Buffer.alloc(0));
      for (const path of [bundlePath(tileAt(0, 0, size)), ...lost]) expect(files.delete(path)).toBe(true);
      const opened = Prover.open(new MemoryStore(files));
      if (lost.length === 0) expect((await opened).newer).toMatchObject({ path: 'checkpoints/0000000003' });
      else await expect(opened).rejects.toMatchObject({ code: 'archive_broken' });
    }
  });

  // The copy is of the checkpoint before, so only the newest note may say how many lines there are.
  it.each([
    ['is no checkpoint', () => 'x'],
    ['is the checkpoint before', (files: MemoryStore['files']) => files.get('checkpoints/0000000002')?.toString()],
    ['is an older checkpoint', (files: MemoryStore['files']) => files.get('checkpoints/0000000001')?.toString()],
  ])('says that lines may be left out if the newest note %s', async (_name, newest) => {
    const { files } = await small();
    const former = files.get('checkpoints/0000000002') ?? Buffer.alloc(0);
    files.set('checkpoint', former);
    files.set('checkpoints/0000000003', Buffer.from(newest(files) ?? ''));
    const { size, newer } = await Prover.open(new MemoryStore(files));
    expect([size, newer]).toEqual([sizeOf(former), { path: 'checkpoints/0000000003', lines: undefined }]);
    // An older copy hides no further line.
    files.set('checkpoint', files.get('checkpoints/0000000001') ?? former);
    expect(await Prover.open(new MemoryStore(files))).toMatchObject({ size, newer });
    files.delete(bundlePath(tileAt(0, 0, size)));
    await expect(Prover.open(new MemoryStore(files))).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it('says that lines may be left out if the only note is none', async () => {
    const { files } = await small();
    files.set('checkpoint', files.get('checkpoints/0000000001') ?? Buffer.alloc(0));
    for (const number of [2, 3]) files.delete(`checkpoints/000000000${number}`);
    files.set('checkpoints/0000000001', Buffer.from('x'));
    expect((await Prover.open(new MemoryStore(files))).newer).toEqual({ path: 'checkpoints/0000000001', lines: undefined });
  });

  it.each([
    ['that is no checkpoint', () => 'x'],
    ['of an older checkpoint', (files: MemoryStore['files']) => files.get('checkpoints/0000000001')?.toString()],
  ])('names a planted note %s with a later number', async (_name, planted) => {
    const { files } = await small();
    files.set('checkpoints/9999999999', Buffer.from(planted(files) ?? ''));
    await expect(Prover.open(new MemoryStore(files))).rejects.toThrow(
      'cannot use "checkpoints/9999999999" of the archive: it does not follow the checkpoint before it',
    );
  });

  it('is not made from a copy of an old checkpoint beside missing tiles of the two newest', async () => {
    const { files } = await small();
    files.set('checkpoint', files.get('checkpoints/0000000001') ?? Buffer.alloc(0));
    for (const number of [2, 3]) files.delete(bundlePath(tileAt(0, 0, sizeOf(files.get(`checkpoints/000000000${number}`)))));
    await expect(Prover.open(new MemoryStore(files))).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it.each<[string, (file: Buffer) => readonly [leaf: number, bytes: Buffer]]>([
    ['that starts within a segment', () => [2, Buffer.from('x\n')]],
    ['of other lines within a segment', (file) => [2, file]],
  ])('of a record is made beside a planted file %s', async (_name, plant) => {
    const { files } = await small();
    const [, file = Buffer.alloc(0)] = [...files].find(([each]) => each.startsWith(`segments/${'0'.repeat(16)}`)) ?? [];
    const [leaf, bytes] = plant(file);
    files.set(segmentPath(leaf, bytes), bytes);
    expect(await (await Prover.open(new MemoryStore(files))).record(uidOf(4, windowLines(3, 2)))).toBeDefined();
  });

  it('is checked with its own checkpoint, whichever the one before had', async () => {
    const proof = await proofOf(records[0]?.uid ?? '');
    const forged = { ...proof, checkpoint: Buffer.from(proof.checkpoint.toString().replace(/.{9}\n$/, 'AAAAAAA=\n')) };
    const unsigned = { ...proof, checkpoint: Buffer.from(proof.checkpoint.toString().replace(/\u2014 \S+/, '\u2014 other')) };
    const results = await checkProofs(
      [proof, proof, forged, unsigned, unsigned, proof].map((each) => formatProof(each)),
      [verifier()],
    );
    expect(results.map(({ result }) => result)).toEqual(['intact', 'intact', 'altered', 'unproven', 'unproven', 'intact']);
  });

  it('is checked until a signal ends it', async () => {
    const reason = new Error('stopped');
    const turns = new Turns(AbortSignal.abort(reason));
    await expect(checkProofs(Array<string>(5_000).fill(''), [verifier(1)], turns)).rejects.toBe(reason);
  });

  it.skipIf(!hasPython)('has the same result in verify.py after any change', async () => {
    const proof = await proofOf(records[400]?.uid ?? '');
    const other = await proofOf(records[500]?.uid ?? '');
    const [, ...rest] = proof.hashes;
    const changes: readonly (Partial<InclusionProof> | string)[] = [
      ...[{}, { index: other.index }, { index: 0 }, { hashes: rest }, { hashes: [...proof.hashes, ...rest] }, { line: other.line }],
      ...[{ entry: other.entry }, { hashes: [Buffer.alloc(31), ...rest] }, { checkpoint: Buffer.from('no checkpoint') }],
      ...['', '\n', '{}', '[]', 'text', formatProof(proof).replace('waybill-proof/1', 'waybill-proof/3'), formatProof(proof).repeat(3)],
      // Half of a character in place of U+FFFD, which an encoder would put in its place.
      formatProof({ ...proof, line: Buffer.from(`${proof.line.toString().slice(0, -1)}\ufffd}`) }).replace('\ufffd', String.raw`\ud800`),
      formatProof(proof) + formatProof({ ...proof, index: 7 }),
    ];
    for (const [seed, accepted, count] of [
      [1, 'intact', 2],
      // A text without a proof of this format is unproven with any key.
      [2, 'unproven', 8],
    ] as const) {
      const results: string[] = [];
      for (const change of changes) {
        const text = typeof change === 'string' ? change : formatProof({ ...proof, ...change });
        const worst = worstOf(await checkProofs(linesIn(text), [verifier(seed)]));
        expect(resultOf(await secondProofCheck(text, formatVerifier(verifier(seed)))), text).toBe(worst);
        results.push(worst);
      }
      expect(results.filter((result) => result === accepted)).toHaveLength(count);
    }
  });

  it('has the format of C2SP tlog-proof, whose hashes lead to the root as RFC 9162 describes', async () => {
    const parts =
      /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (\d+)\n((?:[A-Za-z0-9+/]{43}=\n)*)\n([^\n]+)\n(\d+)\n(\S+)\n\n(\u2014 [^\n]+\n)+$/;
    for (const seq of [1, 400, 900]) {
      const { line, entry, ...proof } = await proofOf(uidOf(records[seq - 1]?.seq ?? 0, lines));
      const [, extra = '', index, hashes = '', , size, root] =
        parts.exec(formatTlogProof({ line, entry, ...proof })) ?? expect.fail('another format');
      expect(Buffer.from(extra, 'base64')).toEqual(Buffer.concat([entry, line]));
      const sha256 = (...data: readonly Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(data)).digest();
      // RFC 9162, section 2.1.3.2.
      let [fn, sn, r] = [Number(index), Number(size) - 1, sha256(Buffer.of(0), entry)];
      for (const p of hashes
        .trimEnd()
        .split('\n')
        .map((text) => Buffer.from(text, 'base64'))) {
        expect(sn).toBeGreaterThan(0);
        if (fn % 2 === 1 || fn === sn) {
          r = sha256(Buffer.of(1), p, r);
          while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
        } else r = sha256(Buffer.of(1), r, p);
        [fn, sn] = [fn >> 1, sn >> 1];
      }
      expect([sn, r.toString('base64')]).toEqual([0, root]);
    }
  });

  it.skipIf(!hasPython)('is told by both verifiers, which print the same statement and the same bytes', async () => {
    const archive = new MemoryStore();
    const time = start + minute;
    const others: readonly EntryLine[] = [
      {
        ...recordLine(1, start),
        record: Buffer.from('{"logId":"a","logTimestamp":"2026-07-01T00:00:01","actionAttempted":"Öffnen","result":7}'),
      },
      { ...recordLine(2, start), record: Buffer.from([0x7b, 0xff, 0x7d]) },
      { ...recordLine(3, start), record: Buffer.from('{"logId":3,"result":"AccessDenied","result":"AccessGranted"}') },
      { kind: 'operation', seq: 4, at: time, actor: 'm.weber\u001b[2J', operation: 'replay', detail: {} },
      provenLine(5, start, time, []),
    ];
    await (await openWriter(archive, 'told')).append(others, through(5));
    const prover = await Prover.open(archive);
    const proofs = (await Array.fromAsync(prover.lines(() => true, none))).map(formatProof);
    const key = signerOf(archive.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(1));
    const told: string[] = [];
    const bytes: Buffer[] = [];
    await checkProofs(linesIn(proofs.join('')), [key], new Turns(), ({ number, line, index, size }) => {
      told.push(`proof ${number}: line ${index + 1} of ${size}: ${statementOf(line)}`);
      bytes.push(line, Buffer.from('\n'));
    });
    const uids = [1, 2, 3].map((seq) => uidOf(seq, others));
    expect(told).toEqual([
      `proof 1: line 1 of 6: record, ${uids[0]}, 2026-07-01T00:00:01, Öffnen, 7`,
      `proof 2: line 2 of 6: record, ${uids[1]}, -, -, -`,
      `proof 3: line 3 of 6: record, ${uids[2]}, -, -, AccessGranted (it has a key twice, and the last one counts)`,
      'proof 4: line 4 of 6: operation, 2026-07-01T00:01:00.000000Z, m.weber\u001b[2J, replay',
      'proof 5: line 5 of 6: ledger, production, 2026-07-01T00:00:00.000000Z, 2026-07-01T00:01:00.000000Z, proven, 0',
      expect.stringMatching(/^proof 6: line 6 of 6: position, .*Z, 5$/),
    ]);
    const folder = mkdtempSync(join(tmpdir(), 'waybill-proof-'));
    try {
      writeFileSync(join(folder, 'key'), formatVerifier(key));
      writeFileSync(join(folder, 'proofs'), proofs.join(''));
      const args = ['--proof', join(folder, 'proofs'), '--key', join(folder, 'key')];
      const escaped = told.map((text) => text.replace('Ö', '\\xd6').replace('\u001b', '\\x1b'));
      expect(verifyWithPython(...args).text).toContain(`${escaped.join('\n')}\n`);
      expect(spawnSync('python3', [verifyProgram, ...args, '--print']).stdout).toEqual(Buffer.concat(bytes));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.skipIf(!hasPython)('is checked by verify.py as a program, which exits 0, 1 or 3', async () => {
    const text = formatProof(await proofOf(records[400]?.uid ?? ''));
    const folder = mkdtempSync(join(tmpdir(), 'waybill-proof-'));
    try {
      for (const [seed, content, code] of [
        [1, text, 0],
        [1, text.replace('waybill-proof/1', 'waybill-proof/3'), 3],
        [1, text.replace(/"index":\d+/, '"index":7'), 1],
        [2, text, 3],
        [1, '', 3],
      ] as const) {
        writeFileSync(join(folder, 'key'), formatVerifier(verifier(seed)));
        writeFileSync(join(folder, 'proof'), content);
        expect(verifyWithPython('--proof', join(folder, 'proof'), '--key', join(folder, 'key')).code, content).toBe(code);
        const piped = `cat "$1/proof" | python3 "$0" --proof /dev/stdin --key "$1/key"`;
        expect(spawnSync('bash', ['-c', piped, verifyProgram, folder]).status, content).toBe(code);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
