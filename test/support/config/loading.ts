/** Loads a configuration from text, as the program does from a file, and returns its errors. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Loaded, type LoadOptions, loadConfig } from '../../../src/config/load.ts';
import { WaybillError } from '../../../src/errors/errors.ts';

/** The time of all configurations loaded here, ms. */
export const now = Date.parse('2026-11-21T12:00:00Z');

/** A directory that is deleted after the test. */
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

/** The errors of a configuration, none if it is valid. Rethrows everything but `config_invalid`. */
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

/**
 * A valid configuration; the given parts come at its start, after the source's settings, and after
 * the sink's.
 */
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
