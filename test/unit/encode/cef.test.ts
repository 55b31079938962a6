import { describe, expect, test } from 'vitest';
import type { CefSettings } from '../../../src/encode/settings.ts';
import { normalizer, type NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import { fullest, recordOf, settings, shapes } from '../../support/normalize/records.ts';
import { parseCef } from '../../support/encode/cef-parser.ts';
import { readStrictly } from '../../support/encode/cef-strict.ts';
import { encoder } from '../../support/encode/texts.ts';

function lineOf(record: unknown, cef: CefSettings = { ipv6: 'c6a2', geo: 'cfp' }, over: Partial<NormalizeSettings> = {}): string {
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  return encoder('cef', { includeOriginal: true, cef })(normalizer({ ...settings, ...over })(recordOf(text)));
}

describe('68 records', () => {
  test.each(shapes.map((shape) => [shape.name, shape] as const))('%s', (_name, { row, text, withNetwork, withPersonal }) => {
    const line = readStrictly(lineOf(text));
    const isFile = row.category.includes('file');
    expect(line).toMatchObject({ classId: row.triple.join(':'), name: row.name, severity: String(row.severity) });
    expect(Object.fromEntries(line.values)).toMatchObject({
      rt: '1714566896123',
      start: '1714566896123',
      cat: row.triple[0],
      act: isFile ? (row.outcome === 'success' ? 'Allowed' : 'Denied') : row.triple[2],
      outcome: row.outcome,
      reason: row.triple[2],
      suid: 'u-7f3',
      duid: 'u-002',
      fname: 'Example file.xlsx',
      fileId: 'p-91c2',
      deviceExternalId: 'tenant-1',
      dvchost: 'service.example',
      cs1: row.triple[1],
      cs1Label: 'Result',
    });
    expect(line.values.get('suser')).toBe(withPersonal ? 'user@example.com' : undefined);
    expect(line.values.get('WaybillDpasOwnerName')).toBe(withPersonal ? 'Owner,Example' : undefined);
    expect(line.values.get('src')).toBe(withNetwork ? '203.0.113.7' : undefined);
    expect(line.values.get('cfp2')).toBe(withNetwork ? '-0.25' : undefined);
    expect(line.extension.at(-1)?.[0]).toBe('msg');
  });
});

const valuesOf = (over: object, cef?: CefSettings) => readStrictly(lineOf({ ...fullest, ...over }, cef)).values;
const ofNetwork = (over: object, cef?: CefSettings) => valuesOf({ userNetwork: { ...fullest.userNetwork, ...over } }, cef);

describe('escaping', () => {
  test.each([
    ['a=b\\c|d', 'a=b\\c|d'],
    ['\\', '\\'],
    ['\\n', '\\n'],
    ['x\r\ny\nz\rw', 'x\ny\nz\rw'],
    ['tab\tnul\u0000bell\u0007', 'tab nul bell'],
    ['a\u0085b\u2028c\u2029d', 'a b c d'],
    ['\u0000x\u0000', 'x'],
    [' padded ', 'padded'],
    ['" quoted "', '" quoted "'],
    ['x suser=admin cs1=AccessGranted', 'x suser=admin cs1=AccessGranted'],
    ['x\nCEF:0|Forged|Event|1|1|name|10|', 'x\nCEF:0|Forged|Event|1|1|name|10|'],
    ['😀 עברית ]', '😀 עברית ]'],
    ['lone\ud800', 'lone\ufffd'],
  ])('%j is read back', (payloadName, expected) => {
    expect(valuesOf({ payloadName }).get('fname')).toBe(expected);
  });

  test('a value with only control characters is omitted, with its label', () => {
    const values = ofNetwork({ networkName: '\u0001\u0085', address: '\u0000' });
    for (const key of ['cs2', 'cs2Label', 'cs6', 'cs6Label']) expect(values.has(key)).toBe(false);
  });

  test('long values are truncated before they are escaped, never inside a character', () => {
    expect(valuesOf({ payloadName: '='.repeat(65_536) }).get('fname')).toBe('='.repeat(1023));
    expect(valuesOf({ payloadName: `${'x'.repeat(1022)}😀` }).get('fname')).toBe('x'.repeat(1022));
    expect(valuesOf({ payloadName: `${'x'.repeat(1022)} y` }).get('fname')).toBe('x'.repeat(1022));
    expect(ofNetwork({ address: 'ä'.repeat(65_536) }).get('cs6')).toBe('ä'.repeat(4000));
    expect(ofNetwork({ domainName: 'd'.repeat(300) }).get('sntdom')).toBe('d'.repeat(255));
  });

  test('an id that is too long is omitted, because a part of it would name another record', () => {
    expect(valuesOf({ logId: '1'.repeat(40) }).get('externalId')).toBe('1'.repeat(40));
    expect(valuesOf({ logId: '1'.repeat(41) }).has('externalId')).toBe(false);
  });

  test('the header escapes pipes and backslashes, and truncates', () => {
    const observer = { vendor: 'A|B\\C=D\r\nE\tF', product: 'p'.repeat(70), version: '1\u2028.0' };
    const line = lineOf(fullest, undefined, { observer });
    expect(line).toMatch(/^CEF:0\|A\\\|B\\\\C=D E F\|p{63}\|1 \.0\|Decrypt:AccessGranted:Success\|Protected file open allowed\|1\|rt=/);
    expect(parseCef(line)).toMatchObject({ vendor: 'A|B\\C=D E F', product: 'p'.repeat(63), deviceVersion: '1 .0' });
  });

  test('the class id of an unknown combination needs no escaping', () => {
    const read = readStrictly(lineOf({ ...fullest, actionAttempted: 'a|b=c%d#e\\f\n', result: '|'.repeat(5000) }));
    expect(read.classId).toMatch(/^a_b_c_d_e_f_:_{80}:Success$/);
    expect(read.values.get('cat')).toBe('a|b=c%d#e\\f');
  });
});

describe('addresses', () => {
  test('IPv6 has a separate key, or src', () => {
    expect([...ofNetwork({ ipAddress: '2001:db8::7' })]).toEqual(
      expect.arrayContaining([
        ['c6a2', '2001:db8::7'],
        ['c6a2Label', 'Source IPv6 Address'],
      ]),
    );
    const src = ofNetwork({ ipAddress: '2001:db8::7' }, { ipv6: 'src', geo: 'cfp' });
    expect(src.get('src')).toBe('2001:db8::7');
    expect(src.has('c6a2')).toBe(false);
    expect(ofNetwork({}, { ipv6: 'src', geo: 'cfp' }).get('src')).toBe('203.0.113.7');
  });

  test.each(['::ffff:192.0.2.9', '::ffff:c000:209'])('%s, of a dual-stack host, is an IPv4 address', (ipAddress) => {
    const values = ofNetwork({ ipAddress });
    expect([values.get('src'), values.has('c6a2')]).toEqual(['192.0.2.9', false]);
  });

  test('an invalid address has no typed key', () => {
    const values = ofNetwork({ ipAddress: 'unknown', mac: 'n/a', latLong: 'here' });
    for (const key of ['src', 'c6a2', 'smac', 'cfp1', 'cfp1Label']) expect(values.has(key)).toBe(false);
  });

  test('a MAC of six bytes has colons, one of eight is omitted', () => {
    expect(ofNetwork({}).get('smac')).toBe('00:00:5E:00:53:01');
    expect(ofNetwork({ mac: '0a1b.2c3d.4e5f.0102' }).has('smac')).toBe(false);
  });

  test('a domain with a dot is a DNS domain', () => {
    expect(ofNetwork({ domainName: 'a.example' }).get('sourceDnsDomain')).toBe('a.example');
    expect(ofNetwork({ domainName: 'A' }).get('sntdom')).toBe('A');
  });

  test('slat and slong only if configured', () => {
    const values = ofNetwork({}, { ipv6: 'c6a2', geo: 'slat' });
    expect([values.get('slat'), values.get('slong'), values.has('cfp1')]).toEqual(['12.5', '-0.25', false]);
  });
});

test('without a known outcome a file event has no verdict', () => {
  expect(valuesOf({ result: 'Queued' }).has('act')).toBe(false);
  expect(valuesOf({ actionAttempted: 'Audit', result: 'x' }).get('act')).toBe('Success');
});

test('events of two sources keep their own headers in one sink', () => {
  const encode = encoder('cef', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const record = recordOf(JSON.stringify(fullest));
  const one = normalizer(settings);
  const two = normalizer({ ...settings, observer: { vendor: 'Two', product: 'Other', version: '2' } });
  const vendors = [one, two, one, two].map((normalize) => parseCef(encode(normalize(record))).vendor);
  expect(vendors).toEqual(['Waybill', 'Two', 'Waybill', 'Two']);
});
