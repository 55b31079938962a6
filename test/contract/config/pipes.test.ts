/** A pipe in place of a file with a secret. Another program creates the pipe and writes to it. */
import { execFileSync, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PemFiles } from '../../../src/settings/pem.ts';
import { load, problemsOf, temporaryDirectory, valid } from '../../support/config/loading.ts';

/** Replaces the file by a pipe. Its writer ends a read that waits, so that the test fails and does not hang. */
function becomesPipe(path: string, text: string): void {
  rmSync(path);
  execFileSync('mkfifo', [path]);
  const writer = spawn('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, path], { stdio: 'ignore' });
  onTestFinished(() => void writer.kill());
}

test('a pipe in place of a secret file is refused without waiting, and the error names the setting', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'secret');
  writeFileSync(path, 'hush');
  const { config } = await load(valid({ auth: `clientSecret: \${file:${path}}` }));
  const secret = config.sources[0]?.auth.clientSecret;
  becomesPipe(path, 'hush');
  const reason = `file "${path}" cannot be read: "${path}" is not a regular file`;
  expect(() => secret?.read()).toThrow(`cannot read "sources.production.auth.clientSecret": ${reason}`);
  expect(await problemsOf(valid({ auth: `clientSecret: \${file:${path}}` }))).toEqual([
    `sources.production.auth.clientSecret (line 10): ${reason}`,
  ]);
});

test('a pipe in place of a PEM file is refused without waiting, and the error names the setting', () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'ca.pem');
  const files = new PemFiles([path]);
  files.bind('sinks.siem.tls.ca');
  const text = '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n';
  writeFileSync(path, text);
  expect(files.read()).toEqual([text]);
  becomesPipe(path, text);
  expect(() => files.read()).toThrow(`cannot read "sinks.siem.tls.ca": "${path}" is not a regular file`);
});
