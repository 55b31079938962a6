import { isIP } from 'node:net';
import { describe, expect, test } from 'vitest';
import { canonicalIp, ipVersion } from '../../../src/normalize/ip.ts';
import { emailParts, fileExtension, fullName, macAddress, position } from '../../../src/normalize/values.ts';

describe('addresses', () => {
  const addresses = [
    ['192.0.2.1', 4],
    ['0.0.0.0', 4],
    ['255.255.255.255', 4],
    ['256.0.0.1', undefined],
    ['1.2.3', undefined],
    ['1.2.3.4.5', undefined],
    ['01.2.3.4', undefined],
    ['1.2.3.00', undefined],
    ['1..2.3', undefined],
    ['1.2.3.', undefined],
    ['.1.2.3', undefined],
    ['1.2.3.4 ', undefined],
    ['::', 6],
    ['::1', 6],
    ['2001:db8::7', 6],
    ['2001:DB8:0:0:0:0:0:7', 6],
    ['1:2:3:4:5:6:7::', 6],
    ['::2:3:4:5:6:7:8', 6],
    ['1:2:3:4::5:6:7:8', undefined],
    ['1::2::3', undefined],
    [':::', undefined],
    ['1:2:3:4:5:6:7', undefined],
    ['1:2:3:4:5:6:7:8:9', undefined],
    ['1:2:3:4:5:6:7:', undefined],
    [':1:2:3:4:5:6:7', undefined],
    ['12345::', undefined],
    ['::g', undefined],
    ['::ffff:192.0.2.1', 6],
    ['1:2:3:4:5:6:192.0.2.1', 6],
    ['1:2:3:4:5:6:7:192.0.2.1', undefined],
    ['::192.0.2.1:5', undefined],
    ['192.0.2.1::', undefined],
    ['::192.0.2.01', undefined],
    ['fe80::1%eth0', undefined],
    ['[::1]', undefined],
    ['', undefined],
    ['unknown', undefined],
  ] as const;

  test.each(addresses)('%s is of version %s', (text, version) => {
    expect(ipVersion(text)).toBe(version);
  });

  // RFC 4291 section 2.5.5.2: 80 bits of zeros, 16 of ones, and the IPv4 address.
  test.each([
    ['::ffff:192.0.2.9', '192.0.2.9'],
    ['::FFFF:c000:209', '192.0.2.9'],
    ['0:0:0:0:0:ffff:c000:0209', '192.0.2.9'],
    ['0000::ffff:192.0.2.9', '192.0.2.9'],
    ['::ffff:0:0', '0.0.0.0'],
    ['::ffff:255.255.255.255', '255.255.255.255'],
    ['192.0.2.9', '192.0.2.9'],
    // Other addresses with an IPv4 address in them: compatible (2.5.5.1), translated (RFC 2765), NAT64 (RFC 6052).
    ['::192.0.2.9', '::192.0.2.9'],
    ['::ffff:0:192.0.2.9', '::ffff:0:192.0.2.9'],
    ['64:ff9b::192.0.2.9', '64:ff9b::192.0.2.9'],
    ['1::ffff:192.0.2.9', '1::ffff:192.0.2.9'],
    ['2001:db8::ffff', '2001:db8::ffff'],
    ['::ffff:192.0.2.09', undefined],
    ['::ffff:192.0.2.9%eth0', undefined],
    ['ffff', undefined],
  ])('%s is compared as %s', (text, address) => {
    expect(canonicalIp(text)).toBe(address);
  });

  test('equals node:net, which also accepts zones', () => {
    const pieces = ['0', '1', '25', '255', '256', '01', 'a', 'ffff', 'FFFFF', ':', '::', '.', ':', '.', '192.0.2.1', ' ', '%1'];
    const seed = Number(process.env.SEED ?? 7);
    let state = seed;
    const below = (n: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    let valid = 0;
    for (let i = 0; i < 50_000; i += 1) {
      const text =
        below(2) === 0
          ? Array.from({ length: 1 + below(14) }, () => pieces[below(pieces.length)] ?? '').join('')
          : Array.from({ length: 3 + below(6) }, () => (below(5) === 0 ? '' : below(65_536).toString(16))).join(':');
      const expected = text.includes('%') ? 0 : isIP(text);
      if (expected !== 0) valid += 1;
      expect(ipVersion(text) ?? 0, `seed ${seed}: ${text}`).toBe(expected);
    }
    expect(valid).toBeGreaterThan(500);
  });
});

test.each([
  ['0a:1b:2c:3d:4e:5f', '0A-1B-2C-3D-4E-5F'],
  ['0A1B.2C3D.4E5F', '0A-1B-2C-3D-4E-5F'],
  ['0a1b2c3d4e5f', '0A-1B-2C-3D-4E-5F'],
  ['0a 1b 2c 3d 4e 5f', '0A-1B-2C-3D-4E-5F'],
  ['0a1b.2c3d.4e5f.0102', '0A-1B-2C-3D-4E-5F-01-02'],
  ['0a:1b:2c:3d:4e', undefined],
  ['0a:1b:2c:3d:4e:5f:01', undefined],
  ['0a:1b:2c:3d:4e:5g', undefined],
  ['0a/1b/2c/3d/4e/5f', undefined],
  ['n/a', undefined],
  [':'.repeat(65_536), undefined],
])('MAC %#', (text, mac) => {
  expect(macAddress(text)).toBe(mac);
});

test.each([
  ['51.5072,-0.1276', { lat: 51.5072, lon: -0.1276 }],
  [' 51.5 , +0.5 ', { lat: 51.5, lon: 0.5 }],
  ['90,180', { lat: 90, lon: 180 }],
  ['-90,-180', { lat: -90, lon: -180 }],
  ['90.1,0', undefined],
  ['0,0', undefined],
  ['-0.0, 0', undefined],
  ['0,0.1', { lat: 0, lon: 0.1 }],
  ['0,180.1', undefined],
  ['95.1,10', undefined],
  ['1,2,3', undefined],
  ['1;2', undefined],
  ['1e1,2', undefined],
  ['0x1,2', undefined],
  ['1,', undefined],
  ['.,1', undefined],
  ['', undefined],
  [`1${'0'.repeat(65_536)}x,1`, undefined],
])('position %#', (text, expected) => {
  expect(position(text)).toEqual(expected);
});

test.each([
  ['user@example.com', { name: 'user', domain: 'example.com' }],
  ['a@b@c', undefined],
  ['@b', undefined],
  ['a@', undefined],
  [' @b', undefined],
  ['a@\t', undefined],
  ['a', undefined],
])('the address %j', (text, parts) => {
  expect(emailParts(text)).toEqual(parts);
});

test.each([
  ['Last,First', 'First Last'],
  [' Last , First Middle ', 'First Middle Last'],
  ['Last, Jr., First', 'Last, Jr., First'],
  ['Last,', 'Last,'],
  [',First', ',First'],
  ['Last, ', 'Last, '],
  ['One', 'One'],
])('the name %j', (text, name) => {
  expect(fullName(text)).toBe(name);
});

test.each([
  ['Plan.XLSX', 'xlsx'],
  ['a.b.c7', 'c7'],
  ['.hidden', undefined],
  ['x.', undefined],
  ['x.abcdefghijklmnop', 'abcdefghijklmnop'],
  ['x.abcdefghijklmnopq', undefined],
  ['x.t-t', undefined],
  ['x.tär', undefined],
  ['none', undefined],
  [`${'.'.repeat(65_536)} `, undefined],
])('extension %#', (text, extension) => {
  expect(fileExtension(text)).toBe(extension);
});
