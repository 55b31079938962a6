/** The detection rules of content/rules in the order of their ids. */
import { readRules, type Rule } from '../../src/detections/rule.ts';

export const rules = readRules(new URL('../../content/rules/', import.meta.url));

/** Whether an alert is no more than one denial, so that its severity is that of the record. */
export const isOneDenial = ({ isBuildingBlock, detect }: Rule): boolean =>
  isBuildingBlock &&
  detect.kind === 'single' &&
  detect.where.every(({ fields }) => Object.values(fields).every((values) => values.every((value) => value.includes('AccessDenied'))));

export const riskScores = { low: 21, medium: 47, high: 73 } as const;
