/**
 * Removes the secrets that this process knows from text. A server may return a request in many encodings: the text is decoded layer by
 * layer (`decoders`), and each decoded view is searched for each secret in plain form, base64 and hex. Parts of a secret are removed too:
 * servers truncate and mask what they return. docs/operations.md lists the encodings.
 *
 * The work is bounded: no view is longer than the text, there are at most `viewsMax` views, and one table look-up per character finds
 * the few places to compare.
 */

/** Replaces a removed secret. */
export const removed = '[secret]';

/** Values that stay known for each owner: a server may still return an old secret or token after it was replaced. */
const valuesPerOwner = 8;
/** Values that stay known after their owner was garbage-collected, for all owners together: a server may still return them. */
const formerMax = 256;
/** A shorter secret cannot be distinguished from ordinary text. */
const shortest = 4;
/** Up to this length, a secret of letters or of digits is removed only as a whole word: `elastic` stays in `elasticsearch`. */
const wordMax = 11;
/** Characters of one table look-up; also the shortest part of a secret to remove at a cut end of the text. */
const gram = 6;
/** Up to this length, each part of a secret is in the table. */
const everyGramMax = 64;
/** Parts of repetitive secrets to compare at one place of the text. */
const candidatesMax = 4;
const viewsMax = 16;
const layersMax = 3;

/** A form of a secret to search for: folded text, one character per byte. */
interface Needle {
  readonly folded: string;
  /** The text before folding, if it consists of words. */
  readonly readable: string | undefined;
  /** The shortest part to remove anywhere in the text. */
  readonly partMin: number;
  readonly isBase64: boolean;
}

interface Index {
  readonly grams: Map<string, { readonly needle: Needle; readonly at: number }[]>;
  /** Case-folded secrets that are removed only where they are whole words. */
  readonly message: Set<string>;
}

/** A decoded form of the text: one character per byte, and the range of the original text for each. */
interface View {
  readonly bytes: string;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

const valuesOf = new WeakMap<object, string[]>();
/** The number of owners of each known value. The list of former values is an owner too. */
const owners = new Map<string, number>();
/** Oldest first. */
const former: string[] = [];
const collected = new FinalizationRegistry<readonly string[]>((values) => values.forEach(retire));
let index: Index | undefined;

/**
 * Adds a secret to those to remove. The last eight values of an owner stay known as long as the owner is reachable, and then until 256 later
 * values have lost their owner.
 * @param owner  the object that obtains the secret and lives as long as the secret is used: a setting, a client of a token endpoint
 */
export function remember(owner: object, secret: string): void {
  let values = valuesOf.get(owner);
  if (values === undefined) {
    values = [];
    valuesOf.set(owner, values);
    collected.register(owner, values);
  }
  if (secret.length < shortest || values.at(-1) === secret) return;
  const known = values.indexOf(secret);
  if (known >= 0) values.splice(known, 1);
  else {
    const count = owners.get(secret) ?? 0;
    owners.set(secret, count + 1);
    if (count === 0 && index !== undefined) add(index, secret);
  }
  values.push(secret);
  if (values.length > valuesPerOwner) forget(values.shift() ?? '');
}

/** Called when the owner of the value was garbage-collected. */
function retire(secret: string): void {
  if ((owners.get(secret) ?? 0) > 1) forget(secret);
  else if (former.push(secret) > formerMax) forget(former.shift() ?? '');
}

function forget(secret: string): void {
  const count = owners.get(secret) ?? 0;
  if (count > 1) owners.set(secret, count - 1);
  else {
    owners.delete(secret);
    index = undefined;
  }
}

/**
 * Replaces every known secret, in any encoding, with `[secret]`.
 * @param message  also removes secrets that may be ordinary words (`elastic`): for text of the other side, not for text of Waybill
 */
export function withoutSecrets(text: string, message: boolean): string {
  if (owners.size === 0 || text.length < shortest) return text;
  index ??= built();
  const hits: { readonly from: number; readonly to: number }[] = [];
  for (const view of viewsOf(text)) {
    const folded = fold(view.bytes);
    const hit = (from: number, to: number): void => void hits.push({ from: view.from[from] ?? 0, to: view.to[to - 1] ?? text.length });
    searchParts(index, view.bytes, folded, hit);
    if (message) searchWords(index, folded, hit);
  }
  if (hits.length === 0) return text;
  hits.sort((a, b) => a.from - b.from);
  let clean = '';
  let at = 0;
  for (const { from, to } of hits) {
    if (from > at || (from === at && !clean.endsWith(removed))) clean += text.slice(at, from) + removed;
    at = Math.max(at, to);
  }
  return clean + text.slice(at);
}

function built(): Index {
  const empty: Index = { grams: new Map(), message: new Set() };
  for (const secret of owners.keys()) add(empty, secret);
  return empty;
}

function add({ grams, message }: Index, secret: string): void {
  const put = (needle: Needle): void => {
    const last = needle.folded.length - gram;
    // Every part of `partMin` characters contains one of these; for a short secret, every part of `gram` characters.
    const step = needle.folded.length <= everyGramMax ? 1 : needle.partMin - gram + 1;
    for (let at = 0; ; at = Math.min(at + step, last)) {
      const key = needle.folded.slice(at, at + gram);
      const places = grams.get(key) ?? [];
      if (places.length < candidatesMax || !places.some((place) => place.needle === needle)) places.push({ needle, at });
      grams.set(key, places);
      if (at >= last) break;
    }
  };
  const bytes = utf8(secret);
  if (bytes.length < gram || (secret.length <= wordMax && (isWords(secret) || /^\d+$/.test(secret)))) message.add(fold(bytes));
  else put({ folded: fold(bytes), readable: bytes, partMin: 12, isBase64: false });
  if (bytes.length < gram) {
    const encoded = Buffer.from(bytes, 'latin1');
    message
      .add(fold(encoded.toString('base64')))
      .add(fold(encoded.toString('base64url')))
      .add(encoded.toString('hex'));
    return;
  }
  if (bytes.length > secret.length && !/[^\0-\xff]/.test(secret)) {
    if (secret.length >= gram) put({ folded: fold(secret), readable: secret, partMin: 12, isBase64: false });
  }
  // Finds a secret in two layers: encoded as JSON or as a form first, then as base64 or hex.
  const json = JSON.stringify(secret).slice(1, -1);
  const wellFormed = secret.toWellFormed();
  const form = new URLSearchParams([['', wellFormed]]).toString().slice(1);
  for (const each of new Set([secret, encodeURIComponent(wellFormed), form, json].map(utf8))) {
    put({ folded: Buffer.from(each, 'latin1').toString('hex'), readable: undefined, partMin: 24, isBase64: false });
    for (const core of base64Cores(each)) put({ folded: fold(core), readable: undefined, partMin: 16, isBase64: true });
  }
}

/** The base64 characters that depend only on these bytes, for each offset of 0, 1 or 2 preceding bytes (modulo 3). */
function base64Cores(bytes: string): readonly string[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.from('\0'.repeat(before) + bytes, 'latin1').toString('base64');
    return encoded.slice(Math.ceil((8 * before) / 6), Math.floor((8 * (before + bytes.length)) / 6));
  });
}

type Hit = (from: number, to: number) => void;

function searchParts({ grams }: Index, bytes: string, folded: string, hit: Hit): void {
  let done = 0;
  for (let at = 0; at + gram <= folded.length; at += 1) {
    const places = grams.get(folded.slice(at, at + gram));
    if (places === undefined) continue;
    let furthest = 0;
    for (const { needle, at: within } of places) {
      let back = 0;
      while (back < within && at - back > done && folded[at - back - 1] === needle.folded[within - back - 1]) back += 1;
      let length = gram;
      while (within + length < needle.folded.length && folded[at + length] === needle.folded[within + length]) length += 1;
      const [from, to] = [at - back, at + length];
      if (!isPart(needle, within - back, within + length, from === done || isCutBefore(bytes, from), isCutAfter(bytes, to))) continue;
      const end = needle.isBase64 && within + length === needle.folded.length ? endOfBase64(bytes, to) : to;
      hit(from, end);
      furthest = Math.max(furthest, end);
    }
    if (furthest > 0) {
      done = furthest;
      at = furthest - 1;
    }
  }
}

/** True for the whole secret, a long part, or a shorter part at a cut end of the text. */
function isPart({ folded, readable, partMin }: Needle, from: number, to: number, isCutBefore: boolean, isCutAfter: boolean): boolean {
  const length = to - from;
  if (length === folded.length) return true;
  // A short part of a passphrase may occur in ordinary text: it is removed only with more of the secret.
  if (length < 2 * partMin && readable !== undefined && isWords(readable.slice(from, to))) return false;
  if (length >= partMin) return true;
  return folded.length > partMin && (isCutBefore || isCutAfter);
}

const ellipsis = '\u00e2\u0080\u00a6';

/** At the start of the text, also within an escape, or after the mark of an omitted part. */
function isCutBefore(bytes: string, at: number): boolean {
  return (at < 8 && /^[0-9a-fux#;]*$/i.test(bytes.slice(0, at))) || isOmission(bytes.slice(Math.max(0, at - 3), at));
}

function isCutAfter(bytes: string, at: number): boolean {
  return (
    (bytes.length - at < 12 && /^(?:(?:%|&#?x?|\\+[ux]?)[0-9a-z]{0,6})?$/i.test(bytes.slice(at))) || isOmission(bytes.slice(at, at + 3))
  );
}

function isOmission(text: string): boolean {
  return ['...', '***', 'xxx', ellipsis].includes(text.toLowerCase());
}

/**
 * The characters that depend only on the secret may be followed by a character that depends on it
 * in part, and by padding.
 */
function endOfBase64(bytes: string, at: number): number {
  return at + (/^[A-Za-z0-9+/_-]?={0,2}/.exec(bytes.slice(at, at + 3))?.[0].length ?? 0);
}

function searchWords({ message }: Index, folded: string, hit: Hit): void {
  for (const word of message) {
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + 1)) {
      if (!/[a-z0-9]/.test(folded[at - 1] ?? ' ') && !/[a-z0-9]/.test(folded[at + word.length] ?? ' ')) hit(at, at + word.length);
    }
  }
}

/** Words in one case or capitalized, separated by blanks, hyphens, underscores or dots. */
function isWords(text: string): boolean {
  return /^[A-Za-z _.-]*$/.test(text) && text.split(/[ _.-]/).every((word) => /^(?:[A-Za-z]?[a-z]*|[A-Z]+)$/.test(word));
}

/** Removes differences between encodings: case, `+` for a blank, and the two base64 alphabets. */
function fold(bytes: string): string {
  return bytes
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[+-]/g, ' ')
    .replaceAll('_', '/');
}

function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function viewsOf(text: string): readonly View[] {
  const views = rootsOf(text);
  const known = new Set(views.map(({ bytes }) => bytes));
  for (let layer = 0, done = 0; layer < layersMax && done < views.length; layer += 1) {
    const to = views.length;
    for (; done < to; done += 1) {
      const view = views[done];
      if (view === undefined) continue;
      for (const decoder of decoders) {
        if (view.bytes.search(decoder.pattern) < 0) continue;
        const next = decoded(view, decoder);
        if (known.has(next.bytes) || views.length >= viewsMax) continue;
        known.add(next.bytes);
        views.push(next);
      }
    }
  }
  return views;
}

/** The text in UTF-8; also in Latin-1 when it may be UTF-8 that was decoded as Latin-1 (a header). */
function rootsOf(text: string): View[] {
  const ends: number[] = [];
  const starts: number[] = [];
  let bytes = '';
  for (let at = 0; at < text.length;) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    const encoded = character < '\u0080' ? character : utf8(character);
    for (let i = 0; i < encoded.length; i += 1) {
      starts.push(at);
      ends.push(at + character.length);
    }
    bytes += encoded;
    at += character.length;
  }
  const root: View = { bytes, from: Uint32Array.from(starts), to: Uint32Array.from(ends) };
  if (bytes.length === text.length || !/[\u0080-\u00ff]/.test(text)) return [root];
  const each = Uint32Array.from({ length: text.length }, (_, at) => at);
  return [root, { bytes: text.replace(/[^\0-\u00ff]/g, '\0'), from: each, to: each.map((at) => at + 1) }];
}

interface Decoder {
  readonly pattern: RegExp;
  /** The decoded bytes of a match; undefined leaves it unchanged. */
  readonly read: (match: RegExpExecArray) => string | undefined;
}

function decoded({ bytes, from, to }: View, { pattern, read }: Decoder): View {
  const starts = new Uint32Array(bytes.length);
  const ends = new Uint32Array(bytes.length);
  let out = '';
  let done = 0;
  const copy = (end: number): void => {
    starts.set(from.subarray(done, end), out.length);
    ends.set(to.subarray(done, end), out.length);
    out += bytes.slice(done, end);
    done = end;
  };
  for (const match of bytes.matchAll(pattern)) {
    const value = read(match);
    if (value === undefined) continue;
    copy(match.index);
    done = match.index + match[0].length;
    starts.fill(from[match.index] ?? 0, out.length, out.length + value.length);
    ends.fill(to[done - 1] ?? 0, out.length, out.length + value.length);
    out += value;
  }
  copy(bytes.length);
  return { bytes: out, from: starts, to: ends };
}

const controls: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

const decoders: readonly Decoder[] = [
  {
    // `%uXXXX` is `escape` of JavaScript.
    pattern: /%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/gi,
    read: ([, unit, byte = '']) => (unit === undefined ? String.fromCharCode(parseInt(byte, 16)) : pointText(unit)),
  },
  {
    // JSON (RFC 8259 section 7), a surrogate pair as one character; `\u{…}` and `\UXXXXXXXX`; `\xNN` and octal, the byte escapes of server logs.
    pattern:
      /\\(?:[uU]([dD][89abAB][\da-fA-F]{2})\\[uU]([dD][c-fC-F][\da-fA-F]{2})|u\{([\da-fA-F]{1,6})\}|U([\da-fA-F]{8})|[uU]([\da-fA-F]{4})|[xX]([\da-fA-F]{2})|([0-3][0-7]{2})|([^uUxX]))/g,
    read: ([, high, low, braced, long, unit, byte, octal, character = '']) => {
      if (high !== undefined && low !== undefined) return utf8(String.fromCharCode(parseInt(high, 16), parseInt(low, 16)));
      const point = braced ?? long ?? unit;
      if (point !== undefined) return pointText(point);
      if (octal !== undefined) return String.fromCharCode(parseInt(octal, 8));
      return byte === undefined ? (controls[character] ?? character) : String.fromCharCode(parseInt(byte, 16));
    },
  },
  {
    // The semicolon may be missing at the end of a cut text.
    pattern: /&(?:#(\d{1,9})|#x([0-9a-f]{1,8})|([a-z]{2,20}[0-9]{0,2}))(?:;|(?![0-9a-z]|$))/gi,
    read: ([, decimal, hex, name]) => {
      const code = name === undefined ? parseInt(decimal ?? hex ?? '', decimal === undefined ? 16 : 10) : entities.get(name);
      return code === undefined || code > 0x10ffff ? undefined : utf8(String.fromCodePoint(code));
    },
  },
  // A folded header, or base64 in lines of 76 characters.
  { pattern: /\r?\n[ \t]*|(?<=[A-Za-z0-9+/_=-]{16})[ \t]+(?=[A-Za-z0-9+/_=-]{4})/g, read: () => '' },
  { pattern: /[A-Za-z0-9+/_-]{10,}={0,2}/g, read: ([run]) => textInBase64(run) },
  {
    // Hex, also with separators: `74 6f`, `74:6f`, `746f 6b2d`, `0x74, 0x6f`.
    pattern: /(?:0x)?[0-9a-f]{2}(?:(?:, ?|[ :-])?(?:0x)?[0-9a-f]{2}){5,}/gi,
    read: ([run]) => Buffer.from(run.replace(/0x|[ :,-]/gi, ''), 'hex').toString('latin1'),
  },
  {
    // A list of bytes: `[116,111,107]`.
    pattern: /\b\d{1,3}(?:(?:, ?| )\d{1,3}){5,}\b/g,
    read: ([run]) => {
      const bytes = run.split(/, ?| /).map(Number);
      return bytes.every((byte) => byte <= 0xff) ? String.fromCharCode(...bytes) : undefined;
    },
  },
  // Quoted-printable (RFC 2045 section 6.7).
  { pattern: /=(?:([0-9a-f]{2})|\r?\n)/gi, read: ([, byte]) => (byte === undefined ? '' : String.fromCharCode(parseInt(byte, 16))) },
  // NUL (the other half of UTF-16), a soft hyphen and characters of no width, in UTF-8.
  { pattern: /\0|\u00c2\u00ad|\u00e2\u0080[\u008b-\u008f]|\u00e2\u0081\u00a0|\u00ef\u00bb\u00bf/g, read: () => '' },
];

function pointText(hex: string): string | undefined {
  const code = parseInt(hex, 16);
  return code > 0x10ffff ? undefined : utf8(String.fromCodePoint(code));
}

/** The longest stretch of ASCII text in a run of base64. Other characters before it may move its first character. */
function textInBase64(run: string): string | undefined {
  let longest = '';
  for (let start = 0; start < 4; start += 1) {
    const bytes = Buffer.from(run.slice(start), 'base64').toString('latin1');
    for (const [text] of bytes.matchAll(/[\0\t\r\n -~]{8,}/g)) if (text.length > longest.length) longest = text;
  }
  return longest === '' ? undefined : longest;
}

/** HTML named character references of printable ASCII and Latin-1: first code point, names of it and its successors. */
const namedFrom: readonly (readonly [first: number, names: string])[] = [
  [9, 'Tab NewLine'],
  [33, 'excl quot num dollar percnt amp apos lpar rpar ast plus comma'],
  [34, 'QUOT'],
  [38, 'AMP'],
  [42, 'midast'],
  [46, 'period sol'],
  [58, 'colon semi lt equals gt quest commat'],
  [60, 'LT'],
  [62, 'GT'],
  [91, 'lsqb bsol rsqb Hat lowbar grave'],
  [91, 'lbrack'],
  [93, 'rbrack'],
  [95, 'UnderBar DiacriticalGrave'],
  [123, 'lcub verbar rcub'],
  [123, 'lbrace vert rbrace'],
  [124, 'VerticalLine'],
  [160, 'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot'],
  [184, 'cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml'],
  [204, 'Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig'],
  [224, 'agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute'],
  [244, 'ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'],
];
const entities: ReadonlyMap<string, number> = new Map(
  namedFrom.flatMap(([first, names]) => names.split(' ').map((name, i): [string, number] => [name, first + i])),
);
