import { expect, test } from 'vitest';
import { Widths } from '../../../src/collect/window-width.ts';
import { day, hour, minute, second } from '../../support/records.ts';

test('a refused width is retried after eight windows, then after sixteen', () => {
  const widths = new Widths();
  const wished = (): number[] =>
    Array.from({ length: 20 }, () => {
      const width = widths.requestWidth(day);
      if (width > hour) widths.refused(width);
      else widths.read(width, width, 10);
      return width / minute;
    });
  // A day is refused, and 12 hours, … 90 minutes; 45 are answered.
  expect(wished()).toEqual([1_440, 720, 360, 180, 90, ...Array.from({ length: 8 }, () => 45), 90, ...Array.from({ length: 6 }, () => 45)]);
  expect(wished()).toEqual([...Array.from({ length: 10 }, () => 45), 90, ...Array.from({ length: 9 }, () => 45)]);
});

test('a width that is answered later is no longer a bound', () => {
  const widths = new Widths();
  widths.refused(hour);
  for (let i = 0; i < 8; i += 1) widths.read(widths.requestWidth(hour), widths.requestWidth(hour), 10);
  expect(widths.requestWidth(day)).toBe(hour);
  widths.read(hour, hour, 10);
  expect(widths.requestWidth(day)).toBe(2 * hour);
});

test('windows with too many records stay narrow for eight windows, then for sixteen', () => {
  const widths = new Widths();
  widths.crowded(50);
  widths.crowded(30);
  const narrow = (): number => {
    for (let windows = 1; ; windows += 1) {
      widths.read(second, second, 20);
      if (widths.requestWidth(day) > second) return windows;
    }
  };
  expect(narrow()).toBe(8);
  widths.crowded(40);
  expect(narrow()).toBe(16);
  widths.crowded(50);
  widths.read(second, second, 20);
  expect(widths.requestWidth(day), 'less than half of the crowd').toBe(2 * second);
});

test('a window that ended early at a clock boundary does not narrow the next window', () => {
  const widths = new Widths();
  widths.read(hour, 51 * second, 10);
  expect(widths.requestWidth(day)).toBe(2 * hour);
  // A refused width stays refused until a window of that width was answered.
  widths.refused(hour);
  widths.read(hour, 51 * second, 10);
  expect(widths.requestWidth(hour)).toBe(hour / 2);
});

test('after a restart the first eight windows have the width of the pace', () => {
  const widths = new Widths(minute);
  const width = (): number => {
    const requested = widths.requestWidth(day);
    widths.read(requested, requested, 10);
    return requested / minute;
  };
  expect(Array.from({ length: 11 }, width)).toEqual([...Array.from({ length: 8 }, () => 1), 2, 4, 8]);
});
