/** The threads of the daemon do not load the `fetch` of Node: it takes 13 MiB per thread. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

async function loadsFetch(script: string): Promise<boolean> {
  const answer = "console.log(process.moduleLoadList.includes('NativeModule internal/deps/undici/undici'))";
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `${script}; ${answer}`]);
  return JSON.parse(stdout) as boolean;
}

test.each([
  ['the main thread', "await import('./src/daemon/daemon.ts'); new Response('', { headers: new Headers() })", false],
  ['the admin thread', "await import('./src/admin/server.ts')", false],
  ['an import of node:http', "await import('node:http')", true],
  ['a Response of Node', "new Response('')", true],
])('%s, with %s: %s', { timeout: 60_000 }, async (_who, script, expected) => {
  expect(await loadsFetch(script)).toBe(expected);
});
