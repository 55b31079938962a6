/**
 * The certificates of every reference service that tests start: created once, since a service takes
 * a quarter of its start to create them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { certificatesIn } from '../../src/reference/http/certificates.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The value of `--tls-dir`. */
    tlsDir: string;
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-certificates-'));
  await certificatesIn(folder);
  project.provide('tlsDir', folder);
  return () => rmSync(folder, { recursive: true });
}
