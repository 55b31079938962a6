/**
 * One source as the daemon runs it, on the model of a service and a test clock: what it waits for,
 * and what not.
 */
import { uncounted } from '../../support/uncounted.ts';
import { expect, onTestFinished, test } from 'vitest';
import { runSource } from '../../../src/daemon/source/run.ts';
import { LiveStatus } from '../../../src/daemon/live-status.ts';
import type { SourceConfig } from '../../../src/config/load.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Suspension } from '../../../src/model/ledger.ts';
import { sourcesOf } from '../../../src/journal/queries/stored.ts';
import { snapshotOf } from '../../../src/journal/queries/snapshot.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import type { PageRequest } from '../../../src/model/source.ts';
import type { ComponentLog } from '../../../src/telemetry/log.ts';
import { statusText } from '../../../src/report/status-text.ts';
import { Budgets } from '../../../src/source/limits.ts';
import { ModelSource } from '../../support/model-source.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { Lines } from '../../support/collect/world.ts';
import { load, valid } from '../../support/config/loading.ts';
import { opened } from '../../support/journal/opening.ts';
import { sized } from '../../support/long-run.ts';

class RoomLines extends Lines implements ComponentLog {
  child(): ComponentLog {
    return this;
  }
}

const id = 'new';
const nothing = (): void => undefined;

const no: (request: PageRequest) => boolean = () => false;

/** A journal, a service, and a source that reads the service. The state lacks the source. */
async function world() {
  const { journal, clock } = await opened();
  const service = new ModelSource(clock);
  const log = new RoomLines();
  const { config } = await load(valid());
  const model = { isDated: true, fails: new WaybillError('source_busy', '504 timeout'), isFailing: no };
  service.before = (request) => {
    if (model.isFailing(request)) throw model.fails;
  };
  const [settings] = config.sources;
  if (!settings) throw new Error('there is no source');
  /** Runs it like a separate process until it is stopped. */
  const run = (more: Partial<SourceConfig> = {}) => {
    const abort = new AbortController();
    const source: SourceConfig = { ...settings, id, start: { kind: 'instant', at: base }, ...more };
    const configured = { ...config, sources: [source] };
    const views = new LiveStatus(configured);
    const options = {
      ...{ config: configured, version: '0.1.0', expectState: false, lockWait: 0, clock, random: () => 0.5, log },
      openSource: () => ({
        page: async (request: PageRequest, signal: AbortSignal) => {
          const page = await service.page(request, signal);
          return model.isDated ? page : { ...page, date: undefined };
        },
        renew: nothing,
        authenticate: () => Promise.resolve(),
        routes: () => [],
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
    };
    const running = runSource(
      { settings: source, journal, options, meters: uncounted, budgets: new Budgets(clock), liveStatus: views },
      abort.signal,
    );
    running.catch(nothing);
    const end = async (): Promise<void> => {
      abort.abort(new Error('enough'));
      await expect(running).rejects.toThrow('enough');
    };
    onTestFinished(() => abort.abort(new Error('the test is over')));
    // The test journal has another source, which is not run.
    const snapshot = (): Snapshot => {
      const all = snapshotOf(journal.db, '0.1.0', clock.now() * 1000, views.live(journal));
      return { ...all, sources: all.sources.filter((each) => each.id === id) };
    };
    const status = (): string => statusText(snapshot(), { color: false, tz: 'UTC', width: 240 });
    return { end, snapshot, status };
  };
  const sleep = (micros: number): Promise<void> => clock.sleep(micros / 1000, new AbortController().signal);
  const lag = (): number => clock.now() * 1000 - journal.progress(id).frontier;
  const begins = (): number | undefined => sourcesOf(journal.db).find((known) => known.id === id)?.startsAt;
  return { journal, clock, service, log, model, run, sleep, lag, begins };
}

const isUntimed = ({ query }: PageRequest): boolean => query.startTime === undefined && query.endTime === undefined;

test('a failing weekly calibration delays neither live poll nor frontier, also after a restart, and status reports it', async () => {
  const it = await world();
  // Enough records to show the first page: then only calibration sends requests without a page number.
  for (let id = 2; id < 5; id += 1) it.service.add(id, base + id, 0);
  const first = it.run();
  await it.sleep(40 * minute);
  expect(it.lag()).toBeLessThan(32 * minute);
  await first.end();
  const { calibrated } = JSON.parse(it.journal.progress(id).profile ?? '{}') as { calibrated: number };
  await it.sleep(8 * day);
  it.model.isFailing = ({ page }) => page === undefined;
  it.service.add(1, base + 8 * day);
  const second = it.run();
  await it.sleep(40 * minute);
  expect(it.journal.progress(id)).toMatchObject({ collected: 4 });
  expect(it.lag()).toBeLessThan(32 * minute);
  expect(second.snapshot().sources[0]).toMatchObject({ uncalibrated: '504 timeout', trouble: undefined });
  expect(second.status()).toContain(`The calibration of ${id} fails: 504 timeout.`);
  it.model.isFailing = () => false;
  await it.sleep(hour);
  expect(second.snapshot().sources[0]?.uncalibrated).toBeUndefined();
  await second.end();
  expect(JSON.parse(it.journal.progress(id).profile ?? '{}')).not.toMatchObject({ calibrated });
});

test('with a total that is the number of items on the page, windows stay wide and are gaps, and every record is collected in real time', async () => {
  const it = await world();
  it.service.switches.total = 'items';
  for (let i = 0; i < 3_600; i += 1) it.service.add(i, base + i * second, i < 10 ? 0 : base + i * second);
  const running = it.run();
  await it.sleep(65 * minute);
  expect(it.journal.progress(id)).toMatchObject({ collected: 3_600, frontier: base });
  const rows = it.journal.db.prepare('SELECT to_us - from_us AS width, reason FROM windows');
  const windows = rows.all() as { width: number; reason: string }[];
  expect(windows.length).toBeGreaterThan(1);
  expect(windows.every(({ width, reason }) => width >= 15 * minute && reason === 'total')).toBe(true);
  expect(running.snapshot().sources[0]).toMatchObject({ trouble: undefined });
  await running.end();
});

test('a service that rejects unbounded queries is calibrated and verified with bounded ones, also when its total may be capped', async () => {
  const it = await world();
  it.model.fails = new WaybillError('page_refused', '400 startTime is required');
  it.model.isFailing = isUntimed;
  for (let i = 0; i < 150; i += 1) it.service.add(i, base + i * second);
  const first = it.run();
  await it.sleep(40 * minute);
  expect(it.journal.progress(id)).toMatchObject({ collected: 150 });
  expect(it.lag()).toBeLessThan(32 * minute);
  expect(first.snapshot().sources[0]).toMatchObject({ windows: { gap: 0, inDoubt: 0 }, trouble: undefined });
  await first.end();
  expect(JSON.parse(it.journal.progress(id).profile ?? '{}')).toMatchObject({
    calibration: { total: 150 },
    unboundedQuery: { startTime: '1970-01-01T00:00:00.00' },
  });
});

test('start: earliest waits while the service answers only for the last day, reports it, and starts at the earliest record', async () => {
  const it = await world();
  it.service.add(1, base - 9 * day);
  it.service.add(2, base - hour);
  const epoch = '1970-01-01T00:00:00.00';
  it.model.isFailing = (request) => isUntimed(request) || request.query.startTime === epoch;
  const running = it.run({ start: { kind: 'earliest' } });
  await it.sleep(5 * minute);
  expect(it.journal.hasSource(id)).toBe(false);
  expect(running.status()).toMatch(/^INCOMPLETE: nothing is proven, 1 source without a ledger/);
  expect(running.status()).toMatch(/^Source new waits: cannot start the ledger at the earliest record: .*sources\[\]\.start/m);
  it.model.isFailing = isUntimed;
  await it.sleep(5 * minute);
  const start = new Date((base - 9 * day - 2 * second) / 1000).toISOString();
  expect(it.log.lines.filter(({ event }) => event === 'source.ledger_started')).toMatchObject([{ fields: { start } }]);
  expect(running.snapshot().sources).toMatchObject([{ trouble: undefined, collected: 2 }]);
  await running.end();
});

test.each([-56 * 365 * day, 2 * hour])(
  'start: now does not trust one Date that is %d µs off: it starts at the time of the first response',
  async (skew) => {
    const it = await world();
    it.service.skew = skew;
    const running = it.run({ start: { kind: 'now' } });
    await it.sleep(45 * second);
    expect(it.journal.hasSource(id)).toBe(false);
    expect(running.status()).toMatch(/^INCOMPLETE: nothing is proven, 1 source without a ledger/);
    expect(running.status()).toMatch(
      /^Source new waits: cannot start the ledger yet: the time of the service is .*, of this machine 2026-11-20T02:00/m,
    );
    it.service.skew = 0;
    await it.sleep(9 * minute);
    expect(it.begins()).toBe(base - second);
    expect(running.snapshot().sources).toMatchObject([{ trouble: undefined }]);
    await running.end();
  },
);

test('start: now trusts a service that keeps its time for ten minutes', async () => {
  const it = await world();
  it.service.skew = -2 * hour;
  const running = it.run({ start: { kind: 'now' } });
  await it.sleep(11 * minute);
  expect(it.begins()).toBe(base - 2 * hour - second);
  expect(running.status()).toContain('The clock of the service of new is 2 h behind the clock of this machine.');
  await running.end();
});

test('without Date headers, a restart or kill while no records arrive raises no alarm; ages use the local clock', async () => {
  const it = await world();
  it.model.isDated = false;
  it.service.add(1, base + second);
  const first = it.run();
  await it.sleep(30 * minute);
  const early = it.journal.progress(id).profile;
  await it.sleep(40 * minute);
  await first.end();
  expect(it.lag()).toBeLessThan(32 * minute);
  // A killed process leaves a profile that is older than its last windows.
  await it.journal.setProfile(id, early ?? '{}');
  const { frontier } = it.journal.progress(id);
  await it.sleep(100 * minute);
  const again = it.run();
  await it.sleep(40 * minute);
  expect(it.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  expect(again.snapshot().sources).toMatchObject([{ windows: { gap: 0, inDoubt: 0 }, recountsOverdue: 0, serverNow: undefined }]);
  expect(it.journal.progress(id).frontier).toBeGreaterThan(frontier);
  expect(again.status()).toContain('Responses of new carry no Date');
  it.service.add(2, base + 210 * minute);
  await it.sleep(10 * minute);
  expect(it.lag()).toBeLessThan(32 * minute);
  await again.end();
});

test.each([-7, 9].slice(0, sized(1, 2)))(
  'a local clock step of %i h: no recount is overdue, the source is not suspended, the frontier advances',
  async (hours) => {
    const it = await world();
    const one = it.run();
    await it.sleep(2 * hour);
    const before = it.journal.progress(id).frontier;
    it.clock.wall += (hours * hour) / 1000;
    it.service.skew -= hours * hour;
    await it.sleep(hour);
    expect(one.snapshot().sources).toMatchObject([
      { recountsOverdue: 0, state: 'active', trouble: undefined, windows: { gap: 0, inDoubt: 0 } },
    ]);
    expect(it.journal.progress(id).frontier).toBe(before + hour);
    await one.end();
  },
);

test('a source with another path is suspended and asks nothing, until it is moved; then every window is counted once more', async () => {
  const it = await world();
  it.service.add(1, base + second);
  const first = it.run();
  await it.sleep(40 * minute);
  await first.end();
  const { collected, frontier } = it.journal.progress(id);
  expect(collected).toBe(1);
  const before = it.service.requests.length;
  const rows: Suspension = { reason: 'rows', message: 'less is shown', since: base, windows: [] };
  await it.journal.setSuspension(id, rows, base + hour);

  const baseUrl = 'https://service.example/v3/api';
  const held = it.run({ baseUrl });
  await it.sleep(20 * minute);
  expect(it.service.requests.length).toBe(before);
  const [source] = held.snapshot().sources;
  expect(source).toMatchObject({ state: 'suspended', held: { reason: 'moved' }, collected, frontier });
  expect(source?.trouble).toMatch(
    /^suspended \(moved\): it polled ".*" before and would now poll "https:\/\/service\.example\/v3\/api of tenant /,
  );
  expect(held.status()).toContain('waybill sources move --source new --reason TEXT');
  await held.end();

  // The former setting again: the earlier suspension is back.
  const restored = it.run();
  await it.sleep(second);
  expect(it.log.lines.filter(({ event }) => event === 'source.still_suspended').at(-1)).toMatchObject({ fields: { reason: 'rows' } });
  await it.sleep(20 * minute);
  await restored.end();

  const again = it.run({ baseUrl });
  await it.sleep(second);
  const stored = it.journal.progress(id).suspension?.message ?? '';
  const destination = /would now poll "([^"]*)"/.exec(stored)?.[1] ?? '';
  const known = it.journal.progress(id).frontier;
  const { windows } = it.journal.history.move(id, destination, { actor: 'j.doe', reason: 'ticket 4711' });
  expect(windows).toBeGreaterThan(0);
  expect(it.journal.progress(id)).toMatchObject({ collected, frontier: known });
  it.service.add(2, base + 2 * hour);
  await it.sleep(3 * hour);
  expect(it.journal.progress(id)).toMatchObject({ state: 'active', suspension: undefined, collected: 2 });
  expect(again.snapshot().sources[0]).toMatchObject({ windows: { inDoubt: 0 }, trouble: undefined });
  expect(it.log.lines.filter(({ event }) => event === 'source.suspended' || event === 'source.suspension_ended')).toMatchObject(
    [
      ['suspended', 'moved'],
      ['suspension_ended', 'moved'],
      ['suspension_ended', 'rows'],
      ['suspended', 'moved'],
      ['suspension_ended', 'moved'],
    ].map(([name, reason]) => ({ event: `source.${name}`, fields: { reason } })),
  );
  await again.end();
});

test('a source whose host changes is logged as moved, goes on at once, and every window is counted there once more', async () => {
  const it = await world();
  it.service.add(1, base + second);
  const first = it.run({ recountAfter: [] });
  await it.sleep(3 * hour);
  await first.end();
  const before = it.service.requests.length;
  // The database of a shard has not yet committed that the source moved.
  const { promise: committed, resolve } = Promise.withResolvers<undefined>();
  it.journal.settled = () => committed;
  const second_ = it.run({ recountAfter: [], baseUrl: 'https://elsewhere.example/v2/api' });
  await it.sleep(minute);
  expect(it.service.requests).toHaveLength(before);
  expect(it.log.lines.filter(({ event }) => event === 'source.moved')).toEqual([]);
  resolve(undefined);
  await it.sleep(second);
  const [line] = it.log.lines.filter(({ event }) => event === 'source.moved');
  const windows = Number((line?.fields as { windows?: number }).windows);
  expect(line).toMatchObject({ fields: { present: expect.stringContaining('https://elsewhere.example/v2/api') as string } });
  expect(windows).toBeGreaterThan(2);
  await it.sleep(20 * minute);
  expect(second_.snapshot().sources[0]).toMatchObject({ state: 'active', windows: { inDoubt: 0 } });
  expect(it.log.lines.filter(({ event }) => event === 'window.recounted')).toHaveLength(windows);
  expect(it.service.requests.length).toBeGreaterThan(before + windows);
  await second_.end();
});
