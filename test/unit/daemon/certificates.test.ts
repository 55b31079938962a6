import { expect, test } from 'vitest';
import { reportEndingCertificates } from '../../../src/daemon/certificates.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const dayMs = 86_400_000;

test('a certificate that ends within two weeks is logged once a day, until it is replaced', async () => {
  const start = Date.UTC(2026, 10, 28);
  const clock = new VirtualClock(start);
  const ends = [
    { target: 'sources.production', at: (start + 15 * dayMs) * 1_000 },
    { target: 'sinks.siem', at: (start + 60 * dayMs) * 1_000 },
  ];
  const lines: unknown[] = [];
  const log = noting({ write: (event, ...[fields]) => void lines.push({ event, at: (clock.now() - start) / dayMs, ...fields }) });
  const stop = new AbortController();
  const task = reportEndingCertificates(() => ends, clock, log, stop.signal).catch(() => undefined);
  await clock.advance(3 * dayMs + 7_200_000);
  expect(lines).toMatchObject([
    { event: 'certificate.ending', target: 'sources.production', end: '2026-12-13T00:00:00.000Z', days: 13 },
    { event: 'certificate.ending', target: 'sources.production', days: 12 },
    { event: 'certificate.ending', target: 'sources.production', days: 11 },
  ]);
  ends[0] = { target: 'sources.production', at: (start + 400 * dayMs) * 1_000 };
  await clock.advance(3 * dayMs);
  expect(lines).toHaveLength(3);
  stop.abort();
  await task;
});
