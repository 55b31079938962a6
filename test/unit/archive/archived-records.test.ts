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

  it('include what a newer state archived under numbers that the restored state used again', async () => {
    const files = new MemoryStore();
    await (await openWriter(files, 'first')).append([recordLine(1, start), recordLine(4, start)], through(4));
    const restored = await openWriter(files, 'next', { beginsAfter: 2 });
    await restored.append([recordLine(3, start), recordLine(5, start), recordLine(6, start)], {
      ...through(6),
      journal: 'journal-1.1',
      after: 2,
    });
    const read = await (await open(files, { journal: 'journal-1', seq: 3 })).read(0, all);
    expect(read.map(({ uid }) => uid)).toEqual([1, 4, 3].map((seq) => recordLine(seq, start).uid));
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

  it('are returned up to a missing segment, whose lines are named; those behind it can be read', async () => {
    const numbered = await (await open()).read(0, all);
    for (const [first, count] of [
      [0, 1],
      [0, 2],
      [1, 1],
      [2, 1],
      [1, 2],
      [3, 1],
    ] as const) {
      const files = without(...segments().slice(first, first + count));
      const [after, last] = [ends[first] ?? 0, ends[first + count] ?? 0];
      for (const limit of [all, { records: 7, bytes: 1e9 }, { records: 1_000, bytes: 2_000 }]) {
        const reader = await open(files);
        const found: string[] = [];
        let at = 0;
        while (at < after) {
          const read = await reader.read(at, limit).catch(() => []);
          if (read.length === 0) break;
          found.push(...read.map(({ uid }) => uid));
          at = read.at(-1)?.seq ?? 0;
        }
        expect(found).toEqual(numbered.filter(({ seq }) => seq <= after).map(({ uid }) => uid));
        await expect(reader.read(at, limit)).rejects.toMatchObject({
          code: 'archive_broken',
          message: expect.stringMatching(
            new RegExp(
              `^cannot read the lines ${after + 1} to ${last} of the archive: .* is missing.*"--from ${last + 1}" goes on behind them`,
            ),
          ) as string,
        });
        expect(await uids(files, limit, last)).toEqual(numbered.filter(({ seq }) => seq > last).map(({ uid }) => uid));
      }
    }
  });

  it('are not returned from the middle of a missing segment on: only its other lines are named', async () => {
    const reader = await open(without(segments()[1]));
    await expect(reader.read(200, all)).rejects.toMatchObject({
      message: expect.stringContaining('the lines 201 to 342 of the archive') as string,
    });
  });

  it('are read behind a missing segment, whatever files have names inside it', async () => {
    const files = without(segments()[1]);
    for (const leaf of [172, 200, 341, 605]) files.files.set(...planted(leaf));
    await expect((await open(files)).read(171, all)).rejects.toMatchObject({
      message: expect.stringContaining('the lines 172 to 342 of the archive') as string,
    });
    const [next] = await (await open(files)).read(342, all);
    expect(next?.seq).toBeGreaterThan(342);
  });

  it('are not complete without the newest segments', async () => {
    const files = without(...segments().slice(2));
    const found = await (await open(files)).read(0, all);
    expect(found.at(-1)?.seq).toBeLessThanOrEqual(342);
    const message =
      'cannot read the lines 343 to 604 of the archive: "segments/0000000000000342-…" is missing, and no segment follows; ' +
      '"--from 605" goes on behind them, and "waybill archive verify" examines the archive';
    await expect((await open(files)).read(342, all)).rejects.toMatchObject({ code: 'archive_broken', message });
    await expect((await open(without(...segments()))).read(0, all)).rejects.toMatchObject({ code: 'archive_broken' });
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
      expect((await reader.read(0, { records: 100, bytes: 1e9 })).length).toBe(100);
      const message = path === second ? { message: expect.stringMatching(/the lines 172 to 342 .* leads to the root/) as string } : {};
      await expect(reader.read(171, all)).rejects.toMatchObject({ code: 'archive_broken', ...message });
    }
  });

  it('end on the line that no record before the next one follows', async () => {
    const reader = await open();
    const numbered = await reader.read(0, all);
    const inFirst = numbered.filter(({ seq }) => seq <= 171).length;
    for (const count of [1, 9, inFirst - 1, inFirst, inFirst + 1]) {
      const read = await reader.read(0, { records: count, bytes: 1e9 });
      const last = read.at(-1)?.seq ?? 0;
      expect([read.length, reader.endOf(last)]).toEqual([count, count === inFirst ? 171 : last]);
    }
    expect(reader.endOf((await reader.read(0, all)).at(-1)?.seq ?? 0)).toBe(604);
  });

  it('of an archive that was never written are none', async () => {
    const reader = await open(new MemoryStore());
    expect([reader.lines, await reader.read(0, all)]).toEqual([0, []]);
  });

  it('are not read with altered tiles, or from an archive with another key', async () => {
    const files = new MemoryStore(store.files);
    for (const [path, bytes] of store.files) if (path.startsWith('tile/0/')) files.files.set(path, Buffer.alloc(bytes.length));
    await expect((await open(files)).read(171, all)).rejects.toMatchObject({ code: 'archive_broken' });
    await expect(open(store, elsewhere, 2)).rejects.toMatchObject({ code: 'archive_broken' });
  });
});
