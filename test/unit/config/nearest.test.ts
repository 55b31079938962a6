import { expect, test } from 'vitest';
import { nearest, nearestOrAll } from '../../../src/settings/nearest.ts';

const keys = ['tls', 'state', 'journal', 'sources', 'clientSecret', 'payloadName'];

// The bound: a third of the letters. Distances counted by hand.
test.each([
  ['sate', 'state'],
  ['satte', 'state'],
  ['clientsecret', 'clientSecret'],
  ['journl', 'journal'],
  ['sorces', 'sources'],
  ['retry', undefined],
  ['x', undefined],
  ['event.outcome', undefined],
  ['', undefined],
])('%s: %s', (given, meant) => {
  expect(nearest(given, keys)).toBe(meant);
});

test('without a near name all are listed', () => {
  expect(nearestOrAll('b', ['production', 'eu'])).toBe('expected one of production, eu');
  expect(nearestOrAll('prodction', ['production', 'b'])).toBe('the nearest is "production"');
  expect(nearest('x', [])).toBeUndefined();
});
