import { expect, test } from 'vitest';
import { commandIo } from '../../support/command-io.ts';
import { command } from '../../../src/cli/commands/reference.ts';

test('reference: a stop requested before the service handles signals ends it with 0', async () => {
  expect(await command.run(['--json'], commandIo({ signal: AbortSignal.abort() }))).toBe(0);
  const soon = new AbortController();
  const ended = command.run(['--json', '--records', '1000000'], commandIo({ signal: soon.signal }));
  soon.abort();
  expect(await ended).toBe(0);
});
