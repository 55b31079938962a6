/** The order of test files: those that take longest begin first, so that none of them is left alone at the end. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

const longFirst = [
  /\/simulation\//,
  /\/servers\/(daemon|wrong-settings)/,
  /\/servers\/(kafka|elasticsearch-daemon)/,
  /\/e2e\/chaos/,
  /\/e2e\/(switches|history|state|trouble)/,
  /\/e2e\//,
  /\/contract\//,
];

export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longFirst.findIndex((pattern) => pattern.test(moduleId));
      return at === -1 ? longFirst.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
