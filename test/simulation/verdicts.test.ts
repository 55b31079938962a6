/**
 * Compares the verdict with its oracle in a separate process, because the simulation changes
 * better-sqlite3 for its process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const seeds = process.env['WAYBILL_VERDICT_SEEDS'] ?? '1';
const from = process.env['WAYBILL_SEED'] ?? '1';

test(`matches the verdict of the oracle at each minute of eight hours, in ${seeds} seeds from ${from}`, { timeout: 600_000 }, async () => {
  const main = join(import.meta.dirname, 'verdicts.ts');
  const running = spawn(process.execPath, [main, '--seeds', seeds, '--from', from], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  running.stdout.on('data', (text: Buffer) => (output += text.toString()));
  const [code] = (await once(running, 'close')) as [number];
  expect(code, output).toBe(0);
});
