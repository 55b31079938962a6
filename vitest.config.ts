import { statfsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.ts';
import { canary, isCanary, isLong, longForms, longOnly } from './test/support/long-run.ts';

// Tests start hundreds of programs. The compile cache halves the time of a start.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url));

const hasServers = process.env['WAYBILL_TEST_SERVERS'] !== undefined;
// Thousands of short-lived states wait for each sync of a disk. Long tests and receivers write too much for memory.
if (!isLong && !hasServers && freeOf('/dev/shm') > 2 ** 31) process.env['TMPDIR'] ??= '/dev/shm';

/** These files run in one process, which loads the sources once: they must leave nothing behind in it. Without receivers, test/servers only skips. */
const folders = [
  'unit',
  'reference',
  'contract/archive',
  'contract/cli',
  'contract/config',
  'contract/connect',
  'contract/daemon',
  'contract/report',
];
const shared = [...folders, ...(hasServers ? [] : ['servers'])].map((folder) => `test/${folder}/**/*.test.ts`);
/** Secrets stay registered in a process: the secrets of other tests would be removed from the texts of this test. */
const alone = ['test/unit/errors/secrets.test.ts'];
const inShared = (file: string): boolean => folders.some((folder) => file.startsWith(`test/${folder}/`)) && !alone.includes(file);
const long = [...longOnly, ...longForms];

export default defineConfig({
  test: {
    pool: 'forks',
    // A larger young generation: a tenth less CPU time, most of it of the virtual-time tests.
    execArgv: ['--max-semi-space-size=32'],
    // More workers than two cores need: end-to-end tests mostly wait, for polls, retries and programs that start.
    maxWorkers: hasServers ? 2 : 5,
    globalSetup: ['./test/support/shared-certificates.ts', './test/support/built-program.ts'],
    sequence: { sequencer: LongFirst },
    // Limits for what hangs, and no measure of speed: a loaded machine is many times slower.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    retry: Number(process.env['WAYBILL_TEST_RETRY'] ?? 0),
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', './test/support/events-reporter.ts', './test/support/skip-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: isLong ? long.filter(inShared) : shared,
          exclude: [...alone, ...(isLong ? [] : longOnly)],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'isolated',
          include: isLong ? long.filter((file) => !inShared(file)) : ['test/!(unit|reference)/**/*.test.ts', 'test/*.test.ts', ...alone],
          exclude: [
            ...folders.filter((folder) => folder.startsWith('contract/')).map((folder) => `test/${folder}/**`),
            ...(hasServers ? [] : ['test/servers/**']),
            ...['test/browser/**', ...(isLong ? [] : longOnly), ...(isCanary ? [] : [canary])],
          ],
        },
      },
    ],
  },
});

/** Free bytes of a file system; 0 where it does not exist. */
function freeOf(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
