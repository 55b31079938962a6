/** Both verifiers, as commands, on the archives and proofs of test/fixtures/archive-vectors, with the exit codes of its `cases.json`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { command } from '../../../src/cli/commands/archive/index.ts';
import { outputOf } from '../../support/command-io.ts';
import { hasPython, secondVerify, verifyWithPython } from '../../support/second-verifier.ts';

interface Case {
  readonly name: string;
  /** Separated by blanks, which no argument has. Files are relative to the folder. */
  readonly arguments: string;
  readonly exit: number;
}

const folder = join(import.meta.dirname, '../../fixtures/archive-vectors');
const cases = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8')) as readonly Case[];
const unpacked = mkdtempSync(join(tmpdir(), 'archive-vectors-'));

beforeAll(() => {
  cpSync(folder, unpacked, { recursive: true });
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.tar.gz'))) execFileSync('tar', ['-xzf', name], { cwd: unpacked });
});
afterAll(() => {
  rmSync(unpacked, { recursive: true });
});

const fileOptions = ['--directory', '--key', '--since', '--timestamp-ca', '--proof', '--former', '--witness'];
const argumentsOf = (given: Case): string[] =>
  given.arguments.split(' ').map((each, i, all) => (fileOptions.includes(all[i - 1] ?? '') ? join(unpacked, each) : each));

// promise: Archives and proofs with a known verdict, for whoever writes another verifier: both verifiers agree on each of them.
describe('the vectors for other verifiers', () => {
  it.each(cases)('$name: waybill archive verify', async (given) => {
    const judged = outputOf((args, io) => command.run(args, io), ['verify', ...argumentsOf(given)]);
    if (given.exit === 2) return expect(judged).rejects.toMatchObject({ code: 'usage' });
    const { code, stdout } = await judged;
    expect([code, stdout]).toEqual([given.exit, stdout]);
  });

  it.skipIf(!hasPython).each(cases)('$name: verify.py', async (given) => {
    const { code, text } = await secondVerify(...argumentsOf(given));
    expect([code, text]).toEqual([given.exit, text]);
    // As a program once for each exit code.
    if (given === cases.find(({ exit }) => exit === given.exit)) expect(verifyWithPython(...argumentsOf(given))).toEqual({ code, text });
  });

  // The plan in make.ts: the token of the second day, and the later one of two cosignatures.
  it.skipIf(!hasPython).each([
    ['proofs/stamped.json --key stamped.pub --timestamp-ca authority.pem', '2026-07-02T00:10:00Z'],
    ['proofs/cosigned.json --key large.pub --witness witness-one.pub', '2026-07-02T00:10:00Z'],
    ['proofs/cosigned.json --key large.pub --witness witness-one.pub --witness witness-two.pub', '2026-07-02T02:00:00Z'],
  ])('say since when the line of a proof exists: %s', async (given, time) => {
    const args = argumentsOf({ name: '', arguments: `--proof ${given}`, exit: 0 });
    const { stdout } = await outputOf((all, io) => command.run(all, io), ['verify', ...args]);
    const [first = ''] = stdout.split('\n');
    expect(first).toMatch(/^proof 1: line \d+ of \d+: record, /);
    expect(first.endsWith(`; it existed on ${time}`)).toBe(true);
    expect(verifyWithPython(...args).text.split('\n')[0]).toBe(first);
  });

  it('use every archive and every proof', () => {
    const used = new Set(cases.flatMap((each) => each.arguments.split(' ')));
    const archives = readdirSync(folder).flatMap((name) => (name.endsWith('.tar.gz') ? [name.replace('.tar.gz', '')] : []));
    const proofs = readdirSync(join(folder, 'proofs')).map((name) => `proofs/${name}`);
    expect([...archives, ...proofs].filter((name) => !used.has(name))).toEqual([]);
  });
});
