import { expect, test } from 'vitest';
import { clockFinding } from '../../../src/report/clock-text.ts';

test.each([
  [0, 'ok', 'the clock of the service and the clock of this machine agree within a second'],
  [-1.4, 'ok', 'the clock of the service and the clock of this machine agree within a second'],
  [-2, 'ok', 'the clock of the service is 2 s behind the clock of this machine'],
  [60, 'ok', 'the clock of the service is 60 s ahead of the clock of this machine'],
  [61, 'warning', 'the clock of the service is 61 s ahead of the clock of this machine: correct the wrong one'],
  [-601, 'warning', 'the clock of the service is 10 min behind the clock of this machine: correct the wrong one'],
  [-7_201, 'warning', 'the clock of the service is 2 h behind the clock of this machine: correct the wrong one'],
] as const)('%f s apart', (seconds, level, message) => {
  expect(clockFinding(seconds)).toEqual({ level, message });
});
