/** The order of test files: the longest start first, so that no worker runs one of them alone at the end. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

const longFirst = [
  // In npm run test:long each of these takes three to five minutes.
  /\/e2e\/(reload|chaos|history|switches|archive-replay)/,
  /\/contract\/(canary|sinks\/syslog\.)/,
  /\/servers\/(daemon|wrong-settings)/,
  /\/servers\/(kafka|elasticsearch-daemon)/,
  /\/e2e\/(incidents|state|trouble|access|report|rights)/,
  /\/(e2e|simulation)\/|\/documented-examples/,
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
