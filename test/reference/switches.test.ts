import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answerTo, comparable, Service, type TruthRecord } from '../support/reference/service.ts';

let service: Service;
let truth: TruthRecord[];
let defaults: Record<string, unknown>;
beforeAll(async () => {
  service = await Service.start('--records', '2500', '--span', '1h', '--seed', 'switches');
  truth = await service.truth();
  defaults = (await service.control('GET', '/switches')).json;
  // These two are actions, not settings.
  delete defaults['revokeTokens'];
  delete defaults['rotateKeys'];
});
afterEach(() => service.set(defaults));
afterAll(() => service.stop());

const ids = (records: readonly TruthRecord[]): number[] => records.map((record) => record.logId);
const ask = (query: Record<string, string>): Promise<{ pagination: { totalRecords?: number | string }; data: TruthRecord[] }> =>
  service.page(new URLSearchParams({ pageSize: '1000', ...query }).toString());
/** A record in the middle whose time has a nonzero fraction, so that truncation changes it. */
const middle = (): TruthRecord => {
  const record = truth.slice(1000).find((each) => /\.\d{4}[1-9]/.test(each.logTimestamp));
  if (!record) throw new Error('no record with enough digits');
  return record;
};

describe('times', () => {
  test('each bound is inclusive or exclusive, independently', async () => {
    const { logId, logTimestamp: time } = middle();
    const has = async (query: Record<string, string>): Promise<boolean> => ids((await ask(query)).data).includes(logId);
    const later = { startTime: time };
    const earlier = { endTime: time, sort: '-logTimestamp' };
    expect([await has(later), await has(earlier)]).toEqual([true, true]);
    await service.set({ startBound: 'exclusive' });
    expect([await has(later), await has(earlier)]).toEqual([false, true]);
    await service.set({ startBound: 'inclusive', endBound: 'exclusive' });
    expect([await has(later), await has(earlier)]).toEqual([true, false]);
  });

  test.each([
    ['10ms', 22],
    ['1s', 19],
  ])('times are truncated to %s before comparison, under every pair of bounds', async (timePrecision, length) => {
    const cut = (time: string): string => comparable(time).slice(0, length);
    const window = { startTime: middle().logTimestamp, endTime: truth[truth.indexOf(middle()) + 40]?.logTimestamp ?? '' };
    for (const startBound of ['inclusive', 'exclusive']) {
      for (const endBound of ['inclusive', 'exclusive']) {
        await service.set({ timePrecision, startBound, endBound });
        const expected = truth.filter(({ logTimestamp }) => {
          const [time, start, end] = [cut(logTimestamp), cut(window.startTime), cut(window.endTime)];
          return (startBound === 'inclusive' ? time >= start : time > start) && (endBound === 'inclusive' ? time <= end : time < end);
        });
        expect(ids((await ask(window)).data), `${startBound} ${endBound}`).toEqual(ids(expected));
      }
    }
  });
});

describe('paging', () => {
  test('a pageSize above the maximum is clamped or refused, and the maximum changes while it runs', async () => {
    expect((await service.page('pageSize=5000')).pagination).toMatchObject({ pageSize: 1000, itemsInPage: 1000 });
    await service.set({ pageSizeMax: 70 });
    expect((await service.page('pageSize=5000&page=2')).pagination).toMatchObject({ pageSize: 70, itemsInPage: 70, page: 2 });
    await service.set({ pageSizeAbove: 'refused' });
    const refused = await service.api('/logs/full-payload?pageSize=71');
    expect([refused.status, refused.text.includes('"pageSize"')]).toEqual([400, true]);
    expect((await service.page('pageSize=70')).data).toHaveLength(70);
  });

  test('pageSizeMaxThen changes the maximum after a number of answers', async () => {
    const { logAnswers } = (await service.control('GET', '/stats')).json;
    await service.set({ pageSizeMaxThen: `50@${Number(logAnswers) + 2}` });
    const sizes = [];
    for (let count = 0; count < 3; count += 1) sizes.push((await service.page('pageSize=1000')).data.length);
    expect(sizes).toEqual([1000, 1000, 50]);
  });

  test('a page past the end is empty, the last one, or 404', async () => {
    const past = 'pageSize=1000&page=9';
    expect(await service.page(past)).toEqual({ pagination: { totalRecords: 2500, pageSize: 1000, itemsInPage: 0, page: 9 }, data: [] });
    await service.set({ pagePast: 'last' });
    const last = await service.page(past);
    expect(last.pagination).toEqual({ totalRecords: 2500, pageSize: 1000, itemsInPage: 500, page: 3 });
    expect(ids(last.data)).toEqual(ids(truth.slice(2000)));
    await service.set({ pagePast: '404' });
    expect((await service.api(`/logs/full-payload?${past}`)).status).toBe(404);
    expect((await service.page('pageSize=1000&page=3')).data).toHaveLength(500);
    expect((await service.page('payloadName=none')).data).toEqual([]);
  });

  test('the first page may have the number 0', async () => {
    await service.set({ firstPage: 0 });
    expect((await service.page()).pagination.page).toBe(0);
    expect(ids((await service.page('page=1&pageSize=10')).data)).toEqual(ids(truth.slice(10, 20)));
  });

  test('sort may be ignored: records come in the order in which they become visible', async () => {
    const early = { ...truth[0], logId: 5, logTimestamp: '2001-01-01T00:00:00.5' };
    await service.control('POST', '/records', JSON.stringify(early));
    expect((await ask({ sort: '-logTimestamp', page: '3' })).data.at(-1)?.logId).toBe(5);
    await service.set({ sort: 'ignored' });
    const ignored = [
      ...(await ask({ sort: '-logTimestamp' })).data,
      ...(await ask({ page: '2' })).data,
      ...(await ask({ page: '3' })).data,
    ];
    expect(ids(ignored)).toEqual([...ids(truth).sort((a, b) => a - b), 5]);
    truth = await service.truth();
  });

  test('a bare + in sort may be refused by name', async () => {
    await service.set({ barePlus: 'refused' });
    for (const sort of ['+logTimestamp', '%20logTimestamp']) {
      const refused = await service.api(`/logs/payload?pageSize=1&sort=${sort}`);
      expect([refused.status, refused.text.includes('"sort"')]).toEqual([400, true]);
    }
    for (const sort of ['%2BlogTimestamp', '-logTimestamp']) {
      expect((await service.api(`/logs/payload?sort=${sort}`)).status).toBe(200);
    }
  });

  test('ties may come in another order with each request, and all other records in their place', async () => {
    await service.set({ sort: 'unstable-ties' });
    const first = (await ask({ sort: '+result' })).data;
    const second = (await ask({ sort: '+result' })).data;
    expect(ids(first)).not.toEqual(ids(second));
    expect(first.map((record) => record['result'])).toEqual(
      answerTo(truth, { sort: '+result' })
        .slice(0, 1000)
        .map((r) => r['result']),
    );
    const byTime = (await ask({ sort: '+logTimestamp' })).data.map((record) => comparable(record.logTimestamp));
    expect(byTime).toEqual(truth.slice(0, 1000).map((record) => comparable(record.logTimestamp)));
    await service.set({ sort: 'honoured' });
    expect(ids((await ask({ sort: '+result' })).data)).toEqual(ids((await ask({ sort: '+result' })).data));
  });

  test('totalRecords is right, missing, capped, text, or lagging behind the data', async () => {
    const total = async (): Promise<unknown> => (await service.page('pageSize=1')).pagination.totalRecords;
    expect(await total()).toBe(truth.length);
    await service.set({ total: 'missing' });
    expect(Object.keys((await service.page('pageSize=1')).pagination)).toEqual(['pageSize', 'itemsInPage', 'page']);
    await service.set({ total: 'capped', totalCap: 700 });
    expect(await total()).toBe(700);
    expect((await service.page('page=3&pageSize=1000')).data.length).toBeGreaterThan(0);
    await service.set({ total: 'text' });
    expect(await total()).toBe(String(truth.length));
    await service.set({ total: 'lagging', totalLag: '1h' });
    // What became an hour old while the tests before this one ran.
    expect(await total()).toBeLessThan(truth.length / 20);
    await service.set({ totalLag: '30m' });
    expect(Math.abs(Number(await total()) - truth.length / 2)).toBeLessThan(100);
  });
});

describe('limits', () => {
  const burst = async (count: number, at = service): Promise<{ status: number; after: unknown }[]> => {
    const replies = [];
    for (let left = count; left > 0; left -= 1) {
      const { status, headers } = await at.api('/logs/payload?pageSize=1');
      replies.push({ status, after: headers['retry-after'] });
    }
    return replies;
  };

  test('a rate limit returns 429 with Retry-After in seconds, as a date, or without, and permits requests again after the interval', async () => {
    await using timed = await Service.start('--clock', 'manual', '--rate-limit', '3/400ms');
    const statuses = async (count: number): Promise<number[]> => (await burst(count, timed)).map((reply) => reply.status);
    expect(await statuses(5)).toEqual([200, 200, 200, 429, 429]);
    await timed.advance('399ms');
    expect(await statuses(1)).toEqual([429]);
    await timed.advance('1ms');
    expect(await statuses(1)).toEqual([200]);
    await service.set({ rateLimit: '0/90s' });
    const [inSeconds] = await burst(1);
    expect(inSeconds).toEqual({ status: 429, after: '90' });
    await service.set({ retryAfter: 'date' });
    const [asDate] = await burst(1);
    expect(String(asDate?.after)).toMatch(/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
    expect(Date.parse(String(asDate?.after))).toBeGreaterThan(Date.now());
    await service.set({ rateLimit: '0/36500d' });
    expect(Date.parse(String((await burst(1))[0]?.after))).toBeGreaterThan(Date.now() + 36_499 * 86_400_000);
    await service.set({ retryAfter: 'none' });
    expect((await burst(1))[0]).toEqual({ status: 429, after: undefined });
  });

  test('an exhausted quota returns 403 with Retry-After', async () => {
    await service.set({ quota: '2/1h' });
    const replies = await burst(3);
    expect(replies.map((reply) => reply.status)).toEqual([200, 200, 403]);
    expect(Number(replies[2]?.after)).toBe(3600);
  });
});

describe('faults', () => {
  test.each([500, 502, 503, 504])('fault%i responds with that status and problem details', async (status) => {
    await service.set({ [`fault${status}`]: 1 });
    const reply = await service.api('/logs/payload');
    expect([reply.status, reply.headers['content-type']]).toEqual([status, 'application/problem+json']);
  });

  test.each([200, 502])('faultHtml%i responds with an HTML page', async (status) => {
    await service.set({ [`faultHtml${status}`]: 1 });
    const reply = await service.api('/logs/payload');
    expect([reply.status, reply.headers['content-type'], reply.text.startsWith('<!DOCTYPE html>')]).toEqual([
      status,
      'text/html; charset=utf-8',
      true,
    ]);
  });

  test('connections are reset, bodies truncated, stalled, cut, or slow', async () => {
    await service.set({ faultReset: 1 });
    await expect(service.api('/logs/payload')).rejects.toMatchObject({ code: 'ECONNRESET' });
    await service.set({ faultReset: 0, faultTruncated: 1 });
    await expect(service.api('/logs/payload')).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
    service.patienceMs = 600;
    await service.set({ faultTruncated: 0, faultStalled: 1 });
    await expect(service.api('/logs/payload')).rejects.toMatchObject({ code: 'UND_ERR_BODY_TIMEOUT' });
    service.patienceMs = 10_000;
    await service.set({ faultStalled: 0, faultCut: 1 });
    const cut = await service.api('/logs/payload');
    expect(cut.status).toBe(200);
    expect(() => JSON.parse(cut.text) as unknown).toThrow(SyntaxError);
    await service.set({ faultCut: 0, faultSlow: 1, slowFor: '400ms' });
    const from = performance.now();
    expect(JSON.parse((await service.api('/logs/payload')).text)).toHaveProperty('data');
    expect(performance.now() - from).toBeGreaterThan(350);
  });

  test('occur at random with their share, equal for the same seed and requests', async () => {
    const shares = ['--seed', 'chance', '--fault-500', '0.3', '--fault-503', '0.2', '--fault-html-200', '0.1'];
    const run = async (): Promise<string[]> => {
      await using one = await Service.start('--records', '5', ...shares);
      const seen: string[] = [];
      for (let count = 0; count < 120; count += 1) {
        const { status, headers } = await one.api('/logs/payload');
        seen.push(`${status} ${String(headers['content-type'])}`);
      }
      const { faults } = (await one.control('GET', '/stats')).json as { faults: Record<string, number> };
      expect(faults['fault500']).toBe(seen.filter((each) => each.startsWith('500')).length);
      return seen;
    };
    const [first, second] = await Promise.all([run(), run()]);
    expect(first).toEqual(second);
    const good = first.filter((each) => each === '200 application/json; charset=utf-8').length;
    expect(good).toBeGreaterThan(25);
    expect(good).toBeLessThan(75);
    expect(new Set(first).size).toBe(4);
  });
});

describe('retention', () => {
  test('records older than it are in no page, no total and no truth; they return when it is off', async () => {
    await service.set({ retention: '30m' });
    const kept = (await service.page('pageSize=1')).pagination.totalRecords;
    expect(Math.abs(Number(kept) - 1250)).toBeLessThan(50);
    expect(Math.abs((await service.truth()).length - Number(kept))).toBeLessThan(5);
    const limit = new Date(Date.now() - 30 * 60_000 - 2000).toISOString().slice(0, 22);
    expect((await ask({ endTime: limit })).data).toEqual([]);
    await service.set({ retention: '36500d' });
    expect((await service.page('pageSize=1')).pagination.totalRecords).toBe(truth.length);
    await service.set({ retention: 'off' });
    expect((await service.page('pageSize=1')).pagination.totalRecords).toBe(truth.length);
  });
});

test('an unknown or invalid switch is refused by name, and none is set', async () => {
  const refused: [unknown, string][] = [
    [{ pageSizeMax: 10, nosuch: 1 }, 'nosuch'],
    [{ pageSizeMax: 10, sort: 'sometimes' }, 'sort'],
    [{ fault500: 1.5 }, 'fault500'],
    [{ fault500: 0.6, fault502: 0.6 }, 'fault500'],
    [{ rateLimit: '5' }, 'rateLimit'],
    [{ lateDelay: 'soon' }, 'lateDelay'],
    [{ 'fault-500': 0.6, 'fault-502': 0.6 }, 'fault-500'],
    [{ retention: '200000d' }, 'retention'],
    [{ pageSizeMaxThen: '99999999999999999999@0' }, 'pageSizeMaxThen'],
    [{ pageSizeMaxThen: '0@0' }, 'pageSizeMaxThen'],
    [{ quota: '0/1000000000d' }, 'quota'],
    [{ quota: `${'9'.repeat(400)}/1s` }, 'quota'],
    [{ bodyPatience: '30d' }, 'bodyPatience'],
    [{ slowFor: '600d' }, 'slowFor'],
    [[1], 'object'],
  ];
  for (const [patch, name] of refused) {
    const { status, json } = await service.control('PATCH', '/switches', JSON.stringify(patch));
    expect([status, String(json['detail']).includes(name)], JSON.stringify(patch)).toEqual([400, true]);
  }
  expect((await service.control('GET', '/switches')).json).toMatchObject(defaults);
  await service.set({ 'page-size-max': '12' });
  expect((await service.page()).data).toHaveLength(12);
});
