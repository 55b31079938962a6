/**
 * The sink `archive` in a process that is killed (SIGKILL) at random moments, and started again:
 * every record is archived once, in order, and both verifiers accept the archive.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { parseVerifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { archivedRecords, publicKeyIn } from '../../support/archive-files.ts';
import { temporary } from '../../support/model-journal.ts';
import { Chance } from '../../simulation/chance.ts';
import { hasPython, resultOf, secondVerifier } from '../../support/second-verifier.ts';

const program = fileURLToPath(new URL('../../support/sinks/file-sender.ts', import.meta.url));
const kills = Number(process.env['WAYBILL_ARCHIVE_KILLS'] ?? 15);
const seed = Number(process.env['SEED'] ?? 20261121);

const sleep = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

async function start(state: string, directory: string, end?: number) {
  const child = spawn(process.execPath, [program, state, directory, 'archive', ...(end === undefined ? [] : [String(end)])], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (data: string) => (text.out += data));
  child.stderr.setEncoding('utf8').on('data', (data: string) => (text.err += data));
  const ended = once(child, 'close');
  while (!text.out.includes('begun')) {
    if (child.exitCode !== null) throw new Error(`the sender ended: ${text.err}`);
    await sleep(2);
  }
  return { child, text, ended };
}

function filesOf(directory: string): ReadonlyMap<string, Buffer> {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(directory, path)).isFile());
  return new Map(paths.map((path) => [path, readFileSync(join(directory, path))]));
}

// promise: `kill -9` of a process that archives: each record is there once, in order, and the archive is intact.
test(`${kills} kills: each record once, in order, and the archive is intact`, { timeout: 60_000 + kills * 2_000 }, async ({ annotate }) => {
  const folder = temporary();
  const [state, directory] = [join(folder, 'state'), join(folder, 'archive')];
  const chance = new Chance(seed, 'kills').next;
  for (let life = 1; life <= kills; life += 1) {
    const { child, ended } = await start(state, directory);
    await sleep(chance() * 150);
    child.kill('SIGKILL');
    await ended;
  }
  const { text, ended, child } = await start(state, directory, 200);
  await ended;
  const where = `seed ${seed}, in ${folder}; ${text.err}`;
  expect(child.exitCode, where).toBe(0);
  const head = Number(/^head (\d+)$/m.exec(text.out)?.[1]);
  expect(head, where).toBeGreaterThanOrEqual(200);
  const numbers = archivedRecords(directory).map((record) => (JSON.parse(record) as { logId: number }).logId);
  expect(numbers, where).toEqual(Array.from({ length: head }, (_, i) => i + 1));
  const key = publicKeyIn(directory);
  const verifier = parseVerifier(key);
  const report = await verifyArchive(new DirectoryStore(directory), verifier ? [verifier] : []);
  expect(report, where).toMatchObject({ result: 'intact', records: head });
  // Segments of unfinished attempts are findings of severity note.
  expect(report.checkpoints, where).toBeGreaterThan(kills / 3);
  if (!hasPython) await annotate('python3 or openssl is missing: verify.py did not run');
  else expect((await secondVerifier(filesOf(directory), { key })).map(resultOf), where).toEqual(['intact']);
  rmSync(folder, { recursive: true, force: true });
});
