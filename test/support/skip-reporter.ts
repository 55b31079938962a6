/** At the end of every run: each test that was skipped, with the reason it gave. A skip without a reason is said to have none. */
import type { Reporter, TestModule } from 'vitest/node';

export default class SkipReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => {
        const result = test.result();
        const note = result.state === 'skipped' ? result.note : undefined;
        return `  ${module.relativeModuleId} > ${test.fullName}: ${note ?? 'NO REASON GIVEN'}`;
      }),
    );
    if (lines.length > 0) process.stdout.write(`\nskipped, and why:\n${lines.join('\n')}\n`);
  }
}
