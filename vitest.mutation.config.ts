/**
 * The tests that Stryker runs: the unit tests of the mutated code, and the tests that compare the two
 * verifiers of an archive. Other tests that start programs would time out under load.
 */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/unit/{archive,collect,journal,deliver,encode,normalize,record,report}/**/*.test.ts', 'test/contract/archive/*.test.ts'],
    // Stryker runs tests in threads, which cannot set the umask.
    exclude: ['test/unit/journal/state.test.ts'],
    testTimeout: 120_000,
  },
});
