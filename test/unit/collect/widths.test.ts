import { expect, test } from 'vitest';
import { Widths } from '../../../src/collect/widths.ts';
import { day, hour, minute } from '../../support/records.ts';

test('a width that was refused is tried again after eight windows, then after sixteen', () => {
  const widths = new Widths();
  const wished = (): number[] =>
    Array.from({ length: 20 }, () => {
      const width = widths.wish(day);
      if (width > hour) widths.refused(width);
      else widths.read(width, 10);
      return width / minute;
    });
  // A day is refused, and 12 hours, … 90 minutes; 45 are answered.
  expect(wished()).toEqual([1_440, 720, 360, 180, 90, ...Array.from({ length: 8 }, () => 45), 90, ...Array.from({ length: 6 }, () => 45)]);
  expect(wished()).toEqual([...Array.from({ length: 10 }, () => 45), 90, ...Array.from({ length: 9 }, () => 45)]);
});

test('a width that is answered after all is no bound any more', () => {
  const widths = new Widths();
  widths.refused(hour);
  for (let i = 0; i < 8; i += 1) widths.read(widths.wish(hour), 10);
  expect(widths.wish(day)).toBe(hour);
  widths.read(hour, 10);
  expect(widths.wish(day)).toBe(2 * hour);
});
