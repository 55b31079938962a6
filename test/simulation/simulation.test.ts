/**
 * Runs a campaign in a separate process, because the simulation changes better-sqlite3 for its
 * process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const seeds = process.env['WAYBILL_SIMULATION_SEEDS'] ?? '1';
/** Every hundredth seed runs twice. */
const from = process.env['WAYBILL_SEED'] ?? '100';

test.for([
  ['of a file', []],
  ['of a shard', ['--shard']],
] as const)(
  `no record is lost or repeated, and no proof is false, in ${seeds} seeds from ${from}: the journal %s`,
  { timeout: 600_000 },
  async ([, mode]) => {
    const main = join(import.meta.dirname, 'main.ts');
    const running = spawn(process.execPath, [main, ...mode, '--seeds', seeds, '--from', from, '--workers', '1'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    running.stdout.on('data', (text: Buffer) => (output += text.toString()));
    const [code] = (await once(running, 'close')) as [number];
    expect(code, output).toBe(0);
  },
);
