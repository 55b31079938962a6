import { gunzipSync, gzipSync } from 'node:zlib';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatEntry, parseBundle, writeToBundle } from '../../../src/archive/entry.ts';
import { LineFormatter } from '../../../src/archive/line.ts';
import type { Line, LedgerLine, PositionLine } from '../../../src/archive/line.ts';
import { parseLine } from '../../../src/archive/parse-line.ts';
import { formatSegment, linesOf, parseSegmentPath, SegmentError, unpackSegment } from '../../../src/archive/segment.ts';
import { readText } from '../../../src/record/read.ts';
import { recordLine, start, provenLine } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';

const salt = Buffer.alloc(16, 0xff);
const uid = 'AAECAwQFBgcICQoLDA0ODw';
const record = {
  kind: 'record',
  seq: 81,
  uid,
  source: 'production',
  received: start + 7,
  late: false,
  record: Buffer.from('{"logId":9007199254740993}'),
} as const;
const position: PositionLine = {
  kind: 'position',
  journal: 'j',
  after: 3,
  seq: 9,
  chain: 'ab'.repeat(32),
  at: start,
  completeSince: start + 1,
  sources: null,
  filtered: false,
};
const ledger: LedgerLine = provenLine(82, start, start + 5, []);

/** The time of a record as collect reads it; undefined also for a text that is not JSON. */
function readTime(text: string): number | undefined {
  try {
    return readText(text).time;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

const formatLine = (line: Line, salt: Uint8Array): Buffer => new LineFormatter().format([line], salt).text.subarray(0, -1);

async function textsOf(bytes: Uint8Array): Promise<string[]> {
  return [...linesOf(await unpackSegment(bytes))].map(String);
}

describe('a line', () => {
  it('has the fields of its record, its salt, and last the record as received', () => {
    expect(formatLine(record, salt).toString()).toBe(
      `{"kind":"record","seq":81,"uid":"${uid}","source":"production","received":"2026-07-01T00:00:00.000007Z","late":false,"salt":"_____________________w","record":{"logId":9007199254740993}}`,
    );
  });

  it('states a ledger entry with times in RFC 3339', () => {
    expect(JSON.parse(formatLine(ledger, salt).toString())).toEqual({
      ...ledger,
      from: '2026-07-01T00:00:00.000000Z',
      to: '2026-07-01T00:00:00.000005Z',
      at: '2026-07-01T00:01:00.000005Z',
      salt: '_____________________w',
    });
  });

  it('stays one line if its record has line breaks between tokens', () => {
    const broken = Buffer.from('{"a":\n1,\r\n"b":"\\n\u2028"}');
    const text = formatLine({ ...record, record: broken }, salt).toString();
    expect(text).not.toMatch(/[\r\n]/);
    expect((JSON.parse(text) as { record: unknown }).record).toEqual(JSON.parse(broken.toString()));
  });

  it('is read with the time of its record', () => {
    const line = recordLine(5, start + 1_234_000);
    expect(parseLine(formatLine(line, salt))).toEqual({
      kind: 'record',
      seq: 5,
      uid: line.uid,
      source: 'production',
      time: start + 1_234_000,
      received: '2026-07-01T00:00:02.234000Z',
      isUidTrue: true,
      repeated: undefined,
    });
    expect(parseLine(formatLine(ledger, salt))).toMatchObject({ kind: 'ledger', from: start, to: start + 5, digest: ledger.digest });
    expect(parseLine(formatLine(position, salt))).toEqual(position);
  });

  it('of a record without a readable time has none', () => {
    for (const text of ['"text"', '7', '{"logTimestamp":"yesterday"}', '{"logTimestamp":7}', '{}', `${'['.repeat(200)}${']'.repeat(200)}`])
      expect(parseLine(formatLine({ ...record, record: Buffer.from(text) }, salt)), text).toMatchObject({
        kind: 'record',
        seq: 81,
        uid,
        source: 'production',
        time: undefined,
      });
  });

  it.each<[string, string, number | undefined]>([
    ['no other field', '{"logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    [
      'fields before and after it',
      '{"a":"b","n":-7,"t":true,"logTimestamp":"2026-07-01T00:00:01.5","o":{"k":null,"l":0},"z":"ü\u007f"}',
      1_500_000,
    ],
    ['another time inside an object', '{"o":{"logTimestamp":"2026-07-01T00:00:09"},"logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    ['a time inside an object only', '{"o":{"logTimestamp":"2026-07-01T00:00:09"}}', undefined],
    ['its name as a value', '{"a":"logTimestamp","logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    ['a second time, which counts', '{"logTimestamp":"2026-07-01T00:00:09","logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    [
      'a second time with an escape in its name',
      '{"logTimestamp":"2026-07-01T00:00:09","log\\u0054imestamp":"2026-07-01T00:00:01.5"}',
      1_500_000,
    ],
    ['a second time that is null', '{"logTimestamp":"2026-07-01T00:00:09","logTimestamp":null}', undefined],
    ['an escape in a value', '{"a":"\\"}","logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    ['a number with a leading zero', '{"n":07,"logTimestamp":"2026-07-01T00:00:01.5"}', undefined],
    ['no comma', '{"n":7"logTimestamp":"2026-07-01T00:00:01.5"}', undefined],
    ['a comma at its end', '{"logTimestamp":"2026-07-01T00:00:01.5",}', undefined],
    ['an object that does not end', '{"logTimestamp":"2026-07-01T00:00:01.5","o":{"k":1}', undefined],
    ['a control character', '{"a":"\t","logTimestamp":"2026-07-01T00:00:01.5"}', undefined],
    ['a blank between tokens', '{"logTimestamp": "2026-07-01T00:00:01.5"}', 1_500_000],
    ['an array', '{"a":[1,{"logTimestamp":"2026-07-01T00:00:09"}],"logTimestamp":"2026-07-01T00:00:01.5"}', 1_500_000],
    ['a long value', `{"a":"${'x'.repeat(10_000)}","logTimestamp":"2026-07-01T00:00:01.5"}`, 1_500_000],
  ])('is read with the time of a record that has %s', (_name, text, after) => {
    const time = after === undefined ? undefined : start + after;
    expect(parseLine(formatLine({ ...record, record: Buffer.from(text) }, salt))).toMatchObject({ kind: 'record', time });
    expect(readTime(text)).toBe(time);
  });

  it('of a record has the time that the record has for collect', () => {
    const token = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ':',
        ',',
        ' ',
        '"a"',
        '"logTimestamp"',
        '"log\\u0054imestamp"',
        '"\\\\"',
        '"ü"',
        '1',
        '-0',
        '01',
        '1.5',
        'true',
        'null',
      ],
      ...['"2026-07-01T00:00:01"', '"2026-07-02T00:00:00Z"'],
    );
    const value = fc.oneof(
      fc.constantFrom(
        '"2026-07-01T00:00:01"',
        '"2026-07-02T00:00:00Z"',
        '"x"',
        '"\\n"',
        '7',
        'null',
        '{"logTimestamp":"2026-07-03T00:00:00"}',
        '[]',
      ),
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    );
    const object = fc
      .array(fc.tuple(fc.constantFrom('"logTimestamp"', '"logTimestamp "', '"a"', '"log\\u0054imestamp"'), value), { maxLength: 5 })
      .map((fields) => `{${fields.map((field) => field.join(':')).join(',')}}`);
    const text = fc.oneof(
      object,
      fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join('')),
    );
    fc.assert(
      fc.property(text, (json) => {
        const found = parseLine(formatLine({ ...record, record: Buffer.from(json) }, salt));
        expect(found).toMatchObject({ kind: 'record', seq: 81, uid, source: 'production', time: readTime(json) });
      }),
      { numRuns: sized(2_000, 100_000), seed: 17 },
    );
  });

  it('of an operation may have the key of a record in its detail', () => {
    const operation: Line = {
      kind: 'operation',
      seq: 4,
      at: start,
      actor: 'j.doe',
      operation: 'accept',
      detail: { a: 1, record: { b: 2 } },
    };
    expect(parseLine(formatLine(operation, salt))).toEqual({ kind: 'operation', seq: 4, at: start, actor: 'j.doe' });
  });

  it('of an operation on an archive is read with its order', () => {
    const detail =
      '{"sink":"archive","archive":"waybill/5xT0aZ3bQm1kVd7P","before":"2025-10-01T00:00:00Z","lines":[{"first":1,"last":2004},{"first":3001,"last":4062}],"reason":"13 months"}';
    const line = `{"kind":"operation","seq":8123,"at":"2026-07-01T00:00:00.000000Z","actor":"m.weber","operation":"archive prune","detail":${detail},"salt":"_____________________w"}`;
    const parsed = {
      kind: 'operation',
      seq: 8123,
      at: start,
      actor: 'm.weber',
      order: {
        operation: 'archive prune',
        archive: 'waybill/5xT0aZ3bQm1kVd7P',
        before: Date.UTC(2025, 9, 1) * 1_000,
        lines: [
          { first: 1, last: 2004 },
          { first: 3001, last: 4062 },
        ],
        reason: '13 months',
      },
    };
    expect(parseLine(Buffer.from(line))).toEqual(parsed);
    const hold = line
      .replace('archive prune', 'archive hold')
      .replace('"before":"2025-10-01T00:00:00Z"', '"case":"2026-114","from":null,"to":"2025-10-01T00:00:00Z"');
    expect(parseLine(Buffer.from(hold))).toMatchObject({
      order: { operation: 'archive hold', case: '2026-114', from: null, to: Date.UTC(2025, 9, 1) * 1_000, lines: parsed.order.lines },
    });
    const release = line.replace('archive prune', 'archive release').replace('"before":"2025-10-01T00:00:00Z"', '"case":"2026-114"');
    expect(parseLine(Buffer.from(release))).toMatchObject({ order: { operation: 'archive release', case: '2026-114' } });
    for (const wrong of ['{"first":0,"last":2004}', '{"first":3,"last":2}', '{"first":1,"last":3500}', '{"first":1}', '1'])
      expect(parseLine(Buffer.from(line.replace('{"first":1,"last":2004}', wrong))), wrong).toEqual({ ...parsed, order: undefined });
  });

  it('of a position is read with what it says about other archives and removals', () => {
    const more = {
      ...position,
      removing: [{ first: 1, last: 4 }],
      adopted: { lines: 7, at: start },
      former: 'waybill/a\n7\nAAAA\n\n— waybill/a …\n',
    };
    expect(parseLine(formatLine(more, salt))).toEqual(more);
  });

  it.each([
    '',
    'null',
    '[]',
    '{"kind":"record","seq":1}',
    '{"kind":"other","seq":1}',
    '{"kind":"operation","seq":-1}',
    '{"kind":"operation"',
  ])('cannot be parsed from %j', (text) => {
    expect(parseLine(Buffer.from(text))).toBeUndefined();
  });
});

describe('an entry', () => {
  it('consists of kind, uid, sequence number and SHA-256 of the line', () => {
    const line = Buffer.from('a line');
    const digest = createHash('sha256').update(line).digest('hex');
    expect(formatEntry(record, line).toString('hex')).toBe(`01000102030405060708090a0b0c0d0e0f0000000000000051${digest}`);
    expect(formatEntry({ kind: 'position', seq: 2 ** 40 }, line).toString('hex')).toBe(`04${'00'.repeat(16)}0000010000000000${digest}`);
  });

  it('follows its length in a bundle', () => {
    const entries = [formatEntry(record, Buffer.from('a')), formatEntry(record, Buffer.from('b'))];
    const bundle = Buffer.alloc(118);
    for (const [i, each] of entries.entries()) writeToBundle(bundle, i, each);
    expect(bundle.subarray(0, 2).toString('hex')).toBe('0039');
    expect(parseBundle(bundle)).toEqual(entries);
    expect(parseBundle(bundle.subarray(1))).toBeUndefined();
    expect(parseBundle(Buffer.concat([bundle, Buffer.of(0)]))).toBeUndefined();
  });
});

describe('a segment', () => {
  it('is gzipped NDJSON, named by the index of its first leaf and its SHA-256', async () => {
    const { path, bytes } = await formatSegment(70_000, Buffer.from('one\ntwo\n'));
    expect(gunzipSync(bytes).toString()).toBe('one\ntwo\n');
    const digest = createHash('sha256').update(bytes).digest('hex');
    expect(path).toBe(`segments/0000000000070000-${digest}.ndjson.gz`);
    expect(parseSegmentPath(path)).toEqual({ path, firstLeaf: 70_000, digest });
    expect(parseSegmentPath(`${path}.part`)).toBeUndefined();
  });

  it('returns its lines whatever their length', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => `${i}:${'x'.repeat(i * 3_001)}`);
    const { bytes } = await formatSegment(0, Buffer.from(`${lines.join('\n')}\n`));
    expect(await textsOf(bytes)).toEqual(lines);
  });

  it.each([
    ['is not gzip', Buffer.from('text')],
    ['is cut', gzipSync('one\ntwo\n').subarray(0, -5)],
    ['has no line break at its end', gzipSync('one\ntwo')],
  ])('that %s is refused', async (_, bytes) => {
    await expect(textsOf(bytes)).rejects.toThrow(SegmentError);
  });
});
