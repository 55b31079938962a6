/** Warnings about a valid configuration, and problems of the environment. */
import { resolve, sep } from 'node:path';
import type { z } from 'zod';
import { referenceAt, type Document, type Path } from './document.ts';
import { problem } from './problems.ts';
import { environmentProxyProblem } from './environment-proxy.ts';
import type { Where } from '../normalize/filter.ts';
import { outcomes } from '../normalize/outcomes.ts';
import { isLoopback } from '../settings/loopback.ts';
import { nearestOrAll } from '../settings/nearest.ts';
import type { Environment } from '../settings/reference.ts';
import type { Secret } from '../settings/secret.ts';
import type { Settings } from './schema.ts';
import { memberOf, typesAt } from './schema-walk.ts';
import { durationText } from '../settings/units.ts';

/** ms that `start` may be in the future, because clocks differ. */
const maxAhead = 3_600_000;
const minTokenLength = 16;

/** @returns one line for each warning. @param now  ms */
export function settingWarnings(schema: z.ZodType, settings: Settings, document: Document, now: number): readonly string[] {
  const none = settings.sinks.length === 0 ? ['sinks: none is configured; collected records stay in the journal'] : [];
  return [
    ...literalSecrets(schema, document),
    ...startWarnings(settings, document),
    ...timeWarnings(settings, document, now),
    ...adminWarnings(settings, document),
    ...tokenWarnings(settings, document),
    ...settings.sinks.flatMap(({ filter }, index) => filterWarnings(filter, ['sinks', index, 'filter'], document)),
    ...placeWarnings(settings, document),
    ...none,
  ];
}

/** Settings of the environment with which Waybill must not start. */
export function environmentProblems(environment: Environment): readonly string[] {
  const proxy = environmentProxyProblem(environment);
  const unverified = environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0';
  return [
    ...(unverified ? ['NODE_TLS_REJECT_UNAUTHORIZED: "0" disables the verification of certificates; remove it from the environment'] : []),
    ...(proxy === undefined ? [] : [proxy]),
    ...endpointProblems(environment),
  ];
}

/**
 * In place of an address that it cannot read, an exporter takes http://localhost:4318, and sends the headers of the receiver there. The
 * value is not shown: it may hold a password.
 */
function endpointProblems(environment: Environment): readonly string[] {
  if (environment['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return [];
  return ['', 'TRACES_', 'METRICS_'].flatMap((signal) => {
    const name = `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`;
    const endpoint = environment[name]?.trim() ?? '';
    const isAddress = endpoint === '' || (/^https?:\/\/[^/]/i.test(endpoint) && URL.canParse(endpoint));
    return isAddress ? [] : [`${name}: is not an address such as http://otel-collector:4318`];
  });
}

/** A secret in the configuration file is visible to every reader of the file. One line for all, with the first. */
function literalSecrets(schema: z.ZodType, document: Document): readonly string[] {
  const [first, ...others] = [...document.places].flatMap(([key, { template }]) => {
    const path = JSON.parse(key) as Path;
    const literal = path.reduce(memberOf, document.value);
    if (template || typeof literal !== 'string') return [];
    const telling = typesAt(schema, path, document.value).some(({ facts }) => facts.secret && (facts.telling?.(literal) ?? true));
    return telling ? [path] : [];
  });
  if (!first) return [];
  const secrets = others.length === 0 ? 'the secret is' : `this secret and ${others.length} more are`;
  return [problem(document, { path: first, message: `${secrets} in the configuration file; use \${file:/path} or \${env:NAME}` })];
}

/** Warns of an address that the network reaches without a token or without TLS. */
function adminWarnings({ admin }: Settings, document: Document): readonly string[] {
  const { token, readToken, tls } = admin;
  const listens = typeof admin.listen === 'string' ? [admin.listen] : admin.listen;
  const open = listens.filter((listen) => !isLoopback(listen.replace(/:\d+$/, '')));
  if (open.length === 0) return [];
  const hasToken = token !== undefined || readToken !== undefined;
  const unguarded = 'without admin.token or admin.readToken, anyone on the network can read the metrics, but not status and ledger';
  const plain = 'without admin.tls, tokens and responses can be read on the network';
  return [...(hasToken ? [] : [unguarded]), ...(tls ? [] : [plain])].map((message) =>
    problem(document, { path: ['admin', 'listen'], message: `${open.join(', ')} is not a loopback address: ${message}` }),
  );
}

/** Warns of tokens that can be guessed, or that do not separate reading from operating. */
function tokenWarnings({ admin: { token, readToken } }: Settings, document: Document): readonly string[] {
  const [full, read] = [token, readToken].map(readableOf);
  const short = [
    ['token', full],
    ['readToken', read],
  ].flatMap(([key = '', text]) => {
    if (text === undefined || text.length >= minTokenLength) return [];
    const message = `has fewer than ${minTokenLength} characters and may be guessed; create one with "openssl rand -hex 32"`;
    return [problem(document, { path: ['admin', key], message })];
  });
  if (full === undefined || full !== read) return short;
  return [
    ...short,
    problem(document, { path: ['admin', 'readToken'], message: 'equals admin.token: its holders may also perform operations' }),
  ];
}

/** Undefined if there is no secret, or its file is missing, which is another problem. */
function readableOf(secret: Secret | undefined): string | undefined {
  try {
    return secret?.read();
  } catch {
    return undefined;
  }
}

/** Warns of values that no record of the specification has: a service may have more, but these are usually misspelt. */
function filterWarnings(filter: Where | undefined, path: Path, document: Document): readonly string[] {
  if (filter === undefined) return [];
  const listed = (['actionAttempted', 'result', 'resultReason'] as const).flatMap((field) => {
    const names = [...new Set(outcomes.map((outcome) => outcome[field]))];
    const place = [...path, field];
    const other = (filter[field] ?? []).filter((value) => !names.includes(value));
    return other.map((value) => {
      const shown = referenceAt(document, place) ?? JSON.stringify(value);
      const message = `${shown} is not a value that the specification has, so no record may match; case counts; ${nearestOrAll(value, names)}`;
      return problem(document, { path: place, message });
    });
  });
  return [
    ...listed,
    ...filterWarnings(filter.not, [...path, 'not'], document),
    ...(filter.any ?? []).flatMap((each, index) => filterWarnings(each, [...path, 'any', index], document)),
  ];
}

function placeWarnings({ dataDir, sinks }: Settings, document: Document): readonly string[] {
  return sinks.flatMap((sink, index) =>
    ['path', 'directory'].flatMap((setting) => {
      const place = memberOf(sink, setting);
      if (typeof place !== 'string' || !resolve(place).startsWith(resolve(dataDir) + sep)) return [];
      const message = 'is in the state directory, which a restore or a new dataDir replaces: choose a place outside of it';
      return [problem(document, { path: ['sinks', index, setting], message })];
    }),
  );
}

/** Warns of valid times that are rarely intended. */
function timeWarnings(settings: Settings, document: Document, now: number): readonly string[] {
  return settings.sources.flatMap(({ start, closeDelay, recountAfter }, index) => {
    const isAhead = start.kind === 'instant' && start.at / 1000 > now + maxAhead;
    const early = recountAfter.filter((age) => age <= closeDelay).map(durationText);
    const neverDone = `${early.join(', ')}: not more than closeDelay (${durationText(closeDelay)}), so these recounts are skipped: a window is not proven yet at that age`;
    return [
      ...(isAhead
        ? [problem(document, { path: ['sources', index, 'start'], message: 'is in the future: nothing is collected before that time' })]
        : []),
      ...(early.length > 0 ? [problem(document, { path: ['sources', index, 'recountAfter'], message: neverDone })] : []),
    ];
  });
}

/** Warns of a `start` that moves when the state is lost. */
function startWarnings(settings: Settings, document: Document): readonly string[] {
  const reasons = {
    now: 'at the time of the restart',
    ago: 'that duration before the restart',
    earliest: 'at the first record that the service still has',
  };
  return settings.sources.flatMap(({ start }, index) => {
    if (start.kind === 'instant') return [];
    const message = `after a lost state the ledger would start ${reasons[start.kind]}; use a time such as 2026-11-21T00:00:00Z to start there again`;
    return [problem(document, { path: ['sources', index, 'start'], message })];
  });
}
