import { expect, it } from 'vitest';
import { RecordIndex } from '../../../src/archive/verify/record-index.ts';
import { seededBytes, start } from '../../support/archive.ts';

it.each([64 * 1024 * 1024, 4096])('returns the uids of a range in order, whatever the file contains (%i bytes of memory)', (maxMemory) => {
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
    expect(index.uidsIn('production', from, to).toString('hex')).toBe(uids.join(''));
    expect(index.countAround('production', from, to)).toBeGreaterThanOrEqual(uids.length);
  }
  index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16), 0);
  index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16), 0);
  expect(index.uidsIn('production', start, start + 1).length / 16).toBe(
    new Set([rows[0], ...rows.filter((row) => row.source === 'production' && row.time === start)].map((row) => row?.uid.toString('hex')))
      .size,
  );
});

it('sorts uids with the same beginning, and gives each once', () => {
  using index = new RecordIndex();
  const random = seededBytes('beginnings');
  const uids = Array.from({ length: 3_000 }, (_, i) =>
    Buffer.concat([Buffer.from([0x80, 0, 0, i % 3]), Buffer.from(random(32)).subarray(0, 12)]),
  );
  for (const uid of [...uids, ...uids.slice(0, 500)]) index.add('production', start, uid, 0);
  expect(index.uidsIn('production', start, start + 1).toString('hex')).toBe(
    uids
      .map((uid) => uid.toString('hex'))
      .sort()
      .join(''),
  );
});
