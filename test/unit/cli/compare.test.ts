import { describe, expect, test } from 'vitest';
import { idsOf } from '../../../src/cli/commands/compare/ids.ts';
import { Tally } from '../../../src/cli/commands/compare/tally.ts';
import { between, seeded } from '../../support/records.ts';

async function* linesOf(text: string): AsyncGenerator<string> {
  yield* text.split('\n');
}

async function ids(text: string, field = 'event.id'): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = [];
  for await (const { id } of idsOf(linesOf(text), field)) found.push(id);
  return found;
}

describe('ids of an export', () => {
  test('NDJSON: nested, flat, wrapped, in a list, as a number with all its digits', async () => {
    const lines = [
      '{"event":{"id":"4711"}}',
      '{"event.id":"4712"}',
      '{"_source":{"event":{"id":9007199254740993}}}',
      '{"fields":{"event.id":["4714"]}}',
      '{"result":{"event.id":"4715"},"preview":false}',
      '',
      '{"event":{"id":""}}',
      '{"event":{}}',
      '{"event":"id"}',
      '{"event":{"id":{"a":1}}}',
      '{"id":"4716"}',
    ];
    expect(await ids(lines.join('\n'))).toEqual(
      ['4711', '4712', '9007199254740993', '4714', '4715'].concat(Array.from({ length: 5 }, () => undefined as unknown as string)),
    );
    expect(await ids('{"logId": 123456789012345678901234567890}', 'logId')).toEqual(['123456789012345678901234567890']);
    expect(await ids('{"a.b":{"c":"1"}}\n{"a":{"b.c":"2"}}\n{"a":{"b":{"c":"3"}}}', 'a.b.c')).toEqual(['1', '2', '3']);
  });

  test('CSV: the column by its name, quoted cells with commas, quotation marks and line breaks', async () => {
    expect(await ids('\ufefftime,"event.id"\n"a, b",4711\n"say ""hi""","4712"\n"two\nlines, and ""more""\n",4713\n,\n')).toEqual([
      '4711',
      '4712',
      '4713',
      undefined,
    ]);
    expect(await ids('logId\n1\n2', 'logId')).toEqual(['1', '2']);
  });

  test('one per line, with or without quotation marks', async () => {
    expect(await ids('4711\n"4712"\n\n  9007199254740993 \r\n-5')).toEqual(['4711', '4712', '9007199254740993', '-5']);
  });

  test('an error names its line', async () => {
    await expect(ids('{"event":{"id":"1"}}\n{"event":')).rejects.toThrow('cannot read line 2 of --ids: it is not JSON');
    await expect(ids('4711\n4712 4713')).rejects.toThrow('cannot read line 2 of --ids: it is neither one id');
    await expect(ids('time,id\n1,2')).rejects.toThrow('cannot find the column "event.id" in the header of --ids; its columns: time, id');
    await expect(ids('time,event.id\n1,2\n1,2,3')).rejects.toThrow('cannot read line 3 of --ids: it has 3 cells, the header has 2');
    await expect(ids('time,event.id\n"1,2\n')).rejects.toThrow('cannot read line 2 of --ids: a quoted cell does not end');
  });
});

test('the tally agrees with a count in memory, in any order', () => {
  const random = seeded(7);
  using tally = new Tally();
  const here = new Map<string, number>();
  const there = new Map<string, number>();
  for (let i = 0; i < 20_000; i += 1) {
    const id = String(between(random, 0, 8_000));
    const isHere = random() < 0.5;
    const counts = isHere ? here : there;
    counts.set(id, (counts.get(id) ?? 0) + 1);
    if (isHere) tally.addHere(id, Number(id) + 1);
    else tally.addThere(id);
  }
  const all = [...new Set([...here.keys(), ...there.keys()])].sort();
  const expected = (is: (h: number, t: number) => boolean) =>
    all
      .map((id) => ({ id, here: here.get(id) ?? 0, there: there.get(id) ?? 0, time: here.has(id) ? Number(id) + 1 : null }))
      .filter((one) => is(one.here, one.there));
  const missing = expected((h, t) => t < h);
  expect([...tally.of('missing')]).toEqual(missing);
  expect([...tally.of('doubled')]).toEqual(expected((h, t) => h > 0 && t > h));
  expect([...tally.of('unknown')]).toEqual(expected((h) => h === 0));
  expect(tally.count('missing')).toEqual({ ids: missing.length, records: missing.reduce((sum, one) => sum + one.here - one.there, 0) });
  expect([missing.length > 100, tally.count('unknown').ids > 100]).toEqual([true, true]);
});
