/**
 * Priorities in the loop of a source: live poll when due, closing, recounts, retries, history; but
 * after ten closed windows, one due task of lower priority runs. Observed at the journal and the
 * service.
 */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { gap, proven, source as sourceId } from '../../support/journal/opening.ts';
import { begun, isLivePoll, isOfOneRecord } from '../../support/collect/running.ts';
import type { Running } from '../../support/collect/running.ts';
import { closeDelay, span } from '../../support/collect/world.ts';
import { sized } from '../../support/long-run.ts';

const act = { actor: 'j.doe', reason: undefined };

type Work = 'close' | 'recount' | 'retry' | 'backfill';

/**
 * The work on windows, in order. The first second of the ledger is due for a recount, the next one
 * for a retry.
 */
function worked(it: Running): Work[] {
  const done: Work[] = [];
  const close = it.journal.close.bind(it.journal);
  it.journal.close = (source, window, ...others) => {
    done.push(window.from < base ? 'backfill' : window.from === base + second ? 'retry' : 'close');
    return close(source, window, ...others);
  };
  const confirm = it.journal.confirm.bind(it.journal);
  it.journal.confirm = (...args) => {
    done.push('recount');
    return confirm(...args);
  };
  return done;
}

/** Days without a record are read together. */
function recordEachDay(it: Running, first: number, end: number): void {
  for (let number = first; number < end; number += 1) it.source.add(1_000_000 + number, base + number * day + 5 * hour, 0);
}

test('after ten closed windows one other task runs: first the recount, then the gap, then history; history continues alone', async () => {
  const it = await begun({ after: 60 * day });
  recordEachDay(it, -20, 60);
  await it.journal.close(sourceId, span(0, 1), proven(0, base + day, base + day), day);
  await it.journal.close(sourceId, span(1, 2), gap({ total: 0, seen: 0 }, base + day), day);
  it.journal.history.add(sourceId, { from: base - 20 * day, to: base }, {}, act);
  const done = worked(it);
  await it.runUntil(it.source.now() + 10 * minute);
  const ten = Array.from({ length: 10 }, () => 'close' as const);
  const last = done.lastIndexOf('close');
  // The third turn counts a random window with records again.
  expect(done.slice(0, 53)).toEqual([...ten, 'recount', ...ten, 'retry', ...ten, ...ten, 'backfill', ...ten]);
  // While windows are to be closed, history has one turn after ten of them, later all turns.
  const history = done.slice(43, last).join(' ').split('backfill');
  expect(history.slice(0, -1).every((part) => part.trim().split(' ').length === 10)).toBe(true);
  expect(new Set(done.slice(last + 1))).toEqual(new Set(['backfill']));
  expect(it.journal.backfills(sourceId)).toEqual([]);
});

test('no window of history is read while a newer window, a recount, a retry or a poll is due', { timeout: 300_000 }, async () => {
  const it = await begun({ after: 3 * hour });
  for (let i = 0; i < 200; i += 1) it.source.add(i, base + i * minute, 0);
  recordEachDay(it, -300, -1);
  it.journal.history.add(sourceId, { from: base - 300 * day, to: base }, { rate: 0.02 }, act);
  const began: number[] = [];
  const faults: string[] = [];
  let query: string | undefined;
  let polledAt = 0;
  const due = it.beside().prepare<[number], { n: number }>('SELECT count(*) AS n FROM windows WHERE next_us <= ?');
  it.source.before = (request) => {
    const now = it.source.now();
    if (isLivePoll(request)) polledAt = it.clock.monotonic();
    const { endTime } = request.query;
    if (endTime === undefined || Date.parse(`${endTime}Z`) * 1000 > base + 2 * second || endTime === query) return;
    // Each recount of history is one request; reading a window starts with a page.
    if (request.pageSize === 1 || isOfOneRecord(request)) return;
    query = endTime;
    began.push(now);
    const { live } = it.journal.progress(sourceId);
    // Tolerates work that became due during the last response, and the second by which the loop's bound of the
    // service's clock lags.
    const before = now - it.source.delay * 1_000 - 2 * second;
    if (live.closedUntil + 2 * closeDelay <= before) faults.push(`close at ${now}`);
    if ((due.get(before)?.n ?? 0) > 0) faults.push(`due at ${now}`);
    if (it.clock.monotonic() - polledAt > 30_000 + it.source.delay) faults.push(`tip at ${now}`);
  };
  it.source.delay = 500;
  await it.runUntil(it.source.now() + sized(4, 8) * hour);
  expect(began.length).toBeGreaterThan(sized(25, 50));
  expect(faults).toEqual([]);
  // There was work with priority: windows closed in the meantime, and recounted after an hour.
  const counted = it
    .beside()
    .prepare<[number], { n: number }>('SELECT count(*) AS n FROM windows WHERE from_us >= ? AND recounts > 0')
    .get(base);
  expect(counted?.n).toBeGreaterThan(10);
});

test('polls longer than pollInterval leave the same time to the window being read', async () => {
  const it = await begun({ after: 20 * minute });
  for (let i = 0; i < 300; i += 1) it.source.add(i, base + i * second, 0);
  // Records that every poll reads again: 16 pages of two seconds each, with polls half a minute
  // apart.
  for (let i = 300; i < 455; i += 1) it.source.add(i, base + 18 * minute + (i - 300) * 100_000, 0);
  it.source.delay = 2_000;
  const asked: string[] = [];
  it.source.before = (request) => {
    if (request.query.endTime !== undefined && !isOfOneRecord(request)) asked.push('window');
    else if (request.page === 1 && isLivePoll(request)) asked.push('poll');
  };
  await it.runUntil(base + 35 * minute);
  // 31 pages of the first window, and their count.
  const questions = asked.flatMap((what, i) => (what === 'window' ? [i] : []));
  const polls = asked.slice(questions[0], questions[31]).filter((what) => what === 'poll');
  expect(questions.length).toBeGreaterThanOrEqual(32);
  expect(polls.length).toBeGreaterThanOrEqual(1);
  expect(polls.length).toBeLessThanOrEqual(2);
  expect(await it.journal.window(sourceId, base)).toMatchObject({ state: 'proven', total: 300 });
});

test('a poll during an outage delays the next poll within a window by at most a minute', async () => {
  const it = await begun({ after: 20 * minute });
  for (let i = 0; i < 800; i += 1) it.source.add(i, base + i * second, 0);
  it.source.delay = 2_000;
  const asked: string[] = [];
  it.source.before = (request) => {
    const now = it.source.now();
    const isCount = request.query.endTime === undefined && request.pageSize === 1;
    if ((isLivePoll(request) || isCount) && now > base + 29 * minute && now < base + 45 * minute)
      throw new WaybillError('source_unreachable', 'connect ECONNREFUSED');
    if (request.query.endTime !== undefined && !isOfOneRecord(request)) asked.push('window');
    else if (isLivePoll(request)) asked.push('poll');
  };
  await it.runUntil(base + 50 * minute);
  // 81 pages of two seconds each: a poll after at most the 30 pages of the first minute, and then one every
  // half a minute.
  const window = asked.slice(asked.indexOf('window'));
  expect(window.indexOf('poll')).toBeLessThanOrEqual(30);
  expect([4, 5]).toContain(window.slice(0, 82).filter((what) => what === 'poll').length);
});
