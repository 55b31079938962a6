/**
 * `npm run bench -- peers [--records 500000] [--rounds 5] [--only NAME,NAME] [--save]`: reads
 * history from the same page server into a file with a plain Node pipeline (the floor), Benthos,
 * the OpenTelemetry Collector and Waybill, in interleaved rounds. Every output is checked record by
 * record.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flag, options, positiveInteger, refuse, someOf } from './options.ts';
import { comparedFields } from './peers/check.ts';
import type { Check } from './peers/check.ts';
import { measure } from './peers/measure.ts';
import type { Cost, Run } from './peers/measure.ts';
import { peers } from './peers/programs.ts';
import type { Peer } from './peers/programs.ts';
import { start } from './process.ts';
import { machine, publish } from './publish.ts';
import { perSecond } from './record.ts';
import { digits, rangeOf, rangeText } from './result.ts';
import type { Bar, Range } from './result.ts';

const all = peers();
const { records, rounds, only, save } = options({
  records: positiveInteger(500_000),
  rounds: positiveInteger(5),
  only: someOf(all.map(({ name }) => name)),
  save: flag,
});
const isPart = only.length < all.length;
if (save && isPart) refuse('--save needs all programs: run it without --only');
const directory = mkdtempSync(join(tmpdir(), 'waybill-peers-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
// The log ends a while ago, so that all of it is history.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
/**
 * The CPU cores that other programs may use; above that, a program that uses both cores looks slow,
 * and nothing is saved.
 */
const maxOthers = 0.25;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

const left: string[] = [];
const present = all.filter((peer) => {
  if (!only.includes(peer.name)) return false;
  const missing = peer.prepare?.();
  if (missing !== undefined) left.push(`${peer.name} ${peer.version} is left out: ${missing.replace(/\.$/, '')}.`);
  return missing === undefined;
});
for (const line of left) say(line);
const sentence = machine();
const server = start(process.execPath, [join(import.meta.dirname, 'server.ts'), String(records), String(beginMs)]);
const { port } = JSON.parse(await server.firstLine) as { port: number };
const runs = new Map(present.map(({ name }) => [name, [] as Run[]]));
for (let round = 0; round < rounds; round += 1) {
  // Each round starts with another program, so that none always follows the same one.
  for (const peer of [...present.slice(round % present.length), ...present.slice(0, round % present.length)]) {
    const run = await measure(peer, { server: { pid: server.pid, port }, directory, records, beginMs });
    runs.get(peer.name)?.push(run);
    const { fromStart, lost, doubled, changed, others } = run;
    say(
      `round ${round + 1}, ${peer.name}: ${digits(records / fromStart.seconds)} records/s, ${per100k(fromStart).toFixed(2)} CPU s per 100,000; ` +
        `${lost} lost, ${doubled} doubled, ${changed} changed; other programs used ${others.toFixed(2)} cores`,
    );
  }
}
await server[Symbol.asyncDispose]();
report();

function per100k({ cpuSeconds: used }: Cost): number {
  return (used / records) * 100_000;
}

function report(): void {
  const since = (
    from: 'fromStart' | 'fromFirst',
    name: string,
  ): { rate: Range; cpu: Range; rateOf: (other: string) => number; cpuOf: (other: string) => number } => {
    const costs = (of: string): Cost[] => runs.get(of)?.map((run) => run[from]) ?? [];
    // Each round is compared with itself: a temporary load affects all programs of a round.
    const ratio = (other: string, of: (cost: Cost, base: Cost) => number): number =>
      rangeOf(
        costs(name).flatMap((cost, i) =>
          costs(other)
            .slice(i, i + 1)
            .map((base) => of(cost, base)),
        ),
      ).median;
    return {
      rate: rangeOf(costs(name).map(({ seconds }) => records / seconds)),
      cpu: rangeOf(costs(name).map(per100k)),
      rateOf: (other) => ratio(other, (cost, base) => base.seconds / cost.seconds),
      cpuOf: (other) => ratio(other, (cost, base) => cost.cpuSeconds / base.cpuSeconds),
    };
  };
  const floor = 'plain Node';
  const columns = ['program', 'records/s', 'of plain', 'CPU s per 100,000', 'of plain'];
  const row = (from: 'fromStart' | 'fromFirst', { name }: Peer): string[] => {
    const { rate, cpu, rateOf, cpuOf } = since(from, name);
    return [rangeText(rate), rateOf(floor).toFixed(2), rangeText(cpu), cpuOf(floor).toFixed(2)];
  };
  const highest = (name: string, key: 'peakMiB' | keyof Check): number => Math.max(...(runs.get(name) ?? []).map((run) => run[key]));
  const others = rangeOf([...runs.values()].flat().map((run) => run.others));
  const has = (name: string): boolean => present.some((peer) => peer.name === name);
  const [whole, warm] = [since('fromStart', 'Waybill'), since('fromFirst', 'Waybill')];
  const bars: Bar[] = [
    ...(has(floor)
      ? ([
          { what: 'rate from process start, of plain Node', value: whole.rateOf(floor), limit: 'at least', bar: 0.31, goal: 0.45 },
          { what: 'CPU from process start, of plain Node', value: whole.cpuOf(floor), limit: 'at most', bar: 4, goal: 2.5 },
          { what: 'rate from the first window, of plain Node', value: warm.rateOf(floor), limit: 'at least', bar: 0.41, goal: 0.53 },
          { what: 'CPU from the first window, of plain Node', value: warm.cpuOf(floor), limit: 'at most', goal: 2 },
        ] as const)
      : []),
    ...(has('Benthos')
      ? ([
          { what: 'rate from process start, of Benthos', value: whole.rateOf('Benthos'), limit: 'at least', bar: 1 },
          { what: 'CPU from process start, of Benthos', value: whole.cpuOf('Benthos'), limit: 'at most', bar: 1 },
        ] as const)
      : []),
  ];
  publish(
    'peers',
    {
      title: 'Waybill beside other collectors',
      command: `npm run bench -- peers --records ${records} --rounds ${rounds}${isPart ? ` --only "${only.join(',')}"` : ''}`,
      text: [
        sentence,
        `${records.toLocaleString('en-US')} records of about 790 bytes in pages of 1,000, from one page server on the same cores, to one file, until its last byte is on the disk; median (lowest–highest) of ${rounds} interleaved rounds.`,
        'CPU is user and system time of the program and all processes that it starts.',
        `Other programs of the machine used ${others.min.toFixed(2)}–${others.max.toFixed(2)} cores meanwhile (median ${others.median.toFixed(2)}).`,
        `Each program writes \`event.original\` and the same ${comparedFields} ECS fields, which are checked in every record, the Collector as attributes of OTLP. The table has the number of fields and bytes of a record: Waybill adds the other fields of its ECS document.`,
        'Waybill also counts each window, keeps a journal on disk, and syncs the file; the configurations of the others (`bench/peers`) keep no position on disk.',
        ...(has('OpenTelemetry')
          ? [
              'The Collector asks for each page from the time of its newest record; the API takes hundredths of a second and includes the bound, so the last record of a page comes twice.',
            ]
          : []),
        ...left,
      ],
      tables: [
        {
          caption: 'From process start:',
          columns: ['program', 'version', ...columns.slice(1), 'peak MiB', 'fields', 'bytes', 'lost', 'doubled', 'changed'],
          rows: present.map((peer) => [
            peer.name,
            peer.version,
            ...row('fromStart', peer),
            digits(highest(peer.name, 'peakMiB')),
            ...(['fields', 'bytes', 'lost', 'doubled', 'changed'] as const).map((key) =>
              Math.round(highest(peer.name, key)).toLocaleString('en-US'),
            ),
          ]),
        },
        {
          caption: 'From the first window of Waybill, and from the first request of the others:',
          columns,
          rows: present.map((peer) => [peer.name, ...row('fromFirst', peer)]),
        },
      ],
      bars: has('Waybill') ? bars : [],
      chart: present.map(({ name }) => ({
        name,
        recordsPerSecond: since('fromStart', name).rate,
        cpuPer100k: since('fromStart', name).cpu,
      })),
    },
    save && others.median <= maxOthers,
  );
  if (save && others.median > maxOthers)
    throw new Error(`cannot save the result: other programs used ${others.median.toFixed(2)} cores, at most ${maxOthers} are allowed`);
}
