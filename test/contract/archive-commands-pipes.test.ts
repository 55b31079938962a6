/** `waybill archive verify` with options whose file is a pipe. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DirectoryStore } from '../../src/archive/directory-store.ts';
import { command } from '../../src/cli/commands/archive/index.ts';
import { publicKeyPath } from '../support/archive-files.ts';
import { windowLines, writeArchive } from '../support/archive.ts';
import { outputOf } from '../support/command-io.ts';

test.each(['--key', '--since', '--timestamp-ca'])('a signal ends verify while %s is a pipe that nobody writes', async (option) => {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-archive-pipe-'));
  try {
    const directory = join(folder, 'archive');
    await writeArchive(new DirectoryStore(directory), windowLines(2, 2), 3);
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const stop = new AbortController();
    const reason = new Error('stopped');
    setTimeout(() => stop.abort(reason), 20);
    const key = option === '--key' ? [] : ['--key', publicKeyPath(directory)];
    const ended = outputOf((args, io) => command.run(args, io), ['verify', '--directory', directory, ...key, option, pipe], {
      signal: stop.signal,
    });
    await expect(ended).rejects.toBe(reason);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
