import { expect, test } from 'vitest';
import { day, firingsOf, firingsText, rules, shownDays, weeksOf } from '../../support/detections/company.ts';

/** The thresholds of the rules were chosen with the seed `tuning`. `npm run quiet-weeks SEED` prints the weeks of any other. */
// promise: In four weeks of everyday work of a company of 500 people, a rule of severity high fires at most twice, of medium once a week.
test('the rules are quiet in weeks that they were not tuned with', { timeout: 240_000 }, () => {
  const weeks = weeksOf('shown');
  const firings = firingsOf(weeks);
  process.stdout.write(`seed shown: ${String(weeks.events.length)} events\n${firingsText(firings, weeks.from)}\n`);
  const alerting = rules.filter(({ isBuildingBlock }) => !isBuildingBlock);
  const limits: Readonly<Record<string, number>> = { high: 2, medium: shownDays / 7, low: Infinity };
  const over = alerting.filter(({ id, severity }) => (firings.get(id)?.length ?? Infinity) > (limits[severity] ?? 0));
  expect(over.map(({ id }) => id)).toEqual([]);

  const all = alerting.flatMap(({ id }) => firings.get(id) ?? []);
  const perDay = Array.from({ length: shownDays }, (_, i) => all.filter((at) => Math.floor((at - weeks.from) / day) === i).length);
  expect(Math.max(...perDay)).toBeLessThanOrEqual(3);
  // Weeks without any firing would show nothing.
  expect(all.length).toBeGreaterThan(8);
  expect(weeks.events.filter(({ fields }) => fields['dpas.result'] === 'AccessDenied').length).toBeGreaterThan(300);
});
