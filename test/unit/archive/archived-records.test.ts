import { beforeAll, describe, expect, it } from 'vitest';
import { ArchivedRecordReader } from '../../../src/archive/archived-records.ts';
import type { RecordLine } from '../../../src/archive/line.ts';
import { keyFrom, MemoryStore, openWriter, recordLine, start, through, windowLines, writeArchive } from '../../support/archive.ts';

const all = { records: 1_000, bytes: 1e9 };
const elsewhere = { journal: 'another', seq: 0 };

describe('the records of an archive', () => {
  const lines = windowLines(60, 9);
  const records = lines.filter((line): line is RecordLine => line.kind === 'record');
  const store = new MemoryStore();
  beforeAll(() => writeArchive(store, lines, 170));

  const open = (files = store, end = elsewhere, seed = 1): Promise<ArchivedRecordReader> =>
    ArchivedRecordReader.open(files, [keyFrom(seed)], end);

  /** Reads like a replay: each time from the last line received. */
  async function uids(files: MemoryStore, limit: typeof all, after = 0): Promise<string[]> {
    const reader = await open(files);
    const found: string[] = [];
    for (let at = after; ;) {
      const { entries: read } = await reader.read(at, limit);
      if (read.length === 0) return found;
      found.push(...read.map(({ uid }) => uid));
      at = read.at(-1)?.seq ?? Infinity;
    }
  }

  it('are read in order, each once, in parts of any size', async () => {
    const expected = records.map(({ uid }) => uid);
    for (const limit of [all, { records: 7, bytes: 1e9 }, { records: 1_000, bytes: 2_000 }])
      expect(await uids(store, limit)).toEqual(expected);
    expect(await open()).toMatchObject({ lines: 604, origin: store.files.get('checkpoint')?.toString().split('\n')[0] });
  });

  it('are read from any line on, with the superseded partial tiles removed', async () => {
    const pruned = new MemoryStore([...store.files].filter(([path]) => !path.includes('.p/') || /\.p\/(92|2)$/.test(path)));
    const { entries: numbered } = await (await open()).read(0, all);
    for (const after of [1, 9, 170, 171, 172, 300, 341, 342, 512, 603]) {
      const later = numbered.filter(({ seq }) => seq > after).map(({ uid }) => uid);
      expect(await uids(pruned, { records: 50, bytes: 1e9 }, after)).toEqual(later);
    }
  });

  it('are closed with their storage', async () => {
    let closed = 0;
    const storage = Object.assign(new MemoryStore(store.files), { [Symbol.asyncDispose]: async () => void (closed += 1) });
    const reader = await open(storage);
    await reader.read(0, all);
    expect(closed).toBe(0);
    await reader[Symbol.asyncDispose]();
    expect(closed).toBe(1);
  });

  it('are as they were archived', async () => {
    const [first] = (await (await open()).read(0, all)).entries;
    const { uid, source, received, late, record } = records[0] as RecordLine;
    expect(first).toMatchObject({ kind: 'record', seq: 1, number: undefined, uid, source, received, late, time: start });
    // A line break between tokens became a space.
    expect(first?.text).toBe(Buffer.from(record).toString().replace('\n', ' '));
  });

  it('omit the records that the sink receives from the journal', async () => {
    const { entries: read } = await (await open(store, { journal: 'journal-1', seq: 200 })).read(0, all);
    expect(read.map(({ uid }) => uid)).toEqual(records.filter(({ seq }) => seq <= 200).map(({ uid }) => uid));
  });

  it('include records of an earlier journal, even if their numbers are higher', async () => {
    const files = new MemoryStore();
    await (await openWriter(files, 'first')).append([recordLine(900, start)], { ...through(900), journal: 'lost' });
    await (await openWriter(files, 'next', { beginsAfter: 0 })).append([recordLine(1, start), recordLine(9, start)], through(9));
    const { entries: read } = await (await open(files, { journal: 'journal-1', seq: 5 })).read(0, all);
    expect(read.map(({ uid }) => uid)).toEqual([900, 1].map((seq) => recordLine(seq, start).uid));
  });

  const segments = (files = store): string[] => [...files.files.keys()].filter((path) => path.startsWith('segments/')).sort();
  const without = (...paths: readonly (string | undefined)[]): MemoryStore =>
    new MemoryStore([...store.files].filter(([path]) => !paths.includes(path)));
  const planted = (firstLeaf: number): [string, Buffer] => [
    `segments/${String(firstLeaf).padStart(16, '0')}-${'0'.repeat(64)}.ndjson.gz`,
    Buffer.from('foreign'),
  ];

  /** The segments of 170 lines and a position end after these lines. */
  const ends = [0, 171, 342, 513, 604];

  it('are read without the segments that are missing, wherever they are', async () => {
    const { entries: numbered } = await (await open()).read(0, all);
    for (const missing of [[0], [0, 1], [1], [2], [1, 2], [0, 2]]) {
      const ranges = missing.map((i) => ({ after: ends[i] ?? 0, through: ends[i + 1] ?? 0 }));
      const files = without(...missing.map((i) => segments()[i]));
      const isLeft = ({ seq }: { seq: number }): boolean => !ranges.some(({ after, through: last }) => after < seq && seq <= last);
      for (const limit of [all, { records: 7, bytes: 1e9 }, { records: 1_000, bytes: 2_000 }])
        expect(await uids(files, limit)).toEqual(numbered.filter(isLeft).map(({ uid }) => uid));
      const [first, second] = ranges;
      const isOne = first?.through === second?.after;
      expect((await (await open(files)).read(0, all)).missing).toEqual(
        isOne ? [{ after: first?.after, through: second?.through }] : ranges,
      );
    }
  });

  it('are read after a missing segment, whatever files have names inside it', async () => {
    const files = without(segments()[1]);
    for (const leaf of [172, 200, 341, 605]) files.files.set(...planted(leaf));
    const { entries, missing } = await (await open(files)).read(171, all);
    expect(missing).toEqual([{ after: 171, through: 342 }]);
    expect(entries[0]?.seq).toBeGreaterThan(342);
  });

  it('are not complete without the newest segments: nothing shows that they were removed', async () => {
    const files = without(...segments().slice(2));
    const { entries } = await (await open(files)).read(0, all);
    expect(entries.at(-1)?.seq).toBeLessThanOrEqual(342);
    const message = `cannot read "segments/0000000000000342-…" of the archive: it is missing, and no segment follows; see "waybill archive verify"`;
    await expect((await open(files)).read(342, all)).rejects.toMatchObject({ code: 'archive_broken', message });
    await expect((await open(without(...segments()))).read(0, all)).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it('are looked for again in lines that were left out, where a foreign file is no evidence', async () => {
    const { entries: numbered } = await (await open()).read(0, all);
    const files = without(segments()[0], segments()[2]);
    files.files.set(...planted(0));
    const reader = await open(files);
    const { entries, missing } = await reader.read(0, all, 342);
    expect(missing).toEqual([{ after: 0, through: 171 }]);
    expect(entries.map(({ seq }) => seq)).toEqual(numbered.flatMap(({ seq }) => (seq > 171 && seq <= 342 ? [seq] : [])));
    expect(await reader.read(342, all, 500)).toEqual({ entries: [], through: 500, missing: [{ after: 342, through: 500 }] });
    await expect(reader.read(0, all)).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it('are returned up to an object that was altered, and not from it', async () => {
    const [first = '', second = ''] = segments();
    const changes: readonly (readonly [string, Buffer | undefined])[] = [
      [second, Buffer.alloc(0)],
      [second, store.files.get(first)],
      ['checkpoints/0000000002', undefined],
      ['checkpoints/0000000002', store.files.get('checkpoints/0000000003')],
    ];
    for (const [path, bytes] of changes) {
      const files = new MemoryStore(store.files);
      if (bytes) files.files.set(path, bytes);
      else files.files.delete(path);
      const reader = await open(files);
      expect((await reader.read(0, { records: 100, bytes: 1e9 })).entries.length).toBe(100);
      await expect(reader.read(171, all)).rejects.toMatchObject({ code: 'archive_broken' });
    }
  });

  it('are returned with a line that no record before the next one follows', async () => {
    const reader = await open();
    const { entries: numbered } = await reader.read(0, all);
    const inFirst = numbered.filter(({ seq }) => seq <= 171).length;
    for (const records of [1, 9, inFirst - 1, inFirst, inFirst + 1]) {
      const { entries, through: line } = await reader.read(0, { records, bytes: 1e9 });
      expect([entries.length, line]).toEqual([records, records === inFirst ? 171 : entries.at(-1)?.seq]);
    }
    expect(await reader.read(0, { records: 1_000, bytes: 1e9 })).toMatchObject({ through: 604 });
  });

  it('of an archive that was never written are none', async () => {
    const reader = await open(new MemoryStore());
    expect([reader.lines, await reader.read(0, all)]).toEqual([0, { entries: [], through: 0, missing: [] }]);
  });

  it('are not read with altered tiles, or from an archive with another key', async () => {
    const files = new MemoryStore(store.files);
    for (const [path, bytes] of store.files) if (path.startsWith('tile/0/')) files.files.set(path, Buffer.alloc(bytes.length));
    await expect((await open(files)).read(171, all)).rejects.toMatchObject({ code: 'archive_broken' });
    await expect(open(store, elsewhere, 2)).rejects.toMatchObject({ code: 'archive_broken' });
  });
});
