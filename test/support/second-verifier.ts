/** Asks content/archive/verify.py, which shares no code with Waybill, about changed copies of one archive. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The new bytes of a file by its path; null: the file is deleted. */
export type Changes = Readonly<Record<string, Buffer | null>>;
/** What a verifier finds. */
export type Judgement = readonly (readonly [severity: string, object: string])[];

export const verifyProgram = fileURLToPath(new URL('../../content/archive/verify.py', import.meta.url));
export const hasPython = [
  ['python3', '--version'],
  ['openssl', 'version'],
].every(([name = '', ...args]) => spawnSync(name, args).status === 0);
if (!hasPython) console.warn('skipped: python3 and openssl, for content/archive/verify.py, are not installed');

export async function secondVerifier(
  files: ReadonlyMap<string, Buffer>,
  /** `key` may have several lines. */
  options: { readonly key: string; readonly since?: Uint8Array | undefined },
  copies: readonly Changes[] = [{}],
): Promise<readonly Judgement[]> {
  const driver = spawn('python3', [fileURLToPath(new URL('verify-archives.py', import.meta.url))], { stdio: ['pipe', 'pipe', 'inherit'] });
  const judgements: Judgement[] = [];
  const lines = createInterface({ input: driver.stdout });
  lines.on('line', (line) => judgements.push(JSON.parse(line) as Judgement));
  const ended = Promise.all([once(driver, 'close'), once(lines, 'close')]);
  const since = options.since && Buffer.from(options.since).toString('base64');
  for (const line of [{ files: encoded(files), key: options.key, since }, ...copies.map((changes) => encoded(Object.entries(changes)))])
    if (!driver.stdin.write(`${JSON.stringify(line)}\n`)) await once(driver.stdin, 'drain');
  driver.stdin.end();
  await ended;
  if (judgements.length !== copies.length) throw new Error(`expected ${copies.length} judgements of verify.py, got ${judgements.length}`);
  return judgements;
}

/** Runs verify.py as an auditor does. */
export function verifyWithPython(...args: readonly string[]): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('python3', [verifyProgram, ...args], { encoding: 'utf8' });
  return { code: status, text: stdout + stderr };
}

export function resultOf(judgement: Judgement): string {
  return ['altered', 'unproven'].find((severity) => judgement.some(([each]) => each === severity)) ?? 'intact';
}

function encoded(files: Iterable<readonly [string, Buffer | null]>): object {
  return Object.fromEntries([...files].map(([path, bytes]) => [path, bytes?.toString('base64') ?? null]));
}
