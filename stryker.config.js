/** `npm run test:mutation`: by hand and at night; it takes hours. Mutates the code that unit tests cover, and runs these alone. */
export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'vitest.mutation.config.ts' },
  mutate: ['src/{archive,collect,journal,deliver,encode,normalize,record,report}/**/*.ts'],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  tempDirName: '.stryker-tmp',
  reporters: ['clear-text', 'progress'],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false },
};
