/**
 * `npm run bench [-- NAME [options]]`: the benchmarks, each with its floor measured in the same run.
 * Without a name, collection and then delivery, with `--records`; `bars` runs the benchmarks with
 * bars, with `--save`.
 */
import { flag, options, positiveInteger, refuse } from './options.ts';

const names = [
  'peers',
  'archive',
  'collection',
  'delivery',
  'outage',
  'sources',
  'backfill',
  'logs-endpoint',
  'flood',
  'sizing',
  'fleet',
  'live',
  'report',
];
const withBars = ['peers', 'live', 'delivery', 'outage', 'sources', 'archive', 'fleet'];
const [first = '', ...rest] = process.argv.slice(2);
const isNamed = names.includes(first);
if (!isNamed && first !== 'bars' && first !== '' && !first.startsWith('-'))
  refuse(`"${first}" is not a benchmark: one of ${[...names, 'bars'].join(', ')}`);
if (first === 'bars') process.argv.splice(2, 1);
// What each of several benchmarks accepts.
if (!isNamed) options(first === 'bars' ? { save: flag } : { records: positiveInteger(1) });
const chosen = isNamed ? [first] : first === 'bars' ? withBars : ['collection', 'delivery'];
const passed = isNamed ? rest : process.argv.slice(2);
// Not in a child: a signal must reach the process that ends the started programs.
for (const name of chosen) {
  const path = new URL(`${name}.ts`, import.meta.url);
  process.argv.splice(1, Infinity, path.pathname, ...passed);
  await import(path.href);
}
