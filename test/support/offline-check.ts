/** `check --offline` on a configuration that a test writes. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../../src/cli/commands/check/index.ts';
import { outputOf } from './command-io.ts';

export interface Finding {
  readonly subject: string;
  readonly level: string;
  readonly message: string;
  readonly setting?: string;
}

/** A polled service without an id. */
export const service = {
  baseUrl: 'https://service.example/v2/api',
  auth: { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 'hush', scopeAddress: 's' },
};

/** @param config  YAML, or settings without `dataDir` for a state that does not exist */
export async function offlineCheck(config: string | object): Promise<{ readonly code: number; readonly findings: readonly Finding[] }> {
  using directory = mkdtempDisposableSync(join(tmpdir(), 'waybill-check-'));
  const file = join(directory.path, 'waybill.yaml');
  const dataDir = join(directory.path, 'state');
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify({ dataDir, ...config }));
  const { code, stdout, stderr } = await outputOf((args, io) => command.run(args, io), ['--config', file, '--offline', '--json']);
  if (stdout === '') throw new Error(`check printed no findings: ${stderr}`);
  return { code, findings: (JSON.parse(stdout) as { findings: Finding[] }).findings };
}
