/**
 * `waybill gaps` on a state without a daemon: the windows that a suspension lists are shown, and
 * accepted together.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/gaps.ts';
import { outputOf } from '../../support/command-io.ts';
import { base, day, hour } from '../../support/records.ts';
import { gap, lastAge, opened, proven, source } from '../../support/journal/opening.ts';

const windows = [0, 1, 2, 3].map((i) => ({ from: base + i * hour, to: base + (i + 1) * hour }));
const from = (i: number): number => windows[i]?.from ?? NaN;
const nameOf = (i: number): string => new Date(from(i) / 1000).toISOString().replace('.000Z', 'Z');

/**
 * Four proven windows; a suspension lists two of them, and has found that a third shrank as well.
 */
async function held(): Promise<{ readonly call: (...args: string[]) => Promise<string>; readonly states: () => unknown[] }> {
  const { journal, directory, close, beside } = await opened();
  for (const window of windows) await journal.close(source, window, proven(2, window.to + day), lastAge);
  const hold = { reason: 'rows' as const, message: 'fewer', since: base + day, windows: [from(3), from(0)], shrunk: [from(2)] };
  await journal.setSuspension(source, hold, base + day);
  await close();
  const config = join(directory, 'waybill.yaml');
  const auth = '{ authUrl: https://login.test, tenantId: t, clientId: c, clientSecret: s, scopeAddress: a }';
  writeFileSync(
    config,
    `dataDir: ${directory}\nsources:\n  - { id: ${source}, baseUrl: https://service.test/v2/api, auth: ${auth} }\nsinks:\n  - { id: out, type: stdout }\n`,
  );
  const call = async (...args: string[]): Promise<string> => {
    const { code, stdout } = await outputOf((given, io) => command.run(given, io), [...args, '--config', config]);
    expect(code).toBe(0);
    return stdout;
  };
  const states = (): unknown[] => beside().prepare('SELECT state, reason FROM windows ORDER BY from_us').raw().all();
  return { call, states };
}

test('list shows every window that a suspension lists', async () => {
  const { call } = await held();
  const inDoubt = [0, 2, 3].map((i) => ({ from: nameOf(i), reason: 'reread', together: true }));
  expect(JSON.parse(await call('list', '--json'))).toMatchObject({ gaps: [], inDoubt, accepted: [] });
  expect(await call('list')).toMatch(/^(?:SOURCE.*\n)(?:production +\S+ +\S+ +in doubt .*\n){3}$/);
});

test('accepting any one of them accepts all', async () => {
  const { call, states } = await held();
  const answer = await call('accept', nameOf(2), '--reason', 'deleted by order', '--yes', '--json');
  expect((JSON.parse(answer) as { accepted: { from: string }[] }).accepted.map((each) => each.from)).toEqual([0, 2, 3].map(nameOf));
  expect(states()).toEqual([
    ['accepted', 'reread'],
    ['proven', null],
    ['accepted', 'reread'],
    ['accepted', 'reread'],
  ]);
  expect(JSON.parse(await call('list', '--json'))).toMatchObject({
    ...{ gaps: [], inDoubt: [], accepted: Array(3).fill({ state: 'accepted', together: false }) },
  });
});

test('list states the reason: the numbers received and counted', async () => {
  const { journal, directory, close } = await opened();
  await journal.close(source, { from: base, to: base + hour }, gap({ message: 'received 14, the service counted 5' }), lastAge);
  await journal.close(source, { from: base + hour, to: base + 2 * hour }, gap({ message: '' }), lastAge);
  await close();
  const { code, stdout } = await outputOf((given, io) => command.run(given, io), ['list', '--data-dir', directory]);
  expect(code).toBe(0);
  const rows = stdout.trimEnd().split('\n').slice(1);
  expect(rows[0]).toMatch(/ count: received 14, the service counted 5$/);
  // `gap()` has received 2 of 3.
  expect(rows[1]).toMatch(/ count: received 2, the service counted 3$/);
});
