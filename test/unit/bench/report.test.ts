/**
 * bench/RESULTS.md and the chart of README contain the figures of bench/results, and none that were
 * typed by hand.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { reportFiles } from '../../../bench/report.ts';
import { barCells, missingFigure, rangeOf } from '../../../bench/result.ts';

const root = resolve(import.meta.dirname, '../../..');

test.each([...reportFiles()])('%s is what `npm run bench -- report` writes', (path, text) => {
  expect(readFileSync(join(root, path), 'utf8')).toBe(text);
});

describe('a bar', () => {
  const rate = { what: 'rate', limit: 'at least', bar: 0.8, goal: 0.9 } as const;
  const cost = { what: 'cost', unit: ' s', limit: 'at most', bar: 8 } as const;

  test.each([
    [{ ...rate, value: 0.9 }, ['rate', '0.900', '≥ 0.8', 'met', '≥ 0.9', 'met']],
    [{ ...rate, value: 0.81 }, ['rate', '0.810', '≥ 0.8', 'met', '≥ 0.9', 'missed by 10 %']],
    [{ ...cost, value: 12 }, ['cost', '12.0 s', '≤ 8 s', 'missed by 50 %', '', '']],
    [{ ...cost, value: 8.001 }, ['cost', '8.00 s', '≤ 8 s', 'missed by 1 %', '', '']],
  ])('%o states by how much it is missed', (bar, cells) => {
    expect(barCells(bar)).toEqual(cells);
  });
});

test('the median of an even count is the mean of the middle two', () => {
  expect(rangeOf([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 });
  expect(rangeOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
});

describe('a result that would replace a published one', () => {
  const result = {
    title: '',
    command: '',
    text: [],
    tables: [{ caption: 'Rates:', columns: ['', 'records/s'], rows: [['Waybill', '1,000']] }],
    bars: [{ what: 'rate', value: 1, limit: 'at least', bar: 1 }],
  } as const;
  const [table] = result.tables;
  const range = { median: NaN, min: NaN, max: NaN };

  test('is complete', () => expect(missingFigure(result)).toBeUndefined());

  test.each([
    [{ tables: [] }, 'the table "" has no rows'],
    [{ tables: [{ ...table, rows: [] }] }, 'the table "Rates:" has no rows'],
    [{ tables: [{ ...table, rows: [['Waybill', 'NaN']] }] }, '"records/s" of "Waybill" is missing in the table "Rates:"'],
    [{ tables: [{ ...table, rows: [['Waybill']] }] }, '"records/s" of "Waybill" is missing in the table "Rates:"'],
    [{ bars: [{ ...result.bars[0], value: NaN }] }, 'the value of "rate" is missing'],
    [{ chart: [{ name: 'Waybill', recordsPerSecond: range, cpuPer100k: range }] }, 'the chart has no figures of "Waybill"'],
  ])('is refused with %o', (changed, message) => {
    expect(missingFigure({ ...result, ...changed })).toBe(message);
  });
});
