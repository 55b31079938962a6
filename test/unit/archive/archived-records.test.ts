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
      const read = await reader.read(at, limit);
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
    const numbered = await (await open()).read(0, all);
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
    const [first] = await (await open()).read(0, all);
    const { uid, source, received, late, record } = records[0] as RecordLine;
    expect(first).toMatchObject({ kind: 'record', seq: 1, number: undefined, uid, source, received, late, time: start });
    // A line break between tokens became a space.
    expect(first?.text).toBe(Buffer.from(record).toString().replace('\n', ' '));
  });

  it('omit the records that the sink receives from the journal', async () => {
    const read = await (await open(store, { journal: 'journal-1', seq: 200 })).read(0, all);
    expect(read.map(({ uid }) => uid)).toEqual(records.filter(({ seq }) => seq <= 200).map(({ uid }) => uid));
  });

  it('include records of an earlier journal, even if their numbers are higher', async () => {
    const files = new MemoryStore();
    await (await openWriter(files, 'first')).append([recordLine(900, start)], { ...through(900), journal: 'lost' });
    await (await openWriter(files, 'next', { beginsAfter: 0 })).append([recordLine(1, start), recordLine(9, start)], through(9));
    const read = await (await open(files, { journal: 'journal-1', seq: 5 })).read(0, all);
    expect(read.map(({ uid }) => uid)).toEqual([900, 1].map((seq) => recordLine(seq, start).uid));
  });

  it('are read from the first segment on that retention left', async () => {
    const segments = [...store.files.keys()].filter((path) => path.startsWith('segments/')).sort();
    expect((await open()).removed).toBe(0);
    // The segments of 170 lines and a position end after lines 171 and 342.
    for (const [count, removed] of [
      [1, 171],
      [2, 342],
    ] as const) {
      const files = new MemoryStore([...store.files].filter(([path]) => !segments.slice(0, count).includes(path)));
      expect((await open(files)).removed).toBe(removed);
      const numbered = await (await open()).read(0, all);
      expect(await uids(files, all)).toEqual(numbered.filter(({ seq }) => seq > removed).map(({ uid }) => uid));
    }
    const without = new MemoryStore([...store.files].filter(([path]) => !segments.includes(path)));
    await expect((await open(without)).read(0, all)).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it('are returned up to a segment that was altered, and not from it', async () => {
    const [, second = ''] = [...store.files.keys()].filter((path) => path.startsWith('segments/')).sort();
    const [first = ''] = [...store.files.keys()].filter((path) => path.startsWith('segments/')).sort();
    const changes: readonly (readonly [string, Buffer | undefined])[] = [
      [second, undefined],
      [second, store.files.get(first)],
      ['checkpoints/0000000002', undefined],
      ['checkpoints/0000000002', store.files.get('checkpoints/0000000003')],
    ];
    for (const [path, bytes] of changes) {
      const files = new MemoryStore(store.files);
      if (bytes) files.files.set(path, bytes);
      else files.files.delete(path);
      const reader = await open(files);
      expect((await reader.read(0, { records: 100, bytes: 1e9 })).length).toBe(100);
      await expect(reader.read(171, all)).rejects.toMatchObject({ code: 'archive_broken' });
    }
  });

  it('are not read with altered tiles, or from an archive with another key', async () => {
    const files = new MemoryStore(store.files);
    for (const [path, bytes] of store.files) if (path.startsWith('tile/0/')) files.files.set(path, Buffer.alloc(bytes.length));
    await expect((await open(files)).read(171, all)).rejects.toMatchObject({ code: 'archive_broken' });
    await expect(open(store, elsewhere, 2)).rejects.toMatchObject({ code: 'archive_broken' });
    await expect(open(new MemoryStore())).rejects.toMatchObject({ code: 'archive_broken' });
  });
});
