/** Secrets in texts of other systems: removed in the encodings of protocols, and nothing else is removed. */
import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quote } from '../../../src/errors/quote.ts';
import { remember, removed, withoutSecrets } from '../../../src/errors/secrets.ts';
import { scrubbed } from '../../../src/telemetry/log-fields.ts';
import { encodings } from '../../support/encodings.ts';
import { isLong, sized } from '../../support/long-run.ts';
import { seeded } from '../../support/records.ts';

const secrets = {
  'a client secret of Entra ID': 'Abc8Q~CNRYform7.~x+y_2rUqzKd~PpWm4bTf',
  'blanks and signs': `p w+"1\\/2'3<&>%41;{ä}=?`,
  'an HEC token': 'B5A79AAD-D822-46CC-80D1-819F80D7BFB0',
  'a token': `eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.${'QmFzZTY0-c29tZXRoaW5n_'.repeat(30)}.c2lnbmF0dXJl-4711_x`,
  'six characters': 'Zq7#b9',
  'a secret that resembles escapes': '%7B&amp;\\u0041+%2B',
};
/** The secrets that these tests register; other tests of the process do not know them. */
const keepers: object[] = [];
function known(...values: readonly string[]): void {
  const keeper = {};
  keepers.push(keeper);
  for (const value of values) remember(keeper, value);
}
beforeAll(() => known(...Object.values(secrets)));
afterAll(() => {
  for (const keeper of keepers) for (let i = 0; i < 8; i += 1) remember(keeper, `nothing-of-interest-${i}`);
});

/**
 * The parts of an encoded secret that remain in the text. Each part has twelve characters; a shorter
 * secret is one part.
 */
function leftOf(text: string, encoded: string): string[] {
  const left: string[] = [];
  const length = Math.min(12, encoded.length);
  for (let at = 0; at + length <= encoded.length; at += 1) {
    const part = encoded.slice(at, at + length);
    if (text.includes(part)) left.push(part);
  }
  return left;
}

describe.each(Object.entries(secrets))('%s', (_, secret) => {
  it.each(encodings)('is removed in the encoding $name', ({ encode }) => {
    const encoded = encode(secret);
    const text = `the key (${encoded}), which was sent, is wrong`;
    const clean = quote(text, 10_000);
    expect(clean).toContain(removed);
    expect(leftOf(clean, encoded)).toEqual([]);
    expect(clean.startsWith('the key (')).toBe(true);
    expect(clean.endsWith('which was sent, is wrong')).toBe(true);
  });

  it('is removed if our quotation ends within it', () => {
    const before = 'x '.repeat(20);
    for (const [i, { encode }] of encodings.entries()) {
      const encoded = encode(secret);
      for (let max = isLong ? 41 : 41 + (i % 7); max < 40 + Math.min(encoded.length, 100); max += sized(23, 1))
        // A quotation ends within this part of the secret.
        expect(leftOf(quote(before + encoded, max), encoded.slice(0, 140))).toEqual([]);
    }
  });
});

describe('a long text', () => {
  const secret = secrets['a client secret of Entra ID'];

  it('is shortened after its secrets were removed: no part of one is shown', () => {
    for (let before = 60; before < 100; before += 1) {
      const text = `${'x '.repeat(before / 2)}${secret}${' y'.repeat(10_000)}`;
      expect(leftOf(quote(text, 100), secret)).toEqual([]);
    }
    for (let before = 3_950; before < 4_000; before += 1) {
      expect(leftOf(scrubbed(`${'x'.repeat(before)} ${secret} ${'y'.repeat(100)}`), secret)).toEqual([]);
    }
  });
});

describe('ordinary text', () => {
  it('stays unchanged: short secrets and words are removed only as whole words, and never from our own text', () => {
    known('elastic', 'abc', 'prod', '12345', 'my-client-secret-123', 'tiny1');
    const untouched = 'elasticsearch refuses invalid client secret 4712345 of production abc abcd';
    expect(quote(untouched, 200)).toBe(untouched);
    expect(quote('user elastic on prod: tiny1, 12345', 200)).toBe(`user ${removed} on ${removed}: ${removed}, ${removed}`);
    expect(withoutSecrets('sinks.elastic.url on prod')).toBe('sinks.elastic.url on prod');
  });

  it('of random words, numbers and identifiers stays unchanged', () => {
    const random = seeded(17);
    const pick = (from: string, length: number): string => Array.from({ length }, () => from[Math.floor(random() * from.length)]).join('');
    for (let i = 0; i < 2_000; i += 1) {
      const text = `cannot ${pick('aeioudrstln', 7)} "${pick('0123456789abcdef', 32)}" of ${pick('ABCDEFabcdef/+%&;\\', 40)}: ${pick('0123456789', 9)}`;
      expect(quote(text, 10_000)).toBe(text);
    }
  });
});

describe('the registry', () => {
  it('keeps the last eight values of an owner, and forgets the ninth', () => {
    const tokens = Array.from({ length: 9 }, (_, i) => `token-number-${i}-7f3a9c${i}${i}Q`);
    known(...tokens);
    expect(withoutSecrets(tokens.slice(1).join(' '))).toBe(Array(8).fill(removed).join(' '));
    // The first part also occurs in the other tokens, the last part does not.
    expect(withoutSecrets(`${tokens[0]} `)).toContain('00Q');
  });

  it('keeps a value while any owner has it', () => {
    const [one, other] = [{}, {}];
    const shared = 'Sh4red~between_two';
    keepers.push(one, other);
    remember(one, shared);
    remember(other, shared);
    for (let i = 0; i < 8; i += 1) remember(one, `${i}${i}Another~value_${i}`);
    expect(withoutSecrets(`(${shared})`)).toBe(`(${removed})`);
  });
});

describe('secrets of deleted owners', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const values = (name: string): string[] =>
    Array.from({ length: 600 }, (_, i) => createHash('sha256').update(`${name} ${i}`).digest('base64url'));
  const known = (secrets: readonly string[]): number => secrets.filter((secret) => withoutSecrets(`(${secret})`) === `(${removed})`).length;
  /** The registry is notified some time after garbage collection. */
  const untilKnown = (secrets: readonly string[], count: number): Promise<void> =>
    expect
      .poll(() => {
        collectGarbage();
        return known(secrets);
      })
      .toBe(count);

  it('stay registered until 256 others have lost their owners', async () => {
    const owner = {};
    keepers.push(owner);
    remember(owner, 'Held#by~a-living_owner1');
    const replaced = values('Replaced');
    for (const secret of replaced) remember({}, secret);
    expect(known(replaced)).toBe(600);
    await untilKnown(replaced, 256);
    expect(known(['Held#by~a-living_owner1'])).toBe(1);
  });

  it('stay registered while another object has the same value', async () => {
    const shared = 'Sh4red~by-a_file9';
    const owner = {};
    keepers.push(owner);
    remember(owner, shared);
    for (let i = 0; i < 300; i += 1) remember({}, shared);
    const others = values('Others');
    for (const secret of others) remember({}, secret);
    await untilKnown(others, 256);
    expect(known([shared])).toBe(1);
  });
});

describe('a quotation', () => {
  it('contains no control character, no direction mark, and no hint of Node', () => {
    expect(quote('a\u001b[2Jb\u009bc\u202ed\u2028e\n', 60)).toBe('a\\u001b[2Jb\\u009bc\\u202ed\\u2028e\\n');
    const words = 'unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-system-ca';
    expect(quote(words, 200)).toBe('unable to verify the first certificate');
  });

  it('takes bounded time, however text and secrets repeat', () => {
    known('a'.repeat(3_000), 'ab'.repeat(1_500), '\\'.repeat(2_000), '%25'.repeat(700));
    const nested = Buffer.from(Buffer.from('=41%25\\\\101&amp;65,66,67,68,69,70').toString('base64')).toString('base64');
    for (const each of ['aaaaaaaaaaab', '%25', '\\\\u005c', '&amp;', '\\', 'ab', '%2525252525', '74 6f ', '116, ', `${nested} %41 `]) {
      const before = process.cpuUsage();
      quote(each.repeat(100_000), 200);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000, `ms of CPU for ${each}`).toBeLessThan(1_000);
    }
  });
});
