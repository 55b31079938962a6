/**
 * Reads an archive with the C2SP client of transparency-dev/tessera, which is independent of
 * Waybill.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DirectoryStore } from '../../src/archive/directory-store.ts';
import { formatVerifier, signerOf } from '../../src/archive/signed-note.ts';
import { keyFrom, windowLines, writeArchive } from '../support/archive.ts';
import { cacheFolder, notAsked } from '../support/servers/programs.ts';

const program = join(cacheFolder(), 'c2sp-client-1.0.0/c2sp-client');
const missing = notAsked() ?? (existsSync(program) ? undefined : `no ${program}: test/servers/install.sh c2sp-client builds it`);

// promise: An independent client verifies that each checkpoint of an archive extends the earlier ones.
test('an independent client reads every entry, proves some, and verifies that the newest checkpoint extends each earlier one', async ({
  skip,
}) => {
  if (missing !== undefined) return skip(missing);
  const folder = mkdtempSync(join(tmpdir(), 'waybill-archive-'));
  try {
    // More than 65,536 entries: the tree has tiles of three levels.
    await writeArchive(new DirectoryStore(join(folder, 'archive')), windowLines(7_000, 9), 7_001);
    const [origin = ''] = readFileSync(join(folder, 'archive/checkpoint'), 'utf8').split('\n');
    const [key, otherKey] = [join(folder, 'key'), join(folder, 'other-key')];
    writeFileSync(key, `${formatVerifier(signerOf(origin, keyFrom(1)))}\n`);
    writeFileSync(otherKey, `${formatVerifier(signerOf(origin, keyFrom(2)))}\n`);
    const run = (keyFile: string): string => execFileSync(program, [join(folder, 'archive'), keyFile], { encoding: 'utf8', stdio: 'pipe' });
    expect(run(key)).toBe('70010 entries, 10 checkpoints\n');
    expect(() => run(otherKey)).toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
