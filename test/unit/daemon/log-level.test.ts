import { expect, test, vi } from 'vitest';
import { logLevelRequest, setLogLevel } from '../../../src/daemon/operations/log-level.ts';

const request = { operation: 'log level', level: 'debug', component: 'sink/kafka', forMs: 60_000, actor: 'j.doe' } as const;

test('other requests are left to the journal, and a malformed one is refused', () => {
  expect(logLevelRequest(request)).toEqual(request);
  for (const other of [undefined, null, 'log level', { operation: 'replay' }]) expect(logLevelRequest(other)).toBeUndefined();
  for (const wrong of [{ level: 'loud' }, { forMs: 86_400_001 }, { forMs: 0 }, { actor: '' }, { extra: 1 }])
    expect(() => logLevelRequest({ ...request, ...wrong })).toThrow(expect.objectContaining({ code: 'usage' }));
});

test('a component is set if it or a part of it exists; an unknown one names the nearest', () => {
  const setLevel = vi.fn();
  const logs = { setLevel, components: () => ['sink/kafka', 'journal'] };
  for (const component of [undefined, 'sink', 'sink/kafka', 'journal']) setLogLevel({ ...request, component }, logs);
  expect(setLevel).toHaveBeenCalledTimes(4);
  expect(() => setLogLevel({ ...request, component: 'jurnal' }, logs)).toThrow(
    expect.objectContaining({ code: 'usage', message: expect.stringContaining('the nearest is "journal"') as string }),
  );
  expect(setLevel).toHaveBeenCalledTimes(4);
});
