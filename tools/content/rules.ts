/** The detection rules of content/rules in the order of their ids. */
import { readRules } from '../../src/detections/rule.ts';

export const rules = readRules(new URL('../../content/rules/', import.meta.url));

export const riskScores = { low: 21, medium: 47, high: 73 } as const;
