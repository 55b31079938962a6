/**
 * `npm run bench -- archive [--records 200000] [--rounds 5] [--proof-records 10000000] [--save]`: CPU of archiving to a directory, beside gzip and
 * one SHA-256 a line of the same bytes; and of verifying, beside gunzip and one SHA-256 a line; in interleaved rounds. Then it archives
 * `--proof-records` small records, which takes minutes and some GB of TMPDIR, and measures the proof of single records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { PartResult } from './archive-part.ts';
import { diskBytes, proofPrograms, proofRuns, signedLines, type ProofRuns } from './archive-proof.ts';
import { start } from './process.ts';
import { machine, publish } from './publish.ts';
import { digits, rangeOf, rangeText } from './result.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
    'proof-records': { type: 'string', default: '10000000' },
    save: { type: 'boolean', default: false },
  },
});
const sentence = machine();
const directory = mkdtempSync(join(tmpdir(), 'waybill-archive-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

const names = ['write', 'write-floor', 'verify', 'verify-floor'] as const;
const rounds: Record<(typeof names)[number], PartResult>[] = [];
for (let round = 0; round < Number(values.rounds); round += 1) {
  rmSync(join(directory, 'archive'), { recursive: true, force: true });
  const found: Partial<(typeof rounds)[number]> = {};
  for (const name of names) found[name] = await run(name);
  rounds.push(found as (typeof rounds)[number]);
  process.stderr.write(
    `round ${round + 1}: ${names.map((name) => `${name} ${digits(found[name]?.cpuSeconds ?? NaN)} s`).join(', ')} of CPU\n`,
  );
}

const large = await largeArchive(Number(values['proof-records']));

/** The floors count the bytes of the lines. */
const bytes = rounds[0]?.['verify-floor'].bytes ?? NaN;
const megabytes = (part: (typeof names)[number]): number[] => rounds.map((round) => bytes / 1e6 / round[part].cpuSeconds);
const ratio = rangeOf(rounds.map((round) => round.write.cpuSeconds / round['write-floor'].cpuSeconds)).median;
const what = {
  write: 'archiving to a directory',
  'write-floor': 'gzip and one SHA-256 a line',
  verify: 'verifying',
  'verify-floor': 'gunzip and one SHA-256 a line',
  prove: '`archive prove`',
  'verify --proof': '`archive verify --proof`',
  empty: 'an empty Node program',
};
publish(
  'archive',
  {
    title: 'Archiving and verifying',
    command: `npm run bench -- archive --records ${values.records} --rounds ${values.rounds} --proof-records ${values['proof-records']}`,
    text: [
      sentence,
      `${Number(values.records).toLocaleString('en-US')} records in lines of ${digits(bytes / Number(values.records))} bytes, segments of 10,000 lines; median (lowest–highest) of ${values.rounds} interleaved rounds.`,
      large.text,
    ],
    tables: [
      {
        caption: 'Bytes of the lines before gzip; CPU of all threads:',
        columns: ['', 'MB per CPU second', 'MB/s', 'peak MiB'],
        rows: names.map((name) => [
          what[name],
          rangeText(rangeOf(megabytes(name))),
          rangeText(rangeOf(rounds.map((round) => bytes / 1e6 / round[name].seconds))),
          digits(Math.max(...rounds.map((round) => round[name].peakMiB))),
        ]),
      },
      {
        caption: `One record of ${large.records}, with the start of the program:`,
        columns: ['', 's', 'CPU s'],
        rows: proofPrograms.map((name) => [
          what[name],
          rangeText(rangeOf(large.runs[name].map(({ seconds }) => seconds))),
          rangeText(rangeOf(large.runs[name].map(({ cpuSeconds }) => cpuSeconds))),
        ]),
      },
    ],
    bars: [
      { what: 'CPU of archiving, of gzip and one SHA-256 a line', value: ratio, limit: 'at most', bar: 1.5 },
      { what: 'verified a CPU second', value: rangeOf(megabytes('verify')).median, unit: ' MB', limit: 'at least', bar: 100 },
      ...(['prove', 'verify --proof'] as const).flatMap((name) =>
        (['seconds', 'cpuSeconds'] as const).map((measure) => ({
          what: `${measure === 'seconds' ? 'time' : 'CPU'} of ${what[name]}, slowest`,
          value: rangeOf(large.runs[name].map((each) => each[measure])).max,
          unit: ' s',
          limit: 'at most' as const,
          bar: 1,
        })),
      ),
    ],
  },
  values.save,
);

/** Archives many small records, and proves some of them. */
async function largeArchive(records: number): Promise<{ readonly records: string; readonly text: string; readonly runs: ProofRuns }> {
  const archive = join(directory, 'archive');
  rmSync(archive, { recursive: true, force: true });
  const { seconds, cpuSeconds } = await run('write', [String(records), 'small']);
  const count = records.toLocaleString('en-US');
  return {
    records: count,
    text: `The archive of ${count} small records: ${signedLines(archive).toLocaleString('en-US')} lines, written in ${digits(seconds)} s (${digits(cpuSeconds)} s of CPU), ${digits(diskBytes(archive) / 1e9)} GB on disk.`,
    runs: proofRuns(archive, records, Number(values.rounds)),
  };
}

async function run(part: string, args: readonly string[] = [values.records]): Promise<PartResult> {
  await using program = start(process.execPath, ['--expose-gc', join(import.meta.dirname, 'archive-part.ts'), part, directory, ...args]);
  const result = JSON.parse(await program.firstLine) as PartResult;
  await program.ended;
  return result;
}
