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

/** Numeric character references (HTML section 13.5) of the characters that match. */
const references = (text: string, characters: RegExp, written: (point: number) => string): string =>
  text.replace(characters, (character) => `&#${written(character.codePointAt(0) ?? 0)};`);

export const encodings: readonly Encoding[] = [
  { name: 'plain', encode: (s) => s },
  { name: 'plain, lower case', encode: (s) => s.toLowerCase() },
  { name: 'percent (RFC 3986), upper hex', encode: (s) => percent(s, /[A-Za-z0-9._~-]/) },
  { name: 'percent (RFC 3986), lower hex', encode: (s) => percent(s, /[A-Za-z0-9._~-]/, false) },
  { name: 'percent, encodeURIComponent', encode: (s) => percent(s, /[A-Za-z0-9._~!*'()-]/) },
  { name: 'form', encode: form },
  { name: 'form, lower hex', encode: (s) => form(s).replace(/%../g, (escape) => escape.toLowerCase()) },
  { name: 'JSON', encode: (s) => json(s, false) },
  { name: 'JSON, solidus escaped', encode: (s) => json(s, true) },
  { name: 'JSON of .NET', encode: (s) => s.replaceAll('\\', '\\\\').replace(/["&'+<>`]|[^ -~]/g, units) },
  { name: 'JSON in ASCII', encode: (s) => json(s, false).replace(/[^ -~]/g, units) },
  { name: 'base64', encode: (s) => base64(bytesOf(s)) },
  { name: 'base64 without padding', encode: (s) => base64(bytesOf(s), false) },
  { name: 'base64url', encode: (s) => urlSafe(base64(bytesOf(s))) },
  { name: 'base64url without padding', encode: (s) => urlSafe(base64(bytesOf(s), false)) },
  { name: 'base64 behind one byte', encode: (s) => base64(bytesOf(`:${s}.`)) },
  { name: 'base64 behind two bytes', encode: (s) => base64(bytesOf(`u:${s}@h`)) },
  { name: 'base64 behind three bytes', encode: (s) => base64(bytesOf(`us:${s}@host`)) },
  { name: 'base64url behind a user', encode: (s) => urlSafe(base64(bytesOf(`user:${s}`), false)) },
  { name: 'base64 of form', encode: (s) => base64(bytesOf(`user:${form(s)}`)) },
  { name: 'hex, lower', encode: (s) => bytesOf(s).map(hexOf).join('') },
  { name: 'hex, upper', encode: (s) => bytesOf(s).map(hexOf).join('').toUpperCase() },
  { name: 'HTML, decimal', encode: (s) => references(s, /[^A-Za-z0-9]/gu, (point) => String(point)) },
  { name: 'HTML, hex', encode: (s) => references(s, /[^A-Za-z0-9]/gu, (point) => `x${point.toString(16)}`) },
  { name: 'HTML, hex, upper', encode: (s) => references(s, /[^A-Za-z0-9]/gu, (point) => `X${point.toString(16).toUpperCase()}`) },
  { name: 'HTML, signs of markup', encode: (s) => references(s, /["&'+<>\\`]|[^ -~]/gu, (point) => String(point)) },
  { name: 'HTML, signs of markup, hex', encode: (s) => references(s, /["&'+<>\\`]|[^ -~]/gu, (point) => `x${point.toString(16)}`) },
]; // prettier-ignore

/** Decodes with Python's standard library, as a check of the encoders above. */
export function decodedByPython(pairs: readonly { readonly name: string; readonly text: string }[]): readonly (string | null)[] {
  const program = `
import sys, json, base64, html, urllib.parse
def read(name, text):
    if name.startswith('plain'): return None
    if name.startswith('percent'): return urllib.parse.unquote(text)
    if name.startswith('form'): return urllib.parse.unquote_plus(text)
    if name.startswith('JSON'): return json.loads('"' + text + '"')
    if name == 'base64 of form': return urllib.parse.unquote_plus(base64.b64decode(text).decode())
    if name.startswith('base64url'): return base64.urlsafe_b64decode(text.rstrip('=') + '=' * (-len(text.rstrip('=')) % 4)).decode()
    if name.startswith('base64'):
        text = text.rstrip('=')
        return base64.b64decode(text + '=' * (-len(text) % 4)).decode()
    if name.startswith('hex'): return bytes.fromhex(text).decode()
    if name.startswith('HTML'): return html.unescape(text)
    raise ValueError(name)
print(json.dumps([read(p['name'], p['text']) for p in json.load(sys.stdin)]))
`;
  return JSON.parse(execFileSync('python3', ['-c', program], { input: JSON.stringify(pairs), encoding: 'utf8' })) as (string | null)[];
}
