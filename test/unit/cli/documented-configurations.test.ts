/**
 * Every YAML block with sinks in docs/ that readers may copy: `waybill check --offline` accepts it.
 * A block without a source gets one.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { offlineCheck } from '../../support/offline-check.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const pages = ['receivers', 'privacy', 'migrating'];
const source = `sources:
  - id: production
    baseUrl: https://service.example/v2/api
    auth: { authUrl: https://login.example, tenantId: t, clientId: c, clientSecret: '\${env:SECRET}', scopeAddress: s }
    start: 2026-01-01T00:00:00Z
`;

const blocks = pages.flatMap((page) =>
  [...readFileSync(join(root, `docs/${page}.md`), 'utf8').matchAll(/^(#{2,3} (.+)\n[^]*?)?^```yaml\n([^]*?)^```$/gm)].map(
    ([, , heading, text = ''], i) => [`docs/${page}.md, ${i + 1}, ${heading ?? 'the same heading'}`, text] as const,
  ),
);

test('the pages have configurations', () => {
  for (const page of pages)
    expect(
      blocks.some(([name]) => name.startsWith(`docs/${page}.md`)),
      page,
    ).toBe(true);
});

test.each(blocks)('%s', async (_, text) => {
  const { code, findings } = await offlineCheck(`dataDir: ./state\n${text.includes('sources:') ? '' : source}${text}`);
  expect(code).toBe(0);
  // Secrets and certificates of the reader are not on this machine; there must be no other warning.
  expect(findings.filter(({ level, message }) => level !== 'ok' && !/secrets\/|SECRET|\.pem/.test(message))).toEqual([]);
});
