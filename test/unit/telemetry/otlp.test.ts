/** The exporters in this process. test/e2e/telemetry.test.ts tests what a receiver decodes. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startOtlp } from '../../../src/telemetry/otlp.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { noting } from '../../support/telemetry/written-events.ts';

test('spans that the receiver refuses are logged with a code', async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(400).end();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lines: unknown[] = [];
  const otlp = startOtlp(endpoint, '0.1.0', noting({ write: (...line) => void lines.push(line) }), systemClock);
  otlp.tracer.start('deliver batch').end();
  await otlp.stop({ [Symbol.asyncDispose]: () => Promise.resolve() });
  expect(asked).toEqual(['/v1/traces']);
  expect(lines).toMatchObject([
    ['telemetry.started', { endpoint, signals: ['metrics', 'traces'] }],
    ['telemetry.export_failed', { code: 'otlp_export_failed' }],
  ]);
});
