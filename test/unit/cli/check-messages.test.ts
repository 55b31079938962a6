/**
 * `check` on the messages and the framing of a sink, with and without a connection: from the
 * settings and the sink's encoder.
 */
import { expect, test } from 'vitest';
import { offlineCheck, service, type Finding } from '../../support/offline-check.ts';

/**
 * Runs `check --offline` for one sink with these settings: exit code, and findings about the sink.
 */
async function offline(settings: Readonly<Record<string, unknown>>, mapping: object = {}): Promise<{ code: number; findings: Finding[] }> {
  const sources = [{ id: 'production', ...service, start: '2026-11-21T00:00:00Z' }];
  const sinks = [{ id: 'siem', type: 'syslog', hostname: 'gateway-1', ...settings }];
  const { code, findings } = await offlineCheck({ mapping, sources, sinks });
  return { code, findings: findings.filter(({ subject }) => subject === 'sink siem') };
}

const udp = 'udp://siem.example:5140';

test.each(['ecs', 'ocsf'])('%s by UDP at the default size is an error that names a size', async (format) => {
  const { code, findings } = await offline({ address: udp, format });
  expect(code).toBe(1);
  expect(findings).toEqual([
    { subject: 'sink siem', level: 'error', message: expect.stringMatching(/set maxBytes to \d+ or more/) as string, setting: 'sinks.siem.maxBytes' },
  ]); // prettier-ignore
  const size = Number(/set maxBytes to (\d+)/.exec(findings[0]?.message ?? '')?.[1]);
  // The named size suffices, and no smaller one does.
  expect((await offline({ address: udp, format, maxBytes: size })).findings[0]).toMatchObject({ level: 'ok' });
  expect((await offline({ address: udp, format, maxBytes: size - 1 })).findings[0]?.level).not.toBe('ok');
});

test.each(['cef', 'leef', 'raw'])('%s by UDP at the default size fits, typical and long records', async (format) => {
  const { code, findings } = await offline({ address: udp, format });
  expect([code, findings]).toEqual([
    0,
    [
      {
        subject: 'sink siem',
        level: 'ok',
        message: expect.stringContaining('17 of 17 typical records and 17 of 17 long records') as string,
      },
    ],
  ]);
  const tcp = await offline({ address: 'tcp://siem.example:1514', format });
  expect(tcp.findings[0]).toMatchObject({ level: 'ok' });
});

test('a configured name counts: 512 characters of 3 bytes leave too little of 2,048 bytes for the header and the values', async () => {
  const names = { 'Decrypt:AccessDenied:TimeEmbargoFailed': '漢'.repeat(512) };
  const { code, findings } = await offline({ address: udp, format: 'cef' }, { names });
  expect(code).toBe(1);
  expect(findings).toMatchObject([
    { level: 'error', message: expect.stringContaining('16 of 17 typical records') as string, setting: 'sinks.siem.maxBytes' },
  ]);
});

test('a size at which typical CEF becomes dead letters is an error, one at which only long records do a warning', async () => {
  for (const maxBytes of [480, 600])
    expect((await offline({ address: udp, format: 'cef', maxBytes })).findings[0]).toMatchObject({
      level: 'error',
      message: expect.stringContaining('0 of 17 typical') as string,
    });
  expect((await offline({ address: udp, format: 'cef', maxBytes: 1_000 })).findings[0]).toMatchObject({
    level: 'warning',
    message: expect.stringContaining('17 of 17 typical') as string,
  });
});

// Ports as Splunk Connect for Syslog documents them ("SC4S Configuration Variables": default, TLS, RFC 6587 and RFC 5425 ports).
test.each([
  ['tcp', 514, 'octet-counting', 'newline'],
  ['tls', 514, 'octet-counting', 'newline'],
  ['tls', 6514, 'octet-counting', 'newline'],
  ['tcp', 601, 'newline', 'octet-counting'],
  ['tls', 5425, 'newline', 'octet-counting'],
])('%s on port %i with framing %s: hint at %s, without a connection', async (scheme, port, framing, usual) => {
  const address = `${scheme}://siem.example:${port}`;
  const hints = async (given: string): Promise<Finding[]> =>
    (await offline({ address, framing: given })).findings.filter(({ setting }) => setting === 'sinks.siem.framing');
  expect(await hints(framing)).toEqual([
    expect.objectContaining({ level: 'warning', message: expect.stringContaining(`framing: ${usual}`) as string }),
  ]);
  expect(await hints(usual)).toEqual([]);
});

test('other ports, UDP and RELP have no usual framing; tcp:// on a TLS port is a separate warning', async () => {
  for (const framing of ['octet-counting', 'newline']) {
    const told = async (address: string): Promise<(string | undefined)[]> =>
      (await offline({ address, framing })).findings.filter(({ level }) => level !== 'ok').map(({ setting }) => setting);
    expect(await told('tcp://siem.example:1514')).toEqual([]);
    // RELP and UDP frame by themselves: the setting has no effect.
    const isOwn = framing === 'newline' ? ['sinks.siem.framing'] : [];
    for (const address of ['udp://siem.example:514', 'relp://siem.example:601']) expect(await told(address)).toEqual(isOwn);
  }
  expect((await offline({ address: 'tcp://siem.example:6514' })).findings).toContainEqual(
    expect.objectContaining({ level: 'warning', setting: 'sinks.siem.address' }),
  );
});
