/**
 * `npm run bench -- archive [--records 200000] [--rounds 5] [--proof-records 10000000] [--save]`: CPU of archiving to a directory, beside gzip and
 * one SHA-256 a line of the same bytes; and of verifying, beside gunzip and one SHA-256 a line; in interleaved rounds. Then it archives
 * `--proof-records` small records, which takes minutes and some GB of TMPDIR, and measures the proof of single records.
 *
 * On ext4, wait five minutes after deleting many files: until then the kernel passes over each deleted inode when it creates a file
 * (`recently_deleted` in fs/ext4/ialloc.c), which took 4 s more CPU for 1,000,000 records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PartResult } from './archive-part.ts';
import { diskBytes, proofPrograms, proofRuns, signedLines, type ProofRuns } from './archive-proof.ts';
import { flag, options, positiveInteger } from './options.ts';
import { start } from './process.ts';
import { machine, publish } from './publish.ts';
import { digits, rangeOf, rangeText } from './result.ts';

const {
  records,
  rounds: roundCount,
  'proof-records': proofRecords,
  save,
} = options({
  records: positiveInteger(200_000),
  rounds: positiveInteger(5),
  'proof-records': positiveInteger(10_000_000),
  save: flag,
});
const sentence = machine();
const directory = mkdtempSync(join(tmpdir(), 'waybill-archive-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

const names = ['write', 'write-floor', 'verify', 'verify-floor'] as const;
const rounds: Record<(typeof names)[number], PartResult>[] = [];
for (let round = 0; round < roundCount; round += 1) {
  // The kernel frees the blocks of a deleted archive later, at the cost of what then runs.
  const folder = mkdtempSync(join(directory, 'round-'));
  const found: Partial<(typeof rounds)[number]> = {};
  for (const name of names) found[name] = await run(name, folder, records);
  rounds.push(found as (typeof rounds)[number]);
  process.stderr.write(
    `round ${round + 1}: ${names.map((name) => `${name} ${digits(found[name]?.cpuSeconds ?? NaN)} s`).join(', ')} of CPU\n`,
  );
}

const large = await largeArchive(proofRecords);

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
    command: `npm run bench -- archive --records ${records} --rounds ${roundCount} --proof-records ${proofRecords}`,
    text: [
      sentence,
      `${records.toLocaleString('en-US')} records in lines of ${digits(bytes / records)} bytes, segments of 10,000 lines, packed at level 3 of gzip, in the floor at level 6, the default; median (lowest–highest) of ${roundCount} interleaved rounds.`,
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
  save,
);

/** Archives many small records, and proves some of them. */
async function largeArchive(count: number): Promise<{ readonly records: string; readonly text: string; readonly runs: ProofRuns }> {
  const folder = mkdtempSync(join(directory, 'large-'));
  const archive = join(folder, 'archive');
  const { seconds, cpuSeconds } = await run('write', folder, count, 'small');
  const name = count.toLocaleString('en-US');
  return {
    records: name,
    text: `The archive of ${name} small records: ${signedLines(archive).toLocaleString('en-US')} lines, written in ${digits(seconds)} s (${digits(cpuSeconds)} s of CPU), ${digits(diskBytes(archive) / 1e9)} GB on disk.`,
    runs: proofRuns(archive, count, roundCount),
  };
}

async function run(part: string, folder: string, count: number, ...more: readonly string[]): Promise<PartResult> {
  const args = [join(import.meta.dirname, 'archive-part.ts'), part, folder, String(count), ...more];
  await using program = start(process.execPath, ['--expose-gc', ...args]);
  const result = JSON.parse(await program.firstLine) as PartResult;
  await program.ended;
  return result;
}
