import { expect, test } from 'vitest';
import { denialLine } from '../../../src/cli/commands/demo/line.ts';
import { newestOf } from '../../../src/cli/commands/demo/page.ts';
import type { Denial } from '../../../src/cli/commands/demo/line.ts';
import { rows } from '../../support/normalize/records.ts';

const denial = (reason: string, email?: string, name?: string): Denial => ({
  '@timestamp': '2026-11-22T15:03:59.100Z',
  event: { reason, created: '2026-11-22T15:03:59.300Z' },
  ...(email !== undefined && { user: { email } }),
  ...(name !== undefined && { file: { name } }),
});

test('time, reason, user, file and delay', () => {
  expect(denialLine(denial('UserPayloadNoAccess', 'echo-sample@example.com', 'Review 5407.txt'))).toBe(
    '15:03:59 DENIED UserPayloadNoAccess  echo-sample@…    Review 5407.txt  0.2 s',
  );
  expect(denialLine(denial('GeoValidationFailed'), (word) => `<${word}>`)).toMatch(
    /^15:03:59 <DENIED> GeoValidationFailed {2}- +- +0\.2 s$/,
  );
});

test('no line is wider than 78 columns, and each shows the whole reason', () => {
  const reasons = rows.filter(({ outcome }) => outcome === 'failure').map(({ triple }) => triple[2]);
  expect(reasons.length).toBeGreaterThan(5);
  for (const reason of reasons) {
    for (const [email, name] of [
      ['application.service-user-administrator@example.com', 'Contract 2024-7229 with a very long name.docx'],
      ['a@b', 'x'],
      ['a@b', 'Contract 2024-7229 with a very long name.docx'],
    ]) {
      const line = denialLine(denial(reason, email, name));
      expect(line.length, line).toBeLessThanOrEqual(78);
      expect(line).toContain(` DENIED ${reason} `);
      expect(line).toMatch(/ {2}0\.2 s$/);
    }
  }
  const late = { ...denial('UserPayloadNoAccess', 'a@b', 'x'), '@timestamp': '2026-11-22T13:03:59Z' };
  expect(denialLine(late)).toMatch(/ {2}120 min$/);
});

test('both lines have the same columns, and use a wider terminal', () => {
  const lines = (width?: number): string[] => [
    denialLine(denial('UserPayloadNoAccess', 'a@b', 'a very long name of a file in a folder.docx'), undefined, width),
    denialLine(denial('GeoValidationFailed', 'application.service-user-administrator@example.com', 'x'), undefined, width),
  ];
  for (const [width, columns] of [
    [undefined, 78],
    [20, 78],
    [100, 100],
    [200, 110],
  ] as const) {
    const [short = '', long = ''] = lines(width);
    expect(short.indexOf('0.2 s')).toBe(long.indexOf('0.2 s'));
    expect(short.indexOf('a very')).toBe(long.indexOf('  x ') + 2);
    expect(short).toHaveLength(columns - 2);
  }
});

test('characters of a record cannot control the terminal', () => {
  expect(denialLine(denial('UserPayloadNoAccess', 'a\u001b[2J@b', 'c\nd'))).not.toMatch(/[\u001b\n]/);
});

test('the page keeps the newest events and denials', () => {
  const shown = (file: string, isDenied: boolean) => ({ time: '', what: '', reason: '', who: '', file, delay: '', isDenied });
  const events = Array.from({ length: 100 }, (_, i) => shown(`file ${i}`, i % 10 === 3));
  expect(newestOf(events).map(({ file }) => Number(file.slice(5)))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 23, 33, 43]);
});
