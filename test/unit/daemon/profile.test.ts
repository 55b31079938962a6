/** The stored profile of a service, and when its source is calibrated. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { SourcePaging } from '../../../src/collect/page-size.ts';
import { Calibrator } from '../../../src/daemon/source/calibrator.ts';
import { ProfileStore } from '../../../src/daemon/source/profile.ts';
import type { Calibration } from '../../../src/collect/calibrate.ts';
import { ServerClock } from '../../../src/source/server-clock.ts';
import { base, day, hour, minute } from '../../support/records.ts';
import type { WindowQuery } from '../../../src/model/source.ts';
import { Lines } from '../../support/collect/world.ts';
import { opened, source } from '../../support/journal/opening.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { Delays } from '../../../src/telemetry/delays.ts';

const found: Calibration = { firstPage: 1, pageSize: 1000, total: 40, dated: true };

test('calibrates at the first start, then weekly; a change is logged and counted, a larger total is not', async () => {
  const { journal } = await opened();
  const store = new ProfileStore(source, journal);
  const paging = new SourcePaging(systemClock);
  const caps = { largest: 3 };
  const log = new Lines();
  let at = base;
  let asked = 0;
  let answer = found;
  let changes = 0;
  const asking = (): Promise<Calibration> => {
    asked += 1;
    return Promise.resolve(answer);
  };
  const calibrator = new Calibrator({
    ...{ id: source, store, paging, caps, log },
    now: () => at,
    calibrate: () => asking(),
    calibrateOnce: () => asking(),
    sizeOf: ({ pageSize }) => Math.min(pageSize, 500),
    meters: { calibrationChanged: () => void (changes += 1) },
  });
  const { signal } = new AbortController();
  expect(await calibrator.whenDue(signal)).toBe(true);
  expect([paging.first, paging.size, caps.largest]).toEqual([1, 500, 40]);
  at = base + 7 * day;
  expect(await calibrator.whenDue(signal)).toBe(false);
  at += 1;
  answer = { ...found, total: 90 };
  expect(await calibrator.whenDue(signal)).toBe(true);
  expect(await calibrator.whenDue(signal)).toBe(false);
  expect({ asked, changes, largest: caps.largest }).toEqual({ asked: 2, changes: 0, largest: 90 });
  at += 8 * day;
  answer = { ...found, pageSize: 200, total: undefined };
  expect(await calibrator.whenDue(signal)).toBe(true);
  expect({ changes, size: paging.size, largest: caps.largest }).toEqual({ changes: 1, size: 200, largest: 90 });
  expect(log.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ fields: { source, fields: ['pageSize', 'total'] } }]);
  // After a restart no request is sent.
  const again = new ProfileStore(source, journal);
  expect(again.profile).toEqual({ calibration: { firstPage: 1, pageSize: 200, dated: true }, calibrated: at });
});

test.each([
  ['with too few records', { ...found, preliminary: true }],
  ['without a usable total', { ...found, total: undefined }],
] as const)('a calibration of a service %s is repeated after an hour', async (_, short) => {
  const { journal } = await opened();
  const store = new ProfileStore(source, journal);
  let at = base;
  let asked = 0;
  const calibrator = new Calibrator({
    ...{ id: source, store, log: new Lines(), paging: new SourcePaging(systemClock), caps: { largest: 0 } },
    now: () => at,
    calibrate: () => Promise.resolve(short),
    calibrateOnce: () => Promise.resolve((asked += 1) < 2 ? short : found),
    sizeOf: ({ pageSize }) => pageSize,
    meters: { calibrationChanged: () => undefined },
  });
  const { signal } = new AbortController();
  const due = async (hours: number): Promise<boolean> => {
    at = base + hours * hour + 1;
    return calibrator.whenDue(signal);
  };
  expect([await due(0), await due(0.9), await due(1.1), await due(2.2), await due(100)]).toEqual([true, false, true, true, false]);
});

test('after a failed weekly calibration the earlier one stays in use, the failure is logged, and a retry follows', async () => {
  const { journal } = await opened();
  const store = new ProfileStore(source, journal);
  await store.setCalibration(found, base);
  const log = new Lines();
  let at = base + 8 * day;
  let asked = 0;
  let answer: Calibration | Error = new WaybillError('source_busy', '504 timeout');
  const calibrator = new Calibrator({
    ...{ id: source, store, log },
    paging: new SourcePaging(systemClock),
    caps: { largest: 40 },
    now: () => at,
    calibrate: () => Promise.reject(new Error('nobody may wait for this one')),
    calibrateOnce: () => {
      asked += 1;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    sizeOf: ({ pageSize }) => pageSize,
    meters: { calibrationChanged: () => undefined },
  });
  const { signal } = new AbortController();
  for (const minutes of [1, 5, 15, 60, 60]) {
    expect(await calibrator.whenDue(signal)).toBe(true);
    expect(calibrator.trouble).toBe('504 timeout');
    expect(store.profile).toEqual({ calibration: found, calibrated: base });
    at += minutes * minute - 1;
    expect(await calibrator.whenDue(signal)).toBe(false);
    at += 1;
  }
  expect(asked).toBe(5);
  expect(log.lines).toHaveLength(5);
  expect(log.lines[0]).toMatchObject({ level: 'warn', fields: { source, code: 'source_busy', next: '2026-11-28T02:01:00.000Z' } });
  answer = found;
  expect(await calibrator.whenDue(signal)).toBe(true);
  expect({ trouble: calibrator.trouble, at: store.profile.calibrated }).toEqual({ trouble: undefined, at });
  // A permanent error ends the process.
  at += 8 * day;
  answer = new WaybillError('state_corrupt', 'damaged');
  await expect(calibrator.whenDue(signal)).rejects.toThrow('damaged');
});

test('a new source is calibrated without storing the result; it is stored after registration', async () => {
  const { journal } = await opened();
  const unknown = new ProfileStore('unknown', journal);
  const paging = new SourcePaging(systemClock);
  const calibrator = new Calibrator({
    ...{ id: 'unknown', store: unknown, paging, caps: { largest: 0 }, log: new Lines() },
    now: () => base,
    calibrate: () => Promise.resolve(found),
    calibrateOnce: () => Promise.resolve(found),
    sizeOf: ({ pageSize }) => pageSize,
    meters: { calibrationChanged: () => undefined },
  });
  const { signal } = new AbortController();
  const first = await calibrator.calibrate(signal);
  expect({ first, size: paging.size, kept: unknown.profile }).toEqual({ first: found, size: 1000, kept: {} });
  journal.registerSource('unknown', 'tenant', base);
  await unknown.setCalibration(first, base);
  expect(await calibrator.whenDue(signal)).toBe(false);
  expect(new ProfileStore('unknown', journal).profile).toEqual({ calibration: found, calibrated: base });
});

test('clock, largest total and visibility are stored once the clock is established; a suspension stays stored', async () => {
  const { journal, clock } = await opened();
  const store = new ProfileStore(source, journal);
  await store.setCalibration(found, base);
  const serverClock = new ServerClock({ source, closeDelay: 900_000, clock, log: new Lines() });
  const caps = { largest: 70 };
  let visibility = {
    fields: { recent: 'vv', referenceRecords: { userNetwork: { uid: 'u', time: base } } },
    lastFullVisibility: base + hour,
  };
  const delays = new Delays(undefined, 30_000);
  let unboundedQuery: WindowQuery = {};
  const abort = new AbortController();
  const measure = () =>
    serverClock.established()
      ? { clock: serverClock.profile(), largest: caps.largest, unboundedQuery, visibility, delays: delays.measure() }
      : undefined;
  const running = store.run(measure, clock, abort.signal);
  const kept = (): unknown => JSON.parse(journal.progress(source).profile ?? '{}');
  await clock.sleep(5_000, abort.signal);
  expect(kept()).toEqual({ calibration: found, calibrated: base });
  await journal.setSuspension(source, { reason: 'clock', message: 'ahead', since: base }, base);
  for (let i = 0; i < 25; i += 1) {
    serverClock.observe({ date: clock.now() + 2_000, age: 0, received: clock.now() * 1000, receivedMonotonic: clock.monotonic() });
    await clock.sleep(20_000, abort.signal);
  }
  expect(kept()).toMatchObject({ calibration: { total: 70 }, calibrated: base, clock: { dated: true }, visibility });
  expect(journal.progress(source)).toMatchObject({ state: 'suspended', suspension: { reason: 'clock' } });
  expect(new ProfileStore(source, journal).profile).toEqual(kept());
  expect(kept()).not.toHaveProperty('unboundedQuery');
  // A change that must not wait for the next minute.
  visibility = { ...visibility, lastFullVisibility: base + 2 * hour };
  await store.save(measure());
  expect(kept()).toMatchObject({ visibility });
  unboundedQuery = { startTime: '1970-01-01T00:00:00.00' };
  await store.save(measure());
  expect(new ProfileStore(source, journal).profile.unboundedQuery).toEqual(unboundedQuery);
  const { commits } = journal.usage();
  await store.save(measure());
  expect(journal.usage().commits).toBe(commits);
  abort.abort(new Error('enough'));
  await expect(running).rejects.toThrow('enough');
});

test('a full journal does not stop the process: the profile is written later', async () => {
  const { journal } = await opened();
  const store = new ProfileStore(source, journal);
  const write = journal.setProfile.bind(journal);
  let isFull = true;
  journal.setProfile = async (...args) => {
    if (isFull) throw new WaybillError('journal_full', 'the disk is full');
    await write(...args);
  };
  await store.setCalibration(found, base);
  expect(store.profile).toMatchObject({ calibrated: base });
  expect(new ProfileStore(source, journal).profile).toEqual({});
  isFull = false;
  await store.setCalibration(found, base);
  expect(new ProfileStore(source, journal).profile).toEqual({ calibration: found, calibrated: base });
  journal.setProfile = () => Promise.reject(new WaybillError('state_corrupt', 'damaged'));
  await expect(store.setCalibration(found, base + 1)).rejects.toThrow('damaged');
});
