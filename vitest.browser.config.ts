import { defineConfig } from 'vitest/config';

/** `npm run test:browser`: tests that need Debian's Chromium. */
export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    pool: 'forks',
    globalSetup: ['./test/support/shared-certificates.ts', './test/support/built-program.ts'],
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    retry: Number(process.env['WAYBILL_TEST_RETRY'] ?? 0),
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', './test/support/skip-reporter.ts'],
  },
});
