/** A `start` before the ledger is logged with the backfill command, until a backfill covers the range. */
import { expect, test } from 'vitest';
import { requestedStartOf } from '../../../src/config/report-settings.ts';
import { UnreadStart } from '../../../src/daemon/source/unread-start.ts';
import type { UnreadStartParts } from '../../../src/daemon/source/unread-start.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { unreadOf } from '../../../src/journal/queries/backfills.ts';
import type { Micros } from '../../../src/model/time.ts';
import { base, hour, second } from '../../support/records.ts';
import { opened, source } from '../../support/journal/opening.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const never = new AbortController().signal;
const act = { actor: 'j.doe', reason: undefined };

/** The log lines about a ledger that started at `base`. */
async function begun(start: UnreadStartParts['settings']['start'], earliest: () => Micros = () => base) {
  const { journal } = await opened();
  const logged: unknown[] = [];
  const profile: { earliest?: Micros } = {};
  let asked = 0;
  const begin = new UnreadStart(
    {
      settings: { id: source, start },
      journal,
      store: { profile, setEarliest: (at) => Promise.resolve(void (profile.earliest = at)) },
      earliest: () => Promise.resolve().then(() => ((asked += 1), earliest())),
      now: () => base + 24 * hour,
      log: noting({ write: (_event, ...[fields]) => void logged.push(fields) }),
    },
    true,
  );
  return { journal, begin, logged, asked: () => asked };
}

test('a start before the ledger is reported, without the ranges of backfills, until they cover it', async () => {
  // 2026-11-20T02:00:00Z, less three hours
  const { journal, begin, logged } = await begun({ kind: 'instant', at: base - 3 * hour + 1 });
  begin.report();
  const command = 'waybill backfill --source production --from 2026-11-19T23:00:00Z --to 2026-11-20T02:00:00Z';
  const detail = `start is before 2026-11-20T02:00:00Z, where its ledger starts: ${command} reads the earlier records`;
  expect(logged).toEqual([{ source, from: '2026-11-19T23:00:00.000Z', to: '2026-11-20T02:00:00.000Z', detail }]);
  journal.history.add(source, { from: base - hour, to: base }, {}, act);
  const wanted = { from: base - 3 * hour, apart: 0 };
  expect(unreadOf(journal.db, source, wanted)).toEqual({ from: base - 3 * hour, to: base - hour, startsAt: base });
  journal.history.add(source, { from: base - 3 * hour, to: base }, {}, act);
  begin.report();
  expect(logged).toHaveLength(1);
  expect(unreadOf(journal.db, source, wanted)).toBeUndefined();
});

test('the start of the ledger itself, a later time and now are not reported', async () => {
  for (const start of [{ kind: 'instant', at: base + second - 1 }, { kind: 'instant', at: base + hour }, { kind: 'now' }] as const) {
    const { begin, logged } = await begun(start);
    begin.report();
    expect(await begin.whenDue(never)).toBe(false);
    expect(logged).toEqual([]);
  }
});

test('a duration before now is reported when it exceeds the possible clock difference', async () => {
  for (const [hours, count] of [
    [23, 0],
    [25, 0],
    [26, 1],
  ] as const) {
    const { begin, logged } = await begun({ kind: 'ago', ms: (hours * hour) / 1000 });
    begin.report();
    expect(logged, `${hours} h`).toHaveLength(count);
  }
});

test('the earliest record is requested once and stored in the profile', async () => {
  const { begin, logged, asked } = await begun({ kind: 'earliest' }, () => base - 2 * hour);
  expect([await begin.whenDue(never), await begin.whenDue(never), asked()]).toEqual([true, false, 1]);
  expect(logged).toMatchObject([{ from: '2026-11-20T00:00:00.000Z' }]);
  expect(requestedStartOf({ start: { kind: 'earliest' } }, { earliest: 5 }, base)).toEqual({ from: 5, apart: 0 });
  expect(requestedStartOf({ start: { kind: 'earliest' } }, {}, base)).toBeUndefined();
  const same = await begun({ kind: 'earliest' });
  expect(await same.begin.whenDue(never)).toBe(true);
  expect(same.logged).toEqual([]);
});

test('after an unreadable first page the next start requests it again; other errors are thrown', async () => {
  const failing = (code: 'page_malformed' | 'source_busy') => () => {
    throw new WaybillError(code, 'cannot read');
  };
  const { begin, asked } = await begun({ kind: 'earliest' }, failing('page_malformed'));
  expect([await begin.whenDue(never), await begin.whenDue(never), asked()]).toEqual([true, false, 1]);
  await expect((await begun({ kind: 'earliest' }, failing('source_busy'))).begin.whenDue(never)).rejects.toThrow('cannot read');
});
