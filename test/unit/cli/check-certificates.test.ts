/** What `check --offline` says of certificates and keys that do not belong together. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { certificateLines, endingLines } from '../../../src/cli/commands/check/certificates.ts';
import type { Line } from '../../../src/cli/commands/check/state.ts';
import { createAuthority } from '../../support/certificates.ts';
import { load, temporaryDirectory, valid } from '../../support/config/loading.ts';

const directory = temporaryDirectory();
const at = (name: string): string => join(directory.path, name);

beforeAll(async () => {
  const authority = await createAuthority('Test Root');
  for (const name of ['one', 'other']) {
    const { cert, key } = await authority.issue({ name, hosts: ['127.0.0.1'] });
    writeFileSync(at(`${name}.crt`), cert);
    writeFileSync(at(`${name}.key`), key);
  }
});
afterAll(() => directory[Symbol.dispose]());

async function linesOf(cert: string, key: string): Promise<readonly Line[]> {
  const tls = `tls: { cert: '${at(cert)}', key: '${at(key)}' }`;
  const sink = `- id: siem\n  type: syslog\n  address: tls://siem.example:6514\n  ${tls}`;
  const { config } = await load(
    valid({ auth: `clientSecret: hush\n${tls}`, sink: '' }).replace(/- id: out\n *type: stdout/, sink.replaceAll('\n', '\n  ')),
  );
  return certificateLines(config);
}

test('a certificate with its key is nothing to speak of', async () => {
  expect(await linesOf('one.crt', 'one.key')).toEqual([]);
});

test('a key of another certificate is wrong, with both files, for each connection that would show it', async () => {
  const words = `the key in sinks.siem.tls.key (${at('other.key')}) does not belong to the certificate in sinks.siem.tls.cert (${at('one.crt')})`;
  const lines = await linesOf('one.crt', 'other.key');
  expect(lines.map(({ subject, level, setting }) => [subject, level, setting])).toEqual([
    ['source production', 'error', 'sources.production.auth.tls'],
    ['sink siem', 'error', 'sinks.siem.tls'],
  ]);
  expect(lines[1]?.message).toBe(`cannot use "sinks.siem.tls.cert" with its key: ${words}`);
});

test('a file that is cut short is wrong', async () => {
  writeFileSync(at('cut.crt'), '-----BEGIN CERTIFICATE-----\nMIIB');
  expect(await linesOf('cut.crt', 'one.key')).toHaveLength(2);
});

test('files that are not there yet are no error: where the configuration is checked need not be where it runs', async () => {
  rmSync(at('cut.crt'), { force: true });
  expect(await linesOf('cut.crt', 'one.key')).toEqual([]);
});

test('a certificate that ends within 30 days is a warning, once for each, with its end', () => {
  const now = Date.UTC(2026, 10, 28);
  const peer = (subject: string, days: number) => ({
    subject,
    issuer: 'Test Root',
    validFrom: 0,
    validTo: now + days * 86_400_000,
    names: '',
  });
  const lines = endingLines(
    'sink siem',
    'sinks.siem',
    [peer('near', 5), peer('near', 5), peer('far', 31), peer('last', 30), peer('over', -1)],
    now,
  );
  expect(lines).toEqual([
    {
      ...{ subject: 'sink siem', level: 'warning', setting: 'sinks.siem' },
      message: "certificate of 'near' issued by 'Test Root' until 2026-12-03, in 5 days: have it replaced",
    },
    {
      ...{ subject: 'sink siem', level: 'warning', setting: 'sinks.siem' },
      message: "certificate of 'last' issued by 'Test Root' until 2026-12-28, in 30 days: have it replaced",
    },
  ]);
});
