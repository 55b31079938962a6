import { expect, test } from 'vitest';
import { run } from '../../../src/cli/commands/reference.ts';

test('reference: a stop that was asked for before the service can hear of it ends with 0', async () => {
  expect(await run(['--json'], { signal: AbortSignal.abort() })).toBe(0);
  const soon = new AbortController();
  const ended = run(['--json', '--records', '1000000'], { signal: soon.signal });
  soon.abort();
  expect(await ended).toBe(0);
});
