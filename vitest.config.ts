import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // More than two cores: end-to-end tests mostly wait, for polls, retries and programs that start.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', './test/support/skip-reporter.ts'],
  },
});
