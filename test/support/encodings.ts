/**
 * The encodings in which a server may return a text, each implemented from its own specification
 * and without the code under test.
 */
import { execFileSync } from 'node:child_process';

interface Encoding {
  readonly name: string;
  /** The form in which a server would return the secret. */
  readonly encode: (secret: string) => string;
}

const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)];
const hexOf = (byte: number): string => byte.toString(16).padStart(2, '0');
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** RFC 4648 section 4, bit by bit. */
function base64(bytes: readonly number[], isPadded = true): string {
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('');
  let text = '';
  for (let at = 0; at < bits.length; at += 6) text += alphabet[parseInt(bits.slice(at, at + 6).padEnd(6, '0'), 2)] ?? '';
  return isPadded ? text.padEnd(Math.ceil(text.length / 4) * 4, '=') : text;
}

/** RFC 4648 section 5. */
const urlSafe = (text: string): string => text.replaceAll('+', '-').replaceAll('/', '_');

/** Percent-encodes each byte outside the unreserved set. */
function percent(text: string, unreserved: RegExp, isUpper = true): string {
  return bytesOf(text)
    .map((byte) => {
      const character = String.fromCharCode(byte);
      if (byte < 0x80 && unreserved.test(character)) return character;
      return `%${isUpper ? hexOf(byte).toUpperCase() : hexOf(byte)}`;
    })
    .join('');
}

/** The byte serializer of application/x-www-form-urlencoded (URL Standard section 5.2). */
const form = (text: string): string => percent(text, /[A-Za-z0-9*._ -]/).replaceAll(' ', '+');

/** UTF-16 units as `\uXXXX` (RFC 8259 section 7). */
const units = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');

/** The short escapes of RFC 8259 section 7, with the solidus that PHP escapes. */
function json(text: string, isSolidusEscaped: boolean): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('/', isSolidusEscaped ? '\\/' : '/');
}

const namedEntities: readonly (readonly [string, string])[] = [
  ['&', '&amp;'], ['<', '&lt;'], ['>', '&gt;'], ['"', '&quot;'], ["'", '&apos;'], ['+', '&plus;'], ['/', '&sol;'], ['!', '&excl;'],
  ['%', '&percnt;'], ['=', '&equals;'], [':', '&colon;'], ['.', '&period;'], ['\\', '&bsol;'], ['_', '&lowbar;'], ['ä', '&auml;'],
]; // prettier-ignore
const named = (text: string): string => namedEntities.reduce((all, [character, entity]) => all.replaceAll(character, entity), text);
const points = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0) ?? 0);
const lines = (text: string): string => text.replace(/(.{20})(?=.)/g, '$1\r\n');

export const encodings: readonly Encoding[] = [
  { name: 'plain', encode: (s) => s },
  { name: 'plain, lower case', encode: (s) => s.toLowerCase() },
  { name: 'percent (RFC 3986), upper hex', encode: (s) => percent(s, /[A-Za-z0-9._~-]/) },
  { name: 'percent (RFC 3986), lower hex', encode: (s) => percent(s, /[A-Za-z0-9._~-]/, false) },
  { name: 'percent, encodeURIComponent', encode: (s) => percent(s, /[A-Za-z0-9._~!*'()-]/) },
  { name: 'percent, every byte, upper hex', encode: (s) => percent(s, /(?!)/) },
  { name: 'percent, every byte, lower hex', encode: (s) => percent(s, /(?!)/, false) },
  { name: 'percent, twice', encode: (s) => percent(percent(s, /[A-Za-z0-9._~-]/), /[A-Za-z0-9._~-]/) },
  { name: 'form', encode: form },
  { name: 'form, lower hex', encode: (s) => form(s).replace(/%../g, (escape) => escape.toLowerCase()) },
  { name: 'JSON', encode: (s) => json(s, false) },
  { name: 'JSON, solidus escaped', encode: (s) => json(s, true) },
  { name: 'JSON, every unit', encode: units },
  { name: 'JSON, every unit, upper hex', encode: (s) => units(s).replace(/u(....)/g, (_, hex: string) => `u${hex.toUpperCase()}`) },
  { name: 'JSON, twice', encode: (s) => json(json(s, false), false) },
  { name: 'base64', encode: (s) => base64(bytesOf(s)) },
  { name: 'base64 without padding', encode: (s) => base64(bytesOf(s), false) },
  { name: 'base64url', encode: (s) => urlSafe(base64(bytesOf(s))) },
  { name: 'base64url without padding', encode: (s) => urlSafe(base64(bytesOf(s), false)) },
  { name: 'base64 behind one byte', encode: (s) => base64(bytesOf(`:${s}.`)) },
  { name: 'base64 behind two bytes', encode: (s) => base64(bytesOf(`u:${s}@h`)) },
  { name: 'base64 behind three bytes', encode: (s) => base64(bytesOf(`us:${s}@host`)) },
  { name: 'base64url behind a user', encode: (s) => urlSafe(base64(bytesOf(`user:${s}`), false)) },
  { name: 'base64 of form', encode: (s) => base64(bytesOf(`user:${form(s)}`)) },
  { name: 'base64 in lines', encode: (s) => lines(base64(bytesOf(`user:${s}`))) },
  { name: 'base64, percent', encode: (s) => percent(base64(bytesOf(s)), /[A-Za-z0-9._~-]/) },
  { name: 'hex, lower', encode: (s) => bytesOf(s).map(hexOf).join('') },
  { name: 'hex, upper', encode: (s) => bytesOf(s).map(hexOf).join('').toUpperCase() },
  { name: 'bytes as \\x', encode: (s) => bytesOf(s).map((byte) => `\\x${hexOf(byte)}`).join('') },
  { name: 'base64, twice', encode: (s) => base64(bytesOf(base64(bytesOf(s)))) },
  { name: 'base64, three times', encode: (s) => base64(bytesOf(base64(bytesOf(base64(bytesOf(s)))))) },
  { name: 'base64, twice, behind a path', encode: (s) => `v2/${base64(bytesOf(base64(bytesOf(s))))}` },
  { name: 'base64 of hex', encode: (s) => base64(bytesOf(bytesOf(s).map(hexOf).join(''))) },
  { name: 'base64 of HTML', encode: (s) => base64(bytesOf(points(s).map((point) => `&#${point};`).join(''))) },
  { name: 'base64 of UTF-16', encode: (s) => base64([...Buffer.from(s, 'utf16le')]) },
  { name: 'hex of base64', encode: (s) => bytesOf(base64(bytesOf(s))).map(hexOf).join('') },
  { name: 'hex of percent', encode: (s) => bytesOf(percent(s, /[A-Za-z0-9._~-]/)).map(hexOf).join('') },
  { name: 'hex, spaces', encode: (s) => bytesOf(s).map(hexOf).join(' ') },
  { name: 'hex, colons, upper', encode: (s) => bytesOf(s).map(hexOf).join(':').toUpperCase() },
  { name: 'hex, 0x and commas', encode: (s) => bytesOf(s).map((byte) => `0x${hexOf(byte)}`).join(', ') },
  { name: 'hex, groups of two bytes', encode: (s) => bytesOf(s).map(hexOf).join('').replace(/(.{4})(?=.)/g, '$1 ') },
  { name: 'bytes, decimal', encode: (s) => `[${bytesOf(s).join(',')}]` },
  { name: 'bytes as octal', encode: (s) => bytesOf(s).map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('') },
  { name: 'percent, UTF-16 units', encode: (s) => units(s).replaceAll('\\', '%') },
  { name: 'code points in braces', encode: (s) => points(s).map((point) => `\\u{${point.toString(16)}}`).join('') },
  { name: 'code points of eight digits', encode: (s) => points(s).map((point) => `\\U${point.toString(16).padStart(8, '0')}`).join('') },
  { name: 'quoted-printable', encode: (s) => bytesOf(s).map((byte) => `=${hexOf(byte).toUpperCase()}`).join('') },
  { name: 'HTML, named', encode: named },
  { name: 'HTML, decimal', encode: (s) => points(s).map((point) => `&#${point};`).join('') },
  { name: 'HTML, hex', encode: (s) => points(s).map((point) => `&#x${point.toString(16)};`).join('') },
  { name: 'HTML, hex, upper', encode: (s) => points(s).map((point) => `&#X${point.toString(16).toUpperCase()};`).join('') },
  { name: 'HTML, then percent', encode: (s) => percent(named(s), /[A-Za-z0-9._~-]/) },
  { name: 'cut, the begin and an ellipsis', encode: (s) => `${s.slice(0, Math.ceil(s.length * 0.6))}...` },
  { name: 'cut, masked begin', encode: (s) => `****${s.slice(Math.floor(s.length * 0.4))}` },
  { name: 'cut, the middle', encode: (s) => s.slice(Math.floor(s.length * 0.1), Math.ceil(s.length * 0.9)) },
]; // prettier-ignore

/** Decodes with Python's standard library, as a check of the encoders above. */
export function decodedByPython(pairs: readonly { readonly name: string; readonly text: string }[]): readonly (string | null)[] {
  const program = `
import sys, json, base64, html, quopri, urllib.parse, binascii
def read(name, text):
    if name.startswith('cut') or name.startswith('plain'): return None
    if name == 'percent, twice': return urllib.parse.unquote(urllib.parse.unquote(text))
    if name == 'percent, UTF-16 units': return json.loads('"' + text.replace('%', '\\\\') + '"')
    if name.startswith('percent'): return urllib.parse.unquote(text)
    if name.startswith('form'): return urllib.parse.unquote_plus(text)
    if name == 'JSON, twice': return json.loads('"' + json.loads('"' + text + '"') + '"')
    if name.startswith('JSON'): return json.loads('"' + text + '"')
    if name == 'base64, percent': return base64.b64decode(urllib.parse.unquote(text)).decode()
    if name.startswith('base64, t'):
        text = text.removeprefix('v2/')
        for _ in range(3 if name == 'base64, three times' else 2): text = base64.b64decode(text).decode()
        return text
    if name == 'base64 of hex': return binascii.unhexlify(base64.b64decode(text)).decode()
    if name == 'base64 of HTML': return html.unescape(base64.b64decode(text).decode())
    if name == 'base64 of UTF-16': return base64.b64decode(text).decode('utf-16-le')
    if name == 'hex of base64': return base64.b64decode(binascii.unhexlify(text)).decode()
    if name == 'hex of percent': return urllib.parse.unquote(binascii.unhexlify(text).decode())
    if name == 'bytes, decimal': return bytes(json.loads(text)).decode()
    if name == 'bytes as octal': return text.encode().decode('unicode_escape').encode('latin-1').decode()
    if name == 'code points of eight digits': return text.encode().decode('unicode_escape')
    if name == 'code points in braces': return ''.join(chr(int(point, 16)) for point in text[3:-1].split('}\\\\u{'))
    if name == 'quoted-printable': return quopri.decodestring(text).decode()
    if name == 'base64 of form': return urllib.parse.unquote_plus(base64.b64decode(text).decode())
    if name.startswith('base64url'): return base64.urlsafe_b64decode(text.rstrip('=') + '=' * (-len(text.rstrip('=')) % 4)).decode()
    if name.startswith('base64'):
        text = text.replace('\\r\\n', '').rstrip('=')
        return base64.b64decode(text + '=' * (-len(text) % 4)).decode()
    if name.startswith('hex'): return bytes.fromhex(text.replace('0x', '').replace(',', '').replace(':', '')).decode()
    if name.startswith('bytes'): return binascii.unhexlify(text.replace('\\\\x', '')).decode()
    if name == 'HTML, then percent': return html.unescape(urllib.parse.unquote(text))
    if name.startswith('HTML'): return html.unescape(text)
    raise ValueError(name)
print(json.dumps([read(p['name'], p['text']) for p in json.load(sys.stdin)]))
`;
  return JSON.parse(execFileSync('python3', ['-c', program], { input: JSON.stringify(pairs), encoding: 'utf8' })) as (string | null)[];
}
