/** The alerts of the demo, on events as a sink gets them. */
import { expect, test } from 'vitest';
import { Alerts } from '../../../src/cli/commands/demo/alerts.ts';
import { rules } from '../../support/detections/company.ts';

const start = Date.parse('2026-03-04T09:00:00Z');

/** Ann opens file `number`, so many seconds after the start. */
function opened(number: number, seconds: number, user = 'ann'): object {
  return {
    '@timestamp': new Date(start + seconds * 1000).toISOString(),
    dpas: { uid: `${user}-${number}`, action_attempted: 'Decrypt', result: 'AccessGranted', payload: { id: `file-${number}` } },
    event: { code: 'Decrypt:AccessGranted:Success', reason: 'Success', outcome: 'success' },
    user: { id: user, email: `${user}@example.com`, full_name: `${user} \u001b[31mSample` },
    file: { name: `Plan ${number}.docx`, uid: 'olga' },
    host: { hostname: 'WIN-1' },
    source: { ip: '192.0.2.7' },
  };
}
const many = (count: number, user?: string): object[] => Array.from({ length: count }, (_, i) => opened(i + 1, i * 10, user));

test('the 25th file within ten minutes raises the alert, once, also when files arrive late', () => {
  const alerts = new Alerts(rules, {});
  const [late, ...others] = many(25);
  expect(alerts.add(others)).toEqual([]);
  expect(alerts.add(others)).toEqual([]);
  expect(alerts.add([late])).toEqual([
    '',
    'ALERT high: Protected files: many files opened (opened-many)',
    '  Who:   ann \\u001b[31mSample <ann@example.com>',
    '  What:  25 events in 240 s on 25 files: Plan 1.docx, Plan 2.docx, Plan 3.docx, Plan 4.docx, Plan 5.docx and 20 more',
    '  From:  WIN-1, 192.0.2.7',
    expect.stringMatching(/^ {2}Means: \S/) as string,
    expect.stringMatching(/^ {2}Next: {2}\S/) as string,
    expect.stringMatching(/^ {2}Next: {2}\S/) as string,
    expect.stringMatching(/^ {2}Next: {2}\S/) as string,
    '',
  ]);
  expect(alerts.add([opened(26, 250)])).toEqual([]);
  expect(alerts.end()).toEqual([
    '1 alert on 26 events of 1 user:',
    '  high   opened-many: ann \\u001b[31mSample <ann@example.com>',
    '',
    'Timeline of ann \\u001b[31mSample <ann@example.com>:',
    '  09:00:00 to 09:04:10  Protected file open allowed, WIN-1: Plan 1.docx, Plan 2.docx, Plan 3.docx, Plan 4.docx, Plan 5.docx and 21 more',
  ]);
});

test('people who are excepted, and everyday work, raise none', () => {
  const alerts = new Alerts(rules, { 'trusted-users': new Map([['batch', {}]]) });
  expect(alerts.add([...many(60, 'batch'), ...many(20, 'bob')])).toEqual([]);
  expect(alerts.end()).toEqual(['0 alerts on 80 events of 2 users. With a longer --for the attack comes to its end.']);
});

const done = (code: string, number: number, seconds: number, user?: string): object => ({
  ...opened(number, seconds, user),
  dpas: { uid: `${code}-${number}`, payload: { id: `file-${number}` } },
  event: { code },
});

test('a user who takes files of others and opens them is one alert, which names the files', () => {
  const alerts = new Alerts(rules, {});
  const lines = alerts.add([1, 2].flatMap((number) => [done('Audit:AuthorChanged:Changed', number, number), opened(number, number + 60)]));
  expect(lines.filter((line) => line.startsWith('ALERT'))).toHaveLength(1);
  expect(lines).toContain('  What:  2 events in 61 s on 2 files: Plan 1.docx, Plan 2.docx');
});

test('further alerts of a rule for the same person are one line each', () => {
  const alerts = new Alerts(rules, {});
  const lines = alerts.add(
    [1, 2].flatMap((number) => [
      done('Decrypt:AccessDenied:UserPayloadNoAccess', number, number),
      done('Audit:AuthorisedUserAccess:Created', number, number + 10, 'root'),
      opened(number, number + 60),
    ]),
  );
  expect(lines.filter((line) => line.startsWith('ALERT'))).toEqual([
    expect.stringMatching(/^ALERT medium: .*\(denied-changed-opened\)$/) as string,
    'ALERT medium again (denied-changed-opened): ann@example.com, root@example.com, 1 file: Plan 2.docx',
  ]);
  expect(alerts.end()).toContain('  medium denied-changed-opened: ann@example.com, root@example.com, 2 times');
});

test('files of one name count each', () => {
  const alerts = new Alerts(rules, {});
  const copies = many(25).map((event) => ({ ...event, file: { name: 'Copy.docx', uid: 'olga' } }));
  const files = '25 files: Copy.docx, Copy.docx, Copy.docx, Copy.docx, Copy.docx and 20 more';
  expect(alerts.add(copies)).toContain(`  What:  25 events in 240 s on ${files}`);
  expect(alerts.findings().steps.map((step) => step.files)).toEqual([files.slice('25 files: '.length)]);
});
