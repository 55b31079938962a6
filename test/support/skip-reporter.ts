/**
 * Prints at the end of every run: the skipped tests, one line for each reason, and the files of the long run; then the tests that
 * passed only when repeated, then the failed tests. Logs are often cut at the front, so the failures come last.
 */
import type { Reporter, SerializedError, TestModule, Vitest } from 'vitest/node';
import { canary, isCanary, isLong, longOnly } from './long-run.ts';

interface Reason {
  tests: number;
  readonly files: Set<string>;
}

export default class SkipReporter implements Reporter {
  /** With `-t`, vitest counts every other test as skipped. */
  #isFiltered = false;

  onInit(vitest: Vitest): void {
    this.#isFiltered = vitest.config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const skipped = this.#isFiltered ? [] : skippedTests(modules);
    if (modules.some(({ relativeModuleId }) => relativeModuleId.startsWith('test/e2e/'))) {
      if (!isLong) skipped.push(`  npm run test:long runs ${filesInFolders(new Set(longOnly))}`);
      if (!isCanary) skipped.push(`  npm run test:canary runs ${canary}`);
    }
    if (skipped.length > 0) process.stdout.write(`\nskipped, by reason:\n${skipped.join('\n')}\n`);
    const repeated = modules.flatMap((module) =>
      [...module.children.allTests('passed')]
        .filter((test) => test.diagnostic()?.flaky === true)
        .map((test) => `  ${module.relativeModuleId} > ${test.fullName}`),
    );
    if (repeated.length > 0) process.stdout.write(`\npassed only when repeated:\n${repeated.join('\n')}\n`);
    const failed = failures(modules, unhandledErrors);
    if (failed.length > 0) process.stdout.write(`\nfailed:\n${failed.join('\n')}\n`);
  }
}

function skippedTests(modules: readonly TestModule[]): string[] {
  const reasons = new Map<string, Reason>();
  for (const module of modules) {
    for (const test of module.children.allTests('skipped')) {
      const result = test.result();
      const note = (result.state === 'skipped' ? result.note : undefined) ?? `NO REASON GIVEN (${test.fullName})`;
      const reason = reasons.get(note) ?? { tests: 0, files: new Set<string>() };
      reason.tests += 1;
      reason.files.add(module.relativeModuleId);
      reasons.set(note, reason);
    }
  }
  return [...reasons].map(([note, { tests, files }]) => `  ${note}: ${tests} in ${filesInFolders(files)}`);
}

/** `test/servers/{kafka,syslog}.test.ts test/tidy.test.ts` */
function filesInFolders(files: ReadonlySet<string>): string {
  const folders = new Map<string, string[]>();
  for (const path of files) {
    const slash = path.lastIndexOf('/') + 1;
    const folder = path.slice(0, slash);
    folders.set(folder, [...(folders.get(folder) ?? []), path.slice(slash).replace(/\.test\.ts$/, '')]);
  }
  return [...folders]
    .map(([folder, names]) => `${folder}${names.length === 1 ? names.join('') : `{${names.join(',')}}`}.test.ts`)
    .join(' ');
}

function failures(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): string[] {
  const lines = modules.flatMap((module) => [
    ...module.errors().map((error) => `  ${module.relativeModuleId}: ${firstLine(error)}`),
    ...[...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map((error) => `  ${module.relativeModuleId} > ${suite.fullName}: ${firstLine(error)}`),
    ),
    ...[...module.children.allTests('failed')].map((test) => {
      const [error] = test.result().errors ?? [];
      return `  ${module.relativeModuleId} > ${test.fullName}: ${error === undefined ? 'no error given' : firstLine(error)}`;
    }),
  ]);
  return lines.concat(unhandledErrors.map((error) => `  outside of a test: ${firstLine(error)}`));
}

function firstLine({ message }: { readonly message: string }): string {
  return message.trimStart().split('\n', 1)[0] ?? '';
}
