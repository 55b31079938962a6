/** The routes of the admin server. A GET changes nothing; an operator's change is a POST to `/operations`. */
import type { Readable } from 'node:stream';
import { codeOf, messageOf } from '../errors/errors.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { LedgerFormat } from '../report/ledger/document.ts';
import { ledgerHtmlPolicy } from '../report/ledger/html-style.ts';
import { statusJson } from '../report/status-json.ts';
import type { AdminRequest, Route, Routes } from './handler.ts';
import { pageFiles } from './page/serve.ts';
import type { Overview } from './page/overview.ts';
import { choice, parameters } from './parameters.ts';
import { notReadyReasons } from './readiness.ts';
import { json, ok, type AdminResponse } from './response.ts';

/** The parameters of the completeness report; times and zone as text. */
interface LedgerParameters {
  readonly source?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly by?: 'window' | 'day' | 'month' | undefined;
  readonly tz?: string | undefined;
  readonly format?: LedgerFormat | undefined;
}

interface AdminReport {
  readonly type: string;
  readonly text: string | Readable;
}

export interface AdminSources {
  /** Undefined until the state is open (another process may still hold its lock). */
  readonly snapshot: () => Snapshot | undefined | Promise<Snapshot | undefined>;
  /** The snapshot with the coverage of each ledger. Probes use `snapshot`, which costs less. */
  readonly status?: () => Snapshot | undefined | Promise<Snapshot | undefined>;
  /** The completeness report. A WaybillError `usage` becomes status 400, here and in `gaps` and `operations`. */
  readonly ledger: (parameters: LedgerParameters) => Promise<AdminReport>;
  /** The JSON of `gaps list --json`. */
  readonly gaps: (parameters: { readonly source?: string | undefined }) => Promise<AdminReport>;
  /** The JSON of `operations list --json`. */
  readonly operations: (parameters: { readonly from?: string | undefined; readonly to?: string | undefined }) => Promise<AdminReport>;
  readonly metricsText: () => Promise<string>;
  /** The data of the status page; without it there is no page. */
  readonly overview?: () => Promise<Overview | undefined>;
  /** Performs an operation in one transaction. The response to a WaybillError has its message and code. */
  readonly operate?: (request: unknown) => Promise<unknown>;
  /** The line of `/healthz` while the daemon responds; default `ok`. */
  readonly health?: () => string;
  /** Why the daemon does not respond; undefined while it does. */
  readonly stalled?: () => string | undefined;
  readonly log: Log;
  readonly clock: Clock;
  /** `waybill.sock` in the state directory. */
  readonly socketPath?: string | undefined;
}

const ledgerParameters = ['source', 'from', 'to', 'by', 'tz', 'format'] as const;
const maxOperationBytes = 16_384;

export function routesOf(sources: AdminSources): Routes {
  return new Map([
    ...probes(sources),
    [
      'GET /metrics',
      { access: 'metrics', respond: async () => ok('text/plain; version=0.0.4; charset=utf-8', await sources.metricsText()) },
    ],
    ...status(sources),
    ...reports(sources),
    ...(sources.overview ? page(sources, sources.overview) : []),
    ...(sources.operate ? operations(sources, sources.operate) : []),
  ]);
}

type Named = readonly [string, Route];

function probes(sources: AdminSources): readonly Named[] {
  const health = (): AdminResponse => {
    const stalled = sources.stalled?.();
    const response = ok('text/plain; charset=utf-8', `${stalled ?? sources.health?.() ?? 'ok'}\n`);
    return stalled === undefined ? response : { ...response, status: 503 };
  };
  const readiness = async ({ query }: AdminRequest): Promise<AdminResponse> => {
    const selected = parameters(query, ['source', 'sink']);
    const found = await valueOf(sources, sources.snapshot);
    if ('missing' in found) return json({ ready: false, reasons: [found.missing] }, 503);
    const unknown = unknownId(found.value, selected);
    if (unknown !== undefined) return json({ error: unknown }, 404);
    const reasons = notReadyReasons(found.value, selected);
    return json({ ready: reasons.length === 0, reasons }, reasons.length === 0 ? 200 : 503);
  };
  return [
    ['GET /healthz', { respond: health }],
    ['GET /readyz', { respond: readiness }],
  ];
}

function status(sources: AdminSources): readonly Named[] {
  const read = sources.status ?? sources.snapshot;
  return [
    ['GET /status', { access: 'read', respond: () => withValue(sources, read, (snapshot) => json(statusJson(snapshot))) }],
    // `waybill status` formats the whole snapshot.
    ['GET /snapshot', { access: 'read', respond: () => withValue(sources, read, (snapshot) => json(snapshot)) }],
  ];
}

function reports(sources: AdminSources): readonly Named[] {
  const ledger = ({ query }: AdminRequest): Promise<AdminResponse> => {
    const { by, format, ...others } = parameters(query, ledgerParameters);
    const selected = {
      ...others,
      by: choice('by', by, ['window', 'day', 'month']),
      format: choice('format', format, ['json', 'csv', 'html']),
    };
    const headers: AdminResponse['headers'] =
      selected.format === 'html' ? { 'content-security-policy': `${ledgerHtmlPolicy}; frame-ancestors 'none'` } : {};
    return withValue(sources, sources.snapshot, async () => {
      const { type, text } = await sources.ledger(selected);
      return ok(type, text, headers);
    });
  };
  const report =
    <Name extends string>(names: readonly Name[], create: (selected: Partial<Record<Name, string>>) => Promise<AdminReport>) =>
    ({ query }: AdminRequest): Promise<AdminResponse> => {
      const selected = parameters(query, names);
      return withValue(sources, sources.snapshot, async () => {
        const { type, text } = await create(selected);
        return ok(type, text);
      });
    };
  return [
    ['GET /ledger', { access: 'read', respond: ledger }],
    ['GET /gaps', { access: 'read', respond: report(['source'], sources.gaps) }],
    ['GET /operations', { access: 'read', respond: report(['from', 'to'], sources.operations) }],
  ];
}

function page(sources: AdminSources, overview: NonNullable<AdminSources['overview']>): readonly Named[] {
  const respond = ({ query }: AdminRequest): Promise<AdminResponse> => {
    const { source } = parameters(query, ['source']);
    return withValue(sources, overview, (found) => ok('application/json; charset=utf-8', found.text(source)));
  };
  return [
    ...pageFiles().map(({ path, response }): Named => [`GET ${path}`, { access: 'read', respond: () => response }]),
    ['GET /overview', { access: 'read', respond }],
  ];
}

function operations(sources: AdminSources, operate: NonNullable<AdminSources['operate']>): readonly Named[] {
  const respond = async (request: AdminRequest): Promise<AdminResponse> => {
    // A form of a foreign page cannot send JSON without a CORS preflight request.
    if (!/^application\/json\b/.test(request.contentType)) return json({ error: 'send application/json' }, 415);
    const body = await request.json(maxOperationBytes);
    if (!(await sources.snapshot())) return json({ error: stateMissing(sources), code: 'state_unusable' }, 503);
    try {
      return json(await operate(body));
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === undefined || code === 'internal_error') throw thrown;
      return json({ error: messageOf(thrown), code }, code === 'usage' ? 400 : 503);
    }
  };
  return [['POST /operations', { access: 'write', respond }]];
}

type Found<Value> = { readonly value: Value } | { readonly missing: string };

async function valueOf<Value>(sources: AdminSources, read: () => Value | undefined | Promise<Value | undefined>): Promise<Found<Value>> {
  const stalled = sources.stalled?.();
  const value = stalled === undefined ? await read() : undefined;
  return value === undefined ? { missing: stalled ?? stateMissing(sources) } : { value };
}

/** Responds with 503 when there is no value. */
async function withValue<Value>(
  sources: AdminSources,
  read: () => Value | undefined | Promise<Value | undefined>,
  respond: (value: Value) => AdminResponse | Promise<AdminResponse>,
): Promise<AdminResponse> {
  const found = await valueOf(sources, read);
  return 'missing' in found ? json({ error: found.missing }, 503) : respond(found.value);
}

function stateMissing(sources: AdminSources): string {
  return sources.health?.() ?? 'the state is not open yet';
}

function unknownId(snapshot: Snapshot, { source, sink }: { source?: string; sink?: string }): string | undefined {
  if (source !== undefined && !snapshot.sources.some(({ id }) => id === source)) return `there is no source "${source}"`;
  if (sink !== undefined && !snapshot.sinks.some(({ id }) => id === sink)) return `there is no sink "${sink}"`;
  return undefined;
}
