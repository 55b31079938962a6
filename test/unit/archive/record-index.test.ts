import { expect, it } from 'vitest';
import { RecordIndex } from '../../../src/archive/verify/record-index.ts';
import { seededBytes, start } from '../../support/archive.ts';

it.each([64 * 1024 * 1024, 4096])('gives the uids of a range in order, whatever lies in the file (%i bytes of memory)', (maxMemory) => {
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
    index.add(source, time, uid);
    if (i % 1_999 !== 0) continue;
    const [from, to] = [start + (i % 3_000) * 1_000_000, start + ((i % 3_000) + 900) * 1_000_000];
    const expected = rows.slice(0, i + 1).filter((row) => row.source === 'production' && row.time >= from && row.time < to);
    const uids = expected.map((row) => row.uid.toString('hex')).sort();
    expect(index.uidsIn('production', from, to).map((each) => each.toString('hex'))).toEqual(uids);
    expect(index.countAround('production', from, to)).toBeGreaterThanOrEqual(uids.length);
  }
  index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16));
  index.add('production', start, rows[0]?.uid ?? Buffer.alloc(16));
  expect(index.uidsIn('production', start, start + 1).length).toBe(
    new Set([rows[0], ...rows.filter((row) => row.source === 'production' && row.time === start)].map((row) => row?.uid.toString('hex')))
      .size,
  );
});
