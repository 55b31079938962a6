import { expect, it } from 'vitest';
import { Turns } from '../../../src/archive/verify/turns.ts';
import { RecordIndex } from '../../../src/archive/verify/record-index.ts';
import { seededBytes, start } from '../../support/archive.ts';

const turns = new Turns();

it.each([64 * 1024 * 1024, 4096])(
  'returns the uids of a range in order, whatever the file contains (%i bytes of memory)',
  async (maxMemory) => {
    using index = new RecordIndex(maxMemory);
    const random = seededBytes('index');
    const rows = Array.from({ length: 20_000 }, (_, i) => {
      const bytes = Buffer.from(random(32));
      return {
        source: bytes[0] === 0 ? 'other' : 'production',
        time: start + (bytes.readUInt32BE(1) % 4_000) * 1_000_000,
        uid: bytes.subarray(16),
        i,
      };
    });
    for (const [i, { source, time, uid }] of rows.entries()) {
      index.add(source, time, uid, 0);
      if (i % 1_999 !== 0) continue;
      const [from, to] = [start + (i % 3_000) * 1_000_000, start + ((i % 3_000) + 900) * 1_000_000];
      const expected = rows.slice(0, i + 1).filter((row) => row.source === 'production' && row.time >= from && row.time < to);
      const uids = expected.map((row) => row.uid.toString('hex')).sort();
      expect((await index.uidsIn('production', from, to, turns)).uids.toString('hex')).toBe(uids.join(''));
      expect(index.countAround('production', from, to)).toBeGreaterThanOrEqual(uids.length);
    }
    index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16), 0);
    index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16), 0);
    expect((await index.uidsIn('production', start, start + 1, turns)).uids.length / 16).toBe(
      new Set([rows[0], ...rows.filter((row) => row.source === 'production' && row.time === start)].map((row) => row?.uid.toString('hex')))
        .size,
    );
  },
);

/** Expects each of the uids once, in order, after they were added in this order and some of them again. */
async function expectSorted(uids: readonly Buffer[]): Promise<void> {
  using index = new RecordIndex();
  for (const uid of [...uids, ...uids.slice(0, 500)]) index.add('production', start, uid, 0);
  const sorted = uids.map((uid) => uid.toString('hex')).sort();
  expect((await index.uidsIn('production', start, start + 1, turns)).uids.toString('hex')).toBe(sorted.join(''));
}

it('sorts uids with the same beginning, and gives each once', async () => {
  const random = seededBytes('beginnings');
  const uids = Array.from({ length: 3_000 }, (_, i) =>
    Buffer.concat([Buffer.from([0x80, 0, 0, i % 3]), Buffer.from(random(32)).subarray(0, 12)]),
  );
  await expectSorted(uids);
});

// An insertion sort would move half of the uids for each uid: minutes of work.
it.each([4, 12])('sorts 50,000 uids in descending order that differ only from byte %i on', { timeout: 60_000 }, async (at) => {
  const uids = Array.from({ length: 50_000 }, (_, i) => {
    const uid = Buffer.alloc(16, 7);
    uid.writeUInt32BE(50_000 - i, at);
    return uid;
  });
  await expectSorted(uids);
});

it('finds the records of a window that is far longer than the time that has records', async () => {
  using index = new RecordIndex();
  const uids = [2, 1, 3].map((byte) => Buffer.alloc(16, byte));
  for (const [i, uid] of uids.entries()) index.add('production', start + i * 86_400_000_000, uid, 0);
  index.add('other', start, Buffer.alloc(16, 9), 0);
  const year2250 = Date.UTC(2250, 0) * 1_000;
  // 15 million buckets each: only those with records may be visited.
  for (let i = 0; i < 3_000; i += 1) expect(index.countAround('production', i, year2250)).toBe(3);
  expect((await index.uidsIn('production', 0, year2250, turns)).uids).toEqual(
    Buffer.concat([...uids].sort((a, b) => Buffer.compare(a, b))),
  );
  expect((await index.uidsIn('production', start + 1, year2250, turns)).uids).toEqual(Buffer.concat([uids[1], uids[2]] as Buffer[]));
  expect((await index.uidsIn('production', 0, start, turns)).uids).toHaveLength(0);
  expect((await index.uidsIn('absent', 0, year2250, turns)).uids).toHaveLength(0);
});

// If each new bucket visited every bucket in the file, that would take minutes.
it('stores the records of 120,000 buckets in little memory', { timeout: 60_000 }, async () => {
  using index = new RecordIndex(16_384);
  const uid = Buffer.alloc(16);
  const buckets = 120_000;
  for (let i = 0; i < buckets; i += 1) {
    uid.writeUInt32BE(i, 12);
    index.add('production', start + i * 600_000_000, uid, 0);
  }
  const { uids: found } = await index.uidsIn('production', start, start + buckets * 600_000_000, turns);
  expect([found.length / 16, found.readUInt32BE(12), found.readUInt32BE(found.length - 4)]).toEqual([buckets, 0, buckets - 1]);
});

/** Counts the turns, each of which is due. */
class CountedTurns extends Turns {
  taken = 0;
  override isDue(): boolean {
    return true;
  }
  override async next(): Promise<void> {
    this.taken += 1;
    if (this.taken > 20) throw new Error('stopped');
    await super.next();
  }
}

it.each([0, 1_000_000])('can be stopped while it collects or sorts the uids of a window, with %i ms between two records', async (step) => {
  using index = new RecordIndex();
  for (let i = 0; i < 1_000; i += 1) index.add('production', start + i * step * 1_000, Buffer.alloc(16, i), 0);
  await expect(index.uidsIn('production', 0, start * 2, new CountedTurns())).rejects.toThrow('stopped');
});
