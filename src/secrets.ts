/**
 * The secrets that this process knows, and their removal from text. A server may return what it was sent in any encoding, so the text is
 * decoded layer by layer (percent, form, JSON, HTML, folded lines) and each decoded view is searched for each secret as it is, in base64
 * and in hex. A part of a secret counts too: servers cut and mask what they return.
 *
 * The work is bounded: no view is longer than the text, there are at most `viewsMax` of them, and one look-up in a table per character
 * finds the few places where a comparison begins.
 */

/** Replaces what was removed. */
export const removed = '[secret]';

/** Earlier values that stay known for each owner: a server may still return a secret that was replaced, or a token that was renewed. */
const valuesPerOwner = 8;
/** A shorter secret cannot be told from ordinary text. */
const shortest = 4;
/** Up to this length words of letters, or digits alone, are removed only where nothing adjoins them: `elastic` stays in `elasticsearch`. */
const wordMax = 11;
/** Characters that are looked up at once; also the shortest part of a secret that is removed where the text was cut. */
const gram = 6;
/** Up to this length each part is in the table. */
const everyGramMax = 64;
/** Parts of repetitive secrets that are compared from one place of the text. */
const candidatesMax = 4;
const viewsMax = 16;
const layersMax = 3;

/** What is searched for: folded text, one character per byte. */
interface Needle {
  readonly folded: string;
  /** The same before folding, where it can be read as words. */
  readonly readable: string | undefined;
  /** The shortest part that is removed anywhere. */
  readonly partMin: number;
  readonly isBase64: boolean;
}

interface Index {
  readonly grams: Map<string, { readonly needle: Needle; readonly at: number }[]>;
  /** Folded secrets that are removed only as whole words. */
  readonly message: Set<string>;
}

/** A reading of the text: a character per byte, and the part of the text that each stands for. */
interface View {
  readonly bytes: string;
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

const valuesOf = new WeakMap<object, string[]>();
const owners = new Map<string, number>();
let index: Index | undefined;

/**
 * Adds a secret to those that are removed from text. The last eight values of an owner stay known.
 * @param owner  what reads or obtains the secret: a setting, a client of a token endpoint
 */
export function remember(owner: object, secret: string): void {
  const values = valuesOf.get(owner) ?? [];
  valuesOf.set(owner, values);
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

function forget(secret: string): void {
  const count = owners.get(secret) ?? 0;
  if (count > 1) owners.set(secret, count - 1);
  else {
    owners.delete(secret);
    index = undefined;
  }
}

/**
 * The text with `[secret]` in place of every known secret, whatever its encoding.
 * @param message  whether to remove secrets that may be ordinary words too (`elastic`): right for text of the other side, not for our own
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
    // Every part of `partMin` characters holds one of these; of a short secret every part of `gram` characters.
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
  // What was encoded before it was put into base64 or hex is found by its encoded form.
  const json = JSON.stringify(secret).slice(1, -1);
  const wellFormed = secret.toWellFormed();
  const form = new URLSearchParams([['', wellFormed]]).toString().slice(1);
  for (const each of new Set([secret, encodeURIComponent(wellFormed), form, json].map(utf8))) {
    put({ folded: Buffer.from(each, 'latin1').toString('hex'), readable: undefined, partMin: 24, isBase64: false });
    for (const core of base64Cores(each)) put({ folded: fold(core), readable: undefined, partMin: 16, isBase64: true });
  }
}

/** The characters of base64 that these bytes alone decide, when 0, 1 or 2 bytes (modulo 3) precede them. */
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

/** Whether this part of a secret is removed: all of it, a long part, or a shorter one that begins or ends where the text was cut. */
function isPart({ folded, readable, partMin }: Needle, from: number, to: number, isCutBefore: boolean, isCutAfter: boolean): boolean {
  const length = to - from;
  if (length === folded.length) return true;
  // A part that reads as words may be an ordinary phrase.
  if (length < 2 * partMin && readable !== undefined && isWords(readable.slice(from, to))) return false;
  if (length >= partMin) return true;
  return folded.length > partMin && (isCutBefore || isCutAfter);
}

const ellipsis = '\u00e2\u0080\u00a6';

/** At the begin of the text, perhaps within an escape, or behind what stands for the part that is not shown. */
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

/** Behind the characters that the secret alone decides: one that it decides in part, and the padding. */
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

/** Words of one case, or with a capital, with blanks, hyphens, underscores or dots between them. */
function isWords(text: string): boolean {
  return /^[A-Za-z _.-]*$/.test(text) && text.split(/[ _.-]/).every((word) => /^(?:[A-Za-z]?[a-z]*|[A-Z]+)$/.test(word));
}

/** Makes equal what an encoding may change: the case, `+` for a blank, and the two alphabets of base64. */
function fold(bytes: string): string {
  return bytes
    .replace(/[A-Z]+/g, (deadLetters) => deadLetters.toLowerCase())
    .replace(/[+-]/g, ' ')
    .replaceAll('_', '/');
}

function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function viewsOf(text: string): readonly View[] {
  const liveStatus = rootsOf(text);
  const known = new Set(liveStatus.map(({ bytes }) => bytes));
  for (let layer = 0, done = 0; layer < layersMax && done < liveStatus.length; layer += 1) {
    const to = liveStatus.length;
    for (; done < to; done += 1) {
      const view = liveStatus[done];
      if (view === undefined) continue;
      for (const decoder of decoders) {
        if (view.bytes.search(decoder.pattern) < 0) continue;
        const next = decoded(view, decoder);
        if (known.has(next.bytes) || liveStatus.length >= viewsMax) continue;
        known.add(next.bytes);
        liveStatus.push(next);
      }
    }
  }
  return liveStatus;
}

/** The text in UTF-8, and, where it may hold UTF-8 that was read as Latin-1 (a header), in Latin-1. */
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
  /** The bytes that a match stands for; undefined: it stands for itself. */
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
  { pattern: /%([0-9a-f]{2})/gi, read: ([, hex = '']) => String.fromCharCode(parseInt(hex, 16)) },
  {
    // JSON (RFC 8259 section 7), a pair of surrogates as one character; and `\xNN`, as logs of servers write bytes.
    pattern: /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|x([0-9a-f]{2})|([^ux]))/gi,
    read: ([, high, low, unit, byte, character = '']) => {
      if (high !== undefined && low !== undefined) return utf8(String.fromCharCode(parseInt(high, 16), parseInt(low, 16)));
      if (unit !== undefined) return utf8(String.fromCharCode(parseInt(unit, 16)));
      return byte === undefined ? (controls[character] ?? character) : String.fromCharCode(parseInt(byte, 16));
    },
  },
  {
    // Without a semicolon at the end of the text it may have been cut.
    pattern: /&(?:#(\d{1,9})|#x([0-9a-f]{1,8})|([a-z]{2,20}[0-9]{0,2}))(?:;|(?![0-9a-z]|$))/gi,
    read: ([, decimal, hex, name]) => {
      const code = name === undefined ? parseInt(decimal ?? hex ?? '', decimal === undefined ? 16 : 10) : entities.get(name);
      return code === undefined || code > 0x10ffff ? undefined : utf8(String.fromCodePoint(code));
    },
  },
  // Lines of a folded header, or of base64 in lines of 76 characters.
  { pattern: /\r?\n[ \t]*|(?<=[A-Za-z0-9+/_=-]{16})[ \t]+(?=[A-Za-z0-9+/_=-]{4})/g, read: () => '' },
];

/** Named references of HTML for printable ASCII and Latin-1: runs of names, each from a code point on. */
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
