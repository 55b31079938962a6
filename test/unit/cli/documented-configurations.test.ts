/**
 * Every YAML block with sinks in docs/ that readers may copy: `waybill check --offline` accepts it.
 * A block without a source gets one.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/check/index.ts';
import { temporaryDirectory } from '../config/loading.ts';

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
  using directory = temporaryDirectory();
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, `dataDir: ./state\n${text.includes('sources:') ? '' : source}${text}`);
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr, env: {}, signal: new AbortController().signal };
  const code = await command.run(['--config', file, '--offline', '--json'], io);
  expect(code, String(stderr.read())).toBe(0);
  const { findings } = JSON.parse(String(stdout.read())) as {
    findings: { readonly subject: string; readonly level: string; readonly message: string }[];
  };
  // Secrets and certificates of the reader are not on this machine; there must be no other warning.
  expect(findings.filter(({ level, message }) => level !== 'ok' && !/secrets\/|SECRET|\.pem/.test(message))).toEqual([]);
});
