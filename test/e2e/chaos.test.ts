/**
 * The promise of the whole system, with real programs: despite faults of the service and kills of
 * the daemon, each record is in the file exactly once, and the ledger agrees with the service
 * window by window. WAYBILL_E2E_RECORDS and WAYBILL_E2E_KILLS make it longer.
 */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, ledgerOf, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, faultsOf, linesOf, Seconds } from '../support/e2e-oracle.ts';
import { inPlace, pause, seed, until } from '../support/e2e-place.ts';
import type { Chance } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const records = Number(process.env['WAYBILL_E2E_RECORDS'] ?? 4_000);
const kills = Number(process.env['WAYBILL_E2E_KILLS'] ?? 5);
const lateCount = 50;
/**
 * Longer than the sum of the width of a window (at most 10 s), the time to read it under load, and the
 * margin below: then a proven window can still receive a late record.
 */
const lastRecountMs = 20_000;
/** The records that exist before the daemon starts; the others are created during the kills. */
const history = Math.floor(records * 0.85);
const perSecond = Math.min(400, Math.ceil((records - history) / (kills * 1.3)));

/** Responses and faults of the service that must occur at least once. */
const wanted = ['fault500', 'faultReset', 'faultTruncated', 'faultCut', 'faultHtml200', '401', '403', '429'];

/** Settings of the service that force a response which rarely occurs by chance. */
const forced: Readonly<Record<string, Record<string, unknown>>> = {
  401: { revokeTokens: 'now' },
  403: { rateLimit: 'off', quota: '2/1s' },
  429: { quota: 'off', rateLimit: '2/1s' },
};

/**
 * The moments of the kills, in rotation: any time of the start and of the reading, or just after a
 * delivery, or after a window is proven. Without the last two, a slow machine would kill the daemon
 * only while it starts.
 */
const moments: readonly { readonly after?: LogLine['event']; readonly withinMs: number; readonly mostMs?: number }[] = [
  { withinMs: 400 },
  { after: 'sink.first_delivery', withinMs: 400 },
  { withinMs: 1_500 },
  { after: 'window.first_proven', withinMs: 800, mostMs: 60_000 },
  { after: 'sink.first_delivery', withinMs: 100 },
];
/** Faults may delay the moment; after this time the daemon is killed anyway. */
const momentMostMs = 3_000;

/**
 * Faults of the service, each with the settings that end it. Some of them are on between two kills.
 */
const troubles: readonly { on: Record<string, unknown>; off: Record<string, unknown>; slows?: true }[] = [
  { on: { fault500: 0.05 }, off: { fault500: 0 } },
  { on: { faultReset: 0.05 }, off: { faultReset: 0 } },
  { on: { faultTruncated: 0.05 }, off: { faultTruncated: 0 } },
  { on: { faultCut: 0.05 }, off: { faultCut: 0 } },
  { on: { faultHtml200: 0.05 }, off: { faultHtml200: 0 } },
  { on: { rateLimit: '10/500ms', retryAfter: 'date' }, off: { rateLimit: 'off' }, slows: true },
  { on: { quota: '10/700ms', retryAfter: 'seconds' }, off: { quota: 'off' }, slows: true },
  { on: { sort: 'unstable-ties' }, off: { sort: 'honoured' } },
  { on: { pageSizeMax: 700 }, off: { pageSizeMax: 1000 } },
  { on: { rotateKeys: 'now' }, off: { revokeTokens: 'now' } },
];

// promise: All faults at once and repeated `kill -9` of the daemon: each record is delivered once, and the ledger agrees.
test(`${records} records and ${kills} kills: each record once, and the ledger agrees`, { timeout: 400_000 + kills * 10_000 }, async () => {
  process.stderr.write(`chaos: WAYBILL_SEED=${seed}\n`);
  await inPlace('chaos', async (place) => {
    // Before the service creates its history, so that the ledger contains all of it.
    const start = ago(1_800_000);
    const service = await Service.start(
      place,
      ...['--seed', seed, '--records', String(history), '--span', '30m', '--nodes', '3', '--token-lifetime', '3s'],
      // Every fifth record of two nodes becomes visible late, by up to 5 s: before the last recount.
      ...['--late-share', '0.2,0,0.2', '--late-delay', '5s,1s,4s'],
    );
    const source = sourceOf(service, start, { pollInterval: '2s', closeDelay: '1s', recountAfter: ['1s', '3s', `${lastRecountMs}ms`] });
    configure(place, [source], [{ id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw' }]);
    await service.set({ rate: perSecond });

    for (let life = 0; life < kills; life += 1) {
      const daemon = new Daemon(place);
      const { after, withinMs, mostMs = momentMostMs } = moments[life % moments.length] ?? { withinMs: 1_000 };
      await service.set(mixed(place.chance, mostMs > momentMostMs));
      if (after !== undefined) await daemon.logged(after, mostMs).catch(() => undefined);
      await pause(place.chance() * withinMs);
      await daemon.kill();
    }
    const { ledger: before } = await ledgerOf(place);
    expect(before.sources[0]?.windows.length, 'windows were proven between kills').toBeGreaterThan(0);

    // One more run with all faults at once, until each has occurred: a test without a fault proves
    // nothing.
    await service.set({ ...all(({ on }) => on), rate: perSecond });
    const daemon = new Daemon(place);
    let missing: readonly string[] = wanted;
    await until(
      () => `all records made and every trouble met: without ${missing.join(', ')}`,
      180_000,
      async () => {
        const { records: made, faults, requests } = await service.stats();
        const met = { ...faults, ...requests['GET /logs/full-payload'] };
        missing = wanted.filter((name) => met[name] === undefined);
        // On a slow machine, requests are too rare to exceed both limits, or one limit hides the
        // other.
        for (const name of missing) await service.set(forced[name] ?? {});
        if (missing.length > 0) await pause(2_000);
        return made.total >= records && missing.length === 0 ? true : undefined;
      },
    );
    await service.set(all(({ off }) => off));

    // Then records that become visible in a window proven without them, before its last recount.
    const samples = (await service.truth()).slice(0, lateCount);
    await service.set({ rate: 5 });
    const reached = await until('a window of the present is proven', 180_000, async () => {
      const at = Date.parse((await daemon.ledger()).sources[0]?.readUntil ?? start);
      return at + lastRecountMs > Date.now() + 5_000 ? at : undefined;
    });
    await service.add(lateOnes(samples, reached - 500));
    await service.set({ rate: 0 });
    await settled(daemon, Math.ceil(Date.now() / 1000) * 1000, 120_000);

    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    const { code, ledger: report } = await readLedgerOf(place);
    expect({ code, complete: report.complete }).toEqual({ code: 0, complete: true });
    const [ledger] = report.sources;
    if (!ledger) throw new Error('the report has no source');
    const stats = await service.stats();
    const truth = await service.truth();
    expect(stats.records.visible, 'all records are visible').toBe(stats.records.total);
    expect(truth.length).toBeGreaterThanOrEqual(records);
    expect(compare(linesOf(place.path('siem.ndjson')), truth, (line) => line)).toEqual(exactlyOnce);
    expect(faultsOf(ledger, new Seconds(truth), Date.parse(start) / 1000)).toEqual([]);
    expect(ledger.collected).toBe(truth.length);
    expect(ledger.late, 'late records are reported').toBeGreaterThanOrEqual(lateCount);
  });
});

/** Copies of records with new ids and with `at` as `logTimestamp`. */
function lateOnes(samples: readonly string[], at: number): string[] {
  const stamp = new Date(at).toISOString().slice(0, 23);
  return samples.map((text, i) =>
    text.replace(/"logId":\d+/, `"logId":${900_000_000 + i}`).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"${stamp}"`),
  );
}

/**
 * Switches each fault on or off at random, a third of them at a time; if `quick`, without faults
 * that delay everything.
 */
function mixed(chance: Chance, quick: boolean): Record<string, unknown> {
  return all(({ on, off, slows }) => (chance() < 0.35 && !(quick && slows) ? on : off));
}

function all(choose: (trouble: (typeof troubles)[number]) => Record<string, unknown>): Record<string, unknown> {
  return Object.assign({}, ...troubles.map(choose)) as Record<string, unknown>;
}
