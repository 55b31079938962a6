/**
 * Builds the program if a source is newer than `dist`. Tests start the build, which is what users
 * run and which takes less CPU time to start than the sources.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

export default function setup(): (() => void) | undefined {
  // Mutation tests run vitest on a copy of the sources, without programs.
  if (process.env['WAYBILL_TEST_PROGRAM'] !== undefined) return undefined;
  const inputs = ['package-lock.json', 'package.json', ...readdirSync(root).filter((name) => /^(rolldown|tsconfig)\./.test(name)), 'src'];
  const built = modified('dist/main.js');
  if (inputs.some((path) => modified(path) > built) || folders('src').some((path) => modified(path) > built))
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  // `bin/waybill.js` runs the sources if it finds them.
  const folder = mkdtempSync(join(tmpdir(), 'waybill-program-'));
  // Tests also start the program as another user.
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'bin'));
  cpSync(join(root, 'bin/waybill.js'), join(folder, 'bin/waybill.js'));
  for (const name of ['package.json', 'dist']) symlinkSync(join(root, name), join(folder, name));
  process.env['WAYBILL_TEST_PROGRAM'] = folder;
  return () => rmSync(folder, { recursive: true });
}

/** Every file and folder below a folder: the time of a folder shows a deleted file. */
function folders(path: string): string[] {
  return readdirSync(join(root, path), { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
}

/** ms since 1970; 0 if the path does not exist. */
function modified(path: string): number {
  return statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
