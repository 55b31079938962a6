/**
 * Arbitrary JSON texts of records for fast-check: every field may be absent, of any type, or a text
 * that has broken a format.
 */
import fc from 'fast-check';
import { fullest } from '../normalize/records.ts';

const tokens: readonly string[] = [
  ...['', ' ', '|', '=', '\\', '"', ']', '\t', '\r', '\n', '\r\n', '\u0000', '\u001b[2J', '\u0085', '\u2028', '\u2029', '\u00a0', '\ufeff'],
  ...['😀', 'עברית\u202e', '\ud800', '\udc00x', 'é\u0301', '***', '__proto__', '</script>', '${env:X}', '{"a":1}'],
  ...[
    'a=b|c\\d',
    '\\n',
    'x suser=root',
    ' WaybillDpasUid=x',
    '\tuserId=root',
    'x\nCEF:0|a|b|c|d|e|1|',
    '\n<13>1 - - - - - - forged',
    '17 <13>1 ',
  ],
  ...['Decrypt', 'AccessDenied', 'Success', '2024-05-01T12:34:56.1', '192.0.2.1', '::1', '12.5,-0.25', 'a@example.com', '7003'],
];

/** Longer than every limit of a format, and long enough that a pattern that backtracks becomes slow. */
const long: readonly string[] = ['x', '😀', '\n', ' ', '@', '.', '-', ',', ':', '='].map((each) => each.repeat(5_000 / each.length));

const utf16 = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units));

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 32, arbitrary: fc.constantFrom(...tokens) },
  { weight: 24, arbitrary: fc.array(fc.oneof(fc.constantFrom(...tokens), utf16), { maxLength: 5 }).map((parts) => parts.join('')) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...long), fc.constantFrom(...tokens)).map(([text, end]) => text + end) },
);

/**
 * JSON texts that JSON.stringify never writes: large and odd numbers, repeated keys, line breaks
 * between tokens.
 */
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    hostileText.map((text) => JSON.stringify(text)),
    fc.constantFrom('null', 'true', 'false', '0', '-0', '1.50', '1e400', '-1E-7', '9007199254740993', '123456789012345678901234567890'),
    fc.array(tie('json'), { maxLength: 3 }).map((items) => `[${items.join(',\n')}]`),
    fc
      .array(fc.tuple(hostileText, tie('json')), { maxLength: 3 })
      .map((pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)} : ${value}`).join(',\r\n')}}`),
  ),
}));

/** A key with its value as JSON text; nothing for an absent field. */
function pair(key: string, usual: unknown): fc.Arbitrary<readonly string[]> {
  const written = (value: string): readonly string[] => [`${JSON.stringify(key)}:${value}`];
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant(written(JSON.stringify(usual))) },
    { weight: 3, arbitrary: hostileText.map((text) => written(JSON.stringify(text))) },
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: json.map(written) },
  );
}

const { userNetwork, ...flat } = fullest;
const object = (values: object, ...more: readonly fc.Arbitrary<readonly string[]>[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(',', '\r\n,'), ...Object.entries(values).map(([key, value]) => pair(key, value)), ...more)
    .map(([comma, ...pairs]) => `{${pairs.flat().join(comma)}}`);
const networkPair = object(userNetwork).map((text): readonly string[] => [`"userNetwork":${text}`]);

/** The JSON text of a record; one in twenty is any JSON value. */
export const recordText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 19,
    arbitrary: object(
      flat,
      fc.oneof({ weight: 5, arbitrary: networkPair }, { weight: 1, arbitrary: pair('userNetwork', 'x') }),
      pair('more', 'x'),
    ),
  },
  { weight: 1, arbitrary: json },
);
