/** `waybill demo --attack`, as a user runs it: until the alert is shown and the attack is over, then Ctrl-C. */
import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { endOf, inPlace, patience, until } from '../support/e2e-place.ts';
import { isLong } from '../support/long-run.ts';
import { waybillProgram } from '../support/programs.ts';

const attacks = [
  {
    attack: 'search',
    alerts: [['high', 'open-denied-many-files']],
    /** What the person does, from docs/reference-service.md. */
    steps: [/Protected file open denied \(UserPayloadNoAccess\), WIN-\w+: (?:[\w .]+, ){4}/],
    next: /^ {2}Next: {2}\S/m,
  },
  {
    attack: 'harvest',
    alerts: [['high', 'opened-many']],
    steps: [/Protected file open allowed, WIN-\w+: .* and \d+ more/],
    next: /^ {2}Next: {2}\S/m,
  },
  {
    attack: 'weakened',
    alerts: [
      ['high', 'control-changed-then-opened'],
      ['medium', 'access-window-changed-many'],
    ],
    steps: [/Access window changed, WIN-\w+: .* and \d+ more/, /Protected file open allowed, WIN-\w+: /],
    next: /^ {2}Next: {2}Ask the owner of the file/m,
  },
] as const;

// promise: `waybill demo --attack` shows the alert of an attack amid everyday work, with name, files and next step, and what the person did
test.each(isLong ? attacks : attacks.slice(0, 1))('$attack', { timeout: 240_000 }, async ({ attack, alerts, steps, next }) => {
  await inPlace(`demo-${attack}`, async (place) => {
    const child = spawn(process.execPath, [waybillProgram, 'demo', '--attack', attack, '--dir', place.path('demo')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (shown += part));
    child.stderr.setEncoding('utf8').on('data', (part: string) => (shown += part));
    const isShown = ([severity, rule]: readonly [string, string]): boolean =>
      new RegExp(`^ALERT ${severity}: .*\\(${rule}\\)\\n {2}Who: {3}Person\\d+ Sample <person\\d+\\.sample@example\\.com>$`, 'm').test(
        shown,
      );
    try {
      await until(
        () => `the alerts of ${attack}:\n${shown}`,
        patience,
        () => alerts.every(isShown) || undefined,
      );
      expect(shown).toMatch(/^ {2}What: {2}\d+ events in \d+ s on \d+ files?: \S/m);
      expect(shown).toMatch(next);
    } finally {
      child.kill('SIGINT');
    }
    const { code } = await endOf(child);
    expect(code).toBe(0);
    const [, end = ''] = shown.split(/^\d+ alerts? on \d+ events of \d+ users:$/m);
    const timeline = end.slice(end.indexOf('Timeline of'));
    expect(timeline).toMatch(/^Timeline of Person\d+ Sample <person\d+\.sample@example\.com>:/);
    for (const step of steps) expect(timeline).toMatch(step);
    expect(end).toContain('INTACT: ');
    // One person attacks: no alert is about anybody else.
    const people = new Set([...end.matchAll(/^ {2}(?:high|medium) .*<(.*)>/gm)].map(([, mail]) => mail));
    expect(people.size).toBe(1);
  });
});
