import { expect, test } from 'vitest';
import { volumeOf } from '../../../src/journal/queries/volume.ts';
import { base, collected, second } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';

test('the rate counts proven windows up to the frontier, the sizes the records in the journal', async () => {
  const { journal, beside } = await opened();
  const records = Array.from({ length: 40 }, (_, i) => collected(i, base + i * second));
  await journal.append(pageOf(records));
  await journal.close(source, span(0, 1_800), proven(30), lastAge);
  expect(volumeOf(beside(), source)).toBeUndefined();
  await journal.close(source, span(1_800, 3_600), proven(6), lastAge);
  await journal.close(source, span(3_600, 7_200), gap(), lastAge);
  await journal.close(source, span(7_200, 9_000), proven(900), lastAge);
  const volume = volumeOf(beside(), source);
  expect(volume).toMatchObject({ seconds: 3_600, recordsPerSecond: 0.01 });
  expect(volume?.recordBytes).toBe(records.reduce((sum, { bytes }) => sum + bytes.length, 0) / 40);
  const stored = beside().prepare('SELECT sum(length(body) + length(ends) + 2 * length(uids)) FROM segments WHERE kind & 255 = 1');
  expect(volume?.storedBytes).toBe(Number(stored.pluck().get()) / 40);
  expect(volumeOf(beside(), 'unknown')).toBeUndefined();
});
