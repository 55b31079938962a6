/**
 * Variants of the service: one source for each, all polled by one daemon that is killed now and
 * then. With every variant, each record arrives once and the ledger agrees; with unusable totals
 * the windows are gaps, and still nothing is lost.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ago, configure, Daemon, ledgerOf, readLedgerOf, settled, sourceOf } from '../support/e2e-daemon.ts';
import type { Ledger, Settings } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, faultsOf, linesOf, originalOf, Seconds } from '../support/e2e-oracle.ts';
import { pause, Place, seed } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

/** A variant of the service. */
interface Way {
  readonly name: string;
  readonly options: readonly string[];
  /**
   * The permitted states of a window whose query (one more second on both sides) finds this many
   * records, `from` and `until` in seconds.
   */
  readonly states?: (found: number, from: number, until: number) => readonly string[];
  readonly settings?: Settings;
  /** Events of the service that prove that the variant occurred. */
  readonly met?: readonly string[];
}

const spanSeconds = 240;
const liveSeconds = 6;
const final = ['final'];
/**
 * Fewer records than this are no sign of a cap when a total repeats (docs/guarantees.md, "A total
 * that may be a cap").
 */
const capLow = 120;

const ways: readonly Way[] = [
  { name: 'start-excluded', options: ['--start-bound', 'exclusive'] },
  { name: 'end-excluded', options: ['--end-bound', 'exclusive'] },
  { name: 'cut-to-10ms', options: ['--time-precision', '10ms', '--start-bound', 'exclusive', '--end-bound', 'exclusive'] },
  { name: 'cut-to-seconds', options: ['--time-precision', '1s', '--start-bound', 'exclusive', '--end-bound', 'exclusive'] },
  { name: 'large-page-refused', options: ['--page-size-max', '150', '--page-size-above', 'refused'], met: ['400'] },
  { name: 'page-size-falls', options: ['--page-size-max', '400', '--page-size-max-then', '70@25'] },
  { name: 'past-end-last', options: ['--page-past', 'last', '--page-size-max', '100'] },
  { name: 'past-end-404', options: ['--page-past', '404', '--page-size-max', '100'] },
  { name: 'first-page-0', options: ['--first-page', '0', '--page-size-max', '100'] },
  { name: 'sort-ignored', options: ['--sort', 'ignored', '--page-size-max', '200'] },
  { name: 'ties-unstable', options: ['--sort', 'unstable-ties', '--time-precision', '1s', '--page-size-max', '100'] },
  { name: 'total-text', options: ['--total', 'text'] },
  { name: 'total-missing', options: ['--total', 'missing'], states: () => ['gap total'] },
  {
    name: 'total-capped-low',
    options: ['--total', 'capped', '--total-cap', String(capLow)],
    // A second of history, with its padding, has fewer records than the cap. A second in which records are
    // created has more, and cannot be proven.
    states: (found, from, until) => (found < capLow ? final : until - from === 1 ? ['gap total', 'gap count'] : []),
  },
  { name: 'total-capped-high', options: ['--total', 'capped', '--total-cap', '1500'] },
  // Counted late, but before a window is closed. No record becomes visible late here, because a
  // total that lags behind a late record does not prove it yet.
  { name: 'total-lagging', options: ['--total', 'lagging', '--total-lag', '1s', '--late-share', '0'], settings: { closeDelay: '4s' } },
  {
    name: 'slow-faults',
    options: ['--fault-slow', '0.02', '--slow-for', '1s', '--fault-stalled', '0.01', '--fault-503', '0.05'],
    met: ['503'],
  },
];

/**
 * Records of each variant: this many in history, then as many more per second for a few seconds.
 */
const records = Math.max(1_000, Math.floor(Number(process.env['WAYBILL_E2E_RECORDS'] ?? 13_600) / ways.length));
const kills = Math.max(3, Math.round(Number(process.env['WAYBILL_E2E_KILLS'] ?? 12) / 6));
const perSecond = 100;

const place = new Place('switches');
const services = new Map<string, Service>();
const start = ago(spanSeconds * 1000);
let ledger: Ledger;
let gaps: readonly { readonly source: string; readonly from: string }[] = [];
const fileOf = ({ name }: Way): string => `${name}.ndjson`;

beforeAll(async () => {
  process.stderr.write(`switches: WAYBILL_SEED=${seed}\n`);
  await place.during(async () => {
    await Promise.all(
      ways.map(async (way) => {
        const common = ['--seed', seed, '--records', String(records - perSecond * liveSeconds), '--span', `${spanSeconds}s`];
        const late = ['--nodes', '2', '--late-share', '0.1', '--late-delay', '3s', '--fault-500', '0.01', '--fault-truncated', '0.01'];
        services.set(way.name, await Service.start(place, ...common, ...late, ...way.options));
      }),
    );
    const sources = ways.map((way) =>
      sourceOf(serviceOf(way), start, { id: way.name, pollInterval: '5s', recountAfter: ['2s', '5s'], ...way.settings }),
    );
    const sinks = ways.map((way) => ({ id: way.name, type: 'file', path: fileOf(way), sources: [way.name] }));
    configure(place, sources, sinks);
    const living = live();
    for (let left = kills; left > 0; left -= 1) {
      const daemon = new Daemon(place);
      await daemon.logged('window.first_proven', 3_000).catch(() => undefined);
      await pause(place.chance() * 1_000);
      await daemon.kill();
    }
    const daemon = new Daemon(place);
    await living;
    const end = Math.ceil(Date.now() / 1000) * 1000;
    await settled(daemon, end, 600_000, (id) => ways.some(({ name, states }) => name === id && states !== undefined));
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    ({ ledger } = await ledgerOf(place));
    const listed = await place.waybill('gaps', 'list', '--config', 'waybill.yaml', '--json');
    ({ gaps } = JSON.parse(listed.stdout) as { gaps: typeof gaps });
  });
}, 900_000);

afterAll(() => place[Symbol.asyncDispose]());

// promise: Each way in which a service may count, cap, sort or page: each record is delivered once, and the ledger agrees.
describe.each(ways)('$name', (way) => {
  test('each record once, and the ledger agrees', () =>
    place.during(async () => {
      const service = serviceOf(way);
      const truth = await service.truth();
      const stats = await service.stats();
      expect(truth.length).toBeGreaterThanOrEqual(records);
      expect(truth.length, 'all records are visible').toBe(stats.records.total);
      expect(compare(linesOf(place.path(fileOf(way))), truth, originalOf)).toEqual(exactlyOnce);

      const source = ledger.sources.find(({ id }) => id === way.name);
      if (!source) throw new Error(`no ledger of ${way.name}`);
      const seconds = new Seconds(truth);
      const states = way.states;
      const expected = states && ((from: number, until: number) => states(seconds.matching(from - 1, until + 1), from, until));
      const faults = faultsOf(source, seconds, Date.parse(start) / 1000, (from, until) =>
        // Windows after the last record may still have a recount ahead.
        [
          ...(expected?.(from, until) ?? final),
          ...(from > seconds.last + 1 && expected?.(from, until)[0] !== 'gap total' ? ['proven'] : []),
        ],
      );
      expect(faults).toEqual([]);
      expect(source.collected).toBe(truth.length);

      const open = source.windows.filter(({ state }) => state === 'gap').map(({ from }) => from);
      expect(gaps.filter((gap) => gap.source === way.name).map(({ from }) => from)).toEqual(open);
      if (way.states) expect(open.length, 'there are gaps').toBeGreaterThan(0);
      if (way.states || way === ways[0]) {
        const { code, ledger: alone } = await readLedgerOf(place, '--source', way.name);
        expect({ code, complete: alone.complete }).toEqual(way.states ? { code: 3, complete: false } : { code: 0, complete: true });
      }

      const met = { ...stats.faults, ...stats.requests['GET /logs/full-payload'] };
      for (const name of way.met ?? []) expect(met[name] ?? 0, `${name} was met`).toBeGreaterThan(0);
    }));
});

/** Creates records for a while, at every service. */
async function live(): Promise<void> {
  await Promise.all(ways.map((way) => serviceOf(way).set({ rate: perSecond })));
  await pause(liveSeconds * 1000);
  await Promise.all(ways.map((way) => serviceOf(way).set({ rate: 0 })));
}

function serviceOf({ name }: Way): Service {
  const service = services.get(name);
  if (!service) throw new Error(`no service for ${name}`);
  return service;
}
