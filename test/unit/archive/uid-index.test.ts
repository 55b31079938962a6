import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { BucketStore } from '../../../src/archive/bucket/store.ts';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { bundleStep, formatEntry, writeToBundle } from '../../../src/archive/entry.ts';
import { checkProof } from '../../../src/archive/proof-file.ts';
import { Prover } from '../../../src/archive/prove.ts';
import { signerOf } from '../../../src/archive/signed-note.ts';
import type { WritableArchiveStore } from '../../../src/archive/store.ts';
import { formatIndex, searchIndex } from '../../../src/archive/uid-index.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { archiveSettings, bucketTarget } from '../../../src/sink/archive/settings.ts';
import { S3Model } from '../../support/sinks/s3-model.ts';
import { keyFrom, MemoryStore, openWriter, recordLine, seededBytes, through, windowLines, writeArchive } from '../../support/archive.ts';
import { temporary } from '../../support/model-journal.ts';

const path = 'index/0000000000';
const store = new MemoryStore();
/** More than the 65,536 leaves of a file of the index. */
const lines = windowLines(6_700, 9);
const records = lines.flatMap((line) => (line.kind === 'record' ? [line] : []));
beforeAll(() => writeArchive(store, lines, 9_000));

/** Copies the archive without its index, appends a line, and expects the index. */
async function expectCompleted(copy: WritableArchiveStore): Promise<void> {
  for (const [name, bytes] of store.files) if (name !== path) await copy.replace(name, bytes);
  const writer = await openWriter(copy, 'after the kill');
  expect(await copy.read(path)).toBeUndefined();
  const seq = (lines.at(-1)?.seq ?? 0) + 1;
  await writer.append([recordLine(seq, 0)], through(seq));
  expect((await copy.read(path))?.equals(store.files.get(path) ?? Buffer.alloc(0))).toBe(true);
}

/** @returns the sequence number of the proven record, and the times that every entry was read */
async function proven(files: Iterable<readonly [string, Buffer]>, uid: string): Promise<readonly [seq: unknown, searches: number]> {
  let searches = 0;
  const proof = await (await Prover.open(new MemoryStore(files))).record(uid, () => (searches += 1));
  const verifier = signerOf(store.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(1));
  if (proof) expect(checkProof(proof, [verifier]).result).toBe('intact');
  return [proof && (JSON.parse(proof.line.toString()) as { seq: number }).seq, searches];
}

describe('the index of uids', () => {
  it('has a row of 18 bytes for each record of its leaves, in the order of uids', () => {
    const rows = store.files.get(path) ?? Buffer.alloc(0);
    const uids = Array.from({ length: rows.length / 18 }, (_, i) => rows.toString('hex', i * 18, i * 18 + 16));
    // The index covers 65,536 leaves: seven segments of 9,000 lines and one position each, and the first
    // 2,529 lines of the eighth. So it covers 65,529 lines; every tenth line is a proof, without a row.
    const expected = lines
      .slice(0, 65_529)
      .flatMap((line) => (line.kind === 'record' ? [Buffer.from(line.uid, 'base64url').toString('hex')] : []));
    expect(uids).toEqual(expected.sort());
    expect([...store.files.keys()].filter((each) => each.startsWith('index/'))).toEqual([path]);
  });

  it('leads to each record, and the last entries to the newest', async () => {
    for (let i = 0; i < records.length; i += 4_999) expect(await proven(store.files, records[i]?.uid ?? '')).toEqual([records[i]?.seq, 0]);
    expect(await proven(store.files, records.at(-1)?.uid ?? '')).toEqual([records.at(-1)?.seq, 0]);
  });

  const rows = (): Buffer => Buffer.from(store.files.get(path) ?? '');
  it.each<[string, () => Buffer | undefined]>([
    ['is missing', () => undefined],
    ['is empty', () => Buffer.alloc(0)],
    ['is cut', () => rows().subarray(0, 1_000)],
    ['has other leaves', () => rows().map((byte, i) => (i % 18 === 17 ? byte ^ 1 : byte)) as Buffer],
    ['is in another order', () => Buffer.concat([rows().subarray(500_004), rows().subarray(0, 500_004)])],
    ['is not an index', () => Buffer.from(seededBytes('index')(10_000))],
  ])('that %s costs time, and changes no answer', async (_, change) => {
    const files = new Map(store.files);
    const changed = change();
    if (changed) files.set(path, Buffer.from(changed));
    else files.delete(path);
    const first = records.find(({ uid }) => uid.startsWith('_')) ?? records[0];
    expect(await proven(files, first?.uid ?? '')).toEqual([first?.seq, 1]);
    expect(await proven(files, 'AAAAAAAAAAAAAAAAAAAAAA')).toEqual([undefined, 1]);
  });

  it('has the file that a kill left out after the next append, in a directory', async () => {
    const folder = temporary();
    try {
      await expectCompleted(new DirectoryStore(folder));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has the file that a kill left out after the next append, in a bucket', async () => {
    await using model = await S3Model.start();
    const { s3 } = archiveSettings.parse({
      s3: {
        ...{ bucket: 'audit', region: 'eu-central-1', endpoint: model.endpoint, objectLock: '365d' },
        ...{ accessKeyId: 'model-key', secretAccessKey: 'model-secret' },
      },
      signingKey: keyFrom(1).export({ format: 'pem', type: 'pkcs8' }),
    });
    if (!s3) throw new Error('the settings have no bucket');
    await using bucket = new BucketStore(bucketTarget(s3, {}), { setting: 'sinks.archive.s3', clock: systemClock });
    await expectCompleted(bucket);
  });

  // An insertion sort would move half of the rows for each row.
  it.each([0, 4, 8, 12])(
    'has rows in order for 65,536 uids in descending order that differ only from byte %i on',
    { timeout: 60_000 },
    (at) => {
      const uids = Array.from({ length: 65_536 }, (_, i) => {
        const uid = Buffer.alloc(16, 7);
        uid.writeUInt32BE(65_536 - i, at);
        return uid;
      });
      const bundle = Buffer.alloc(uids.length * bundleStep);
      for (const [i, uid] of uids.entries())
        writeToBundle(bundle, i, formatEntry({ kind: 'record', seq: i, uid: uid.toString('base64url') }, Buffer.alloc(0)));
      const row = (leaf: number): string => `${uids[leaf]?.toString('hex')}${leaf.toString(16).padStart(4, '0')}`;
      expect(formatIndex(bundle).toString('hex')).toBe(Array.from({ length: 65_536 }, (_, i) => row(65_535 - i)).join(''));
    },
  );

  it('tells uids with the same beginning apart', () => {
    const uids = Array.from({ length: 300 }, (_, i) =>
      Buffer.concat([Buffer.alloc(4, 7), createHash('md5').update(`${i}`).digest()]).subarray(0, 16),
    );
    const entries = uids.map((uid, seq) => formatEntry({ kind: 'record', seq, uid: uid.toString('base64url') }, Buffer.alloc(0)));
    const bundle = Buffer.alloc(301 * bundleStep);
    for (const [i, entry] of [formatEntry({ kind: 'position', seq: 0 }, Buffer.alloc(0)), ...entries].entries())
      writeToBundle(bundle, i, entry);
    const index = formatIndex(bundle);
    expect(uids.map((uid) => searchIndex(index, uid))).toEqual(uids.map((_, i) => i + 1));
    expect(searchIndex(index, Buffer.alloc(16, 7))).toBeUndefined();
  });
});
