import { expect, test } from 'vitest';
import type { Entry } from '../../../src/model/journal.ts';
import { base, between, collected, second, seeded } from '../../support/records.ts';
import { lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';

test('entries are read as appended, byte for byte, across segments and a restart, with any limit', async () => {
  const random = seeded(31);
  const texts: string[] = [];
  let { journal, directory, close } = await opened();
  for (let i = 0, id = 0; i < 12; i += 1) {
    const records = Array.from({ length: between(random, 1, 9) }, () =>
      collected((id += 1), random() < 0.1 ? undefined : base + id, {
        payloadName: '\u{1f512} 漢字 "\\\u0001'.repeat(between(random, 0, 9)),
      }),
    );
    await journal.append(pageOf(records, { received: base + i }));
    texts.push(...records.map(({ bytes }) => Buffer.from(bytes).toString('latin1')));
    if (i === 5) {
      await journal.close(source, span(0, 10), proven(), lastAge);
      texts.push('ledger');
    }
  }
  const check = async (): Promise<void> => {
    for (const limit of [
      { records: 1, bytes: 1 },
      { records: 5, bytes: 1e9 },
      { records: 1000, bytes: 700 },
      { records: 7, bytes: 300 },
    ]) {
      const found: Entry[] = [];
      for (let after = 0; ; after = found.at(-1)?.seq ?? 0) {
        const entries = await journal.read(after, limit);
        if (entries.length === 0) break;
        expect(entries.length).toBeLessThanOrEqual(limit.records);
        const bytes = entries.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
        if (entries.length > 1) expect(bytes).toBeLessThanOrEqual(limit.bytes);
        found.push(...entries);
      }
      expect(found.map(({ seq }) => seq)).toEqual(texts.map((_, i) => i + 1));
      let number = 0;
      for (const entry of found) {
        const expected = texts[entry.seq - 1];
        if (expected === 'ledger') {
          expect(entry).toMatchObject({ kind: 'ledger', number: undefined, time: undefined, late: false });
          continue;
        }
        number += 1;
        expect(Buffer.from(entry.text, 'utf8').toString('latin1')).toBe(expected);
        const { logId, logTimestamp } = JSON.parse(entry.text) as { logId: number; logTimestamp: string };
        const time = logTimestamp === 'yesterday' ? undefined : base + logId;
        expect(entry).toMatchObject({ kind: 'record', number, source, uid: collected(logId, time).uid });
        expect(entry.time).toBe(time);
        expect(await journal.chainAt(entry.seq)).toEqual(entry.chain);
      }
    }
  };
  await check();
  await close();
  ({ journal, directory, close } = await opened({ directory }));
  await check();
});

test('a waiting reader is woken by an append and by a change of the ledger, not by a page of known records', async () => {
  const { journal } = await opened();
  let woken = 0;
  const wait = (): void => void journal.changed().then(() => (woken += 1));
  wait();
  await journal.append(pageOf([collected(1, base)]));
  expect(woken).toBe(1);
  wait();
  await journal.append(pageOf([collected(1, base)]));
  expect(woken).toBe(1);
  await journal.close(source, span(0, 10), proven(), lastAge);
  expect(woken).toBe(2);
});

test('a record that is not an object is stored, flagged and read unchanged', async () => {
  const { journal, directory, close } = await opened();
  const bytes = Buffer.from('[1, 2]');
  await journal.append(pageOf([{ ...collected(1, undefined), bytes, text: '[1, 2]', isObject: false }, collected(2, base + second)]));
  await close();
  const again = (await opened({ directory })).journal;
  expect(await again.read(0, { records: 9, bytes: 1e6 })).toMatchObject([{ text: '[1, 2]', time: undefined }, { time: base + second }]);
  const { flags } = again.db.prepare('SELECT flags FROM segments').get() as { flags: Buffer };
  // 2: not an object; 4: no readable time.
  expect([...flags]).toEqual([6, 0]);
});
