import { describe, expect, test } from 'vitest';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { droppedFields, type Privacy } from '../../../src/normalize/privacy.ts';
import { sized } from '../../support/long-run.ts';
import { documentOf } from '../normalize/ecs-document.ts';
import { fullest, recordOf, settings } from '../normalize/records.ts';
import { readStrictly } from './cef-strict.ts';
import { parseLeef } from './leef-parser.ts';
import { ecsText } from './ecs-oracle.ts';
import { faultsOf } from './ocsf-schema.ts';
import { encoder, shortener } from './texts.ts';

/** Both may be given: SEED to repeat a failure, RECORDS to look for longer. */
const seed = Number(process.env.SEED ?? 20241121);
const records = Number(process.env.RECORDS ?? sized(60, 400));

/** Texts that have broken a format somewhere. */
const nasty: readonly string[] = [
  ...['', ' ', '|', '=', '\\', '"', ']', '\t', '\r', '\n', '\r\n', '\u0000', '\u0085', '\u2028', '\u2029', '\u00a0', '\ufeff', '***'],
  ...[
    '😀',
    'עברית\u202e',
    '\ud800',
    '\udc00x',
    'é\u0301',
    'a=b|c\\d',
    '\\n',
    'x suser=root',
    'x\nCEF:0|a|b|c|d|e|1|',
    '</script>',
    '${env:X}',
  ],
  ...[
    '{"a":1}',
    'x'.repeat(65_536),
    '😀'.repeat(33_000),
    `${'\n'.repeat(70_000)}.`,
    `${' '.repeat(70_000)}x`,
    '@'.repeat(2000),
    '.'.repeat(2000),
  ],
  ...[
    '1'.repeat(500),
    '-'.repeat(5000),
    ','.repeat(5000),
    ':'.repeat(5000),
    'Decrypt',
    'AccessDenied',
    'Success',
    '2024-05-01T12:34:56.1',
    '192.0.2.1',
    '::1',
  ],
];

/** Random JSON texts of records, the same for the same seed. */
function generator(start: number) {
  let state = start;
  const below = (n: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const text = (): string => {
    const part = nasty[below(nasty.length)] ?? '';
    return below(3) === 0 ? part + (nasty[below(18)] ?? '') + String(below(100)) : part;
  };
  /** JSON text, so that numbers may be written in ways that JSON.stringify does not know. */
  const json = (depth: number): string => {
    switch (below(depth > 3 ? 6 : 9)) {
      case 0:
        return ['null', 'true', 'false'][below(3)] ?? 'null';
      case 1:
        return ['0', '-0', '1.50', '1e400', '-1E-7', '9007199254740993', '123456789012345678901234567890', '7003'][below(8)] ?? '0';
      case 2:
      case 3:
      case 4:
      case 5:
        return JSON.stringify(text());
      case 6:
        return `[${Array.from({ length: below(4) }, () => json(depth + 1)).join(',\n')}]`;
      default:
        return `{${Array.from({ length: below(4) }, () => `${JSON.stringify(below(4) === 0 ? '__proto__' : text())} : ${json(depth + 1)}`).join(',\r\n')}}`;
    }
  };
  const record = (): string => {
    if (below(20) === 0) return json(0);
    const network = Object.entries(fullest.userNetwork).map(([key, value]) => pair(key, value));
    const pairs = Object.entries(fullest).map(([key, value]) => {
      if (key !== 'userNetwork') return pair(key, value);
      return below(6) === 0 ? pair(key, 'x') : [`"userNetwork":{${network.flat().join(',')}}`];
    });
    return `{${[...pairs.flat(), ...(below(5) === 0 ? [`"more":${json(0)}`] : [])].join(below(10) === 0 ? '\r\n,' : ',')}}`;
  };
  const pair = (key: string, value: unknown): string[] => {
    const kind = below(6);
    if (kind === 0) return [];
    return [`${JSON.stringify(key)}:${kind === 1 ? json(2) : kind < 4 ? JSON.stringify(text()) : JSON.stringify(value)}`];
  };
  return record;
}

/** Whether something empty stands anywhere. */
function hasEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  if (typeof value !== 'object') return false;
  const items = Object.values(value);
  return items.length === 0 || items.some(hasEmpty);
}

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

describe.each(privacies)('any JSON value is a record: %s', (_name, privacy) => {
  const normalize = normalizer({ ...settings, privacy });
  const dropped = [...droppedFields(privacy)];
  const cef = encoder('cef', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const ecs = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const leef = encoder('leef', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const ocsf = encoder('ocsf', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const raw = encoder('raw', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });

  test(`${records} records of seed ${seed} give one line in each format, which reads back`, () => {
    const next = generator(seed);
    for (let i = 0; i < records; i += 1) {
      const text = next();
      const where = `seed ${seed}, record ${i}: ${text.slice(0, 300)}`;
      const record = recordOf(text);
      const event = normalize(record);
      const original = event.document.original?.bytes.toString() ?? '';
      const written = documentOf(event);
      if (privacy.rules.length === 0) expect(original, where).toBe(text);

      const document = ecs(event);
      expect(document, where).toBe(ecsText(original, record, { ...settings, privacy }, dropped));
      expect(/[\r\n]/.test(document) || !document.isWellFormed(), where).toBe(false);
      const read = JSON.parse(document) as Record<string, unknown>;
      expect(hasEmpty(read), where).toBe(false);
      expect(read, where).toMatchObject({ dpas: { uid: record.uid }, event: { original } });

      const escaped = readStrictly(cef(event));
      expect(escaped.values.get('WaybillDpasUid'), where).toBe(record.uid);
      expect(escaped.values.get('fname'), where).toBe(cefValue(written.file?.name, 1023));
      expect(escaped.values.get('suid'), where).toBe(cefValue(written.user?.id, 1023));
      expect(escaped.values.get('cs6'), where).toBe(cefValue(written.dpas.network?.address, 4000));
      expect(escaped.values.get('WaybillDpasOwnerName'), where).toBe(cefValue(written.dpas.owner?.last_name_first_name, 1023));

      const tabbed = parseLeef(leef(event));
      expect(tabbed.values.get('uid'), where).toBe(record.uid);
      expect(tabbed.values.get('fileName'), where).toBe(leefValue(written.file?.name, 1023));
      expect(tabbed.values.get('userId'), where).toBe(leefValue(written.user?.id, 1023));
      expect(tabbed.values.get('address'), where).toBe(leefValue(written.dpas.network?.address, 1023));

      const object = ocsf(event);
      expect(/[\r\n]/.test(object) || !object.isWellFormed(), where).toBe(false);
      expect(faultsOf(object), where).toEqual([]);
      expect(JSON.parse(object), where).toMatchObject({ raw_data: original, metadata: { uid: record.uid } });
      expect(hasEmpty(JSON.parse(object)), where).toBe(false);

      // Whatever is in it, it can be made to fit into the frames of syslog.
      const frame = 1_700 + (i % 7) * 900;
      const line = i % 2 === 0 ? 'cef' : 'leef';
      const short = shortener(line, { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } }, frame)(event) ?? '';
      expect(Buffer.byteLength(short), where).toBeLessThanOrEqual(frame);
      const shortUid = line === 'cef' ? readStrictly(short).values.get('WaybillDpasUid') : parseLeef(short).values.get('uid');
      expect(shortUid, where).toBe(record.uid);

      const bare = raw(event);
      expect(/[\r\n]/.test(bare) || !bare.isWellFormed(), where).toBe(false);
      expect(JSON.parse(bare), where).toEqual(JSON.parse(original));
      expect(ecs(normalize(record)), where).toBe(document);
    }
  });
});

/** What a value is after a way through LEEF, said another way: character by character. */
function leefValue(value: string | undefined, max: number): string | undefined {
  return cefValue(value?.replace(/[\r\n]/g, ' '), max);
}

/** What a value is after a way through CEF, said another way: character by character. */
function cefValue(value: string | undefined, max: number): string | undefined {
  if (value === undefined) return undefined;
  const clean = Array.from(value, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === '\n' || character === '\r') return character;
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029 ? ' ' : character;
  });
  let text = '';
  for (const character of Array.from(clean.join('').trim())) {
    if (text.length + character.length > max) break;
    text += character;
  }
  const read = text.trim().replaceAll('\r\n', '\n');
  return read === '' ? undefined : read;
}
