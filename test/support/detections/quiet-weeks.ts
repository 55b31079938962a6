/** `npm run quiet-weeks [SEED…]`: how often each rule fires in four weeks of the simulated company, by day. Fails if that is too often. */
import { firingsOf, firingsText, overBars, weeksOf } from './company.ts';

for (const seed of process.argv.length > 2 ? process.argv.slice(2) : ['tuning', 'shown']) {
  const weeks = weeksOf(seed);
  const firings = firingsOf(weeks);
  const over = overBars(firings, weeks.from);
  if (over.length > 0) process.exitCode = 1;
  process.stdout.write(`seed ${seed}: ${String(weeks.events.length)} events\n${firingsText(firings, weeks.from)}\n`);
  process.stdout.write(`${over.length === 0 ? 'no rule is too loud' : `too loud: ${over.join('; ')}`}\n\n`);
}
