/**
 * A day of ledger events for the preview of the ledger dashboard: the daemon collects two sources
 * on a test clock, with faults of their services and an operator, and the sink `elasticsearch`
 * delivers the result. The same in every run.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/load.ts';
import { LiveStatus } from '../../../src/daemon/live-status.ts';
import { perform } from '../../../src/daemon/operations/perform.ts';
import type { OperationRequest } from '../../../src/daemon/operations/requests.ts';
import { createDelivery } from '../../../src/daemon/open-delivery.ts';
import { runSource } from '../../../src/daemon/source/run.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { Clock } from '../../../src/model/time.ts';
import { Budgets } from '../../../src/source/limits.ts';
import { quietLog } from '../../simulation/life.ts';
import { until } from '../e2e-place.ts';
import { ModelSource } from '../model-source.ts';
import type { Served } from '../model-source.ts';
import { second } from '../records.ts';
import { uncounted } from '../uncounted.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { weekOfRecords } from '../content/preview-week.ts';
import type { Elasticsearch } from './elasticsearch.ts';

const hour = 3_600_000;
export const dayStart = Date.parse('2026-03-05T00:00:00Z');
export const dayEnd = dayStart + 24 * hour;
const ledgerStart = dayStart - 4 * hour;

/** @returns the data stream of the ledger events */
export async function deliverDay(server: Elasticsearch): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'waybill-ledger-day-'));
  try {
    const config = await configOf(directory, server);
    await collect(directory, config);
    await deliver(directory, config);
  } finally {
    rmSync(directory, { recursive: true });
  }
  const stream = 'logs-dpas.ledger-default';
  expect(await server.count(stream)).toBeGreaterThan(0);
  return stream;
}

async function configOf(directory: string, server: Elasticsearch): Promise<Config> {
  const file = join(directory, 'waybill.yaml');
  const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 's', scopeAddress: 'a' };
  const source = { baseUrl: 'https://service.example/v2/api', start: new Date(ledgerStart).toISOString(), auth };
  const sources = ['headquarters', 'plant'].map((id) => ({ id, ...source }));
  const sinks = [{ id: 'siem', type: 'elasticsearch', nodes: server.url, templates: 'install', ledger: true }];
  writeFileSync(file, JSON.stringify({ sources, sinks }));
  return (await loadConfig(file, {})).config;
}

function openJournal(directory: string, clock: Clock): Promise<Journal> {
  const options = { directory: join(directory, 'state'), maxSize: 1e9, retention: 1e12, version: '0.1.0', expectState: false, lockWait: 0 };
  return Journal.open(options, clock, new AbortController().signal);
}

/** Runs the sources until the end of the day. */
async function collect(directory: string, config: Config): Promise<void> {
  const clock = new VirtualClock(ledgerStart);
  await using journal = await openJournal(directory, clock);
  const stop = new AbortController();
  const services = new Map(config.sources.map(({ id }, index) => [id, serviceOf(clock, index, config.sources.length)]));
  const options = {
    ...{ config, version: '0.1.0', expectState: false, lockWait: 0, clock, random: () => 0.5, log: quietLog },
    openSource: ({ id }: { readonly id: string }) => {
      const service = serviceNamed(services, id);
      return Object.assign(service, { authenticate: () => Promise.resolve(), routes: () => [] });
    },
  };
  const status = new LiveStatus(config);
  const running = config.sources.map((source) =>
    runSource(
      { settings: source, journal, options, meters: uncounted, budgets: new Budgets(clock), liveStatus: status },
      stop.signal,
    ).catch((thrown: unknown) => {
      if (thrown !== stop.signal.reason) throw thrown;
    }),
  );
  const day = async (): Promise<void> => {
    for (const [time, event] of events(services, journal)) {
      await clock.sleep(microsAt(time) / 1_000 - clock.now(), stop.signal);
      const request = event();
      if (request) await perform(request, journal, clock.now() * 1_000, () => undefined);
    }
    await clock.sleep(dayEnd - clock.now(), stop.signal);
    stop.abort(new Error('the day is over'));
  };
  await Promise.all([...running, day()]);
}

type Services = ReadonlyMap<string, ModelSource>;

function serviceNamed(services: Services, id: string): ModelSource {
  const service = services.get(id);
  if (!service) throw new Error(`no service for ${id}`);
  return service;
}

/** A service with every `of`th record of the week, each visible after three seconds. */
function serviceOf(clock: Clock, index: number, of: number): ModelSource {
  const service = new ModelSource(clock);
  service.delay = 40;
  for (const [at, text] of weekOfRecords().entries()) {
    if (at % of !== index) continue;
    const { logTimestamp } = JSON.parse(text) as { readonly logTimestamp: string };
    const time = Date.parse(`${logTimestamp}Z`) * 1_000;
    service.records.push({ time, visible: time + 3 * second, text });
  }
  return service;
}

type Event = readonly [time: string, event: () => OperationRequest | undefined];

/** The faults of the services and the requests of an operator, by the time of the day. */
function events(services: Services, journal: Journal): readonly Event[] {
  const [headquarters, plant] = [serviceNamed(services, 'headquarters'), serviceNamed(services, 'plant')];
  const operator = { source: 'plant', actor: 'j.doe' };
  // Its window closes at 11:30, and the recount six hours later finds it.
  replaceFirst(headquarters, '11:00', (record) => ({ ...record, visible: microsAt('12:50') }));
  // Counted, and on no page.
  replaceFirst(plant, '14:00', (record) => {
    plant.switches.hidden = new Set([logIdOf(record.text)]);
    return record;
  });
  return [
    ['10:20', () => void (headquarters.switches.total = 'missing')],
    ['10:50', () => void (headquarters.switches.total = 'true')],
    [
      '16:00',
      () => ({ operation: 'gaps accept', ...operator, from: firstGap(journal), reason: 'the service cannot return the record: ticket 93' }),
    ],
    ['19:00', () => void (plant.before = forbid)],
    ['19:25', () => void (plant.before = () => undefined)],
    ['20:30', () => ({ operation: 'backfill', ...operator, from: '2026-03-03T00:00:00Z', to: '2026-03-04T20:00:00Z', reason: 'audit' })],
  ];
}

function forbid(): void {
  throw new WaybillError('source_forbidden', 'cannot read: 403 the permission logs.read.all is missing');
}

const microsAt = (time: string): number => Date.parse(`2026-03-05T${time}Z`) * 1_000;
const logIdOf = (text: string): number => (JSON.parse(text) as { readonly logId: number }).logId;

/** Replaces the first record at or after a time. */
function replaceFirst({ records }: ModelSource, time: string, change: (record: Served) => Served): void {
  const first = records.find((record) => record.time >= microsAt(time));
  if (!first) throw new Error(`no record after ${time}`);
  records[records.indexOf(first)] = change(first);
}

function firstGap({ db }: Journal): string {
  const row = db.prepare<[], { from: number }>(`SELECT from_us AS "from" FROM windows WHERE state = 'gap' ORDER BY from_us`).get();
  if (!row) throw new Error('there is no gap');
  return new Date(row.from / 1_000).toISOString();
}

/** Delivers the journal by the sink of the configuration. */
async function deliver(directory: string, config: Config): Promise<void> {
  await using journal = await openJournal(directory, systemClock);
  const [sink] = config.sinks;
  if (!sink) throw new Error('the configuration has no sink');
  const { loop } = createDelivery(sink, journal, { config, clock: systemClock, random: () => 0.5, log: quietLog }, uncounted);
  const stop = new AbortController();
  const running = loop.run(stop.signal, stop.signal);
  await Promise.race([
    running,
    until('all entries are delivered', 60_000, () => journal.sinkProgress(sink.id).acknowledged === journal.head().seq || undefined),
  ]);
  stop.abort(new Error('all entries are delivered'));
  await running;
}
