import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { logEvents } from '../../../src/model/log-events.ts';
import { gapReasons, suspensionReasons } from '../../../src/model/ledger.ts';
import { holeReasons } from '../../../src/report/completeness.ts';
import { explanation, explanationList, type AlertFile } from '../../../src/report/explain.ts';
import { sinkStates, sourceStates } from '../../../src/report/states.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const documents = { operations: read('docs/operations.md'), alerts: parse(read('content/prometheus/alerts.yaml')) as AlertFile };

test('every error code of the source is explained by a heading, which starts with the loss', () => {
  const codes = [...read('src/errors/errors.ts').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code]) => code ?? '');
  expect(codes.length).toBeGreaterThan(25);
  for (const code of codes) expect(explanation(code, documents), code).toMatch(new RegExp(`^${code}\n\n.*(lost|safe)`));
});

test('every log event is explained with its level and meaning, and with the incident that it refers to', () => {
  for (const [event, { level, message }] of Object.entries(logEvents)) {
    const text = explanation(event, documents);
    expect(text, event).toContain(`${event}: ${message}\n`);
    expect(text, event).toContain(`Level: ${level}\n`);
  }
  const references = Object.entries(logEvents).flatMap(([event, { meaning }]) => {
    const heading = /operations\.md, "([^"]+)"/.exec(meaning)?.[1];
    return heading === undefined ? [] : [[event, heading] as const];
  });
  expect(references.length).toBeGreaterThan(1);
  for (const [event, heading] of references) expect(explanation(event, documents), event).toContain(`\n${heading}\n\n`);
});

describe('a document with three headings', () => {
  const document = {
    ...documents,
    operations:
      '# Title\n\nIntro.\n\n## Group\n\n### sink_blocked\n\n**Nothing is lost.** See [there](#x).\n\n## Disk full\n\nText.\n\n## A gap\n\nNumbers.\n',
  };

  test('prints one section as plain text', () => {
    expect(explanation('sink_blocked', document)).toBe('sink_blocked\n\nNothing is lost. See there.\n');
    expect(explanation('disk FULL', document)).toBe('Disk full\n\nText.\n');
    expect(explanation('sink blocked', document)).toBe('sink_blocked\n\nNothing is lost. See there.\n');
    for (const name of ['gap', 'A GAP', 'the gap']) expect(explanation(name, document)).toBe('A gap\n\nNumbers.\n');
  });

  test.each([
    ['sink_bloked', 'the nearest is "sink_blocked"'],
    ['window.shrunken', 'the nearest is "window.shrunk"'],
    ['group', 'cannot explain "group"'],
    ['full', 'the nearest is "Disk full"'],
    ['x', 'waybill explain lists all'],
  ])('refuses %s', (code, reason) => {
    expect(() => explanation(code, document)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining(reason) as string }),
    );
  });
});

const words = {
  'state of a source': sourceStates,
  'state of a sink': sinkStates,
  'reason of a suspension': suspensionReasons,
  'reason of a gap': gapReasons,
  'reason of time that is not covered': holeReasons,
  'reason or state of a window': ['proven', 'final', 'gap', 'accepted', 'in doubt', 'reread', 'shrunk'],
  'word of a problem': [...read('src/report/advice.ts').matchAll(/ code: '([^']+)'/g)].map(([, code = '']) => code),
} as const;
test.each(Object.entries(words).flatMap(([what, list]) => list.map((word) => [what, word] as const)))('explains the %s: %s', (_, word) => {
  const [head, empty, text = ''] = explanation(word, documents).split('\n');
  expect([head?.toLowerCase().replaceAll('_', ' '), empty]).toEqual([expect.stringContaining(word.toLowerCase().replaceAll('_', ' ')), '']);
  expect(text.length).toBeGreaterThan(10);
});

test('a word of a list is explained by its whole item, and names its section', () => {
  const text = explanation('filter', documents);
  expect(text).toMatch(
    /^filter\n\nthe service does not find a record by its time, or returns records of other times\. .* are counted again\.\n\nMore: waybill explain "Suspended"\n$/,
  );
  expect(explanation('Catching_up', documents)).toMatch(/^catching up\n\n/);
  expect(explanation('final', documents)).toMatch(/^final\n\nproven, and .* not read again\.\n/);
});

test('each alert is explained, with the sections that it names, and its condition', () => {
  const alerts = documents.alerts.groups.flatMap(({ rules }) => rules);
  expect(alerts.length).toBeGreaterThan(12);
  for (const { alert, expr, annotations } of alerts) {
    const text = explanation(alert, documents);
    expect(text, alert).toContain(expr);
    expect(text, alert).not.toMatch(/[{}]{2}/);
    expect(annotations.command, alert).toBe(`waybill explain ${alert}`);
    const named = [...annotations.description.matchAll(/operations\.md, "([^"]+)"/g)].map(([, heading = '']) => heading);
    expect(named.length, `${alert} names its section`).toBeGreaterThan(0);
    for (const heading of named) expect(text, alert).toContain(`\n${heading}\n\n`);
  }
});

test.each([
  ['403', ['source_forbidden', 'sink_blocked']],
  ['404', ['page_not_found', 'sink_blocked']],
  ['407', ['proxy_refused']],
  ['500', ['source_busy', 'sink_unavailable']],
  ['503', ['source_busy', 'sink_unavailable']],
])('status %s is explained by its codes', (status, codes) => {
  const text = explanation(status, documents);
  for (const code of codes) expect(text).toContain(explanation(code, documents));
});

test('the list holds every error code, incident, alert and log event', () => {
  const lines = explanationList(documents).split('\n');
  for (const name of ['source_forbidden', 'A gap', 'WaybillSinkLate', 'source.request_failing']) expect(lines).toContain(`  ${name}`);
  for (const line of lines.filter((each) => each.startsWith('  '))) explanation(line, documents);
});
