/** docs/denials.md: its outcomes match the specification, and its queries find the promised events. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { rows } from '../../support/normalize/records.ts';
import type { Row } from '../../support/content/events.ts';
import { eventOf, flat, recordFor, start } from '../../support/content/events.ts';
import { esql } from '../../support/content/esql.ts';
import { kql } from '../../support/content/kql.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import { rules } from '../../../tools/content/rules.ts';
import { cefEventOf } from '../../support/content/splunk-app.ts';
import { spl } from '../../support/content/spl.ts';

const page = readFileSync(new URL('../../../docs/denials.md', import.meta.url), 'utf8');
const blocks = (language: string): readonly string[] =>
  [...page.matchAll(/^```(\w+)\n([^]*?)\n```$/gm)].filter(([, found]) => found === language).map(([, , text = '']) => text);

const day = 86_400;
const denied = 'Decrypt:AccessDenied:UserPayloadNoAccess';
const records = [
  ...rows.map(({ triple }, index) => ({ code: triple.join(':'), user: 'u-1', file: `p-${index}`, at: index })),
  { code: denied, user: 'u-2', file: 'p-91c2', at: 100 },
  { code: denied, user: 'u-2', file: 'p-91c2', at: 101 },
  { code: 'Audit:AuthorChanged:Changed', user: 'u-3', file: 'p-91c2', at: 99 },
  { code: denied, user: 'u-4', file: 'p-1', at: -day },
].map(recordFor);
const events: readonly Row[] = records.map(eventOf);
const cefEvents: readonly Row[] = records.map((record) => cefEventOf(record));
const now = start + 200_000;

/** The record of a run with the reference service whose event the page shows. */
const shown = String.raw`{"logId":1000013,"userId":"76adb76b-7f40-47dd-9593-cb2fc786d2b5","payloadId":"cc2cadb6-53bc-47ab-9f2e-dbba39c7d014","payloadName":"Blueprint 528.pptx","currentPayloadOwnerId":"e2033913-6a47-4b61-b8dd-a99d677e1f01","actionAttempted":"Decrypt","result":"AccessDenied","resultReason":"UserPayloadNoAccess","logTimestamp":"2026-11-28T15:00:48.6475460","userNetwork":{"ipAddress":"198.51.100.35","networkName":"Home\\WLAN","networkId":"fdd0da69-18cc-4a78-861c-77aa1e1e2d5e","domainName":"WORKGROUP","deviceType":"iOS","machineName":"IOS-238523","mac":"00-00-5E-00-53-6D","uuid":"9580cd15-ca1a-4a71-b2e2-963ce8791190","serviceProvider":"Example Mobile \"5G\"","latLong":"47.4197,8.51045","address":"125 Example Street, Zürich, Switzerland"},"userLastNameFirstName":"Service Super Administrator,Application","userEmailAddress":"application.service-super-administrator@example.com","currentOwnerLastNameFirstName":"Golf-Sample,Person 43","currentOwnerEmailAddress":"person-43.golf-sample@example.com"}`;

test('the event of the page is a part of what the encoder makes of a record of the reference service', () => {
  const excerpt = flat(JSON.parse(blocks('json')[0] ?? ''), '');
  expect(Object.keys(excerpt).length).toBeGreaterThan(10);
  expect(eventOf(shown)).toMatchObject(excerpt);
});

const codesOf = (found: readonly Row[]): readonly unknown[] => found.map((row) => row['event.code']);
const deniedCodes = rows.filter(({ triple }) => triple[1] === 'AccessDenied').map(({ triple }) => triple.join(':'));

describe('the table', () => {
  test('has the 17 outcomes of the specification, in its order, with their severities', () => {
    const listed = [...page.matchAll(/^\| `(\w+:\w+:\w+)` \| (\d+) \|/gm)].map(([, code, severity]) => [code, Number(severity)]);
    expect(listed).toEqual(rows.map(({ triple, severity }) => [triple.join(':'), severity]));
    expect(listed).toHaveLength(17);
  });

  test('names the rules that alert on each outcome', () => {
    // Building blocks are no alerts.
    const alerting = rules.filter(({ isBuildingBlock }) => !isBuildingBlock);
    const expected = rows.map(({ triple }) => {
      const code = triple.join(':');
      const read = alerting.filter(({ detect }) =>
        (detect.kind === 'sequence' ? detect.steps.flatMap(({ where }) => where) : detect.where).some(({ fields }) =>
          fields['event.code']?.includes(code),
        ),
      );
      return [code, read.map(({ id }) => id)];
    });
    const listed = [...page.matchAll(/^\| `(\w+:\w+:\w+)` \|.*\| ([^|]+) \|$/gm)].map(([, code, cell = '']) => [
      code,
      [...cell.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
    ]);
    expect(listed).toEqual(expected);
  });
});

describe('the queries', () => {
  test('are three in each language, and use only fields that Elasticsearch maps', () => {
    const read = [...blocks('kql').map(kql), ...blocks('esql').map(esql), ...blocks('spl').map(spl)];
    expect(read).toHaveLength(9);
    expect(read.flatMap(({ fields }) => fields).filter((field) => !mappedFields.has(field))).toEqual([]);
  });

  test('of denials find each denial, and no other event', () => {
    const expected = [...deniedCodes, denied, denied];
    const [byKql = '', byEsql = '', bySpl = ''] = [blocks('kql')[0], blocks('esql')[0], blocks('spl')[0]];
    expect(codesOf(events.filter(kql(byKql).matches))).toEqual([...expected, denied]);
    const found = esql(byEsql).run(events, now);
    expect(found).toHaveLength(expected.length);
    expect(found.map((row) => row['event.reason'])).toEqual(expected.map((code) => code.split(':')[2]).toReversed());
    expect(spl(bySpl).limits).toEqual({ index: 'dpas', sourcetype: 'dpas:audit,dpas:cef', earliest: '-24h' });
    expect(spl(bySpl).run([...events, ...events])).toHaveLength(expected.length + 1);
  });

  test('of users count the denied opens and their files', () => {
    const [, byKql = ''] = blocks('kql');
    expect(codesOf(events.filter(kql(byKql).matches)).every((code) => String(code).startsWith('Decrypt:AccessDenied:'))).toBe(true);
    const newest = start + 101_000;
    expect(esql(blocks('esql')[1] ?? '').run(events, now)).toEqual([
      { 'user.id': 'u-1', denials: 4, files: 4, newest: start + 6_000 },
      { 'user.id': 'u-2', denials: 2, files: 1, newest },
    ]);
    const bySpl = spl(blocks('spl')[1] ?? '').run([...events, ...events]);
    // Splunk shows `_time` as a time, and a column of another name as seconds.
    expect(bySpl.slice(0, 1)).toEqual([{ 'user.id': 'u-1', denials: 4, files: 4, _time: start / 1000 + 6 }]);
    expect(bySpl).toContainEqual({ 'user.id': 'u-2', denials: 2, files: 1, _time: newest / 1000 });
  });

  test('in SPL find the same in CEF messages', () => {
    for (const query of blocks('spl')) {
      const [ecs, cef] = [events, cefEvents].map((rows) => spl(query).run([...rows, ...rows]));
      expect(cef).toEqual(ecs);
      expect(ecs?.length).toBeGreaterThan(1);
    }
  });

  test('of a file find its history in order', () => {
    const expected = ['Audit:AuthorChanged:Changed', denied, denied];
    expect(codesOf(events.filter(kql(blocks('kql')[2] ?? '').matches)).toSorted()).toEqual(expected);
    expect(codesOf(esql(blocks('esql')[2] ?? '').run(events, now))).toEqual(expected);
    expect(codesOf(spl(blocks('spl')[2] ?? '').run([...events, ...events]))).toEqual(expected);
  });
});

describe('the readers of queries', () => {
  test.each([
    ['KQL', () => kql('event.code "a"')],
    ['KQL', () => kql('(event.code: "a"')],
    ['ES|QL', () => esql('FROM a | WHERE b = 1 c')],
    ['ES|QL', () => esql('FROM a | GROK b "%{WORD}"')],
    ['SPL', () => spl('index=a | transaction user')],
    ['SPL', () => spl('`macro` a=b')],
  ])('of %s refuse what they do not implement', (language, read) => {
    expect(read).toThrow(`cannot read ${language}`);
  });

  test('evaluate KQL by its precedence, with wildcards and arrays', () => {
    const row = { a: 'x', b: ['y', 'zeta'], n: 7 };
    expect(kql('a: "x" or a: "q" and b: "q"').matches(row)).toBe(true);
    expect(kql('(a: "x" or a: "q") and b: "q"').matches(row)).toBe(false);
    expect(kql('b: z* and not a: q and n >= 7 and n < 8').matches(row)).toBe(true);
    expect(kql('b: ("q" or "y")').matches(row)).toBe(true);
    expect(kql('missing: *').matches(row)).toBe(false);
  });
});
