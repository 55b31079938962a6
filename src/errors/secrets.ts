/**
 * Removes known secrets from text: a server, a proxy or a gateway may return a request with its credentials, in the encoding of its
 * protocol (docs/operations.md lists the encodings). One table look-up per character finds the few places to compare, however many secrets
 * are known.
 */

export const removed = '[secret]';

/** Values that stay known for each owner: a server may still return an old secret or token after it was replaced. */
const valuesPerOwner = 8;
/** Values that stay known after their owner was garbage-collected, for all owners together: a server may still return them. */
const formerMax = 256;
/** A shorter secret cannot be distinguished from ordinary text. */
const shortest = 4;
/** Up to this length, a secret of letters or of digits is removed only as a whole word: `elastic` stays in `elasticsearch`. */
const wordMax = 11;
/** Characters of one table look-up. A shorter secret is removed only as a whole word. */
const keyLength = 6;

interface Index {
  /** The folded forms of the secrets, by their first characters. */
  readonly forms: Map<string, string[]>;
  /** The folded forms that are removed only as whole words. */
  readonly words: Set<string>;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

const valuesOf = new WeakMap<object, string[]>();
/** The number of owners of each known value. The list of former values is an owner too. */
const owners = new Map<string, number>();
/** Oldest first. */
const former: string[] = [];
const collected = new FinalizationRegistry<readonly string[]>((values) => values.forEach(retire));
let index: Index | undefined;

/**
 * Adds a secret to those to remove, until `valuesPerOwner` later ones of its owner; after the owner is gone, until `formerMax` others lost
 * theirs.
 * @param owner  obtains the secret and lives as long as the secret is used: a setting, a client of a token endpoint
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

/** Replaces known secrets with `[secret]`, but not possible ordinary words: a password `elastic` must not change Waybill's messages. */
export function withoutSecrets(text: string): string {
  return without(text, spansOfForms);
}

/** Replaces the secrets that `withoutSecrets` leaves, where they are whole words. For text of the other side. */
export function withoutSecretWords(text: string): string {
  return without(text, spansOfWords);
}

function without(text: string, spansIn: (folded: string, known: Index) => readonly Span[]): string {
  if (owners.size === 0 || text.length < shortest) return text;
  let clean = '';
  let at = 0;
  for (const { from, to } of spansIn(fold(text), (index ??= built()))) {
    if (from > at || clean === '') clean += text.slice(at, from) + removed;
    at = Math.max(at, to);
  }
  return clean + text.slice(at);
}

function built(): Index {
  const empty: Index = { forms: new Map(), words: new Set() };
  for (const secret of owners.keys()) add(empty, secret);
  return empty;
}

function add({ forms, words }: Index, secret: string): void {
  const put = (folded: string): void => {
    const key = folded.slice(0, keyLength);
    const sameKey = forms.get(key) ?? [];
    if (!sameKey.includes(folded)) forms.set(key, [...sameKey, folded]);
  };
  const putWord = (folded: string): void => void words.add(folded);
  const isShort = secret.length < keyLength;
  escapedForms(secret)
    .map(fold)
    .forEach(isShort || (secret.length <= wordMax && isWords(secret)) ? putWord : put);
  [secret, formOf(secret)]
    .flatMap((text) => [Buffer.from(text).toString('hex'), ...base64Forms(Buffer.from(text))])
    .map(fold)
    .forEach(isShort ? putWord : put);
}

/** Words in one case or capitalized, separated by blanks, hyphens, underscores or dots; or a number. */
function isWords(text: string): boolean {
  return /^\d+$/.test(text) || text.split(/[ _.-]/).every((word) => /^(?:[A-Za-z]?[a-z]*|[A-Z]+)$/.test(word));
}

/** How each escape writes a character: percent-encoding, JSON, and decimal and hexadecimal references of HTML. */
const escapes: readonly ((character: string) => string)[] = [
  (character) => Buffer.from(character).toString('hex').replace(/../g, '%$&'),
  (character) => (character === '\\' ? '\\\\' : jsonUnits(character)),
  (character) => `&#${character.codePointAt(0) ?? 0};`,
  (character) => `&#x${(character.codePointAt(0) ?? 0).toString(16)};`,
];

/** The characters that encoders escape: all signs; all but those that RFC 3986 or `encodeURIComponent` leaves; those of JSON in HTML. */
const escaped = [/[^A-Za-z0-9]/gu, /[^A-Za-z0-9._~-]/gu, /[^A-Za-z0-9._~!*'()-]/gu, /["&'+<>\\`]|[^ -~]/gu];

/** The secret as it is, percent-encoded, form-encoded, in JSON, and in numeric character references. */
function escapedForms(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const inJson = [json, json.replaceAll('/', '\\/'), json.replace(/[^ -~]/g, jsonUnits)];
  const all = [secret, ...inJson, formOf(secret), ...escapes.flatMap((escape) => escaped.map((signs) => secret.replace(signs, escape)))];
  // UTF-8 in a header is read as Latin-1.
  return [...new Set([...all, ...all.map((form) => Buffer.from(form).toString('latin1'))])];
}

function jsonUnits(text: string): string {
  return text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function formOf(secret: string): string {
  return new URLSearchParams([['', secret.toWellFormed()]]).toString().slice(1);
}

/** In base64 after 0, 1 and 2 other bytes (modulo 3): the characters that depend only on these bytes, and all to the end of the text. */
function base64Forms(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const from = Math.ceil((8 * before) / 6);
    return [whole.slice(from, Math.floor((8 * (before + bytes.length)) / 6)), whole.slice(from).replace(/=+$/, ''), whole.slice(from)];
  });
}

function spansOfForms(folded: string, { forms }: Index): readonly Span[] {
  const spans: Span[] = [];
  for (let at = 0; at + keyLength <= folded.length; at += 1) {
    const found = forms.get(folded.slice(at, at + keyLength))?.filter((form) => folded.startsWith(form, at));
    if (found === undefined || found.length === 0) continue;
    const to = at + Math.max(...found.map(({ length }) => length));
    spans.push({ from: at, to });
    at = to - 1;
  }
  return spans;
}

function spansOfWords(folded: string, { words }: Index): readonly Span[] {
  const spans: Span[] = [];
  for (const word of words) {
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + word.length)) {
      const [before = ' ', after = ' '] = [folded[at - 1], folded[at + word.length]];
      if (!/[a-z0-9]/.test(before + after)) spans.push({ from: at, to: at + word.length });
    }
  }
  return spans.sort((a, b) => a.from - b.from);
}

/** Removes differences that encodings make: case, `+` for a blank, and the two base64 alphabets. Keeps the length. */
function fold(text: string): string {
  return text
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[+-]/g, ' ')
    .replaceAll('_', '/');
}
