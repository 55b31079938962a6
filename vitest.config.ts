import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.ts';

// Programs are started hundreds of times: what Node makes of their sources is kept between two starts, which halves the time of one.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url));

/** These take minutes: `npm run test:long` runs them. */
const longOnly = ['test/e2e/chaos.test.ts', 'test/e2e/history.test.ts', 'test/e2e/switches.test.ts'];
const isLong = process.env['WAYBILL_E2E_LONG'] !== undefined;
const shared = ['test/unit/**/*.test.ts', 'test/reference/**/*.test.ts'];
const hasServers = process.env['WAYBILL_TEST_SERVERS'] !== undefined;

export default defineConfig({
  test: {
    pool: 'forks',
    // More than two cores: end-to-end tests mostly wait, for polls, retries and programs that start.
    maxWorkers: hasServers ? 2 : 4,
    globalSetup: './test/support/shared-certificates.ts',
    sequence: { sequencer: LongFirst },
    // Limits for what hangs, and no measure of speed: a loaded machine is many times slower.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    retry: Number(process.env['WAYBILL_TEST_RETRY'] ?? 0),
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', './test/support/skip-reporter.ts'],
    projects: [
      // These files share a process, which has read the sources once: they leave nothing behind in it.
      { extends: true, test: { name: 'shared', include: shared, isolate: false } },
      {
        extends: true,
        test: { name: 'isolated', include: ['test/**/*.test.ts'], exclude: [...shared, ...(isLong ? [] : longOnly), 'test/browser/**'] },
      },
    ],
  },
});
