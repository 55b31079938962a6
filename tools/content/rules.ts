/** The detection rules of content/rules in the order of their ids. */
import { readdirSync, readFileSync } from 'node:fs';
import { parseRule, type Rule } from '../../src/detections/rule.ts';

const directory = new URL('../../content/rules/', import.meta.url);

export const rules: readonly Rule[] = readdirSync(directory)
  .map((file) => parseRule(readFileSync(new URL(file, directory), 'utf8'), file))
  .sort((a, b) => (a.id < b.id ? -1 : 1));

export const riskScores = { low: 21, medium: 47, high: 73 } as const;
