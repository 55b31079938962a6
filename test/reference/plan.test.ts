/**
 * SQLite finds the records of any query by an index, so that a window costs the same among
 * millions.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Statement } from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataFile } from '../../src/reference/data-file.ts';
import type { Selection } from '../../src/reference/logs/selection.ts';
import { Store, type Order } from '../../src/reference/logs/store.ts';

/** Records the queries. */
class Watched extends DataFile {
  readonly asked: string[] = [];

  override prepared(sql: string): Statement {
    this.asked.push(sql);
    return super.prepared(sql);
  }

  /** The steps of SQLite's plan for each query of the table since the last call. */
  plans(of = 'records'): string[][] {
    const queries = this.asked.splice(0).filter((sql) => new RegExp(`^SELECT .* FROM ${of}`, 's').test(sql));
    return queries.map((sql) => {
      const values = Array.from(sql.matchAll(/\?/g), () => 0);
      return (super.prepared(`EXPLAIN QUERY PLAN ${sql}`).all(values) as { detail: string }[]).map(({ detail }) => detail);
    });
  }
}

let folder: string;
let data: Watched;
let store: Store;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reference-plan-'));
  data = new Watched(join(folder, 'data.db'), false);
  store = new Store(data);
});
afterAll(() => {
  data.close();
  rmSync(folder, { recursive: true });
});

const oldest: Order = { by: 'logTimestamp', descending: false, tiesBy: undefined };
const newest: Order = { ...oldest, descending: true };
const window = { from: 1n, until: 2n, equal: {}, ownOf: undefined };

const cases: [what: string, selection: Selection, order: Order, index: string][] = [
  ['a window', window, oldest, 'INDEX records_at (at>? AND at<?)'],
  ['a window, newest first', window, newest, 'INDEX records_at (at>? AND at<?)'],
  ['from a time on', { ...window, until: undefined }, oldest, 'INDEX records_at (at>?'],
];

test.each(cases)('%s is found and counted by an index', (_, selection, order, index) => {
  data.plans();
  store.page(selection, { network: true, personal: true }, order, 100, 0, ['[', ']']);
  store.count(selection);
  const plans = data.plans();
  expect(plans.length).toBeGreaterThan(1);
  for (const plan of plans) {
    const steps = plan.filter((step) => step.includes('records'));
    expect(steps).toHaveLength(1);
    expect(steps[0]).toMatch(/^SEARCH records/);
    expect(steps[0]).toContain(index);
  }
});

const everything = { ...window, from: undefined, until: undefined };
test.each<[what: string, selection: Selection, order: Order]>([
  ['one payload', { ...everything, equal: { payloadId: 'p' } }, oldest],
  ['one user in a window', { ...window, equal: { userId: 'u' } }, newest],
  ['everything by name', everything, { ...newest, by: 'payloadName' }],
  ['the records of one caller', { ...everything, ownOf: 'u' }, oldest],
])('%s is found in memory: only the rows of the page are read from the table, by their ids', (_, selection, order) => {
  data.plans();
  if (selection !== everything) store.count(selection);
  store.page(selection, { network: true, personal: true }, order, 100, 0, ['[', ']']);
  const steps = data.plans('(?:records|json_each)').flat();
  expect(steps.length).toBeGreaterThan(0);
  for (const step of steps.filter((each) => each.includes('records'))) {
    expect(step).toMatch(/^SEARCH records USING INTEGER PRIMARY KEY \(rowid[=>]\?\)$/);
  }
});

test('a wide window is counted by its minutes, and page 1,000 of it starts with a search near its place', () => {
  data.plans();
  const hour = { ...window, until: 3_600_000_000_000n };
  store.count(hour);
  for (const order of [oldest, newest]) store.page(hour, { network: false, personal: false }, order, 100, 99_900, ['[', ']']);
  const steps = data
    .plans('tally')
    .flat()
    .filter((step) => step.includes('tally'));
  expect(steps).toHaveLength(3);
  for (const step of steps) expect(step).toContain('SEARCH tally USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)');
});

test('a page of a window comes in the order of the index, without a sort', () => {
  data.plans();
  for (const order of [oldest, newest]) store.page(window, { network: false, personal: false }, order, 100, 0, ['[', ']']);
  for (const plan of data.plans()) expect(plan.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
});
