import { describe, expect, test } from 'vitest';
import { normalizer, type NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import { fullest, network, recordOf, settings, shapes } from '../../support/normalize/records.ts';
import { parseLeef } from '../../support/encode/leef-parser.ts';
import { encoder } from '../../support/encode/texts.ts';

/** The predefined keys of LEEF 2.0 in use, with their formats; written by hand. */
const predefined: Readonly<Record<string, RegExp>> = {
  devTime: /^\d{13}$/,
  cat: /^.+$/,
  sev: /^([1-9]|10)$/,
  usrName: /^.{1,255}$/u,
  src: /^[0-9a-fA-F.:]+$/,
  srcMAC: /^([0-9A-F]{2}:){5}[0-9A-F]{2}$/,
  domain: /^.+$/,
  resource: /^.+$/,
};
/** Waybill's own keys, which LEEF 2.0 neither predefines nor reserves. */
const own =
  `uid logId action outcome result reason userId userFullName ownerId ownerEmail ownerFullName payloadId fileName latitude longitude
  serviceProvider networkName networkId deviceType deviceUuid address tenantId`.split(/\s+/);
/** Every other key with a meaning in LEEF 2.0, written by hand. */
const foreign =
  `devTimeFormat proto dst srcPort dstPort srcPreNAT dstPreNAT srcPostNAT dstPostNAT dstMAC srcPreNATPort dstPreNATPort srcPostNATPort
  dstPostNATPort identSrc identHostName identNetBios identGrpName identMAC vSrc vSrcName accountName srcBytes dstBytes srcPackets dstPackets totalPackets
  role realm policy url groupID isLoginEvent isLogoutEvent identSecondlp calLanguage calCountryOrRegion`.split(/\s+/);

function lineOf(record: unknown, over: Partial<NormalizeSettings> = {}): string {
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  return encoder('leef', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } })(
    normalizer({ ...settings, ...over })(recordOf(text)),
  );
}

/** Parses a line, and checks its keys against LEEF's own. */
function read(record: unknown, over?: Partial<NormalizeSettings>) {
  const line = parseLeef(lineOf(record, over));
  const order = [...Object.keys(predefined), ...own];
  expect([...line.values.keys()]).toEqual(order.filter((key) => line.values.has(key)));
  for (const [key, value] of line.values) if (predefined[key]) expect(value, key).toMatch(predefined[key]);
  return line;
}
const valuesOf = (over: object) => read({ ...fullest, ...over }).values;
const ofNetwork = (over: object) => valuesOf({ userNetwork: { ...network, ...over } });

test('no key of ours has a meaning in LEEF', () => {
  for (const key of own) expect([...foreign, ...Object.keys(predefined)]).not.toContain(key);
});

describe('68 records', () => {
  test.each(shapes.map((shape) => [shape.name, shape] as const))('%s', (_name, { row, text, withNetwork, withPersonal }) => {
    const line = read(text);
    expect(line).toMatchObject({ vendor: 'Waybill', product: settings.observer.product, version: '1.0', eventId: row.triple.join(':') });
    expect(Object.fromEntries(line.values)).toMatchObject({
      ...{ devTime: '1714566896123', cat: row.triple[0], sev: String(row.severity), action: row.action, outcome: row.outcome },
      ...{ result: row.triple[1], reason: row.triple[2], userId: 'u-7f3', ownerId: 'u-002', payloadId: 'p-91c2' },
      ...{ fileName: 'Example file.xlsx', tenantId: 'tenant-1', usrName: withPersonal ? 'user@example.com' : 'u-7f3' },
    });
    expect(line.values.get('userFullName')).toBe(withPersonal ? 'Example User' : undefined);
    expect(line.values.get('src')).toBe(withNetwork ? '203.0.113.7' : undefined);
    expect(line.values.get('srcMAC')).toBe(withNetwork ? '00:00:5E:00:53:01' : undefined);
  });
});

describe('without escapes', () => {
  test.each([
    ['a=b\\c|d', 'a=b\\c|d'],
    ['tab\tLF\nCRLF\r\nNUL\u0000', 'tab LF CRLF  NUL'],
    ['a\u0085b\u2028c\u2029d', 'a b c d'],
    [' padded ', 'padded'],
    ['x\tsev=10\tusrName=root', 'x sev=10 usrName=root'],
    ['x\nLEEF:2.0|Forged|Event|1|1|x09|', 'x LEEF:2.0|Forged|Event|1|1|x09|'],
    ['😀 עברית ]"', '😀 עברית ]"'],
    ['lone\ud800', 'lone\ufffd'],
  ])('%j is one value', (payloadName, expected) => {
    expect(valuesOf({ payloadName }).get('fileName')).toBe(expected);
  });

  test('a value with only control characters is omitted', () => {
    expect(ofNetwork({ address: '\u0000\t' }).has('address')).toBe(false);
  });

  test('the header has spaces and slashes instead of characters that would end a field', () => {
    const observer = { vendor: 'A|B\tC', product: 'p'.repeat(300), version: '1\n0' };
    expect(read(fullest, { observer })).toMatchObject({ vendor: 'A/B C', product: 'p'.repeat(255), version: '1 0' });
  });

  test('an unknown combination has an EventID of at most 255 characters', () => {
    const { eventId } = read({ ...fullest, actionAttempted: 'a|\t='.repeat(100), result: '|'.repeat(500), resultReason: 'x'.repeat(500) });
    expect(eventId).toMatch(/^[A-Za-z0-9._:-]{1,255}$/);
  });
});

test('the delimiter of the header is a hex value that every reader takes', () => {
  // IBM's LEEF 2.0: "the hex value starts with 0x or x"; the OpenTelemetry Collector's ParseLEEF reads 0x and two digits only.
  expect(lineOf(fullest).split('|')[5]).toBe('0x09');
});

describe('values', () => {
  test('long ones are truncated, never inside a character; an id that is too long is omitted', () => {
    expect(valuesOf({ payloadName: `${'x'.repeat(1022)}😀` }).get('fileName')).toBe('x'.repeat(1022));
    expect(valuesOf({ userEmailAddress: 'u'.repeat(300) }).get('usrName')).toBe('u'.repeat(255));
    expect(valuesOf({ logId: '1'.repeat(1024) }).has('logId')).toBe(false);
  });

  test('a severity of 0 becomes 1, the minimum', () => {
    const mapping = { severity: { 'Decrypt:AccessGranted:Success': 0 }, names: {}, hostIdFromUuid: true };
    expect(read(fullest, { mapping }).values.get('sev')).toBe('1');
  });

  test('IPv6 is an address too; a MAC of eight bytes is not', () => {
    const values = ofNetwork({ ipAddress: '2001:db8::7', mac: '0a1b.2c3d.4e5f.0102' });
    expect([values.get('src'), values.has('srcMAC')]).toEqual(['2001:db8::7', false]);
    expect(ofNetwork({ ipAddress: '::ffff:192.0.2.9' }).get('src')).toBe('192.0.2.9');
  });
});

test('events of two sources keep their own headers in one sink', () => {
  const encode = encoder('leef', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const record = recordOf(JSON.stringify(fullest));
  const two = normalizer({ ...settings, observer: { vendor: 'Two', product: 'Other', version: '2' } });
  const vendors = [normalizer(settings), two, normalizer(settings)].map((normalize) => parseLeef(encode(normalize(record))).vendor);
  expect(vendors).toEqual(['Waybill', 'Two', 'Waybill']);
});
