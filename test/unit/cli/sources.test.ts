/**
 * `waybill sources` and `status` on the state of a daemon that has not run since a source was
 * removed from the configuration.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Command } from '../../../src/cli/form.ts';
import { command as sourcesCommand } from '../../../src/cli/commands/sources.ts';
import { command as statusCommand } from '../../../src/cli/commands/status.ts';
import { outputOf } from '../../support/command-io.ts';
import { opened, source, temporary } from '../../support/journal/opening.ts';
import { service } from '../../support/offline-check.ts';

test('a removed source is unconfigured, and can be retired, without a start in between', async () => {
  const { directory, close, beside } = await opened();
  await close();
  const state = (): unknown => beside().prepare('SELECT state FROM sources WHERE id = ?').pluck().get(source);
  expect(state()).toBe('active');
  const configOf = (id: string): string => {
    const file = join(temporary(), 'waybill.yaml');
    writeFileSync(file, JSON.stringify({ dataDir: directory, sources: [{ id, ...service }], sinks: [{ id: 'out', type: 'stdout' }] }));
    return file;
  };
  const shown = async (command: Command, ...args: string[]): Promise<string> => {
    const { code, stdout } = await outputOf((given, io) => command.run(given, io), args);
    expect(code).toBe(0);
    return stdout;
  };
  const status = async (): Promise<unknown> => JSON.parse(await shown(statusCommand, '--json', '--config', configOf('other')));
  const retire = (id: string): Promise<string> =>
    shown(sourcesCommand, 'retire', '--source', source, '--reason', 'renamed', '--actor', 'j.doe', '--yes', '--config', configOf(id));

  // No window of the ledger is proven yet.
  expect(await shown(sourcesCommand, 'list', '--config', configOf('other'))).toMatch(/^production +active +no +\S+ +not yet +\S+ +0$/m);
  expect(await status()).toMatchObject({ sources: [{ id: source, state: 'unconfigured' }, { id: 'other' }] });
  await expect(retire(source)).rejects.toThrow('it is configured; remove it from the configuration first');
  expect(state()).toBe('active');
  expect(await retire('other')).toBe('done\n');
  expect(state()).toBe('retired');
  expect(await status()).toMatchObject({ sources: [{ id: source, state: 'retired' }, { id: 'other' }] });
});
