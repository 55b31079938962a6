/**
 * `npm run bench [-- NAME [options]]`: the benchmarks, each with its floor measured in the same run. Without a name, collection and then delivery; `bars`
 * runs the benchmarks with bars. Options apply to a named benchmark; `--records` and `--save` apply to all.
 */
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
  'live',
  'report',
];
const withBars = ['peers', 'live', 'delivery', 'outage', 'sources', 'archive'];
const [first = '', ...rest] = process.argv.slice(2);
const chosen = names.includes(first) ? [first] : first === 'bars' ? withBars : ['collection', 'delivery'];
const options = names.includes(first) || first === 'bars' ? rest : process.argv.slice(2);
// Not in a child: a signal must reach the process that ends the started programs.
for (const name of chosen) {
  const path = new URL(`${name}.ts`, import.meta.url);
  process.argv.splice(1, Infinity, path.pathname, ...options);
  await import(path.href);
}
