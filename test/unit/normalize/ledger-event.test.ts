/**
 * Ledger entries as events: their text comes from a real journal, their fields must be fields of ECS
 * and OCSF.
 */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import categorization from '../../fixtures/ecs-9.4.0-categorization.json' with { type: 'json' };
import ecs from '../../fixtures/ecs-9.4.0-fields.json' with { type: 'json' };
import type { Entry } from '../../../src/model/journal.ts';
import { ledgerNormalizer } from '../../../src/normalize/ledger-event.ts';
import { base, day } from '../../support/records.ts';
import { faultsOf } from '../../support/encode/ocsf-schema.ts';
import { gap, lastAge, opened, proven, source, span } from '../../support/journal/opening.ts';
import { settings } from '../../support/normalize/records.ts';
import type { LedgerEvent } from '../../../src/record/event.ts';
import { readRecord, readText } from '../../../src/record/read.ts';
import { encoder } from '../../support/encode/texts.ts';
import { documentOf } from '../../support/normalize/ecs-document.ts';

const normalizeLedger = ledgerNormalizer(settings);
const normalize = ({ bytes, uid, received }: Entry): LedgerEvent => normalizeLedger({ record: readRecord(bytes), uid, received });
const normalizeText = (text: string): LedgerEvent => normalizeLedger({ record: readText(text), uid: 'u', received: base });
const encodeSettings = { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } } as const;

/** Every kind of entry, in the order of writing. */
async function entries(): Promise<readonly Entry[]> {
  const { journal } = await opened();
  const later = (total: number, at: number) => proven(total, base + at * day, base + (at + 1) * day);
  await journal.close(source, span(0, 10), proven(3, base + day, base + 2 * day), lastAge);
  await journal.confirm(source, span(0, 10), base + 3 * day, base + 2 * day, lastAge);
  await journal.close(source, span(0, 10), { ...later(5, 3), recount: true }, lastAge);
  await journal.close(source, span(0, 10), { ...gap(), recount: true }, lastAge);
  await journal.remark(source, span(0, 10), { reason: 'shrunk', message: 'fewer', next: undefined, attempts: 3 }, base + 5 * day, lastAge);
  await journal.close(source, span(10, 20), gap({ reason: 'unreadable', message: 'page 3' }), lastAge);
  await journal.close(source, span(10, 20), proven(3), lastAge);
  await journal.close(source, span(20, 30), gap(), lastAge);
  await journal.acceptGap(source, span(20, 30).from, { at: base + 6 * day, actor: 'j.doe', reason: 'ticket 4711' });
  await journal.setSuspension(source, { reason: 'rows', message: 'fewer rows', since: base + 7 * day }, base + 7 * day);
  await journal.setSuspension(source, undefined, base + 8 * day);
  await journal.operate({ at: base + 9 * day, actor: 'root', operation: 'sinks retire', detail: { sink: 'siem' } });
  await journal.archiveCheckpoint('evidence', 'waybill/a\n7\nroot\n');
  return journal.read(0, { records: 100, bytes: 1e6 });
}

test('the action names the change of each entry', async () => {
  const events = (await entries()).map((entry) => normalize(entry));
  expect(events.map((event) => [event.action, documentOf(event).event.outcome, documentOf(event).event.reason])).toEqual([
    ['window-proven', 'success', undefined],
    ['window-recounted', 'success', undefined],
    ['window-late', 'success', undefined],
    ['window-in-doubt', 'failure', 'reread'],
    ['window-shrunk', 'failure', 'shrunk'],
    ['window-gap', 'failure', 'unreadable'],
    ['window-proven', 'success', undefined],
    ['window-gap', 'failure', 'count'],
    ['window-accepted', 'unknown', 'count'],
    ['operation', 'unknown', undefined],
    ['suspension-started', 'failure', 'rows'],
    ['suspension-ended', 'success', 'rows'],
    ['operation', 'unknown', undefined],
    ['archive-checkpoint', 'success', undefined],
  ]);
});

test('an event states window, counts, digest and operator, and has the entry as its original', async () => {
  const all = await entries();
  const [first, , , , , unreadable, , , accepted, operation] = all.map((entry) => documentOf(normalize(entry)));
  expect(first).toEqual({
    '@timestamp': '2026-11-21T02:00:00.000Z',
    ecs: { version: '9.4.0' },
    data_stream: { type: 'logs', dataset: 'dpas.ledger', namespace: settings.namespace },
    event: {
      ...{ kind: 'state', action: 'window-proven', outcome: 'success', code: 'window-proven', severity: 0 },
      ...{ provider: 'waybill', module: 'dpas', dataset: 'dpas.ledger', timezone: 'UTC', created: '2026-11-21T02:00:00.000Z' },
      ...{ start: '2026-11-20T02:00:00.000Z', end: '2026-11-20T02:00:10.000Z', original: all[0]?.text },
      hash: createHash('sha256')
        .update(all[0]?.text ?? '')
        .digest('hex'),
    },
    message: `Window proven: ${source}, 2026-11-20T02:00:00.000Z to 2026-11-20T02:00:10.000Z, 3 records`,
    tags: ['forwarded'],
    organization: { id: settings.tenantId },
    observer: expect.objectContaining(settings.observer) as object,
    dpas: {
      uid: all[0]?.uid,
      ledger: {
        ...{ source, state: 'proven', revision: 1, total: 3, records: 3, late: 0, recounts: 0 },
        digest: createHash('sha256').digest('hex'),
      },
    },
  });
  expect(unreadable?.message).toMatch(/^Window not proven: .*, unreadable, page 3$/);
  expect(accepted?.dpas.ledger).toMatchObject({ state: 'accepted', operation: 'gaps accept', actor: 'j.doe', revision: 2 });
  expect(operation?.dpas.ledger).toMatchObject({ source, operation: 'gaps accept', actor: 'j.doe' });
  const { dpas, message } = documentOf(normalize(all.at(-2) ?? expect.fail()));
  expect([dpas.ledger?.source, dpas.ledger?.operation, message]).toEqual([
    undefined,
    'sinks retire',
    'Operation performed: sinks retire by root',
  ]);
  const checkpoint = documentOf(normalize(all.at(-1) ?? expect.fail()));
  expect([checkpoint.dpas.ledger?.checkpoint, checkpoint.message]).toEqual(['waybill/a\n7\nroot\n', 'Archive signed: evidence']);
});

test('every field is one of ECS or below dpas, and OCSF has a valid Base Event', async () => {
  const fields = new Map(Object.entries(ecs.fields as unknown as Record<string, unknown>));
  const leaves = (value: unknown, path: string): string[] =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([key, item]) => leaves(item, path === '' ? key : `${path}.${key}`))
      : [path];
  for (const entry of await entries()) {
    const event = normalize(entry);
    const written = JSON.parse(encoder('ecs', encodeSettings)(event)) as { event: { kind: string } };
    expect(leaves(written, '').filter((path) => !path.startsWith('dpas.') && !fields.has(path))).toEqual([]);
    expect(categorization.allowed['event.kind'].map(({ name }) => name)).toContain(written.event.kind);
    const ocsf = encoder('ocsf', encodeSettings)(event);
    expect(faultsOf(ocsf), ocsf).toEqual([]);
    expect(JSON.parse(ocsf)).toMatchObject({
      ...{ class_uid: 0, activity_name: event.action, metadata: { uid: entry.uid, log_name: 'ledger' } },
      ...{ start_time: event.from / 1000, end_time: event.to / 1000 },
      unmapped: { ledger: { revision: expect.any(Number) as number } },
    });
    expect(encoder('raw', encodeSettings)(event)).toBe(entry.text);
  }
});

test.each(['null', '[1]', '{"ledger":"window","from":1e300,"to":"x"}', '{"ledger":"window","from":9e15}'])(
  'a text that no release writes does not throw: %s',
  (text) => {
    expect(documentOf(normalizeText(text))).toMatchObject({ event: { kind: 'state', original: text } });
  },
);

test('another dataset of the records implies one for the ledger', () => {
  const datasetOf = (dataset: string): string =>
    documentOf(ledgerNormalizer({ ...settings, dataset })({ record: readText('{}'), uid: 'u', received: base })).data_stream.dataset;
  expect(['dpas.audit', 'acme.audit', 'acme'].map(datasetOf)).toEqual(['dpas.ledger', 'acme.ledger', 'acme.ledger']);
});
