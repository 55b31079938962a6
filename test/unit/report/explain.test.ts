import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { logEvents } from '../../../src/model/log-events.ts';
import { explanation } from '../../../src/report/explain.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const operations = read('docs/operations.md');

test('every error code of the source is explained by a heading, which starts with the loss', () => {
  const codes = [...read('src/errors.ts').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code]) => code ?? '');
  expect(codes.length).toBeGreaterThan(25);
  for (const code of codes) expect(explanation(code, operations), code).toMatch(new RegExp(`^${code}\n\n.*(lost|safe)`));
});

test('every log event is explained with its level and meaning, and with the incident that it refers to', () => {
  for (const [event, { level, message }] of Object.entries(logEvents)) {
    const text = explanation(event, operations);
    expect(text, event).toContain(`${event}: ${message}\n`);
    expect(text, event).toContain(`Level: ${level}\n`);
  }
  const references = Object.entries(logEvents).flatMap(([event, { meaning }]) => {
    const heading = /operations\.md, "([^"]+)"/.exec(meaning)?.[1];
    return heading === undefined ? [] : [[event, heading] as const];
  });
  expect(references.length).toBeGreaterThan(1);
  for (const [event, heading] of references) expect(explanation(event, operations), event).toContain(`\n${heading}\n\n`);
});

describe('a document with two headings', () => {
  const document = '# Title\n\nIntro.\n\n## Group\n\n### sink_blocked\n\n**Nothing is lost.** See [there](#x).\n\n## Disk full\n\nText.\n';

  test('prints one section as plain text', () => {
    expect(explanation('sink_blocked', document)).toBe('sink_blocked\n\nNothing is lost. See there.\n');
    expect(explanation('disk FULL', document)).toBe('Disk full\n\nText.\n');
  });

  test.each([
    ['sink_bloked', 'the nearest is "sink_blocked"'],
    ['window.shrunken', 'the nearest is "window.shrunk"'],
    ['group', 'cannot explain "group"'],
    ['x', 'docs/operations.md and docs/logs.md list all'],
  ])('refuses %s', (code, reason) => {
    expect(() => explanation(code, document)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining(reason) as string }),
    );
  });
});
