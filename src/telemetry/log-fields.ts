/**
 * What a log line may show. Fields pass by a list of names that may appear, not by a list of names that may not: text under any other
 * name is printed as `[hidden]`, so that a new field has to be thought about once. Stands between what a component reports and what is written.
 */
import { withoutSecrets } from '../secrets.ts';
import { codeOf, wordOf } from '../errors.ts';
import { harmless } from '../escape.ts';

export const hidden = '[hidden]';

/** Field names whose text may appear: glossary words and the facts of running a program. Never a credential, never a part of a record. */
export const shownFields: ReadonlySet<string> = new Set(
  `id event after source sink sources sinks code detail reason component outcome status method phase mode state actor operation type format action verdict hint setting problems detail
  window windows from to start end startTime endTime query total received passes requests page pages pageSize records count late known outside appended
  gap gaps frontier closedUntil polledUntil closeDelay recount recounts age lag seq number through acknowledged position chain digest uid journal segment
  number path file dir directory url baseUrl authUrl endpoint address addresses listen host port proxy target destination socket
  topic index stream cluster issuer subject trusted notBefore notAfter expires fingerprint protocol cipher
  version revision node schema minReader instance owner epoch signal command exitCode level levels
  at since due next last first created date now offset duration delay wait deadline every grace
  message name causes cause stack field fields missing tag tags guarantee delivery duplicates losses compression serverVersion`.split(
    /\s+/,
  ),
);

const secretName =
  /secret|passw|passphrase|token(?!Url)|authorization|cookie|credential|private|(api|access|subscription|signing|privacy)[-_]?key|^key$|^pin$|jwt|session|bearer/i;
/** Plain facts that would otherwise be caught by `secretName`. */
const plainFacts = new Set(['tokenSeconds', 'tokenExpires', 'tokenAgeSeconds']);
const deepest = 5;
const longest = 4_000;

/**
 * The fields as they may be printed. Numbers and truth values pass under every name that does not look like a secret's; an error becomes
 * its code, its message and those of its causes.
 */
export function presentable(fields: object): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) shown[name] = shownValue(name, value, 0);
  }
  return shown;
}

/**
 * Text without what is known to be dangerous in a line: secrets and credentials that the other side may repeat, and characters that steer a
 * terminal (C1 controls, marks that turn the direction of writing). C0 controls but escape are left to JSON, which escapes them.
 */
export function scrubbed(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text;
  return withoutSecrets(harmless(cut), false)
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>]+@/gi, `$1${hidden}@`)
    .replace(/\b(bearer|basic|splunk|apikey)(\s+)[A-Za-z0-9+/=._~-]{8,}/gi, `$1$2${hidden}`)
    .replace(/\beyJ[\w-]{5,}\.[\w-]+(\.[\w-]*)?/g, hidden)
    .replace(
      /((?:client_secret|client_assertion|password|passphrase|access_token|refresh_token|id_token|subscription-key|api[-_]?key|authorization)["']?\s*[=:]\s*["']?)[^\s"'&,;}]+/gi,
      `$1${hidden}`,
    );
}

function shownValue(name: string, value: unknown, depth: number): unknown {
  if (!plainFacts.has(name) && secretName.test(name)) return hidden;
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return errorFields(value);
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  if (typeof value === 'string') return shownFields.has(name) ? scrubbed(value) : hidden;
  if (typeof value !== 'object') return hidden;
  if (depth >= deepest) return '[deeper]';
  if (Array.isArray(value)) return value.map((item: unknown) => shownValue(name, item, depth + 1));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  const inner: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) if (item !== undefined) inner[key] = shownValue(key, item, depth + 1);
  return inner;
}

/** `{code, message, causes}`: the message of each cause separately, no stack (the code is what one searches for, and a stack shows paths). */
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
