/**
 * A source that is polled at another host, path or tenant: the state records the move, and every proven window is counted once more. Another
 * host alone is a move by itself; for another path or tenant an operator decides.
 */
import { expect, test } from 'vitest';
import type { Journal } from '../../../src/journal/journal.ts';
import { ledgerReport } from '../../support/ledger-report.ts';
import { base, collected, day, second } from '../../support/records.ts';
import { gap, lastAge, opened, pageOf, proven, span } from '../../support/journal/opening.ts';

const id = 'moving';
const tenant = 'ABCDEF01-2345-6789-ABCD-EF0123456789';
const at = (origin: string, path = '/v2/api', of = tenant): string => `${origin}${path} of tenant ${of}`;
const [old, present] = ['https://old.example', 'https://new.example'];
const operator = { actor: 'j.doe', reason: 'the service moved' };

/** A source with a final window, a window with a pending recount, and a gap. */
async function polled(destination: string) {
  const { journal, ...others } = await opened();
  journal.registerSource(id, destination, base);
  await journal.append(pageOf([collected(1, base + 5 * second)], { source: id }));
  await journal.close(id, span(0, 10), proven(1), lastAge);
  await journal.close(id, span(10, 20), proven(0, base + day, base + 30 * day), lastAge);
  await journal.close(id, span(20, 30), gap({}, base + 40 * day), lastAge);
  return { journal, ...others };
}

const windowsOf = (journal: Journal): unknown =>
  ledgerReport(journal.db)
    .sources.find((each) => each.id === id)
    ?.windows.map(({ state, reason }) => [state, reason]);
const operationsOf = (journal: Journal): unknown[] =>
  journal.db
    .prepare<[], { actor: string | null; operation: string; detail: string }>('SELECT actor, operation, detail FROM operations')
    .all()
    .map(({ actor, operation, detail }) => [actor, operation, JSON.parse(detail) as unknown]);
const unmoved = [
  ['final', null],
  ['proven', null],
  ['gap', 'count'],
];
const inDoubt = [
  ['proven', 'reread'],
  ['proven', 'reread'],
  ['gap', 'count'],
];

test('another host is a move: proven windows are in doubt and due at once, until each was counted', async () => {
  const { journal, directory, close } = await polled(at(old));
  const now = base + 2 * day;
  expect(journal.registerSource(id, at(old), undefined)).toBeUndefined();
  expect(await journal.due(id, now)).toBeUndefined();
  expect(windowsOf(journal)).toEqual(unmoved);

  const move = { before: at(old), present: at(present), windows: 2 };
  expect(journal.movedSource(id, at(present))).toBeUndefined();
  expect(journal.registerSource(id, at(present), undefined)).toEqual(move);
  expect(operationsOf(journal)).toEqual([[null, 'sources move', { source: id, ...move, reason: 'baseUrl has another host' }]]);
  const entries = await journal.read(0, { records: 100, bytes: 1_000_000 });
  expect(JSON.parse(entries.at(-1)?.text ?? '')).toMatchObject({
    ledger: 'operation',
    source: id,
    operation: 'sources move',
    detail: move,
  });
  expect(windowsOf(journal)).toEqual(inDoubt);
  await close();

  const again = (await opened({ directory })).journal;
  expect(again.registerSource(id, at(present), undefined)).toBeUndefined();
  expect(windowsOf(again)).toEqual(inDoubt);
  for (const from of [0, 10]) {
    const window = await again.due(id, now);
    expect(window).toMatchObject(span(from, from + 10));
    await again.confirm(id, span(from, from + 10), undefined, now, lastAge);
  }
  expect(await again.due(id, now)).toBeUndefined();
  expect(windowsOf(again)).toEqual([
    ['final', null],
    ['final', null],
    ['gap', 'count'],
  ]);
  expect(operationsOf(again)).toHaveLength(1);
});

test.each<[string, string, string]>([
  ['the state of an earlier release, without a host', at(''), at(present)],
  ['a tenant in capitals', at(old), at(old, '/v2/api', tenant.toLowerCase())],
])('%s is no move', async (_, stored, destination) => {
  const { journal } = await polled(stored);
  expect(journal.movedSource(id, destination)).toBeUndefined();
  expect(journal.registerSource(id, destination, undefined)).toBeUndefined();
  expect([operationsOf(journal), windowsOf(journal)]).toEqual([[], unmoved]);
  // From now on, the host is known.
  expect(journal.registerSource(id, at('https://third.example'), undefined)).toMatchObject({ before: destination, windows: 2 });
});

test.each<[string, string]>([
  ['path', at(old, '/v3/api')],
  ['tenant', at(old, '/v2/api', '11111111-2345-6789-abcd-ef0123456789')],
  ['tenant that is no GUID and differs in its case', at(old, '/v2/api', 'Other')],
])('another %s is refused until an operator moves the source; it keeps its ledger', async (what, destination) => {
  const stored = what.includes('GUID') ? at(old, '/v2/api', 'other') : at(old);
  const { journal } = await polled(stored);
  expect(journal.movedSource(id, destination)).toBe(
    `it polled "${stored}" before and would now poll "${destination}"; restore the setting, or move the source with its uids: waybill sources move`,
  );
  expect(() => journal.registerSource(id, destination, undefined)).toThrow(expect.objectContaining({ code: 'config_invalid' }));
  expect(windowsOf(journal)).toEqual(unmoved);
  const { collected: records, frontier } = journal.progress(id);
  const move = { before: stored, present: destination, windows: 2 };
  expect(journal.history.move(id, destination, operator)).toEqual(move);
  expect(operationsOf(journal)).toEqual([['j.doe', 'sources move', { source: id, ...move, reason: 'the service moved' }]]);
  expect(journal.registerSource(id, destination, undefined)).toBeUndefined();
  expect(windowsOf(journal)).toEqual(inDoubt);
  expect(journal.progress(id)).toMatchObject({ collected: records, frontier });
  expect(() => journal.history.move(id, destination, operator)).toThrow(expect.objectContaining({ code: 'usage' }));
});
