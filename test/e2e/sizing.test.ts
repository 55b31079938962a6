/** docs/sizing.md: its commands measure the values of its first table. */
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { bash, commandsOf } from '../support/e2e-commands.ts';
import { inPlace } from '../support/e2e-place.ts';

const root = resolve(import.meta.dirname, '../..');
const document = 'docs/sizing.md';

/** The bytes of a message by format, from the table of the document. */
function documented(): Map<string, number> {
  const rows = readFileSync(join(root, document), 'utf8').matchAll(/^\| `(\w+)`(, `includeOriginal: false`)? \| ([\d,]+) \|/gm);
  return new Map(
    [...rows].map(([, format = '', without, bytes = '']) => [
      without === undefined ? format : `${format}, includeOriginal: false`,
      Number(bytes.replaceAll(',', '')),
    ]),
  );
}

test('the commands of docs/sizing.md print sizes within a tenth of its table', { timeout: 300_000 }, () =>
  inPlace('sizing', async (place) => {
    for (const name of ['bin', 'src', 'bench', 'node_modules', 'package.json']) symlinkSync(join(root, name), place.path(name));
    // Fewer records, and without the benchmark of the rate, which takes minutes.
    const commands = commandsOf(document, 'Measure it again')
      .replace('--records 20000', '--records 400')
      .split('\n')
      .filter((line) => !line.includes('bench -- collection'));
    expect(commands).toHaveLength(5);
    const { code, stdout, stderr } = await bash(place, `set -e\n${commands.join('\n')}`, { npm_config_loglevel: 'error' });
    expect(code, stdout + stderr).toBe(0);
    const measured = new Map(
      [...stdout.matchAll(/^(\w+(?:, includeOriginal: false)?) +(\d+) +\d+$/gm)].map(([, name = '', bytes]) => [name, Number(bytes)]),
    );
    expect([...measured.keys()].sort()).toEqual([...documented().keys()].sort());
    for (const [name, bytes] of documented()) {
      expect((measured.get(name) ?? 0) / bytes, name).toBeGreaterThan(0.9);
      expect((measured.get(name) ?? 0) / bytes, name).toBeLessThan(1.1);
    }
    expect(stdout).toMatch(/^\d+ bytes a window of the ledger with 7 recounts$/m);
  }),
);
