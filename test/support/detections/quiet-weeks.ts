/** `npm run quiet-weeks [SEED…]`: how often each rule fires in four weeks of the simulated company, by day. */
import { firingsOf, firingsText, weeksOf } from './company.ts';

for (const seed of process.argv.length > 2 ? process.argv.slice(2) : ['tuning', 'shown']) {
  const weeks = weeksOf(seed);
  process.stdout.write(`seed ${seed}: ${String(weeks.events.length)} events\n${firingsText(firingsOf(weeks), weeks.from)}\n\n`);
}
