/** content/README.md names every file, and its counts match the files. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { kibanaFiles } from '../../../tools/content/kibana.ts';
import { rules as detectionRules } from '../../../tools/content/rules.ts';
import { sigmaRules } from '../../support/content/sigma.ts';

const folder = new URL('../../../content/', import.meta.url);
const readme = readFileSync(new URL('README.md', folder), 'utf8');

// The table of Kibana has a row for each rule.
test('content/README.md names every file, and no other', () => {
  const files = globSync('**/*.*', { cwd: folder }).filter((path) => path !== 'README.md' && !path.startsWith('rules/'));
  const named = [...readme.matchAll(/^\| `([^`]+\/[^`]+)` +\|/gm)].map(([, path]) => path);
  expect(named.toSorted()).toEqual(files.toSorted());
});

test('content/README.md has the level and the title of every Sigma rule, and counts them', () => {
  for (const { path, level, title } of sigmaRules) expect(readme).toContain(`| \`sigma/${path}\` | ${level} | ${title} |\n`);
  const detections = sigmaRules.filter(({ detection }) => detection).length;
  expect(readme).toContain(`${sigmaRules.length} rules in`);
  expect(readme).toContain(`${detections} detections on single records, and ${sigmaRules.length - detections} correlations`);
});

test('content/README.md lists every detection rule of Kibana with its number, and counts them', () => {
  const files = kibanaFiles(detectionRules);
  const rulesOf = (name: string): readonly Record<string, string>[] =>
    (files[name] ?? '').trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, string>); // prettier-ignore
  const audit = rulesOf('detection-rules.ndjson');
  const rules = [...audit, ...rulesOf('detection-rules-ledger.ndjson')];
  expect(readme).toContain(`${audit.length} detection rules`);
  const cells = (line: string): string => line.replaceAll(/ +/g, ' ');
  for (const [number, { rule_id, type, severity, name }] of rules.entries())
    expect(cells(readme)).toContain(`| ${number} | \`${rule_id ?? ''}\` | ${type ?? ''} | ${severity ?? ''} | ${name ?? ''} |`);
});
