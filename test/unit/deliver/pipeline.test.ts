/** The processing of one entry for one sink, and of records that cannot be encoded. */
import { describe, expect, test } from 'vitest';
import { pipeline } from '../../../src/deliver/pipeline.ts';
import type { PipelineParts } from '../../../src/deliver/pipeline.ts';
import { raw } from '../../../src/encode/raw.ts';
import type { Entry } from '../../../src/model/journal.ts';
import { ledgerNormalizer } from '../../../src/normalize/ledger-event.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import type { ReceivedRecord } from '../../../src/record/event.ts';
import { fieldNumbers } from '../../../src/record/fields.ts';
import { readRecord } from '../../../src/record/read.ts';
import { append, committed, deadLetters, numberOf, range, record, source } from '../../support/model-journal.ts';
import { settings } from '../../support/normalize/records.ts';
import { Rig } from '../../support/deliver/rig.ts';

const encodeRaw = raw.encoder({ includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });

const normalize = normalizer(settings);
const parts = (overrides: Partial<PipelineParts> = {}): PipelineParts => ({
  normalize: new Map([[source, normalize]]),
  matches: () => true,
  encode: encodeRaw,
  fromTime: undefined,
  unexpected: () => undefined,
  ...overrides,
});

const put = (bytes: Uint8Array): Uint8Array => Buffer.from(bytes);

function entry(n: number, overrides: Partial<Entry> = {}): Entry {
  const { uid, time, text: usual } = record(n, { payloadId: 'p-1' });
  const text = overrides.text ?? usual;
  const received = Date.UTC(2026, 10, 21) * 1000;
  return {
    bytes: Buffer.from(text),
    text,
    uid,
    time,
    received,
    seq: n,
    kind: 'record',
    number: n,
    source,
    late: false,
    chain: Buffer.alloc(32),
    ...overrides,
  };
}

function readEntry(n: number): ReceivedRecord {
  const { bytes, uid, received } = entry(n);
  return { record: readRecord(bytes), uid, received };
}

describe('a ledger entry', () => {
  const received = Date.UTC(2026, 10, 21) * 1000;
  const [from, to] = [Date.UTC(2026, 10, 20) * 1000, Date.UTC(2026, 10, 20, 0, 0, 10) * 1000];
  const line = (more: object = {}): Partial<Entry> => ({
    kind: 'ledger',
    number: undefined,
    text: JSON.stringify({ ledger: 'window', action: 'window-gap', source, from, to, revision: 1, state: 'gap', ...more }),
  });
  const wanted = (overrides: Partial<PipelineParts> = {}): PipelineParts =>
    parts({ normalizeLedger: new Map([[source, ledgerNormalizer(settings)]]), ...overrides });

  test('has the time at which it was written, no record number, and a marker for the receiver', () => {
    const { text = '' } = line();
    expect(pipeline(wanted({ matches: () => false }))(entry(7, line()), put)).toEqual({
      ...{ seq: 7, number: undefined, uid: entry(7).uid, source, time: received, received, late: false, undated: true, isLedger: true },
      ...{ severity: 6, action: 'window-gap', key: undefined, bytes: Buffer.from(text) },
    });
  });

  test.each<[string, Partial<PipelineParts>, Partial<Entry>]>([
    ['of another source', {}, { source: 'other' }],
    ['of a window before the start of the sink', { fromTime: to }, {}],
    ['of a backfill for other sinks', { withheld: (id, time) => id === source && time() === from }, {}],
  ])('%s is not for this sink', (_name, wish, overrides) => {
    expect(pipeline(wanted(wish))(entry(7, { ...line(), ...overrides }), put)).toBeUndefined();
  });

  test('of the window in which the sink starts, and of the instant of its start, is for the sink', () => {
    expect(pipeline(wanted({ fromTime: to - 1 }))(entry(7, line()), put)).toBeDefined();
    expect(pipeline(wanted({ fromTime: to }))(entry(7, line({ from: to })), put)).toBeDefined();
  });
});

describe('a pipeline', () => {
  test('gives an envelope, so that the text is parsed once', () => {
    expect(pipeline(parts())(entry(7), put)).toEqual({
      ...{ seq: 7, number: 7, uid: entry(7).uid, source, bytes: Buffer.from(entry(7).text) },
      ...{
        time: Date.UTC(2026, 10, 20, 0, 0, 7) * 1000,
        received: Date.UTC(2026, 10, 21) * 1000,
        late: false,
        severity: normalize(readEntry(7)).severity,
        action: 'Open',
        key: 'p-1',
        undated: false,
      },
    });
  });

  test('marks a time that is only the time of receipt', () => {
    const text = '{"logId":7,"logTimestamp":"yesterday"}';
    expect(pipeline(parts())(entry(7, { text }), put)).toMatchObject({ undated: true, time: entry(7).received });
  });

  test.each<[string, Partial<PipelineParts>, Partial<Entry>]>([
    ['a ledger entry, without ledger: true', {}, { kind: 'ledger' }],
    ['a record of another source', {}, { source: 'other' }],
    ['a record that where leaves out', { matches: (read) => read.text(fieldNumbers.logId) !== '7' }, {}],
    ['a record dated before the beginning', { fromTime: Date.UTC(2026, 10, 20, 0, 0, 8) * 1000 }, {}],
  ])('says that %s is not for this sink', (_name, wish, overrides) => {
    expect(pipeline(parts(wish))(entry(7, overrides), put)).toBeUndefined();
  });

  test('accepts a record dated at the start, and a record without a readable time', () => {
    const from = pipeline(parts({ fromTime: Date.UTC(2026, 10, 20, 0, 0, 7) * 1000 }));
    expect(from(entry(7), put)?.seq).toBe(7);
    expect(from(entry(3, { text: record(3, { logTimestamp: 'yesterday' }).text, time: undefined }), put)?.seq).toBe(3);
  });
});

describe('a record that cannot be encoded', () => {
  test.each([
    ['normalize', [5]],
    ['encode', [5]],
    ['encode', [4, 5, 8, 9]],
    ['normalize', [1]],
    ['encode', range(1, 12)],
  ])('when %s throws at %j becomes a dead letter of that sink alone', async (where, bad) => {
    await using rig = await Rig.make();
    const fail = (n: number): void => {
      if (bad.includes(n)) throw new TypeError(`cannot read record ${n}`);
    };
    const failing = pipeline(
      where === 'normalize'
        ? parts({ normalize: new Map([[source, (given) => (fail(numberOf(given.record)), normalize(given))]]) })
        : parts({ encode: (event) => (fail(numberOf({ bytes: encodeRaw(event) })), encodeRaw(event)) }),
    );
    const sick = rig.loop({ id: 'sick', records: 4, pipeline: failing, keepsPosition: true });
    const well = rig.loop({ id: 'well', records: 4, pipeline: pipeline(parts()) });
    const jumped: number[] = [];
    sick.receiver.answer = (batch) => {
      const kept = deadLetters(rig.journal).map(({ seq }) => seq);
      // No send may move the sink's position over a record whose dead letter is not written yet.
      jumped.push(...bad.filter((n) => n < batch.through.seq && !kept.includes(n)));
      return sick.receiver.take(batch);
    };
    await append(rig.journal, 12);
    for (const loop of [sick, well]) loop.run();
    await rig.clock.advance(10_000);
    expect(sick.receiver.has.map(numberOf)).toEqual(range(1, 12).filter((n) => !bad.includes(n)));
    expect(well.receiver.has.map(numberOf)).toEqual(range(1, 12));
    expect(deadLetters(rig.journal)).toEqual(
      bad.map((n) => ({
        sink: 'sick',
        seq: n,
        body: record(n).text,
        code: 'cannot_encode',
        message: `cannot read record ${n}`,
        attempts: 1,
      })),
    );
    expect(jumped).toEqual([]);
    expect(['sick', 'well'].map((id) => committed(rig.journal, id).acknowledged)).toEqual([12, 12]);
    expect(sick.lines.filter(({ level }) => level === 'error').length).toBe(bad.length);
  });

  test('counts each unexpected property of a record once', async () => {
    await using rig = await Rig.make();
    const odd: string[] = [];
    const counting = pipeline(parts({ unexpected: (_source, tags) => odd.push(...tags) }));
    const text = record(1).text;
    const loop = rig.loop({ records: 100, bytes: Buffer.byteLength(text) * 2 + 10, pipeline: counting });
    await append(rig.journal, 9);
    loop.run();
    await rig.clock.advance(30_000);
    expect(loop.receiver.attempts.length).toBeGreaterThan(3);
    const tags = normalize(readEntry(1)).unexpected.length;
    expect(tags).toBeGreaterThan(0);
    expect(odd.length).toBe(9 * tags);
  });
});
