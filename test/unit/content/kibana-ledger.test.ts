/**
 * The Kibana content for ledger events: two rules and a dashboard. They use only fields and actions
 * that Waybill writes.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { esql } from '../../support/content/esql.ts';
import { flat } from '../../support/content/events.ts';
import { documented, failures, ledgerEvent as written, ledgerEvents as events } from '../../support/content/ledger-events.ts';
import type { LedgerEvent } from '../../support/content/ledger-events.ts';
import { columnsOf, dashboardPanels, lensPanels, shippedObjects } from '../../support/content/lens.ts';

const rules = readFileSync('content/kibana/detection-rules-ledger.ndjson', 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as { rule_id: string; name: string; type: string; query: string; index?: readonly string[] });

/**
 * The values of `event.action` that a query lists; the queries of this content have no other form.
 */
function actionsOf(query: string): string[] {
  const [, values = ''] = /^event\.action: (?:\((.+)\)|(?="))/.exec(query) ?? [];
  const listed = (values === '' ? query.replace(/^event\.action: /, '') : values).split(' or ');
  return listed.map((value) => {
    const [, action] = /^"([a-z-]+)"$/.exec(value) ?? [];
    if (action === undefined) throw new Error(`cannot read "${query}": ${value} is not a quoted action`);
    return action;
  });
}

function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, path === '' ? name : `${path}.${name}`));
}
const fields = new Set(events.flatMap((event) => pathsOf(event)));

test('the documented actions are twelve, and each is the action of its entry', () => {
  expect(documented).toHaveLength(12);
  expect(events.map(({ event }) => event.action)).toEqual(documented);
});

const objects = shippedObjects('saved-objects-ledger');
const pattern = objects.find((object) => object.type === 'index-pattern')?.attributes.title ?? '';

describe('the rules', () => {
  const silent = rules.find(({ type }) => type === 'esql');
  const broken = rules.find(({ type }) => type === 'query');

  test('have unique ids and names', () => {
    expect(rules).toHaveLength(2);
    expect(new Set(rules.flatMap(({ rule_id, name }) => [rule_id, name])).size).toBe(4);
  });

  test('"gap, suspension or window in doubt" fires on exactly the events whose outcome is a failure', () => {
    expect(actionsOf(broken?.query ?? '').sort()).toEqual(failures.toSorted());
    expect(failures).toHaveLength(4);
    expect(broken?.type === 'query' && broken.index).toEqual([pattern]);
  });

  /** The sources for which the rule fires. @param at ms since the epoch */
  const firesFor = (received: readonly LedgerEvent[], at: number): string[] =>
    esql(silent?.query ?? '')
      .run(
        received.map((event) => flat(event, '')),
        at,
      )
      .map((row) => String(row['dpas.ledger.source']));

  test('"no proof for an hour" fires for a source whose newest proof is older, and for no other', () => {
    const day = 86_400_000;
    const proof = (source: string, ms: number) => written({ action: 'window-proven', source }, ms * 1_000);
    const two = [proof('a', 2 * day), proof('b', 2 * day), proof('b', 2 * day + 60_000)];
    expect(firesFor(two, 2 * day + 3_600_000)).toEqual([]);
    expect(firesFor(two, 2 * day + 3_600_001)).toEqual(['a']);
    expect(firesFor(two, 2 * day + 3_660_001)).toEqual(['a', 'b']);
    expect(firesFor(two, 3 * day + 1)).toEqual(['b']);
    // A recount or a gap is not a proof.
    const recounted = written({ action: 'window-recounted', source: 'a' }, (2 * day + 3_600_000) * 1_000);
    expect(firesFor([...two, recounted], 2 * day + 3_600_001)).toEqual(['a']);
    // A backfill of old windows proves them now.
    expect(firesFor([proof('a', 2 * day), proof('a', 2 * day + 1)], 2 * day + 3_600_001)).toEqual([]);
  });
});

test('the dashboard uses only fields and actions of ledger events', () => {
  const columns = lensPanels(objects).flatMap(({ lens }) => columnsOf(lens).map(([, column]) => column));
  const searches = dashboardPanels(objects).filter((panel) => panel.kind === 'search');
  const named = [...columns.map(({ sourceField }) => sourceField), ...searches.flatMap((search) => search.columns)];
  expect(named.filter((field) => field !== '___records___' && !fields.has(field))).toEqual([]);
  const queries = [...columns.flatMap(({ filter }) => filter?.query ?? []), ...searches.flatMap((search) => search.queries)];
  expect(queries.flatMap(actionsOf).filter((action) => !documented.includes(action))).toEqual([]);
  expect(queries.length).toBeGreaterThan(9);
});
