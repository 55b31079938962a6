import { expect, test } from 'vitest';
import { fittedTable, right, table, wrapped } from '../../../src/report/text-table.ts';

const columns = ['SINK', right('LAG'), 'SINCE', 'DESTINATION'];
const rows = [
  ['siem', '12', '2026-11-20T02:45:00Z', '/var/lib/waybill/events.ndjson'],
  ['lake', '0', '-', 'https://lake.example/'],
];

test('a table that fits is printed as it is', () => {
  expect(fittedTable(columns, rows, 80)).toEqual(table(columns, rows));
  expect(fittedTable(columns, rows, Infinity)).toEqual(table(columns, rows));
});

test('columns that do not fit follow below each row, with their names and without empty cells', () => {
  expect(fittedTable(columns, rows, 40)).toEqual([
    'SINK  LAG  SINCE',
    'siem   12  2026-11-20T02:45:00Z',
    '  destination',
    '    /var/lib/waybill/events.ndjson',
    'lake    0  -',
    '  destination https://lake.example/',
  ]);
  expect(fittedTable(columns, rows, 20)).toEqual([
    'SINK  LAG',
    'siem   12',
    '  since',
    ...['    2026-11-20T02:45', '    :00Z,', '    destination', '    /var/lib/waybill', '    /events.ndjson'],
    'lake    0',
    ...['  destination', '    https://lake.exa', '    mple/'],
  ]);
});

test('a head of several lines stands on the first row', () => {
  expect(table(['FROM', right('COUNTED =\nRECEIVED')], [['02:30', '259 = 259']])).toEqual([
    '       COUNTED =',
    'FROM    RECEIVED',
    '02:30  259 = 259',
  ]);
});

test('a long word is divided, so that nothing is lost, unless the number of lines is limited', () => {
  expect(wrapped('see /a/very/long/path now', 10, Infinity, '  ')).toEqual(['see', '  /a/very/', '  long/pat', '  h now']);
  expect(wrapped('see /a/very/long/path', 10, 2)).toEqual(['see', '/a/very/l…']);
});
