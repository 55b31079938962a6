import { expect, test } from 'vitest';
import { checkText } from '../../../src/cli/commands/check/text.ts';

test('prints a table of check, status and detail; a long detail is wrapped in its column', () => {
  const message = 'about 9792 requests a day when idle, 0.11 a second, which is more than requests.perSecond (0.1)';
  const lines = checkText(
    [
      { subject: 'configuration', level: 'ok', message: '"waybill.yaml" is valid' },
      { subject: 'source production', level: 'ok', message: 'read' },
      { subject: 'source production', level: 'warning', message },
      { subject: 'sink siem', level: 'error', message: 'cannot reach \u001b[2J' },
    ],
    80,
  );
  expect(lines).toEqual([
    'CHECK              STATUS   DETAIL',
    'configuration      ok       "waybill.yaml" is valid',
    'source production  ok       read',
    'source production  warning  about 9792 requests a day when idle, 0.11 a second,',
    '                            which is more than requests.perSecond (0.1)',
    'sink siem          error    cannot reach \\u001b[2J',
  ]);
});
