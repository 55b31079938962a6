/**
 * The Kibana content for ledger events: two rules and a dashboard. They use only fields and actions
 * that Waybill writes.
 */
import { describe, expect, test } from 'vitest';
import { actionsOf, columnsOf, dashboard, objectOf, objects, rules } from '../../support/kibana-ledger.ts';
import { documented, failures, ledgerEvent as written, ledgerEvents as events } from './ledger-events.ts';
import type { LedgerEvent } from './ledger-events.ts';

function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, path === '' ? name : `${path}.${name}`));
}
const fields = new Set(events.flatMap((event) => pathsOf(event)));

test('the documented actions are ten, and each is the action of its entry', () => {
  expect(documented).toHaveLength(10);
  expect(events.map(({ event }) => event.action)).toEqual(documented);
});

const dataView = objectOf('index-pattern');

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
    expect(broken?.type === 'query' && broken.index).toEqual([dataView.attributes.title]);
  });

  /** Evaluates the forms of ES|QL in the rule. @param at ms since the epoch */
  const firesFor = (received: readonly LedgerEvent[], at: number): string[] => {
    const [from, where, stats, late] = (silent?.query ?? '').split(' | ');
    const [, action, field, hours] = /^WHERE event\.action == "(.+)" AND (\S+) >= NOW\(\) - (\d+) hours$/.exec(where ?? '') ?? [];
    const [, newest, counted, by] = /^STATS (\S+) = MAX\((\S+)\) BY (\S+)$/.exec(stats ?? '') ?? [];
    const [, compared, limit] = /^WHERE (\S+) < NOW\(\) - (\d+) hours?$/.exec(late ?? '') ?? [];
    expect([from, field, counted, compared]).toEqual([`FROM ${dataView.attributes.title}`, '@timestamp', '@timestamp', newest]);
    expect(by).toBe('dpas.ledger.source');
    const rows = Map.groupBy(
      received.filter((event) => event.event.action === action && Date.parse(event['@timestamp']) >= at - Number(hours) * 3_600_000),
      ({ dpas }) => dpas.ledger.source,
    );
    const isLate = (list: readonly LedgerEvent[]): boolean =>
      Math.max(...list.map((event) => Date.parse(event['@timestamp']))) < at - Number(limit) * 3_600_000;
    return [...rows].filter(([, list]) => isLate(list)).map(([source]) => source);
  };

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

describe('the saved objects', () => {
  const { panelsJSON: panels } = dashboard.attributes;

  test('refer to objects that exist', () => {
    const known = new Set(objects.map(({ type, id }) => `${type} ${id}`));
    const references = [...objects, ...panels.flatMap(({ embeddableConfig }) => embeddableConfig.attributes ?? [])].flatMap(
      (object) => object.references,
    );
    expect(references.filter(({ type, id }) => !known.has(`${type} ${id}`))).toEqual([]);
    const names = new Set(dashboard.references.map(({ name }) => name));
    const wanted = panels.flatMap(({ panelIndex, panelRefName, embeddableConfig }) => [
      ...(panelRefName === undefined ? [] : [`${panelIndex}:${panelRefName}`]),
      ...(embeddableConfig.attributes?.references ?? []).map(({ name }) => `${panelIndex}:${name}`),
    ]);
    expect([...names].sort()).toEqual(wanted.sort());
    for (const object of objects.filter(({ type }) => type === 'search'))
      expect(object.references.map(({ name }) => name)).toEqual(['kibanaSavedObjectMeta.searchSourceJSON.index']);
  });

  test('use only fields and actions of ledger events', () => {
    const searches = objects.filter((object) => object.type === 'search');
    const columns = panels.flatMap(({ panelIndex }) => columnsOf(panelIndex));
    const named = [...columns.map(({ sourceField }) => sourceField), ...searches.flatMap(({ attributes }) => attributes.columns)];
    expect(named.filter((field) => field !== '___records___' && !fields.has(field))).toEqual([]);
    const queries = [
      ...columns.flatMap(({ filter }) => filter?.query ?? []),
      ...searches.map(({ attributes }) => attributes.kibanaSavedObjectMeta.searchSourceJSON.query.query),
    ];
    expect(queries.flatMap(actionsOf).filter((action) => !documented.includes(action))).toEqual([]);
    expect(queries.length).toBeGreaterThan(9);
  });

  test('fit side by side into the 48 columns of a dashboard', () => {
    const cells = panels.flatMap(({ gridData: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridData: { x, w } }) => x + w <= 48)).toBe(true);
    expect(panels.every(({ panelIndex, gridData }) => panelIndex === gridData.i)).toBe(true);
  });
});
