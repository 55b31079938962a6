import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { metricTable, unitOf } from '../../../src/telemetry/metric-table.ts';
import type { Metric } from '../../../src/telemetry/metric-table.ts';
import { expectPart } from '../../support/generated-part.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('every error code has a heading in docs/operations.md, whose first line says whether anything is lost', () => {
  const codes = [...read('src/errors/errors.ts').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map((found) => found[1] ?? '');
  expect(codes.length).toBeGreaterThan(25);
  const headings = new Map([...read('docs/operations.md').matchAll(/^#{2,3} (.+)\n\n([^#\n].*)$/gm)].map((found) => [found[1], found[2]]));
  for (const code of codes) expect(headings.get(code), code).toMatch(/^\*\*.*(lost|safe)/);
  for (const accident of ['401', '429', 'Disk full', 'SIGTERM', 'Power loss', 'Clock set back', 'State lost']) {
    expect(headings.get(accident), accident).toMatch(/^\*\*.*lost/);
  }
});

test('docs/metrics.md lists every metric', async () => {
  const groups = Map.groupBy(Object.entries<Metric>(metricTable), ([name, { labels }]) =>
    name.startsWith('process')
      ? 'process'
      : (/^(source|sink)\b/.exec(labels)?.[0] ?? (/^waybill_(members|shard|rollbacks|leases|database)/.test(name) ? 'fleet' : 'daemon')),
  );
  const row = ([name, { type, labels, help, note }]: [string, Metric]): string => {
    const names = labels
      .split(' ')
      .filter(Boolean)
      .map((label) => `\`${label}\``)
      .join(' ');
    return `| \`${name}\` | ${type} | ${names} | ${unitOf(name)} | ${help}${note === undefined ? '' : `. ${note}`} |\n`;
  };
  const tables = [...groups].map(
    ([group, metrics]) =>
      `## ${group}\n\n| metric | type | labels | unit | meaning |\n| --- | --- | --- | --- | --- |\n${metrics.map(row).join('')}`,
  );
  // `npx vitest run test/unit/telemetry/docs.test.ts --update` writes the file.
  await expectPart('docs/metrics.md', 'metrics', tables.join('\n'));
});
