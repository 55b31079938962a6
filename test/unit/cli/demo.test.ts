import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/demo/index.ts';
import { commandIo } from '../../support/command-io.ts';

test('a directory with a configuration is refused and not changed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'waybill-demo-test-'));
  try {
    const file = join(directory, 'waybill.yaml');
    writeFileSync(file, 'sources: []');
    const run = command.run(['--for', '1s', '--dir', directory], commandIo());
    await expect(run).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('it has a waybill.yaml already') as string });
    expect(readdirSync(directory)).toEqual(['waybill.yaml']);
    expect(readFileSync(file, 'utf8')).toBe('sources: []');
  } finally {
    rmSync(directory, { recursive: true });
  }
});
