/** Loads a configuration from text, as the program does from a file, and says what was wrong with it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Loaded, type LoadOptions, loadConfig } from '../../../src/config/load.ts';
import { WaybillError } from '../../../src/errors.ts';

/** Of all configurations that are loaded here, ms. */
export const now = Date.parse('2026-11-21T12:00:00Z');

/** A directory that is gone after the test. */
export function temporaryDirectory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'waybill-config-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export async function load(text: string, environment: Record<string, string> = {}, options: LoadOptions = {}): Promise<Loaded> {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, text);
  return await loadConfig(file, environment, { now, ...options });
}

/** The problems of a configuration, none when it is valid. Anything thrown but `config_invalid` is thrown on. */
export async function problemsOf(
  text: string,
  environment: Record<string, string> = {},
  options: LoadOptions = {},
): Promise<readonly string[]> {
  try {
    await load(text, environment, options);
    return [];
  } catch (thrown) {
    if (thrown instanceof WaybillError && thrown.code === 'config_invalid') return thrown.problems;
    throw thrown;
  }
}

/** A valid configuration; what is given goes in front of it, behind the source's settings, and behind the sink's. */
export function valid(parts: { top?: string; auth?: string; source?: string; sink?: string } = {}): string {
  return `${parts.top ? `${parts.top}\n` : ''}sources:
  - id: production
    baseUrl: https://service.example/v2/api
    start: 2026-11-21T00:00:00Z
    auth:
      authUrl: https://login.example
      tenantId: tenant-1
      clientId: client-1
      scopeAddress: scope.example
${(parts.auth ?? 'clientSecret: ${env:SECRET:-hush}').replace(/^/gm, '      ')}
${(parts.source ?? '').replace(/^(?=.)/gm, '    ')}
sinks:
  - id: out
    type: stdout
${(parts.sink ?? '').replace(/^(?=.)/gm, '    ')}
`;
}
