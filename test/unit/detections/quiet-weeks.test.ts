import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { firingsOf, firingsText, overBars, rules, weeksOf } from '../../support/detections/company.ts';
import { sized } from '../../support/long-run.ts';

const page = readFileSync(new URL('../../../docs/denials.md', import.meta.url), 'utf8');
/** The table of docs/denials.md: each seed that no rule was tuned with, and what was too loud in its weeks. */
const judged = [...page.matchAll(/^\| `(company-\w+)` \| (.*) \|$/gm)].map(([, seed = '', loud = '']) => ({ seed, loud }));

/** `npm run quiet-weeks SEED` prints the weeks of any other. */
// promise: In four weeks of everyday work of a company of 500 people, the rules are as loud as docs/denials.md says.
test.each(judged.slice(0, sized(1, judged.length)))('the rules in the weeks of $seed: $loud', { timeout: 240_000 }, ({ seed, loud }) => {
  const weeks = weeksOf(seed);
  const firings = firingsOf(weeks);
  process.stdout.write(`seed ${seed}: ${String(weeks.events.length)} events\n${firingsText(firings, weeks.from)}\n`);
  expect(overBars(firings, weeks.from).join('; ') || 'none').toBe(loud);
  const all = rules.filter(({ isBuildingBlock }) => !isBuildingBlock).flatMap(({ id }) => firings.get(id) ?? []);
  // Weeks without any firing would show nothing.
  expect(all.length).toBeGreaterThan(4);
  expect(weeks.events.filter(({ fields }) => fields['dpas.result'] === 'AccessDenied').length).toBeGreaterThan(300);
});

test('five companies are judged', () => {
  expect(judged.map(({ seed }) => seed)).toHaveLength(5);
});

test('a rule that fires too often is named', () => {
  const from = Date.parse('2026-03-09T00:00:00Z');
  const hour = 3_600_000;
  const at = (...hours: readonly number[]): readonly number[] => hours.map((each) => from + each * hour);
  const [second, third] = [7 * 24, 14 * 24];
  // Twice in the month, once in each week, and three on a day are not too often.
  expect(
    overBars(
      new Map([
        ['opened-many', at(1, 2)],
        ['opened-many-day', at(3, second)],
      ]),
      from,
    ),
  ).toEqual([]);
  expect(overBars(new Map([['opened-many', at(1, second, third)]]), from)).toEqual(['opened-many (high): 1, 1, 1, 0 by week']);
  expect(overBars(new Map([['opened-many-day', at(second, second + 100)]]), from)).toEqual([
    'opened-many-day (medium): 0, 2, 0, 0 by week',
  ]);
  const everyRule = new Map(['opened-many-day', 'opened-above-average', 'far-apart', 'open-outside-time'].map((id) => [id, at(30)]));
  expect(overBars(everyRule, from)).toEqual(['day 2: 4 alerts']);
});
