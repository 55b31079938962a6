/**
 * Any JSON value is a record: each format encodes it as one message, from which a consumer reads
 * the event again.
 */
import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { droppedFields, type Privacy } from '../../../src/normalize/privacy.ts';
import { sized } from '../../support/long-run.ts';
import { inTimeZone, timeZones } from '../../support/time-zones.ts';
import { documentOf } from '../../support/normalize/ecs-document.ts';
import { recordOf, settings } from '../../support/normalize/records.ts';
import { readStrictly } from '../../support/encode/cef-strict.ts';
import { ecsText } from '../../support/encode/ecs-oracle.ts';
import { recordText } from '../../support/encode/hostile-records.ts';
import { parseLeef } from '../../support/encode/leef-parser.ts';
import { cefValues, leefValues } from '../../support/encode/line-values.ts';
import { faultsOf } from '../../support/encode/ocsf-schema.ts';
import { encoder, shortener } from '../../support/encode/texts.ts';

/** SEED repeats a failure; RECORDS increases the number. */
const seed = Number(process.env['SEED'] ?? 20241121);
const records = Number(process.env['RECORDS'] ?? sized(250, 3_000));

const written = { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } } as const;
const [cef, ecs, leef, ocsf, raw] = (['cef', 'ecs', 'leef', 'ocsf', 'raw'] as const).map((format) => encoder(format, written)) as [Text, Text, Text, Text, Text]; // prettier-ignore
type Text = ReturnType<typeof encoder>;

/** True if the value contains anything empty. */
function hasEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  if (typeof value !== 'object') return false;
  const items = Object.values(value);
  return items.length === 0 || items.some(hasEmpty);
}

const isLine = (text: string): boolean => !/[\r\n]/.test(text) && text.isWellFormed();

const privacies: readonly (readonly [string, Privacy])[] = [
  ['no rules', { rules: [] }],
  [
    'rules of every kind',
    {
      rules: [
        { fields: ['userId', 'userNetwork.mac'], action: 'drop' },
        { fields: ['payloadName', 'userNetwork.latLong'], action: 'mask' },
        { fields: ['userEmailAddress', 'currentPayloadOwnerId', 'userNetwork'], action: 'pseudonymize' },
      ],
      key: 'a key of the tests, 32 characters',
    },
  ],
];

describe.each(privacies)('%s', (_name, privacy) => {
  const normalize = normalizer({ ...settings, privacy });
  const dropped = [...droppedFields(privacy)];

  // node:assert is several times cheaper than expect, which matters over thousands of records.
  function readsBack(text: string): void {
    const record = recordOf(text);
    const event = normalize(record);
    const document = documentOf(event);
    const { original } = document.event;
    if (privacy.rules.length === 0) equal(original, text);

    const json = ecs(event);
    equal(json, ecsText(original, record, { ...settings, privacy }, dropped));
    deepEqual([isLine(json), hasEmpty(document), document.dpas.uid], [true, false, record.uid]);
    equal(ecs(normalize(record)), json);

    const ms = String(Math.floor(event.time / 1000));
    const escaped = readStrictly(cef(event));
    deepEqual(escaped.values, new Map([['rt', ms], ['start', ms], ...cefValues(document)]));
    deepEqual([escaped.classId, escaped.severity], [document.event.code, String(document.event.severity)]);
    const tabbed = parseLeef(leef(event));
    deepEqual(tabbed.values, new Map([['devTime', ms], ...leefValues(document)]));
    equal(tabbed.eventId, document.event.code.slice(0, 255));

    const object = ocsf(event);
    const read = JSON.parse(object) as { readonly raw_data: string; readonly metadata: { readonly uid: string } };
    deepEqual([isLine(object), faultsOf(object), hasEmpty(read)], [true, [], false]);
    deepEqual([read.raw_data, read.metadata.uid], [original, record.uid]);

    const bare = raw(event);
    deepEqual([isLine(bare), JSON.parse(bare)], [true, JSON.parse(original)]);
  }

  // promise: Any record reads back from ECS, CEF, LEEF, OCSF and raw.
  test(`${records} records read back from ECS, CEF, LEEF, OCSF and raw`, { timeout: 600_000 }, () => {
    fc.assert(fc.property(recordText, readsBack), { seed, numRuns: records });
  });

  test('records that are too long for a frame are shortened to it, and keep their uid', () => {
    fc.assert(
      fc.property(recordText, fc.integer({ min: 1_700, max: 8_000 }), (text, frame) => {
        const record = recordOf(text);
        const event = normalize(record);
        const [short, tabbed] = (['cef', 'leef'] as const).map((format) => shortener(format, written, frame)(event) ?? '');
        for (const each of [short ?? '', tabbed ?? '']) expect(Buffer.byteLength(each)).toBeLessThanOrEqual(frame);
        expect(readStrictly(short ?? '').values.get('WaybillDpasUid')).toBe(record.uid);
        expect(parseLeef(tabbed ?? '').values.get('uid')).toBe(record.uid);
      }),
      { seed, numRuns: Math.ceil(records / 10) },
    );
  });
});

test('messages are the same in every time zone', () => {
  const normalize = normalizer(settings);
  const messages = (texts: readonly string[]): readonly string[] =>
    texts.flatMap((text) => {
      const event = normalize(recordOf(text));
      return [cef, ecs, leef, ocsf].map((encode) => encode(event));
    });
  const texts = fc.sample(recordText, { seed, numRuns: Math.ceil(records / 10) });
  const expected = messages(texts);
  for (const zone of timeZones) inTimeZone(zone, () => deepEqual(messages(texts), expected));
});
