/**
 * `npm run bench [-- collection | delivery | backfill | logs-endpoint | flood | sizing | live] [options]`: the benchmarks, each a program of its own with its floor
 * measured in the same run. Without a name, collection and then delivery; options are for a benchmark that is named, `--records` is for all.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const names = ['collection', 'delivery', 'backfill', 'logs-endpoint', 'flood', 'sizing', 'live'];
const given = process.argv.slice(2);
const [first = ''] = given;
const asked = names.includes(first) ? [first] : ['collection', 'delivery'];
const options = names.includes(first) ? given.slice(1) : given;
for (const name of asked) {
  const program = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const { status } = spawnSync(process.execPath, [program, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
