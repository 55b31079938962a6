/** The files that `npm run content` writes. */
import type { Rule } from '../../src/detections/rule.ts';
import { kibanaFiles } from './kibana.ts';
import { readmeOf } from './readme.ts';
import { sigmaFiles } from './sigma.ts';
import { splunkFiles } from './splunk.ts';

/** @returns texts by their paths in content */
export function contentFiles(rules: readonly Rule[]): Readonly<Record<string, string>> {
  const within = (folder: string, files: Readonly<Record<string, string>>): (readonly [string, string])[] =>
    Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]);
  return Object.fromEntries([
    ...within('kibana', kibanaFiles(rules)),
    ...within('splunk/waybill_dpas', splunkFiles(rules)),
    ...within('sigma', sigmaFiles(rules)),
    ['README.md', readmeOf(rules)],
  ]);
}
