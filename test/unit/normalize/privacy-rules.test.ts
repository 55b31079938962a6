/**
 * Random privacy rules on random records: a removed value is in no message, no derived field and no
 * hash.
 */
import { equal } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formats } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import type { Privacy, PrivacyAction } from '../../../src/normalize/privacy.ts';
import type { FieldPath } from '../../../src/record/fields.ts';
import { sized } from '../../support/long-run.ts';
import { encoder } from '../../support/encode/texts.ts';
import { documentOf } from '../../support/normalize/ecs-document.ts';
import { fullest, recordOf, settings } from '../../support/normalize/records.ts';

const seed = Number(process.env['SEED'] ?? 20261123);
const numRuns = Number(process.env['RECORDS'] ?? sized(150, 3_000));

const encoders = formats.flatMap((format) =>
  [true, false].map((includeOriginal) => encoder(format, { includeOriginal, cef: { ipv6: 'src', geo: 'cfp' } })),
);

/**
 * Values of a field that are unlike all others, and the fragments that reveal each in a message, in
 * any derived form.
 */
interface Secret {
  readonly value: string;
  readonly words: readonly string[];
}

const letters = (length: number): fc.Arbitrary<string> => fc.stringMatching(new RegExp(`^[a-z]{${length}}$`));
const plain = letters(14).map((value): Secret => ({ value, words: [value] }));
/** "Last,First" gives a full name; both parts must vanish. */
const name = fc.tuple(letters(12), letters(12)).map(([last, first]): Secret => ({ value: `${last},${first}`, words: [last, first] }));
const email = fc
  .tuple(letters(12), letters(12))
  .map(([local, host]): Secret => ({ value: `${local}@${host}.example`, words: [local, host] }));
const octet = fc.integer({ min: 100, max: 255 });
const ip = fc.tuple(octet, octet, octet, octet).map((parts): Secret => ({ value: parts.join('.'), words: [parts.join('.')] }));
const hex = fc.stringMatching(/^[0-9a-f]{12}$/);
const mac = hex.map((digits): Secret => {
  const pairs = digits.match(/../g) ?? [];
  return { value: pairs.join(':'), words: [pairs.join(':'), pairs.join('-')] };
});
const degrees = fc.integer({ min: 100_000, max: 899_999 }).map((value) => `1.${value}`);
const position = fc.tuple(degrees, degrees).map(([lat, lon]): Secret => ({ value: `${lat},${lon}`, words: [lat, lon] }));
const file = fc
  .tuple(letters(14), letters(9))
  .map(([base, extension]): Secret => ({ value: `${base}.${extension}`, words: [base, extension] }));

const secretOf: Readonly<Partial<Record<FieldPath, fc.Arbitrary<Secret>>>> = {
  userId: plain,
  payloadId: plain,
  payloadName: file,
  currentPayloadOwnerId: plain,
  userLastNameFirstName: name,
  userEmailAddress: email,
  currentOwnerLastNameFirstName: name,
  currentOwnerEmailAddress: email,
  'userNetwork.ipAddress': ip,
  'userNetwork.networkName': plain,
  'userNetwork.networkId': plain,
  'userNetwork.domainName': plain,
  'userNetwork.deviceType': plain,
  'userNetwork.machineName': plain,
  'userNetwork.mac': mac,
  'userNetwork.uuid': plain,
  'userNetwork.serviceProvider': plain,
  'userNetwork.latLong': position,
  'userNetwork.address': plain,
};
const paths = Object.keys(secretOf) as FieldPath[];
const secrets = fc.record(secretOf as Record<FieldPath, fc.Arbitrary<Secret>>);

const action = fc.constantFrom<PrivacyAction>('drop', 'mask', 'pseudonymize');
const rules = fc.array(fc.record({ fields: fc.subarray<FieldPath>([...paths, 'userNetwork'], { minLength: 1 }), action }), {
  maxLength: 4,
});

function recordFrom(values: Readonly<Record<string, Secret>>): Record<string, unknown> {
  const record: Record<string, unknown> = { ...fullest };
  const network: Record<string, unknown> = { ...fullest.userNetwork };
  for (const [path, { value }] of Object.entries(values)) {
    const inner = path.replace(/^userNetwork\./, '');
    (inner === path ? record : network)[inner] = value;
  }
  return { ...record, userNetwork: network };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const digestsOf = (value: string): readonly string[] =>
  (['hex', 'base64url'] as const).map((encoding) => createHash('sha256').update(value).digest(encoding).slice(0, 16));

// promise: Privacy rules hide the named fields of any record, and show the rest.
test(`${numRuns} records with random rules hide the named fields, and show the rest`, () => {
  fc.assert(
    fc.property(secrets, rules, (values, chosen) => {
      const privacy: Privacy = { rules: chosen, key: 'a key of the tests, 32 characters' };
      const named = new Set(chosen.flatMap(({ fields }) => fields as readonly string[]));
      const isHidden = (path: string): boolean => named.has(path) || (path.startsWith('userNetwork.') && named.has('userNetwork'));
      const text = JSON.stringify(recordFrom(values));
      const event = normalizer({ ...settings, privacy })(recordOf(text));
      const all = encoders.map((encode) => encode(event)).join('\n').toLowerCase(); // prettier-ignore

      for (const [path, { value, words }] of Object.entries(values)) {
        if (!isHidden(path)) {
          equal(words.every((word) => all.includes(word.toLowerCase())), true, `${path} is not shown: ${value}`); // prettier-ignore
          continue;
        }
        for (const word of [...words, ...digestsOf(value)]) equal(all.includes(word.toLowerCase()), false, `${path}: ${word} is shown`);
      }
      const { original, hash } = documentOf(event).event;
      equal(hash, sha256(original));
      if (paths.some(isHidden)) equal(all.includes(sha256(text)), false, 'the hash of the record as received is shown');
    }),
    { seed, numRuns },
  );
});

test('rules on a record of another form hide its text too', () => {
  const texts = fc.tuple(secrets, fc.constantFrom('list', 'text', 'twice')).map(([values, shape]) => {
    const record = JSON.stringify(recordFrom(values));
    const wrapped = { list: `[${record}]`, text: JSON.stringify(record), twice: `${record.slice(0, -1)},${record.slice(1)}` }[shape];
    return { values, text: wrapped };
  });
  fc.assert(
    fc.property(texts, action, ({ values, text }, chosen) => {
      const fields: FieldPath[] = [...paths];
      const event = normalizer({ ...settings, privacy: { rules: [{ fields, action: chosen }], key: 'a key of the tests, 32 characters' } })(recordOf(text)); // prettier-ignore
      for (const message of encoders.map((encode) => encode(event)))
        for (const { words } of Object.values(values))
          expect(words.filter((word) => message.toLowerCase().includes(word.toLowerCase()))).toEqual([]);
    }),
    { seed, numRuns: Math.ceil(numRuns / 10) },
  );
});
