/** content/splunk: scheduled searches neither miss an event that arrives late, nor repeat an alert, nor fire for a backfill. */
import { describe, expect, test } from 'vitest';
import type { Row } from '../../support/content/events.ts';
import { eventOf, recordFor, start } from '../../support/content/events.ts';
import { bursts, deniedThenAllowed, singleEvents, spread } from '../../support/content/sequences.ts';
import { conf, savedSearch } from '../../support/content/splunk-app.ts';
import { spl } from '../../support/content/spl.ts';

const alerts = [...conf('savedsearches')].filter(([, keys]) => keys.has('cron_schedule'));
const [minute, hour, day] = [60_000, 3600_000, 86_400_000];

/** ms of `-65m@m`, `@m`, `-24h`, `+5m`, relative to a full minute */
function msOf(text: string | undefined): number {
  const [, sign = '', count = '', unit = ''] = /^(?:([+-])(\d+)([mh]))?(?:@m)?$/.exec(text ?? 'none') ?? [];
  if (text === '@m') return 0;
  const ms = Number(count) * ({ m: minute, h: hour }[unit] ?? NaN);
  return sign === '-' ? -ms : ms;
}

interface Arrival {
  readonly row: Row;
  /** ms */
  readonly indexed: number;
}

/** The alerts of a search that runs every five minutes, with its throttling. */
function alertsOf(name: string, arrivals: readonly Arrival[], from: number, to: number): number {
  const keys = conf('savedsearches').get(name) ?? new Map<string, string>();
  const { run, limits } = spl(savedSearch(name));
  const fields = (keys.get('alert.suppress.fields') ?? '').split(',');
  const quiet = Math.abs(msOf(`-${keys.get('alert.suppress.period') ?? ''}`));
  const last = new Map<string, number>();
  let count = 0;
  for (let at = from; at <= to; at += 5 * minute) {
    const seen = arrivals.filter(({ row, indexed }) => {
      const event = Date.parse(String(row['@timestamp']));
      const isRecent = event >= at + msOf(keys.get('dispatch.earliest_time')) && event < at + msOf(keys.get('dispatch.latest_time'));
      return isRecent && indexed >= at + msOf(limits['_index_earliest']) && indexed < at + msOf(limits['_index_latest']);
    });
    for (const found of seen.length === 0 ? [] : run(seen.map(({ row }) => row))) {
      const key = JSON.stringify(fields.map((field) => found[field]));
      if (at - (last.get(key) ?? -Infinity) < quiet) continue;
      last.set(key, at);
      count += 1;
    }
  }
  return count;
}

test('alerts run every five minutes, for each result, with throttling that outlasts the reach of the search', () => {
  expect(alerts).toHaveLength(15);
  for (const [name, keys] of alerts) {
    const isLedger = name.startsWith('DPAS ledger: ');
    const { limits } = spl(savedSearch(name).replace('now()', '0'));
    const window = (bursts[name.replace(/^DPAS: /, '')]?.window ?? 0) / 60;
    // no_proof looks for an absence: it has no limit of index time.
    if (name !== 'DPAS ledger: no_proof') {
      expect(msOf(limits['_index_earliest']), name).toBeLessThanOrEqual(-(5 + window) * minute);
      expect(limits['_index_latest'], name).toBe('@m');
    }
    const [description, fields, period] = ['description', 'alert.suppress.fields', 'alert.suppress.period'].map((key) => keys.get(key));
    const own = ['search', 'description', 'alert.severity', 'alert.suppress.fields', 'alert.suppress.period'];
    const rest = Object.fromEntries([...keys].filter(([key]) => !own.includes(key)));
    expect(description, name).toMatch(isLedger ? /^Audit trail: / : /^Protected files?: /);
    expect(rest, name).toEqual({
      disabled: '1',
      enableSched: '1',
      cron_schedule: '*/5 * * * *',
      'dispatch.earliest_time': '-24h',
      'dispatch.latest_time': '+5m',
      counttype: 'number of events',
      relation: 'greater than',
      quantity: '0',
      'alert.track': '1',
      'alert.digest_mode': '0',
      'alert.suppress': '1',
    });
    expect(msOf(`-${period ?? ''}`), name).toBeLessThan(msOf(limits['_index_earliest'] ?? '-65m@m'));
    const kept = columnsOf(savedSearch(name));
    expect((fields ?? 'no field').split(',').filter((field) => !kept.includes(field)), name).toEqual([]); // prettier-ignore
  }
});

/** The columns of the results of a search, which its last `table` or its last `stats` names. */
function columnsOf(search: string): readonly string[] {
  const [, table] = /\| table ([^|]*)$/.exec(search) ?? [];
  const [, keys = ''] = /.*\| stats [^|]* BY ([^|]*)/s.exec(search) ?? [];
  return (table ?? keys).trim().split(/[ ,]+/);
}

const eventsOf = (happenings: Parameters<typeof recordFor>[0][]): readonly Row[] => happenings.map((each) => eventOf(recordFor(each)));
const late = (rows: readonly Row[], delay: number): readonly Arrival[] => {
  const newest = Math.max(...rows.map((row) => Date.parse(String(row['@timestamp']))));
  return rows.map((row) => ({ row, indexed: newest + delay }));
};

describe.each(Object.entries(bursts))('%s', (name, burst) => {
  test('a backfill of 30 days in five minutes fires nothing', () => {
    // Normal work: one event in five windows.
    const count = Math.floor((30 * 86_400) / (5 * burst.window));
    const rows = eventsOf([...spread(burst, count, 30 * 86_400, -30 * 86_400)]);
    const arrivals = rows.map((row, index) => ({ row, indexed: start + Math.floor((index / rows.length) * 5 * minute) }));
    expect(alertsOf(`DPAS: ${name}`, arrivals, start, start + 3 * hour)).toBe(0);
    // Bursts in the past of a backfill are history too.
    const old = eventsOf([...spread(burst, burst.count, burst.window, -2 * 86_400)]).map((row) => ({ row, indexed: start }));
    expect(alertsOf(`DPAS: ${name}`, old, start, start + 3 * hour)).toBe(0);
  });

  test('a burst that arrives as it happens, at once, 30 minutes or 20 hours late fires once; after 25 hours not', () => {
    const rows = eventsOf([...spread(burst, burst.count, burst.window)]);
    const live = rows.map((row) => ({ row, indexed: Date.parse(String(row['@timestamp'])) + 12_000 }));
    expect(alertsOf(`DPAS: ${name}`, live, start, start + 4 * hour)).toBe(1);
    for (const delay of [0, hour / 2, 20 * hour]) expect(alertsOf(`DPAS: ${name}`, late(rows, delay), start, start + 30 * hour), `${delay}`).toBe(1); // prettier-ignore
    expect(alertsOf(`DPAS: ${name}`, late(rows, 25 * hour), start, start + 30 * hour)).toBe(0);
  });

  test('a burst over an edge of buckets, and over runs, fires once', () => {
    for (let offset = 0; offset < 2 * burst.window; offset += burst.window / 4) {
      const rows = eventsOf([...spread(burst, burst.count, burst.window, offset)]);
      const live = rows.map((row) => ({ row, indexed: Date.parse(String(row['@timestamp'])) + 12_000 }));
      expect(alertsOf(`DPAS: ${name}`, live, start, start + 6 * hour), `offset ${offset}`).toBe(1);
    }
  });
});

describe('the searches for single events', () => {
  const names = Object.keys(singleEvents).filter((name) => conf('savedsearches').get(`DPAS: ${name}`)?.has('cron_schedule') === true);
  test.each(names)('%s alerts once for each event that arrives up to 24 hours late, and for no older one', (name) => {
    const codes = singleEvents[name] ?? [];
    const rows = eventsOf(codes.map((code, index) => ({ code, at: index })));
    for (const delay of [0, hour / 2, 20 * hour])
      expect(alertsOf(`DPAS: ${name}`, late(rows, delay), start, start + 30 * hour)).toBe(codes.length);
    for (const delay of [25 * hour, 30 * day]) expect(alertsOf(`DPAS: ${name}`, late(rows, delay), start + delay - hour, start + delay + hour)).toBe(0); // prettier-ignore
  });
});

test('open_denied_then_allowed alerts once for a sequence that arrives as it happens or late, and for no backfill', () => {
  const [happenings = []] = deniedThenAllowed.filter(({ fires }) => fires).map((sequence) => sequence.happenings);
  const rows = eventsOf([...happenings]);
  const live = rows.map((row) => ({ row, indexed: Date.parse(String(row['@timestamp'])) + 12_000 }));
  const name = 'DPAS: open_denied_then_allowed';
  expect(alertsOf(name, live, start, start + 6 * hour)).toBe(1);
  for (const delay of [hour / 2, 20 * hour]) expect(alertsOf(name, late(rows, delay), start, start + 30 * hour)).toBe(1);
  expect(alertsOf(name, late(rows, 25 * hour), start, start + 30 * hour)).toBe(0);
});
