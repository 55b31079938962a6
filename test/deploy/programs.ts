/** The programs of test/deploy/install.sh, found on the PATH or in the cache. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { cacheFolder } from '../support/servers/programs.ts';

/** The path of a program; undefined if it is not installed. */
export function programPath(name: string, inCache: string): string | undefined {
  const folders = [join(cacheFolder(), inCache), ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/**
 * The reason why deployment tests do not run, which keeps `npm test` short; undefined if they do.
 * @throws Error if they were requested and a program is missing
 */
export function notRun(needed: Readonly<Record<string, string | undefined>>): string | undefined {
  if (process.env['WAYBILL_TEST_DEPLOY'] === undefined) return 'tests of deployment are for npm run test:deploy';
  const names = Object.entries(needed).flatMap(([name, path]) => (path !== undefined && existsSync(path) ? [] : [name]));
  if (names.length > 0) throw new Error(`programs are missing: test/deploy/install.sh ${names.join(' ')}`);
  return undefined;
}

interface Outcome {
  readonly ok: boolean;
  /** Standard output and standard error. */
  readonly text: string;
}

export function run(program: string, args: readonly string[], input = ''): Outcome {
  try {
    return { ok: true, text: execFileSync(program, args, { input, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 }) };
  } catch (thrown) {
    const { stdout, stderr } = thrown as { readonly stdout: string; readonly stderr: string };
    return { ok: false, text: `${stdout}${stderr}` };
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
