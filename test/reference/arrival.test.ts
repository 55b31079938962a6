import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { comparable, Service, type TruthRecord } from '../support/reference/service.ts';

const countsOf = async (service: Service): Promise<{ total: number; visible: number }> =>
  (await service.control('GET', '/stats')).json['records'] as { total: number; visible: number };

describe('records created at run time', () => {
  test('arrive at the rate, with the present as logTimestamp, and stop with it', async () => {
    await using service = await Service.start('--rate', '400', '--clock', 'manual');
    await service.advance('600ms');
    const records = await service.truth();
    expect(records).toHaveLength(240);
    const timeOf = (record: TruthRecord | undefined): number => Date.parse(`${comparable(record?.logTimestamp ?? '').slice(0, 23)}Z`);
    // The first tick is 20 ms after the start, the last at 600 ms; a time is truncated to one digit
    // at most.
    const span = timeOf(records.at(-1)) - timeOf(records[0]);
    expect(span).toBeGreaterThan(480);
    expect(span).toBeLessThan(680);
    expect((await service.page('pageSize=1')).pagination.totalRecords).toBe(records.length);
    await service.set({ rate: 0 });
    await service.advance('1m');
    expect(await service.truth()).toHaveLength(records.length);
  });

  test('follow the clock of the machine, unless it is manual', async () => {
    await using service = await Service.start('--rate', '400');
    await expect.poll(async () => (await service.truth()).length, { interval: 20 }).toBeGreaterThan(100);
    const newest = (await service.truth()).at(-1)?.logTimestamp ?? '';
    expect(Math.abs(Date.now() - Date.parse(`${comparable(newest).slice(0, 23)}Z`))).toBeLessThan(60_000);
    expect(await service.control('POST', '/clock?advance=1s')).toMatchObject({
      status: 400,
      json: { detail: expect.stringContaining('--clock manual') as string },
    });
  });

  test('come in responses that are dated by a manual clock', async () => {
    await using service = await Service.start('--clock', 'manual');
    const { json } = await service.control('POST', '/clock?advance=2h');
    const { headers } = await service.api('/logs/payload?pageSize=1');
    expect(headers['date']).toBe(new Date(String(json['now'])).toUTCString());
  });

  test('are late by node: one node never, the other always, within the bound', async () => {
    await using service = await Service.start(
      '--rate',
      '500',
      '--nodes',
      '2',
      '--late-share',
      '0,1',
      '--late-delay',
      '600ms',
      '--clock',
      'manual',
    );
    await service.advance('400ms');
    await service.set({ rate: 0 });
    const early = await countsOf(service);
    expect(early.total - early.visible).toBeGreaterThan(early.total / 5);
    const seen = new Set((await service.truth()).map((record) => record.logId));
    await service.advance('600ms');
    const late = await countsOf(service);
    expect(late.visible).toBe(late.total);
    // Late records are sorted among the existing records.
    const records = await service.truth();
    const lastSeen = records.findLastIndex((record) => seen.has(record.logId));
    expect(records.slice(0, lastSeen).some((record) => !seen.has(record.logId))).toBe(true);
    expect(records.map((record) => comparable(record.logTimestamp))).toEqual(records.map((r) => comparable(r.logTimestamp)).sort());
  });

  test('have bounded lateness, or a long tail', async () => {
    const options = ['--records', '4000', '--span', '1h', '--late-share', '1', '--late-delay', '10m'];
    await using bounded = await Service.start(...options);
    await using long = await Service.start(...options, '--late-tail', 'long');
    const visibleBefore = async (service: Service, minutes: number): Promise<number> => {
      const time = new Date(Date.now() - minutes * 60_000).toISOString().slice(0, 22);
      return Number((await service.page(`endTime=${time}&pageSize=1`)).pagination.totalRecords);
    };
    // Uniform from 0 to 10 minutes: all older records are visible, and half of the last ten
    // minutes.
    expect(Math.abs((await visibleBefore(bounded, 10)) - 4000 * (50 / 60))).toBeLessThan(30);
    expect(Math.abs((await countsOf(bounded)).visible - 4000 * (55 / 60))).toBeLessThan(80);
    // Median 10 minutes, and some of the oldest are not visible yet: 0.5 · 5^-1.1 is one in twelve
    // at 50 minutes.
    const shownOfOldest = await visibleBefore(long, 50);
    expect(shownOfOldest).toBeGreaterThan((4000 / 6) * 0.86);
    expect(shownOfOldest).toBeLessThan((4000 / 6) * 0.97);
  });
});

describe('odd records', () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start();
  });
  afterAll(() => service.stop());

  /** At least 40 records created under these switches. */
  const lines = async (switches: Record<string, unknown>, rate = 1000): Promise<string[]> => {
    const before = new Set(await service.truthLines());
    await service.set({ ...switches, rate });
    const visible = async (): Promise<number> => ((await service.control('GET', '/stats')).json['records'] as { visible: number }).visible;
    await expect.poll(visible, { interval: 20, timeout: 60_000 }).toBeGreaterThanOrEqual(before.size + 40);
    await service.set({ rate: 0, ...Object.fromEntries(Object.keys(switches).map((name) => [name, name === 'nodes' ? 1 : 0])) });
    const all = await service.truthLines();
    // The response contains the bytes of the truth.
    const reply = await service.api('/logs/full-payload?pageSize=1000&sort=-logTimestamp');
    expect(reply.text.slice(reply.text.indexOf('"data":[') + 8, -2)).toBe(all.slice(-1000).reverse().join(','));
    return all.filter((line) => !before.has(line));
  };
  const parsed = (texts: string[]): Record<string, unknown>[] => texts.map((text) => JSON.parse(text) as Record<string, unknown>);

  test('lack a field, or have null or another type in one', async () => {
    for (const record of parsed(await lines({ oddMissing: 1 }))) expect(Object.keys(record)).toHaveLength(13);
    for (const text of await lines({ oddNull: 1 })) expect(text.match(/:null/g)).toHaveLength(1);
    /**
     * The number of values, including the values in userNetwork, with another type than in section 2.7.
     */
    const changesIn = (record: Record<string, unknown>): number =>
      Object.entries(record)
        .flatMap(([name, each]) =>
          name === 'userNetwork' && typeof each === 'object' ? Object.entries(each ?? {}) : [[name, each] as const],
        )
        .filter(([name, each]) => typeof each !== (name === 'logId' ? 'number' : 'string')).length;
    const changed = parsed(await lines({ oddType: 1 })).map(changesIn);
    expect(changed.every((count) => count <= 1)).toBe(true);
    expect(changed.filter((count) => count === 1).length).toBeGreaterThan(changed.length * 0.75);
  });

  test('have a time without a fraction, and queries find them by it', async () => {
    for (const { logId, logTimestamp } of parsed(await lines({ oddNoFraction: 1 })) as TruthRecord[]) {
      expect(logTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
      const { data } = await service.page(`startTime=${logTimestamp}.00&endTime=${logTimestamp}.00&pageSize=1000`);
      expect(data.map((record) => record.logId)).toContain(logId);
    }
  });

  test('have unknown fields and values, and control characters', async () => {
    for (const record of parsed(await lines({ oddUnknown: 1 }))) expect(Object.keys(record)).toHaveLength(15);
    for (const text of await lines({ oddValue: 1 })) expect(text).toMatch(/"Unheard(ActionAttempted|Result|ResultReason)"/);
    for (const record of parsed(await lines({ oddControl: 1 }))) {
      expect(record['payloadName']).toContain('\u0000');
      expect((record['userNetwork'] as { machineName: string }).machineName).toContain('\u001b');
    }
  });

  test('have unpaired surrogates as escapes, and ids above 2^53 with every digit', async () => {
    for (const text of await lines({ oddSurrogate: 1 })) expect(text).toMatch(/"payloadName":"[^"]*\\ud[8-f][0-9a-f]{2}/);
    for (const text of await lines({ oddBigId: 1 })) {
      const digits = /^\{"logId":(\d+),/.exec(text)?.[1] ?? '';
      expect(BigInt(digits)).toBeGreaterThan(2n ** 53n);
      expect(String(Number(digits))).not.toBe(digits);
    }
  });

  test('repeat the logId of another node', async () => {
    const all = parsed(await lines({ oddRepeatedId: 0.5, nodes: 2 })).map((record) => record['logId']);
    // About two thirds of the ids are distinct. With 40 records or more, the share almost never
    // exceeds nine tenths.
    expect(new Set(all).size).toBeLessThan(all.length * 0.9);
    const one = parsed(await lines({ oddRepeatedId: 0.5 })).map((record) => record['logId']);
    expect(new Set(one).size).toBe(one.length);
  });

  test('are huge', async () => {
    // 64 KiB each.
    for (const record of parsed(await lines({ oddHuge: 1 }, 50))) expect(record['payloadName']).toHaveLength(65_536);
  });
});
