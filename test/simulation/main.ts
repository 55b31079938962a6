import { Place } from './effects.ts';
import { baseConfig } from './life.ts';
import { simulate } from './simulate.ts';
const place = new Place();
const base = await baseConfig(place);
const from = Number(process.argv[2] ?? 1), many = Number(process.argv[3] ?? 1);
const t = performance.now();
const some: Record<string, number> = {}; const fig: Record<string, number> = {};
let bad = 0;
for (let seed = from; seed < from + many; seed += 1) {
  const t0 = performance.now();
  const o = await simulate(seed, base, place, many === 1);
  for (const [k, v] of Object.entries(o.sometimes)) some[k] = (some[k] ?? 0) + v;
  for (const [k, v] of Object.entries(o.figures)) fig[k] = (fig[k] ?? 0) + v;
  if (many === 1) { console.log(o.trace?.join('\n')); console.log(JSON.stringify(o.environment)); }
  if (o.faults.length) { bad += 1; console.log(seed, o.faults.slice(0, 3), (performance.now() - t0).toFixed(0)); }
  if (many === 1) console.log(o.hash, o.figures);
}
console.log((performance.now() - t) / many, 'ms a seed', (process.cpuUsage().user+process.cpuUsage().system)/1000/many, 'cpu ms', bad, 'bad'); console.log(some, fig);
place.leave();
