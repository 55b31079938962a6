// The documents list every error code and every metric.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { parseExposition } from './exposition.ts';
import { snapshot } from '../report/snapshots.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('every error code has a heading in docs/operations.md, whose first line says whether anything is lost', () => {
  const codes = [...read('src/errors.ts').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map((found) => found[1] ?? '');
  expect(codes.length).toBeGreaterThan(25);
  const headings = new Map([...read('docs/operations.md').matchAll(/^#{2,3} (.+)\n\n([^#\n].*)$/gm)].map((found) => [found[1], found[2]]));
  for (const code of codes) expect(headings.get(code), code).toMatch(/^\*\*.*(lost|safe)/);
  for (const accident of ['401', '429', 'Disk full', 'SIGTERM', 'Power loss', 'Clock set back', 'State lost']) {
    expect(headings.get(accident), accident).toMatch(/^\*\*.*lost/);
  }
});

test('docs/metrics.md has every metric on the wire, with its type', async () => {
  const metrics = createMetrics('0.1.0', 'unknown');
  const { meters, bind, text } = metrics;
  bind(() => snapshot());
  meters.recordDelay('production', 1);
  meters.sourceRequest('production', 'ok', 1);
  meters.recordsUnexpected('production', 'x');
  meters.deliveryDelay('siem', 1);
  const { types } = parseExposition(await text());
  await metrics[Symbol.asyncDispose]();
  const [given = ''] = read('docs/metrics.md').split('## Named, and not given');
  const documented = [...given.matchAll(/^\| `(waybill_\w+)` \| (\w+) \|/gm)].map((found) => [found[1], found[2]]);
  expect([...types].sort()).toEqual(documented.sort());
});
