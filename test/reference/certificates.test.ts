/**
 * The certificates in the folder of --tls-dir: stored, read again, and refused if they do not
 * match.
 */
import { X509Certificate } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { certificatesIn } from '../../src/reference/http/certificates.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reference-certificates-'));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

describe('certificates', () => {
  test('are created once and read again; only the owner may read the key, and no file contains the key of the CA', async () => {
    const created = await certificatesIn(folder);
    expect(await certificatesIn(folder)).toEqual(created);
    const authority = new X509Certificate(readFileSync(created.caFile));
    const server = new X509Certificate(created.cert);
    expect(server.verify(authority.publicKey)).toBe(true);
    expect(['localhost', '127.0.0.1', '::1'].map((name) => server.checkHost(name) ?? server.checkIP(name))).not.toContain(undefined);
    expect(readdirSync(folder).sort()).toEqual(['ca.pem', 'server.key', 'server.pem']);
    expect(statSync(join(folder, 'server.key')).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['ca.pem', /the authority in ".*ca\.pem" did not issue ".*server\.pem"/],
    ['server.key', /".*server\.key" is not the key of ".*server\.pem"/],
  ])('with the %s of another folder are refused', async (name, message) => {
    await certificatesIn(folder);
    const other = join(folder, 'other');
    await certificatesIn(other);
    copyFileSync(join(other, name), join(folder, name));
    await expect(certificatesIn(folder)).rejects.toThrow(message);
  });

  test('that have expired are refused, and the error gives the remedy', async () => {
    await certificatesIn(folder);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 366 * 86_400_000 });
    await expect(certificatesIn(folder)).rejects.toThrow(/".*server\.pem" has expired: delete the three files to create new ones/);
  });
});
