import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { base, between, day, hour, second, seeded } from '../../support/records.ts';
import { gap, lastAge, opened, proven, source, span } from '../../support/journal/opening.ts';
import { faultsOf, tilingFaults } from '../../support/journal/recompute.ts';

test('a gap stops the frontier while closedUntil advances, and its proof moves the frontier past both', async () => {
  const { journal } = await opened();
  const seconds = (): number[] =>
    [journal.progress(source).frontier, journal.progress(source).live.closedUntil].map((us) => (us - base) / second);
  await journal.close(source, span(0, 10), proven(), lastAge);
  expect(seconds()).toEqual([10, 10]);
  await journal.close(source, span(10, 20), gap(), lastAge);
  expect(seconds()).toEqual([10, 20]);
  await journal.close(source, span(20, 30), proven(), lastAge);
  await journal.close(source, span(30, 40), gap(), lastAge);
  await journal.close(source, span(40, 50), proven(), lastAge);
  expect(seconds()).toEqual([10, 50]);
  // Retried and not proven: nothing advances.
  await journal.close(source, span(10, 20), gap(), lastAge);
  expect(seconds()).toEqual([10, 50]);
  // The later gap is proven first: the earlier one still blocks the frontier.
  await journal.close(source, span(30, 40), proven(3), lastAge);
  expect(seconds()).toEqual([10, 50]);
  await journal.close(source, span(10, 20), proven(3), lastAge);
  expect(seconds()).toEqual([50, 50]);
});

test("windows are contiguous and the frontier equals an oracle's, in any order and across restarts", async () => {
  const random = seeded(23);
  let state = await opened();
  const states: string[] = [];
  const edges = [base];
  let frontier = 0;
  for (let step = 0; step < 70; step += 1) {
    if (step % 20 === 19) {
      await state.close();
      state = await opened({ directory: state.directory });
    }
    const isProven = random() < 0.6;
    const again = states.length > 0 && random() < 0.5 ? between(random, 0, states.length) : states.length;
    if (again === states.length) edges.push((edges.at(-1) ?? base) + between(random, 1, 100) * second);
    const window = { from: edges[again] ?? 0, to: edges[again + 1] ?? 0 };
    await state.journal.close(source, window, isProven ? proven(3) : gap(), lastAge);
    // A closed window stays closed, whatever a later count shows.
    if (states[again] !== 'closed') states[again] = isProven ? 'closed' : 'gap';
    const first = states.indexOf('gap');
    const expected = edges[first === -1 ? states.length : first] ?? 0;
    expect(state.journal.progress(source)).toMatchObject({ frontier: expected, live: { closedUntil: edges.at(-1) } });
    expect(expected).toBeGreaterThanOrEqual(frontier);
    frontier = expected;
  }
  expect(new Set(states)).toEqual(new Set(['closed', 'gap']));
  expect(tilingFaults(state.beside())).toEqual([]);
  expect(faultsOf(state.beside())).toEqual([]);
});

test.each([
  ['leaves a hole', span(11, 20)],
  ['overlaps the one before', span(9, 20)],
  ['has another end than in the ledger', span(0, 9)],
])('a window that %s is refused, and nothing may be written after that', async (_what, window) => {
  const { journal, beside } = await opened();
  await journal.close(source, span(0, 10), proven(), lastAge);
  const { seq } = journal.head();
  await expect(journal.close(source, window, proven(), lastAge)).rejects.toMatchObject({ code: 'internal_error' });
  await expect(journal.close(source, span(10, 20), proven(), lastAge)).rejects.toMatchObject({ code: 'internal_error' });
  expect(journal.head().seq).toBe(seq);
  expect(beside().prepare('SELECT count(*) AS n FROM windows').get()).toEqual({ n: 1 });
  expect(journal.progress(source).live.closedUntil).toBe(base + 10 * second);
});

test('each revision of a window is a ledger entry with its statement, time and number', async () => {
  const { journal, beside } = await opened();
  await journal.close(source, span(0, 10), gap({ reason: 'unreadable', message: 'page 3' }), lastAge);
  await journal.close(source, span(0, 10), proven(3, base + 2 * day, base + 3 * day), lastAge);
  await journal.confirm(source, span(0, 10), undefined, base + 3 * day, lastAge);
  const entries = await journal.read(0, { records: 10, bytes: 1e6 });
  expect(entries.map(({ kind, number, seq }) => ({ kind, number, seq }))).toEqual([
    { kind: 'ledger', number: undefined, seq: 1 },
    { kind: 'ledger', number: undefined, seq: 2 },
    { kind: 'ledger', number: undefined, seq: 3 },
  ]);
  const lines = entries.map(({ text }) => JSON.parse(text) as Record<string, unknown>);
  const shared = { ledger: 'window', source, from: base, to: base + 10 * second };
  expect(lines).toMatchObject([
    { ...shared, revision: 1, state: 'gap', reason: 'unreadable', message: 'page 3', next: base + day, recounts: 0 },
    { ...shared, revision: 2, state: 'proven', total: 3, next: base + 3 * day, recounts: 0 },
    { ...shared, revision: 3, state: 'proven', total: 3, recounts: 1 },
  ]);
  expect(lines[2]).not.toHaveProperty('next');
  expect(beside().prepare('SELECT seq, revision FROM windows').get()).toEqual({ seq: 3, revision: 3 });
});

test('the uid of a ledger entry is the hash of its source, window and revision, each part with its length', async () => {
  const { journal } = await opened();
  await journal.close(source, span(0, 10), gap(), lastAge);
  await journal.close(source, span(0, 10), proven(3), lastAge);
  const uids = (await journal.read(0, { records: 10, bytes: 1e6 })).map(({ uid }) => uid);
  const expected = [1, 2].map((revision) => {
    const hash = createHash('sha256');
    for (const part of ['waybill/ledger/1', source, String(base), String(base + 10 * second), String(revision)]) {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      hash.update(length).update(part);
    }
    return hash.digest().subarray(0, 16).toString('base64url');
  });
  expect(uids).toEqual(expected);
});

test('a gap keeps the greatest total and the most records seen; proven with fewer it is closed as shrunk, and stays listed', async () => {
  const { journal, beside } = await opened();
  const row = (): unknown => beside().prepare('SELECT state, reason, total, received, attempts, next_us FROM windows').get();
  const next = base + day;
  await journal.close(source, span(0, 10), gap({ total: 9, seen: 4 }), lastAge);
  await journal.close(source, span(0, 10), gap({ total: 5, seen: 7 }), lastAge);
  await journal.close(source, span(0, 10), gap({ total: undefined, seen: 1 }), lastAge);
  expect(row()).toEqual({ state: 'gap', reason: 'count', total: 9, received: 7, attempts: 3, next_us: next });
  await journal.close(source, span(0, 10), proven(8, next, next + day), lastAge);
  // The recounts of a window that has shrunk end (docs: the remaining records may be deleted at any
  // time).
  expect(row()).toMatchObject({ state: 'proven', reason: 'shrunk', total: 8, next_us: null });
  expect(journal.progress(source).frontier).toBe(base + 10 * second);
});

test('a gap proven with all records ever seen is closed without a remark', async () => {
  const { journal, beside } = await opened();
  await journal.close(source, span(0, 10), gap({ total: 9, seen: 4 }), lastAge);
  await journal.close(source, span(0, 10), proven(9), lastAge);
  expect(beside().prepare('SELECT state, reason, message, attempts FROM windows').get()).toEqual({
    state: 'proven',
    reason: null,
    message: null,
    attempts: 0,
  });
});

test('a closed window whose later total cannot be proven keeps its proof and frontier, and is listed as open', async () => {
  const { journal, beside } = await opened();
  const row = (): unknown =>
    beside().prepare('SELECT state, reason, total, records, proof, closed_us, recounts, next_us FROM windows').get();
  await journal.close(source, span(0, 10), proven(10, base + hour, base + 2 * hour), lastAge);
  const before = row() as object;
  const found = { ...gap({ total: 12, inWindow: 11, seen: 11 }, base + 3 * hour, base + 2 * hour), recount: true };
  await journal.close(source, span(0, 10), found, lastAge);
  expect(row()).toEqual({ ...before, reason: 'reread', recounts: 1, next_us: base + 3 * hour });
  expect(journal.progress(source).frontier).toBe(base + 10 * second);
  // Eleven records were seen: proven with the earlier ten it has lost one.
  await journal.close(source, span(0, 10), proven(10, base + 3 * hour, base + 9 * hour), lastAge);
  expect(row()).toMatchObject({ state: 'proven', reason: 'shrunk', total: 10, next_us: null });
});

test('a shrunk window is never listed as complete again', async () => {
  const { journal, beside } = await opened();
  await journal.close(source, span(0, 10), proven(10, base + hour, base + 2 * hour), lastAge);
  await journal.close(source, span(0, 10), gap({ total: 8, seen: 8 }), lastAge);
  await journal.close(source, span(0, 10), proven(8), lastAge);
  await journal.close(source, span(0, 10), proven(8), lastAge);
  expect(beside().prepare('SELECT reason, total FROM windows').get()).toEqual({ reason: 'shrunk', total: 8 });
});

test('due windows come in order, recounts before retries, and only when due', async () => {
  const { journal } = await opened();
  await journal.close(source, span(0, 10), proven(1, base, base + 300), lastAge);
  await journal.close(source, span(10, 20), gap({}, base + 200), lastAge);
  await journal.close(source, span(20, 30), proven(), lastAge);
  expect(await journal.due(source, base + 199)).toBeUndefined();
  expect(await journal.due(source, base + 200)).toMatchObject({ ...span(10, 20), state: 'gap', reason: 'count', attempts: 1, total: 3 });
  expect(await journal.due(source, base + 299)).toMatchObject(span(10, 20));
  expect(await journal.due(source, base + 300)).toMatchObject(span(0, 10));
  await journal.close(source, span(10, 20), proven(3), lastAge);
  expect(await journal.due(source, base + 300)).toMatchObject({
    ...span(0, 10),
    state: 'proven',
    total: 1,
    query: { startTime: '2026-11-20T01:59:59.00' },
  });
  await journal.confirm(source, span(0, 10), undefined, base + 300, lastAge);
  expect(await journal.due(source, base + 400 * day)).toBeUndefined();
});
