/** Reads what a verifier compares in the line of a record: its time, its uid by its content, and keys that it repeats. Pure. */
import { fieldNumbers } from '../record/fields.ts';
import { identify, identifyTexts } from '../record/identity.ts';
import { tokensIn } from '../record/json.ts';
import { readRecord } from '../record/read.ts';
import { parseTimestamp } from '../record/timestamp.ts';
import { kinds } from '../record/walk.ts';
import type { Micros } from '../model/time.ts';

export interface RecordContent {
  /** `logTimestamp`; undefined when it is unreadable. */
  readonly time: Micros | undefined;
  /** Computed from the record (docs/formats.md, "Identity"); undefined unless it has a `logId`, and texts or numbers in the fields of the uid. */
  readonly uid: string | undefined;
  /** A key that an object of the record has twice. */
  readonly repeated: string | undefined;
}

const { logId, logTimestamp, actionAttempted, result, resultReason } = fieldNumbers;
const nothing: RecordContent = { time: undefined, uid: undefined, repeated: undefined };

/** By the id of a source: an archive has few, and a forged one may have very many. */
const identities = new Map<
  string,
  { readonly ofRecord: ReturnType<typeof identify>; readonly ofTexts: ReturnType<typeof identifyTexts> }
>();
const maxSources = 1_000;

function identityOf(source: string): NonNullable<ReturnType<(typeof identities)['get']>> {
  const known = identities.get(source);
  if (known) return known;
  if (identities.size >= maxSources) identities.clear();
  const made = { ofRecord: identify(source), ofTexts: identifyTexts(source) };
  identities.set(source, made);
  return made;
}

/** @param record  the bytes of the record; they may be no JSON */
export function readContent(source: string, record: Buffer): RecordContent {
  try {
    const fields = readRecord(record);
    if (!fields.isObject) return nothing;
    const isComparable =
      !fields.isAbsent(logId) &&
      [logId, logTimestamp, actionAttempted, result, resultReason].every(
        (field) => ![kinds.object, kinds.array].some((kind) => kind === fields.kind(field)),
      );
    const uid = isComparable ? identityOf(source).ofRecord(fields) : undefined;
    return { time: fields.time, uid, repeated: repeatedKey(fields.bytes.toString()) };
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return nothing;
    throw thrown;
  }
}

/** @param json  one JSON value */
export function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (const { start, end, isKey } of tokensIn(json)) {
    const first = json[start] ?? '';
    if (first === '{' || first === '[') open.push(new Set());
    else if (first === '}' || first === ']') open.pop();
    if (!isKey) continue;
    const text = json.slice(start + 1, end);
    const key = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
    if (open.at(-1)?.has(key) === true) return key;
    open.at(-1)?.add(key);
  }
  return undefined;
}

const printable = String.raw`[ !#-[\]-~]*`;
const scalar = String.raw`(?:"[^"\\\x00-\x1f]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false|null)`;
/** The fields of the uid, in its order, and what a usual record has in them: with these, a part of the uid is the text itself. */
const uidFields = {
  logId: String.raw`((?:0|[1-9]\d{0,14})|"[!#-[\]-~]${printable}")`,
  logTimestamp: `"(${printable})"`,
  actionAttempted: `(null|"${printable}")`,
  result: `(null|"${printable}")`,
  resultReason: `(null|"${printable}")`,
} as const;
const uidKeys = Object.keys(uidFields);
const maxPatterns = 32;
const maxKeys = 64;
/** Each try parses the record once more: an archive of unusual records must not pay for it at each line. */
const maxTries = 1_000;

/**
 * Patterns of lines whose records have the same keys in the same order, learned from records. One pattern needs a third of the time
 * of a walk over a record, and no record with a repeated key matches it.
 */
export class UsualRecords {
  readonly #head: string;
  readonly #groupsBefore: number;
  #tries = 0;
  readonly #patterns: { readonly pattern: RegExp; readonly groups: readonly number[] }[] = [];

  /** @param head  matches the line before its record, and has `groups` groups */
  constructor(head: RegExp, groups: number) {
    this.#head = head.source;
    this.#groupsBefore = groups;
  }

  /**
   * @param line  one character a byte
   * @returns the groups of the head, and the content of the record; undefined for another record
   */
  match(line: string, sourceGroup: number): { readonly head: RegExpExecArray; readonly content: RecordContent } | undefined {
    for (const [i, known] of this.#patterns.entries()) {
      const head = known.pattern.exec(line);
      if (!head) continue;
      if (i > 0) {
        this.#patterns.splice(i, 1);
        this.#patterns.unshift(known);
      }
      const [id = '', time = '', ...others] = known.groups.map((group) => head[group]);
      const at = parseTimestamp(time);
      const parts = [unquoted(id), at?.identity ?? time, ...others.map(unquoted)];
      return { head, content: { time: at?.us, uid: identityOf(head[sourceGroup] ?? '').ofTexts(parts), repeated: undefined } };
    }
    return undefined;
  }

  /** Learns the keys of a record, if it is a usual one. */
  learn(line: string, record: Buffer): void {
    if (this.#patterns.length >= maxPatterns || this.#tries >= maxTries) return;
    this.#tries += 1;
    const value = JSON.parse(record.toString()) as unknown;
    const keys: string[] = [];
    const body = patternOf(value, keys, true);
    const groups = uidKeys.map((key) => keys.indexOf(key));
    if (body === undefined || keys.length > maxKeys || groups.slice(0, 2).some((at) => at < 0)) return;
    const inOrder = keys.filter((key) => uidKeys.includes(key));
    const known = {
      pattern: new RegExp(`${this.#head}${body}\\}$`),
      // -1 for a key that the record lacks: no group has this number.
      groups: uidKeys.map((key) => (inOrder.includes(key) ? this.#groupsBefore + 1 + inOrder.indexOf(key) : -1)),
    };
    if (known.pattern.test(line)) this.#patterns.push(known);
  }
}

/** @param keys  receives the keys at the top of the record, and others with a dot */
function patternOf(value: unknown, keys: string[], isTop: boolean): string | undefined {
  if (typeof value !== 'object' || value === null) return scalar;
  const entries = Object.entries(value);
  if (Array.isArray(value) || entries.length === 0) return undefined;
  const members: string[] = [];
  for (const [key, member] of entries) {
    if (!/^[\w-]+$/.test(key)) return undefined;
    keys.push(isTop ? key : `.${key}`);
    const found = isTop && key in uidFields ? uidFields[key as keyof typeof uidFields] : patternOf(member, keys, false);
    if (found === undefined) return undefined;
    members.push(`"${key}":${found}`);
  }
  return `\\{${members.join(',')}\\}`;
}

function unquoted(text: string | undefined): string | undefined {
  return text?.startsWith('"') === true ? text.slice(1, -1) : text === 'null' ? undefined : text;
}
