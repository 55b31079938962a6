/** Commands of the documents, run unchanged. */
import { spawn } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { endOf } from './e2e-place.ts';
import type { Place } from './e2e-place.ts';
import type { Service } from './e2e-service.ts';
import { waybillProgram } from './programs.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The block of commands under a heading of a document. */
export function commandsOf(document: string, heading: string): string {
  const text = readFileSync(`${root}${document}`, 'utf8');
  const below = text.slice(text.indexOf(`\n## ${heading}\n`));
  const block = /\n```sh\n([^]*?)\n```\n/.exec(below)?.[1];
  if (block === undefined || !text.includes(`\n## ${heading}\n`)) throw new Error(`no commands under "${heading}" of ${document}`);
  return block;
}

/** Puts `waybill` on the path of the commands. */
export function installWaybill(place: Place): void {
  writeFileSync(place.path('waybill'), `#!/bin/sh\nexec "${process.execPath}" "${waybillProgram}" "$@"\n`);
  chmodSync(place.path('waybill'), 0o755);
}

/**
 * The variables that the commands of docs/audit.md need to count a day of the source `production`.
 */
export function auditor(service: Service, day: string): Record<string, string> {
  const { line } = service;
  const client = service.client('Security Administrator');
  return {
    ...{ SOURCE: 'production', DAY: day, CLIENT: client.clientId, SECRET: client.clientSecret, SCOPE: line.scopeAddress },
    ...{ TENANT: line.tenantId, AUTH_URL: line.authUrl, BASE_URL: line.baseUrl, KEY: line.subscriptionKey, CURL_CA_BUNDLE: line.ca },
  };
}

export async function bash(
  place: Place,
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('bash', ['-c', script], {
    cwd: place.directory,
    env: { PATH: `${place.directory}:${process.env['PATH'] ?? ''}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (stdout += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (stderr += part));
  const { code } = await endOf(child);
  return { code, stdout, stderr };
}
