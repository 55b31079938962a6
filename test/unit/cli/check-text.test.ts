import { expect, test } from 'vitest';
import { checkText } from '../../../src/cli/commands/check/text.ts';

test('one word, the subject, and below it each finding, wrapped', () => {
  const words = 'about 9792 requests a day at rest, 0.11 a second, which is more than requests.perSecond (0.1)';
  const lines = checkText(
    [
      { subject: 'configuration', level: 'ok', message: '"waybill.yaml" is valid' },
      { subject: 'source production', level: 'ok', message: 'read' },
      { subject: 'source production', level: 'ok', message: 'counted' },
      { subject: 'source production', level: 'warning', message: words },
      { subject: 'sink siem', level: 'error', message: 'cannot reach \u001b[2J' },
    ],
    60,
  );
  expect(lines).toEqual([
    'ok       configuration',
    '         "waybill.yaml" is valid',
    'ok       source production',
    '         read',
    '         counted',
    'warning  source production',
    '         about 9792 requests a day at rest, 0.11 a second,',
    '         which is more than requests.perSecond (0.1)',
    'error    sink siem',
    '         cannot reach \\u001b[2J',
  ]);
});
