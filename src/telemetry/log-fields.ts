/** Redaction of log fields. Text appears only under the names of the event table, without secrets and credentials; else as `[hidden]`. */
import { withoutSecrets } from '../errors/secrets.ts';
import { codeOf, wordOf } from '../errors/errors.ts';
import { harmless } from '../errors/escape.ts';
import { logEvents } from '../model/log-events.ts';

const hidden = '[hidden]';

/** Names inside the objects of a field: `added` inside `sources` of `config.reloaded`. */
const innerNames = ['added', 'changed', 'removed'];

/** Text under another name is hidden, inside an object too. */
const shownFields: ReadonlySet<string> = new Set([
  ...innerNames,
  ...Object.values(logEvents).flatMap(({ fields }) => fields.replaceAll('?', '').split(' ')),
]);

const secretName =
  /secret|passw|passphrase|token(?!Url)|authorization|cookie|credential|private|(api|access|subscription|signing|privacy)[-_]?key|^key$|^pin$|jwt|session|bearer/i;
const maxDepth = 5;
const maxLength = 4_000;

/** Numbers and booleans pass unless their name is like the name of a secret. An error becomes its code, its message and the messages of its causes. */
export function presentable(fields: object): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) shown[name] = shownValue(name, value, 0);
  }
  return shown;
}

/**
 * Removes secrets and credentials that the other side may return, and characters that control a terminal (escape, C1 controls, direction
 * marks). JSON escapes the other C0 controls.
 */
export function scrubbed(text: string): string {
  // Text is shortened last: a part of a secret is not recognized.
  const clean = withoutSecrets(harmless(text))
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>]+@/gi, `$1${hidden}@`)
    .replace(/\b(bearer|basic|splunk|apikey)(\s+)[A-Za-z0-9+/=._~-]{8,}/gi, `$1$2${hidden}`)
    .replace(/\beyJ[\w-]{5,}\.[\w-]+(\.[\w-]*)?/g, hidden)
    .replace(
      /((?:client_secret|client_assertion|password|passphrase|access_token|refresh_token|id_token|subscription-key|api[-_]?key|authorization)["']?\s*[=:]\s*["']?)[^\s"'&,;}]+/gi,
      `$1${hidden}`,
    );
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}… (${text.length} characters)` : clean;
}

function shownValue(name: string, value: unknown, depth: number): unknown {
  if (secretName.test(name)) return hidden;
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return errorFields(value);
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  if (typeof value === 'string') return shownFields.has(name) ? scrubbed(value) : hidden;
  if (typeof value !== 'object') return hidden;
  if (depth >= maxDepth) return '[deeper]';
  if (Array.isArray(value)) return value.map((item: unknown) => shownValue(name, item, depth + 1));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  const inner: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) if (item !== undefined) inner[key] = shownValue(key, item, depth + 1);
  return inner;
}

/** `{code, message, causes}`, without a stack: a stack shows paths. */
function errorFields(error: Error): Record<string, unknown> {
  const causes: string[] = [];
  let at: unknown = error.cause;
  while (at !== undefined && at !== null && causes.length < 8) {
    causes.push(scrubbed(wordOf(at)));
    at = at instanceof Error ? at.cause : undefined;
  }
  const system = (error as NodeJS.ErrnoException).code;
  const code = codeOf(error) ?? (typeof system === 'string' ? system : undefined);
  return {
    ...(code === undefined ? { type: error.name } : { code }),
    message: scrubbed(wordOf(error)),
    ...(causes.length > 0 && { causes }),
  };
}
