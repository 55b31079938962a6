import { expect, test } from 'vitest';
import { shows, Shares, watchedFields } from '../../../src/collect/fields.ts';

/** A record as in section 2.7 of the specification, with changes. */
function record(more: Readonly<Record<string, unknown>> = {}): { text: string } {
  return { text: JSON.stringify({ logId: 1, payloadName: 'plan.pdf', ...more }) };
}

const network = { userNetwork: { ipAddress: '192.0.2.7' } };
const rich = {
  ...network,
  userLastNameFirstName: 'Papa-Sample,Person 34',
  userEmailAddress: 'a@example.com',
  currentOwnerLastNameFirstName: 'x',
  currentOwnerEmailAddress: 'y',
};

test.each([
  ['an object', { text: '{"userNetwork":{"ipAddress":"192.0.2.7"}}' }, true],
  ['an object with blanks', { text: '{ "userNetwork" : {\n "a": 1 } }' }, true],
  ['a text', { text: '{"userNetwork":"x"}' }, true],
  ['null', { text: '{"userNetwork":null}' }, false],
  ['null with blanks', { text: '{"userNetwork" :  null }' }, false],
  ['an empty object', { text: '{"userNetwork":{ }}' }, false],
  ['an empty text', { text: '{"userNetwork":""}' }, false],
  ['nothing', record(), false],
  ['its name as a value', record({ payloadName: 'userNetwork' }), false],
  ['its name as a value before the field', { text: '{"payloadName":"userNetwork","userNetwork":{"a":1}}' }, true],
  ['its name inside of a value', record({ payloadName: '"userNetwork":{"a":1}' }), false],
])('a record with %s shows the field or not', (_what, given, expected) => {
  expect(shows(given, 'userNetwork')).toBe(expected);
});

test('a field that nine of ten records have is missing on a page without it; a field that fewer have is not', () => {
  const shares = new Shares();
  expect(shares.missingIn([record()])).toEqual([]);
  shares.add(Array.from({ length: 10 }, (_, i) => record(i === 0 ? { userEmailAddress: 'a' } : i < 9 ? rich : network)));
  expect(shares.shareOf('userNetwork')).toBe(0.9);
  expect(shares.shareOf('userEmailAddress')).toBe(0.9);
  expect(shares.shareOf('userLastNameFirstName')).toBe(0.8);
  expect(shares.missingIn([record()])).toEqual(['userNetwork', 'userEmailAddress']);
  expect(shares.missingIn([record(), record(network)])).toEqual(['userEmailAddress']);
  expect(shares.missingIn([])).toEqual([]);
});

test('the last 1,000 records count, also after a restart; of a large page, 100 evenly spaced records', () => {
  const shares = new Shares();
  for (let i = 0; i < 10; i += 1) shares.add(Array.from({ length: 100 }, () => record(rich)));
  expect(watchedFields.map((field) => shares.shareOf(field))).toEqual([1, 1, 1, 1, 1]);
  const restarted = new Shares(shares.profile());
  restarted.add(Array.from({ length: 1_000 }, (_, i) => record(i % 10 === 0 ? {} : rich)));
  // Of the page, records 0, 10, 20, … were sampled: a hundred without the field among 900 with it.
  expect(restarted.shareOf('userNetwork')).toBe(0.9);
  restarted.add(Array.from({ length: 100 }, () => record()));
  expect(restarted.shareOf('userNetwork')).toBe(0.8);
  expect(new Shares('not what was kept').shareOf('userNetwork')).toBe(0);
});
