/** `check --offline` on the predicted requests of sources. */
import { expect, test } from 'vitest';
import { offlineCheck, service, type Finding } from '../../support/offline-check.ts';

/** The findings about a configuration with this many sources, all in one group. */
async function findings(count: number, perSecond: number): Promise<readonly Finding[]> {
  const sources = Array.from({ length: count }, (_, i) => ({
    ...{ id: `tenant-${i}`, ...service, start: '2026-11-21T00:00:00Z' },
    requests: { perSecond, group: 'gateway' },
  }));
  const { code, findings: found } = await offlineCheck({ sources, sinks: [{ id: 'out', type: 'stdout' }] });
  expect(code).toBe(0);
  return found;
}

test('with the defaults a source sends 10,368 requests a day', async () => {
  expect(await findings(1, 10)).toContainEqual({
    subject: 'source tenant-0',
    level: 'ok',
    message: 'about 10368 requests a day when idle, 0.12 a second',
  });
});

test('sources that share a budget are compared with it together', async () => {
  const ofGroup = async (count: number, perSecond: number): Promise<Finding[]> =>
    (await findings(count, perSecond)).filter(({ subject }) => subject === 'group gateway');
  // 83 times 10,368 a day are 9.96 per second, 100 times are 12.
  expect(await ofGroup(83, 10)).toEqual([]);
  expect(await ofGroup(100, 10)).toEqual([
    {
      subject: 'group gateway',
      level: 'warning',
      message: expect.stringMatching(/^100 sources share 10 .* need 12\.0 when idle/) as string,
    },
  ]);
  expect(await ofGroup(100, 13)).toEqual([]);
});
