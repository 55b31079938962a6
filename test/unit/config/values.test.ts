import { expect, test } from 'vitest';
import { durationText, parseDuration, sizeText } from '../../../src/settings/units.ts';
import { duration, httpsUrl, instant, listenAddress, shortName, size } from '../../../src/settings/values.ts';

const messageOf = (
  schema: { safeParse(value: unknown): { error?: { issues: readonly { message: string }[] } | undefined } },
  value: unknown,
) => schema.safeParse(value).error?.issues[0]?.message;

test.each([
  ['10s', 10_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['30d', 2_592_000_000],
  ['1h30m', 5_400_000],
  ['250ms', 250],
  ['0s', 0],
  ['1d12h', 129_600_000],
])('the duration %s is %i ms', (text, ms) => {
  expect(duration().parse(text)).toBe(ms);
  expect(parseDuration(durationText(ms))).toBe(ms);
});

test.each(['', '10', 's', '15 minuts', '1.5h', '-1s', '10 s', '10S', '1w', '99999999d', '10s,', '１0s'])(
  '"%s" is not a duration',
  (text) => {
    expect(messageOf(duration(), text)).toBe('is not a duration such as 10s, 5m, 2h');
  },
);

test('a duration outside its bounds is refused with the bound', () => {
  expect(messageOf(duration({ min: '1s' }), '999ms')).toBe('is less than the minimum 1s');
  expect(messageOf(duration({ max: '10m' }), '10m1s')).toBe('is more than the maximum 10m');
  expect(duration({ min: '1s', max: '10m' }).parse('10m')).toBe(600_000);
});

test.each([
  ['512KiB', 524_288],
  ['2GiB', 2_147_483_648],
  ['1B', 1],
  ['3TiB', 3_298_534_883_328],
])('the size %s is %i bytes', (text, bytes) => {
  expect(size().parse(text)).toBe(bytes);
  expect(sizeText(bytes)).toBe(text);
});

test.each(['', '2GB', '2 GiB', '1.5MiB', '2', 'GiB', '9007199254740993B', '9000TiBB'])('"%s" is not a size', (text) => {
  expect(messageOf(size(), text)).toBe('is not a size such as 512KiB, 2GiB');
});

// Seconds since 1970 as `date -u -d TIME +%s` gives them.
test.each([
  ['2026-11-21T00:00:00Z', 1_795_219_200_000_000],
  ['2026-11-21T01:30:00.5+01:30', 1_795_219_200_500_000],
  ['2024-02-29T23:59:59.1234567Z', 1_709_251_199_123_456],
])('the time %s is %i µs', (text, us) => {
  expect(instant().parse(text)).toBe(us);
});

test.each([
  '2026-11-21',
  '2026-11-21T00:00:00',
  '2026-02-30T00:00:00Z',
  '2026-11-21 00:00:00Z',
  'now',
  '1969-12-31T23:59:59Z',
  '2026-11-21T24:00:01Z',
])('"%s" is not a time', (text) => {
  expect(messageOf(instant(), text)).toBe('is not a time such as 2026-11-21T00:00:00Z');
});

test.each(['a', '0', 'a-b', 'production', 'a'.repeat(32)])('"%s" is a valid short name', (text) => {
  expect(shortName().parse(text)).toBe(text);
});

test.each(['', '-a', 'A', 'a_b', 'a'.repeat(33), 'a\n', 'ä', '../a'])('%j is not a short name', (text) => {
  expect(messageOf(shortName(), text)).toBe('is not a short name: 1 to 32 of a-z, 0-9 and hyphen, no hyphen first');
});

test.each([
  ['https://service.example/v2/api/', 'https://service.example/v2/api'],
  ['HTTPS://Service.Example', 'https://service.example'],
  ['http://127.0.0.1:8080/x', 'http://127.0.0.1:8080/x'],
  ['http://127.8.9.10', 'http://127.8.9.10'],
  ['http://[::1]:80/', 'http://[::1]'],
  ['http://localhost:1', 'http://localhost:1'],
  ['https://[2001:db8::1]/api', 'https://[2001:db8::1]/api'],
])('the address %s is %s', (text, url) => {
  expect(httpsUrl().parse(text)).toBe(url);
});

const mustBeHttps = 'must start with https: (http: only for 127.0.0.0/8, ::1 and localhost)';
test.each([
  ['http://service.example', mustBeHttps],
  ['http://localhost.example', mustBeHttps],
  ['http://127.0.0.1.example', mustBeHttps],
  ['http://[::2]', mustBeHttps],
  ['http://128.0.0.1', mustBeHttps],
  ['http://0.0.0.0', mustBeHttps],
  ['ftp://service.example', 'is not an address such as https://service.example/v2/api'],
  ['service.example', 'is not an address such as https://service.example/v2/api'],
  ['https:service.example', 'is not an address such as https://service.example/v2/api'],
  ['', 'is not an address such as https://service.example/v2/api'],
  ['https://u:p@service.example', 'must not contain a user or password'],
  ['https://service.example/?a=b', 'must not contain a query or fragment'],
  ['https://service.example/#a', 'must not contain a query or fragment'],
])('the address %j %s', (text, message) => {
  expect(messageOf(httpsUrl(), text)).toBe(message);
});

test.each(['127.0.0.1:9464', '[::]:9464', '[::1]:0', 'localhost:65535', 'host-1.example:1'])('%s is a valid listen address', (text) => {
  expect(listenAddress().parse(text)).toBe(text);
});

test.each(['9464', ':9464', '::1:9464', '[127.0.0.1]:1', '[::g]:1', 'localhost:65536', 'localhost', 'a b:1'])(
  '%s is not a listen address',
  (text) => {
    expect(messageOf(listenAddress(), text)).toBe('is not an address to listen on such as 127.0.0.1:9464, [::]:9464');
  },
);
