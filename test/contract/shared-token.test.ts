/** The sources of a running daemon, with a real HTTPS server whose new token ends the one before. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/time/clock.ts';
import { Running } from '../../src/daemon/running.ts';
import { Tasks } from '../../src/daemon/tasks.ts';
import { PemFiles } from '../../src/settings/pem.ts';
import { Secret } from '../../src/settings/secret.ts';
import type { ComponentLog } from '../../src/telemetry/log.ts';
import { createAuthority } from '../support/certificates.ts';
import { Lines } from '../support/collect/world.ts';
import { load, valid } from '../support/config/loading.ts';
import { opened } from '../support/journal/opening.ts';
import { startService } from '../support/model-service-server.ts';
import { uncounted } from '../support/uncounted.ts';

class ComponentLines extends Lines implements ComponentLog {
  child(): ComponentLog {
    return this;
  }
}

test('three sources of a daemon with one client log in once', async () => {
  const authority = await createAuthority('Test Root');
  await using service = await startService({ certificate: await authority.issue({ name: 'service', hosts: ['127.0.0.1'] }) });
  service.endsTokens = true;
  const { config } = await load(valid());
  const at = `https://127.0.0.1:${service.port}`;
  const ca = vi.mockObject(new PemFiles([]));
  ca.read.mockReturnValue([authority.cert]);
  const sources = config.sources.flatMap((source) =>
    ['a', 'b', 'c'].map((id) => ({
      ...source,
      id,
      baseUrl: `${at}/v2/api`,
      subscriptionKey: new Secret('key-1'),
      auth: { ...source.auth, authUrl: at, clientSecret: new Secret('secret-1') },
    })),
  );
  const { journal } = await opened();
  const log = new ComponentLines();
  const stop = new AbortController();
  const tasks = new Tasks(stop.signal, systemClock, log);
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    await tasks.ended(() => 0);
  });
  const options = { version: '0.1.0', expectState: false, lockWait: 0, clock: systemClock, random: () => 0.5, log };
  const running = new Running(
    { ...options, config: { ...config, sources, sinks: [], tls: { ca } } },
    { journal, meters: uncounted, tasks },
  );
  running.start();
  const started = () => log.lines.filter(({ event }) => event === 'source.first_token');
  await vi.waitFor(() => expect([started().length, service.pages.length > 20]).toEqual([3, true]), 10_000);
  expect(service.tokens).toHaveLength(1);
});
