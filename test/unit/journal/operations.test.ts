import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Suspension } from '../../../src/model/ledger.ts';
import { base, collected, day, hour, second } from '../../support/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { gap, lastAge, opened, pageOf, proven, source, span } from '../../support/journal/opening.ts';
import type { Opened } from '../../support/journal/opening.ts';
import { faultsOf, tilingFaults } from '../../support/journal/recompute.ts';

const request = { at: base + 3 * day, actor: 'j.doe', reason: 'service outage, ticket 4711', evidence: 'ab'.repeat(32) };

async function lines(it: Opened): Promise<Record<string, unknown>[]> {
  const entries = await it.journal.read(0, { records: 1_000, bytes: 1e7 });
  return entries.filter(({ kind }) => kind === 'ledger').map(({ text }) => JSON.parse(text) as Record<string, unknown>);
}

function operations(it: Opened): unknown[] {
  return it
    .beside()
    .prepare<[], { at_us: number; actor: string; operation: string; detail: string }>(
      'SELECT at_us, actor, operation, detail FROM operations ORDER BY operation_no',
    )
    .all()
    .map((row) => ({ ...row, detail: JSON.parse(row.detail) as unknown }));
}

function row(it: Opened, from: number): unknown {
  return it
    .beside()
    .prepare('SELECT state, reason, total, records, next_us, revision FROM windows WHERE from_us = ?')
    .get(base + from * second);
}

test('an attempt in progress changes nothing after an operator accepted its window', async () => {
  const it = await opened();
  const { journal } = it;
  await journal.close(source, span(0, 10), gap(), lastAge);
  await journal.close(source, span(10, 20), proven(), lastAge);
  await journal.acceptGap(source, base, request);
  const accepted = row(it, 0);
  const { frontier } = journal.progress(source);
  expect(frontier).toBe(base + 20 * second);
  await journal.close(source, span(0, 10), gap(), lastAge);
  await journal.close(source, span(0, 10), proven(), lastAge);
  const remark = { reason: 'reread', message: 'x', next: undefined, attempts: 3 } as const;
  await journal.remark(source, span(0, 10), remark, base + 60 * second, lastAge);
  await journal.confirm(source, span(0, 10), undefined, base + 60 * second, lastAge);
  expect(row(it, 0)).toEqual(accepted);
  expect(journal.progress(source).frontier).toBe(frontier);
});

test('an accepted gap moves the frontier, stays what it was, and has actor and reason in the ledger and in operations', async () => {
  const it = await opened();
  const { journal } = it;
  await journal.close(source, span(0, 10), proven(), lastAge);
  await journal.close(source, span(10, 20), gap(), lastAge);
  await journal.close(source, span(20, 30), proven(), lastAge);
  expect(journal.progress(source).frontier).toBe(base + 10 * second);
  expect(await journal.acceptGap(source, base + 10 * second, request)).toMatchObject({
    ...span(10, 20),
    state: 'accepted',
    next: undefined,
  });
  expect(journal.progress(source).frontier).toBe(base + 30 * second);
  expect(row(it, 10)).toEqual({ state: 'accepted', reason: 'count', total: 3, records: 2, next_us: null, revision: 2 });
  const detail = {
    source,
    from: base + 10 * second,
    to: base + 20 * second,
    gapReason: 'count',
    reason: request.reason,
    evidence: request.evidence,
  };
  expect(operations(it)).toEqual([{ at_us: request.at, actor: 'j.doe', operation: 'gaps accept', detail }]);
  const [window, operation] = (await lines(it)).slice(-2);
  expect(window).toMatchObject({
    ledger: 'window',
    revision: 2,
    state: 'accepted',
    reason: 'count',
    operation: { actor: 'j.doe', reason: request.reason },
  });
  expect(operation).toEqual({
    ledger: 'operation',
    source,
    from: request.at,
    to: request.at,
    revision: 1,
    number: 1,
    actor: 'j.doe',
    operation: 'gaps accept',
    detail,
  });
  // The frontier stays after a restart; the uid retention moves with the next close.
  await it.close();
  const again = await opened({ directory: it.directory });
  expect(again.journal.progress(source).frontier).toBe(base + 30 * second);
  await again.journal.close(source, { from: base + 30 * second, to: base + 40 * day }, proven(), lastAge);
  expect(again.journal.progress(source).live.uidsKeptSince).toBe(base + 10 * day);
  expect([...faultsOf(again.beside()), ...tilingFaults(again.beside())]).toEqual([]);
  // A record of the accepted window that arrives later is late.
  expect(await again.journal.append(pageOf([collected(1, base + 11 * day)]))).toMatchObject({ appended: 1, late: 1 });
});

test('a window that a later count put in doubt can be accepted: its proof stays', async () => {
  const it = await opened();
  await it.journal.close(source, span(0, 10), proven(10, base + hour, base + 2 * hour), lastAge);
  await it.journal.close(source, span(0, 10), gap({ total: 12, inWindow: 11, seen: 11 }, base + 3 * hour), lastAge);
  await it.journal.acceptGap(source, base, request);
  expect(row(it, 0)).toEqual({ state: 'accepted', reason: 'reread', total: 10, records: 10, next_us: null, revision: 3 });
});

test('a proven, accepted or unknown window can be neither accepted nor retried, and nothing is written', async () => {
  const it = await opened();
  const { journal } = it;
  await journal.close(source, span(0, 10), proven(), lastAge);
  await journal.close(source, span(10, 20), gap(), lastAge);
  await journal.acceptGap(source, base + 10 * second, request);
  const { seq } = journal.head();
  const faults = [
    [base, /proven/],
    [base + 10 * second, /already accepted/],
    [base + 15 * second, /not found in the ledger/],
  ] as const;
  for (const [from, words] of faults) {
    await expect(journal.acceptGap(source, from, request)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(words) as string,
    });
    await expect(journal.retryGap(source, from, request)).rejects.toMatchObject({ code: 'usage' });
  }
  expect(journal.head().seq).toBe(seq);
  expect(operations(it)).toHaveLength(1);
  // The journal continues: an invalid request is no damage.
  await journal.close(source, span(20, 30), proven(), lastAge);
});

test('a retried gap is due at once, and the operation is stored', async () => {
  const it = await opened();
  await it.journal.close(source, span(0, 10), gap({}, base + 20 * day), lastAge);
  expect(await it.journal.due(source, base + day)).toBeUndefined();
  await it.journal.retryGap(source, base, { at: request.at, actor: 'j.doe', reason: 'the service was repaired' });
  expect(await it.journal.due(source, base + 11 * second)).toMatchObject({ ...span(0, 10), state: 'gap', attempts: 1 });
  expect(operations(it)).toMatchObject([{ operation: 'gaps retry', detail: { source, from: base, reason: 'the service was repaired' } }]);
  expect((await lines(it)).at(-1)).toMatchObject({ ledger: 'operation', operation: 'gaps retry', source });
});

test('an operation and its change of the state are one transaction, with or without a source', async () => {
  const it = await opened();
  const { journal } = it;
  const at = base + day;
  await journal.operate({ at, actor: 'root', operation: 'replay', detail: { sink: 'siem' } });
  await journal.operate({ at, actor: 'root', operation: 'backfill', detail: { reason: 'audit' }, source });
  const refused = { at, actor: 'root', operation: 'nothing', detail: {} };
  const failing = journal.operate(refused, () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow();
  expect(operations(it)).toMatchObject([{ operation: 'replay' }, { operation: 'backfill' }]);
  expect(await lines(it)).toMatchObject([
    { ledger: 'operation', source: '', revision: 1, number: 1, operation: 'replay' },
    { ledger: 'operation', source, revision: 1, number: 2, operation: 'backfill' },
  ]);
  expect(faultsOf(it.beside())).toEqual([]);
});

test('a suspension and its end are ledger entries, and survive a restart', async () => {
  const it = await opened();
  const suspension: Suspension = { reason: 'fields', message: 'userNetwork is gone', since: base + hour, fields: ['userNetwork'] };
  await it.journal.setProfile(source, JSON.stringify({ calibrated: 1 }));
  await it.journal.setSuspension(source, suspension, base + hour);
  expect(it.journal.progress(source)).toMatchObject({ state: 'suspended', suspension, profile: '{"calibrated":1}' });
  // Other writes to the profile happen in the meantime.
  await it.journal.setProfile(source, JSON.stringify({ calibrated: 2 }));
  await it.close();
  const again = await opened({ directory: it.directory });
  const { journal } = again;
  expect(journal.progress(source)).toMatchObject({ state: 'suspended', suspension, profile: '{"calibrated":2}' });
  await journal.setSuspension(source, undefined, base + hour);
  expect(journal.progress(source)).toMatchObject({ state: 'active', suspension: undefined });
  // The end follows the begin, although the clock of the service has not moved.
  const moments = [base + hour, base + hour + 1] as const;
  const shared = { ledger: 'suspension', source, revision: 1, reason: 'fields', fields: ['userNetwork'] };
  expect(await lines(again)).toMatchObject([
    { ...shared, from: moments[0], to: moments[0], state: 'suspended' },
    { ...shared, from: moments[1], to: moments[1], state: 'active' },
  ]);
  const uids = (await journal.read(0, { records: 10, bytes: 1e6 })).map(({ uid }) => uid);
  expect(uids).toEqual(moments.map((at) => uidOf(at, 1)));
});

test('entries of one moment have identities of their own, also where the first of them is pruned', async () => {
  const it = await opened({ retention: 0, clock: new VirtualClock((base + day) / 1000) });
  const { journal } = it;
  const at = base + hour + 7;
  await journal.setSuspension(source, { reason: 'fields', message: 'userNetwork is gone', since: base, fields: ['userNetwork'] }, base);
  for (const operation of ['gaps retry', 'gaps accept'])
    await journal.operate({ at, actor: 'root', operation, detail: { source }, source });
  const before = await journal.read(1, { records: 10, bytes: 1e6 });
  expect(before.map(({ uid }) => uid)).toEqual([uidOf(at, 1), uidOf(at, 2)]);
  expect(journal.prune()).toBe(3);
  // By the clock of the service the suspension ends before the operations.
  await journal.setSuspension(source, undefined, base + second);
  const [end] = await journal.read(3, { records: 10, bytes: 1e6 });
  expect(end?.uid).toBe(uidOf(at + 1, 1));
});

/** docs/formats.md, "Ledger events". */
function uidOf(at: number, revision: number): string {
  const hash = createHash('sha256');
  for (const part of ['waybill/ledger/1', source, String(at), String(at), String(revision)]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    hash.update(length).update(part);
  }
  return hash.digest().subarray(0, 16).toString('base64url');
}

test('a remark does not change the proof of a closed window', async () => {
  const it = await opened();
  const { journal } = it;
  await journal.close(source, span(0, 10), proven(7, base + hour, base + 2 * hour), lastAge);
  await journal.remark(
    source,
    span(0, 10),
    { reason: 'shrunk', message: '7, then 5', next: undefined, attempts: 2 },
    base + 3 * hour,
    lastAge,
  );
  expect(row(it, 0)).toEqual({ state: 'proven', reason: 'shrunk', total: 7, records: 7, next_us: null, revision: 2 });
  expect((await lines(it)).at(-1)).toMatchObject({
    state: 'proven',
    reason: 'shrunk',
    message: '7, then 5',
    records: 7,
    total: 7,
    revision: 2,
  });
  expect(await journal.due(source, base + 100 * day)).toBeUndefined();
});
