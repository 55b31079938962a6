/** The table of rules in content/README.md: what each is in Kibana, Splunk and Sigma, or why a language cannot say it. */
import { readFileSync } from 'node:fs';
import type { Rule } from '../../src/detections/rule.ts';
import { formOf } from './kibana.ts';
import { sigmaLimit } from './sigma.ts';
import { intervalOf } from './spl.ts';

const [begin, end] = ['<!-- begin of what npm run content writes -->', '<!-- end -->'];

/** @returns the text of content/README.md with the table of these rules */
export function readmeOf(rules: readonly Rule[]): string {
  const text = readFileSync(new URL('../../content/README.md', import.meta.url), 'utf8');
  const [before, after] = [text.indexOf(begin), text.indexOf(end)];
  if (before < 0 || after < before) throw new Error('content/README.md has no place for the table of rules');
  return `${text.slice(0, before + begin.length)}\n\n${tableOf(rules)}\n\n${text.slice(after)}`;
}

function tableOf(rules: readonly Rule[]): string {
  // The numbers of waybill setup kibana --enable.
  const ordered = [...rules.filter(({ dataset }) => dataset === 'audit'), ...rules.filter(({ dataset }) => dataset === 'ledger')];
  const lines = ordered.map((rule, number) => {
    const limit = sigmaLimit(rule);
    const sigma = limit === undefined ? (rule.detect.kind === 'single' ? 'detection' : 'correlation') : `no: ${limit}`;
    const splunk = intervalOf(rule) === 3_600_000 ? 'each hour' : 'every 5 minutes';
    const severity = rule.isBuildingBlock ? `${rule.severity}, building block` : rule.severity;
    return `| ${number} | \`${rule.id}\` | ${severity} | ${rule.title} | ${String(formOf(rule)['type'])} | ${splunk} | ${sigma} |`;
  });
  return [
    `${rules.length} rules, of which Sigma can say ${rules.filter((rule) => sigmaLimit(rule) === undefined).length}:`,
    '',
    '| # | rule | severity | detects | Kibana | Splunk | Sigma |',
    '|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}
