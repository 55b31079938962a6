/**
 * A process that archives and `waybill archive witness`, each killed (SIGKILL) at random moments and started again: every record is
 * archived once, the witness never refuses, and the archive has each checkpoint that the witness cosigned.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { parseVerifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { Chance } from '../../simulation/chance.ts';
import { archivedRecords, publicKeyIn } from '../../support/archive-files.ts';
import { temporary } from '../../support/model-journal.ts';
import { hasPython, resultOf, secondVerifier } from '../../support/second-verifier.ts';
import { startWitness, type RunningWitness } from '../../support/witness.ts';

const program = fileURLToPath(new URL('../../support/sinks/file-sender.ts', import.meta.url));
/** Of each of the two. */
const kills = Number(process.env['WAYBILL_WITNESS_KILLS'] ?? 4);
const seed = Number(process.env['SEED'] ?? 20261128);

/** @param witness  its address and key; undefined: none */
function start(folder: string, witness: RunningWitness | undefined, end?: number) {
  const paths = [join(folder, 'state'), join(folder, 'archive')];
  const child = spawn(process.execPath, [program, ...paths, 'archive', ...(end === undefined ? [] : [String(end)])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(witness && { WITNESS_URL: witness.url, WITNESS_KEY: witness.key }) },
  });
  const text = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (data: string) => (text.out += data));
  child.stderr.setEncoding('utf8').on('data', (data: string) => (text.err += data));
  return { child, text, ended: once(child, 'close') };
}

const cosignatures = (folder: string): readonly string[] => {
  const found = statSync(join(folder, 'archive/cosignatures'), { throwIfNoEntry: false });
  return found ? readdirSync(join(folder, 'archive/cosignatures')).filter((name) => !name.startsWith('.')) : [];
};

function filesOf(directory: string): ReadonlyMap<string, Buffer> {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(directory, path)).isFile());
  return new Map(paths.map((path) => [path, readFileSync(join(directory, path))]));
}

// promise: `kill -9` of a witness and of a process that archives: no cosigned checkpoint is lost, and none is refused.
test(`${kills} kills of each`, { timeout: 60_000 + kills * 20_000 }, async ({ annotate }) => {
  const folder = temporary();
  const directory = join(folder, 'archive');
  const chance = new Chance(seed, 'kills').next;
  // The first life makes the archive and its key.
  const first = start(folder, undefined, 20);
  await first.ended;
  expect(first.child.exitCode, first.text.err).toBe(0);
  const parts = { folder, archives: [publicKeyIn(directory)] };
  let witness = await startWitness({ ...parts, isNew: true });
  const port = Number(new URL(witness.url).port);
  let said = '';
  for (let life = 1; life <= kills; life += 1) {
    const before = cosignatures(folder).length;
    const sender = start(folder, witness);
    // Half of the lives end at a random moment, the others after a cosignature: else a slow machine would never store one.
    const isLong = life % 2 === 0;
    if (isLong) await expect.poll(() => cosignatures(folder).length, { interval: 5 }).toBeGreaterThan(before);
    else await sleep(400 + chance() * 1_000);
    const order = [() => witness.kill(), () => (sender.child.kill('SIGKILL'), sender.ended)];
    for (const kill of chance() < 0.5 ? order : order.reverse()) {
      await kill();
      await sleep(chance() * 20);
    }
    said += witness.stderr();
    witness = await startWitness({ ...parts, port });
  }
  const last = start(folder, witness);
  const before = cosignatures(folder).length;
  await expect.poll(() => cosignatures(folder).length, { interval: 5 }).toBeGreaterThan(before);
  last.child.kill('SIGKILL');
  await last.ended;
  const end = start(folder, undefined, 200);
  await end.ended;
  await witness[Symbol.asyncDispose]();
  const where = `seed ${seed}, in ${folder}; ${end.text.err}`;
  expect(end.child.exitCode, where).toBe(0);
  expect(said + witness.stderr(), where).toBe('');
  const head = Number(/^head (\d+)$/m.exec(end.text.out)?.[1]);
  const numbers = archivedRecords(directory).map((record) => (JSON.parse(record) as { logId: number }).logId);
  expect(numbers, where).toEqual(Array.from({ length: head }, (_, i) => i + 1));

  const key = publicKeyIn(directory);
  const verifiers = [parseVerifier(key) ?? expect.unreachable()];
  const witnesses = [parseVerifier(witness.key, 4) ?? expect.unreachable()];
  // What the witness holds is the newest that it cosigned, also if the archive has not stored that cosignature.
  const [held = ''] = JSON.parse(readFileSync(join(folder, 'witness.state'), 'utf8')) as string[];
  const since = Buffer.from(held);
  const report = await verifyArchive(new DirectoryStore(directory), verifiers, { since, cosignatures: { witnesses, quorum: 1 } });
  expect(report, where).toMatchObject({ result: 'intact', records: head });
  expect(report.confirmed, where).toBeGreaterThanOrEqual(report.cosignatures?.lines ?? Infinity);
  if (!hasPython) await annotate('python3 or openssl is missing: verify.py did not run');
  else
    expect((await secondVerifier(filesOf(directory), { key, since, witnesses: [witness.key] })).map(resultOf), where).toEqual(['intact']);
  await annotate(`${cosignatures(folder).length} cosignatures`);
  rmSync(folder, { recursive: true, force: true });
});
