/**
 * `archive prove` and `archive verify --proof` of a large archive, as a user runs them: one process each, with the start of the program. An empty
 * Node program is measured beside them.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { smallUid } from './archive-batches.ts';
import { cpuSeconds } from './process.ts';
import { waybill } from './program.ts';

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export const proofPrograms = ['prove', 'verify --proof', 'empty'] as const;
export type ProofRuns = Readonly<Record<(typeof proofPrograms)[number], readonly Run[]>>;

/** @param archive  of `records` records by `archiveBatches` */
export function proofRuns(archive: string, records: number, rounds: number): ProofRuns {
  const program = waybill();
  const proof = join(archive, '..', 'proof.json');
  const key = publicKeyPath(archive);
  const found: Record<(typeof proofPrograms)[number], Run[]> = { prove: [], 'verify --proof': [], empty: [] };
  for (let round = 0; round < rounds; round += 1)
    // Uids have no order, so each of these records is in another file of the index.
    for (const i of [0, Math.floor(records / 3), Math.floor((2 * records) / 3), records - 1]) {
      const proving = timed([program, 'archive', 'prove', '--directory', archive, '--uid', smallUid(i)]);
      if (!proving.output.includes(smallUid(i))) throw new Error(`no proof of record ${i}`);
      writeFileSync(proof, proving.output);
      found.prove.push(proving);
      found['verify --proof'].push(timed([program, 'archive', 'verify', '--proof', proof, '--key', key]));
      found.empty.push(timed(['-e', '']));
    }
  return found;
}

/** Runs Node. @throws Error when it does not exit with 0 */
function timed(args: readonly string[]): Run & { readonly output: string } {
  const cpuBefore = cpuSeconds(process.pid);
  const begin = performance.now();
  const output = execFileSync(process.execPath, args, { encoding: 'utf8' });
  // This process only waits meanwhile; its own accounting includes the programs that ended.
  return { seconds: (performance.now() - begin) / 1000, cpuSeconds: cpuSeconds(process.pid) - cpuBefore, output };
}

export function publicKeyPath(archive: string): string {
  const folder = join(archive, 'keys');
  const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((each) => each.includes('+'));
  if (name === undefined) throw new Error(`"${archive}" has no public key`);
  return join(folder, name);
}

/** The lines that its newest checkpoint signs. */
export function signedLines(archive: string): number {
  return Number(readFileSync(join(archive, 'checkpoint'), 'utf8').split('\n')[1]);
}

/** Bytes of all files on disk. */
export function diskBytes(archive: string): number {
  const files = readdirSync(archive, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).blocks * 512, 0);
}
