/**
 * The value types of settings: parsed, documented and described in the JSON Schema here. Messages for wrong values are built from `facts`.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopback } from './loopback.ts';
import { PemFiles } from './pem.ts';
import { Secret } from './secret.ts';
import { bytesOf, durationPattern, instantPattern, longestMs, parseDuration, parseInstant } from './units.ts';

/** Facts about a setting that its type does not express. */
export interface Facts {
  /** Completes the sentence `"15 minuts" is not …`. */
  readonly expects?: string;
  /** Its value is never printed, and `check` warns if the configuration file contains it. */
  readonly secret?: boolean;
  /** Decides if a value in the configuration file deserves that warning; default: always. */
  readonly telling?: (literal: string) => boolean;
  /** Pattern in the JSON Schema. */
  readonly pattern?: string;
}

export const facts = z.registry<Facts>();

/** A duration in ms; bounds are written in the same form. */
export function duration(bounds: { readonly min?: string; readonly max?: string } = {}) {
  const min = parseDuration(bounds.min ?? '0s') ?? 0;
  const max = parseDuration(bounds.max ?? '36500d') ?? longestMs;
  return z
    .string()
    .transform((text, context) => {
      const ms = parseDuration(text);
      if (ms === undefined) return refuse(context, `is not ${expectations.duration}`);
      if (ms < min) return refuse(context, `is less than the minimum ${bounds.min ?? ''}`);
      if (ms > max) return refuse(context, `is more than the maximum ${bounds.max ?? ''}`);
      return ms;
    })
    .register(facts, { expects: expectations.duration, pattern: `^${durationPattern}$` });
}

/** Bytes of `512KiB`, `2GiB`. */
export function size(bounds: { readonly min?: string } = {}) {
  const least = bytesOf(bounds.min ?? '1B') ?? 1;
  return z
    .string()
    .transform((text, context) => {
      const bytes = bytesOf(text);
      if (bytes === undefined) return refuse(context, `is not ${expectations.size}`);
      return bytes < least ? refuse(context, `is less than the minimum ${bounds.min ?? '1B'}`) : bytes;
    })
    .register(facts, { expects: expectations.size, pattern: String.raw`^\d+(B|KiB|MiB|GiB|TiB)$` });
}

const unitNames: readonly (readonly [name: RegExp, unit: string])[] = [
  [/^(ms|millis|milliseconds?)$/, 'ms'],
  [/^(s|secs?|seconds?)$/, 's'],
  [/^(m|mins?|minutes?)$/, 'm'],
  [/^(h|hrs?|hours?)$/, 'h'],
  [/^(d|days?)$/, 'd'],
];

/**
 * The correct form of a duration, size or time: `30 days` is `30d`, `10GB` is `10GiB`, a date is its first instant, a time without zone is
 * in UTC. @param refusal  the error message
 */
export function correctedValue(text: string, refusal: string): string | undefined {
  if (/a time such as/.test(refusal))
    return ['T00:00:00Z', 'Z'].map((end) => `${text.trim()}${end}`).find((corrected) => parseInstant(corrected) !== undefined);
  const [, digits = '', name = ''] = /^\s*(\d+)\s*([A-Za-z]+)\s*$/.exec(text) ?? [];
  const unit = name.toLowerCase();
  if (refusal.includes(expectations.duration)) {
    const [, known = ''] = unitNames.find(([names]) => names.test(unit)) ?? [];
    const corrected = unit === 'weeks' || unit === 'week' || unit === 'w' ? `${Number(digits) * 7}d` : `${digits}${known}`;
    return parseDuration(corrected) === undefined ? undefined : corrected;
  }
  if (!refusal.includes(expectations.size)) return undefined;
  const [, prefix = ''] = /^([kmgt]?)(i?b)?$/.exec(unit) ?? [];
  const corrected = `${digits}${prefix === '' ? 'B' : `${prefix.toUpperCase()}iB`}`;
  return bytesOf(corrected) === undefined || name === '' ? undefined : corrected;
}

export function instant() {
  return z
    .string()
    .transform((text, context) => parseInstant(text) ?? refuse(context, `is not ${expectations.instant}`))
    .register(facts, { expects: expectations.instant, pattern: instantPattern.source });
}

const expectations = {
  duration: 'a duration such as 10s, 5m, 2h',
  size: 'a size such as 512KiB, 2GiB',
  instant: 'a time such as 2026-11-21T00:00:00Z',
  shortName: 'a short name: 1 to 32 of a-z, 0-9 and hyphen, no hyphen first',
};

export const shortNamePattern = /^[a-z0-9][a-z0-9-]{0,31}$/;

export function shortName() {
  return text(shortNamePattern, expectations.shortName);
}

/** Text that matches a pattern. @param expects  completes the sentence `"x" is not …` */
export function text(pattern: RegExp, expects: string) {
  return z.string().regex(pattern, `is not ${expects}`).register(facts, { expects, pattern: pattern.source });
}

/** Any text in one line except an empty one. */
export function line(expects = 'text in one line') {
  return text(/^[^\p{Cc}]+$/u, expects);
}

/** The path of a file or a directory, relative to the working directory. */
export function path() {
  return text(/^[^\0]+$/, 'the path of a file or directory');
}

/** An address with `https:`, or with `http:` on a loopback address; no user, query or fragment. Trailing slashes are removed. */
export function httpsUrl() {
  const expects = 'an address such as https://service.example/v2/api';
  return z
    .string()
    .transform((text, context) => {
      const url = URL.parse(text);
      if (!url || !/^https?:\/\/[^/]/i.test(text)) return refuse(context, `is not ${expects}`);
      if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
        return refuse(context, 'must start with https: (http: only for 127.0.0.0/8, ::1 and localhost)');
      }
      if (url.username || url.password) return refuse(context, 'must not contain a user or password');
      if (url.search || url.hash) return refuse(context, 'must not contain a query or fragment');
      return url.href.replace(/\/+$/, '');
    })
    .register(facts, { expects, pattern: '^[Hh][Tt][Tt][Pp][Ss]?://' });
}

/** A collector in the same pod or cluster often speaks plain HTTP. Credentials are headers. */
export function otlpUrl() {
  return httpUrl('an address such as http://otel-collector:4318', 'set OTEL_EXPORTER_OTLP_HEADERS');
}

/**
 * An address with `http:` or `https:`; no user, query or fragment. Trailing slashes are removed.
 * @param credentials  ends the message for an address with a user or password: names the settings for them
 */
export function httpUrl(expects: string, credentials: string) {
  return z
    .string()
    .transform((text, context) => {
      const url = URL.parse(text);
      if (!url || !/^https?:\/\/[^/]/i.test(text)) return refuse(context, `is not ${expects}`);
      if (url.username || url.password) return refuse(context, `must not contain a user or password: ${credentials}`);
      if (url.search || url.hash) return refuse(context, 'must not contain a query or fragment');
      return url.href.replace(/\/+$/, '');
    })
    .register(facts, { expects, pattern: '^[Hh][Tt][Tt][Pp][Ss]?://' });
}

/** A secret: never printed, and read again at each use. */
export function secret() {
  return z
    .string()
    .min(1, 'must not be empty')
    .transform((text) => new Secret(text))
    .register(facts, { secret: true, expects: 'text' });
}

/** The address of a proxy; a secret, because it may contain a user and password. */
export function proxyUrl() {
  const expects = 'the address of a proxy such as http://proxy.example:3128';
  return z
    .string()
    .transform((text, context) => {
      const url = URL.parse(text);
      const fits = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.hash;
      return fits || text === unresolved ? new Secret(text) : refuse(context, `is not ${expects}`);
    })
    .register(facts, { secret: true, expects, telling: (literal) => Boolean(URL.parse(literal)?.password) });
}

/** Replaces an unresolved reference; long enough for every kind of secret. */
export const unresolved = '\u{FFFD} the reference leads nowhere \u{FFFD}';

/** PEM files: a path, a list of paths, or a directory. */
export function pemFiles() {
  return oneOrMany(path())
    .transform((paths) => new PemFiles(paths))
    .register(facts, { expects: 'the path of a PEM file or of a directory, or a list of them' });
}

export function pemFile() {
  return path()
    .transform((path) => new PemFiles([path]))
    .register(facts, { expects: 'the path of a PEM file' });
}

/** A value, or a list of such values; always a list afterwards. */
export function oneOrMany<Item extends z.ZodType>(item: Item) {
  return z
    .union([item, z.array(item).min(1, 'names nothing')])
    .transform((given) => (Array.isArray(given) ? given : [given]) as z.output<Item>[]);
}

/** `127.0.0.1:9464`, `[::]:9464`, `localhost:9464`; port 0 selects any free port. */
export function listenAddress() {
  const expects = 'an address to listen on such as 127.0.0.1:9464, [::]:9464';
  return z
    .string()
    .refine((text) => {
      const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
      return Number(port) <= 65_535 && (plain !== undefined || isIP(bracketed ?? '') === 6);
    }, `is not ${expects}`)
    .register(facts, { expects });
}

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
