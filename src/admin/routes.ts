/**
 * The routes of the admin server. A GET changes nothing; an operator's change is a POST to `/operations`. A response shows no more of an
 * internal error than `internal error; see the log`.
 */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { codeOf, messageOf } from '../errors.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { LedgerFormat } from '../report/ledger/document.ts';
import { ledgerHtmlPolicy } from '../report/ledger/html-style.ts';
import { statusJson } from '../report/status-json.ts';
import type { Access } from './authorizer.ts';
import type { Overview } from './page/overview.ts';
import { servePage } from './page/serve.ts';
import { choice, parameters } from './parameters.ts';
import { notReadyReasons } from './readiness.ts';

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
  /** The completeness report. A WaybillError `usage` becomes status 400, here and in the two below. */
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

/** Creates the hook that answers a request without the required access. */
export type Guard = (access: Access) => onRequestAsyncHookHandler;

const ledgerParameters = ['source', 'from', 'to', 'by', 'tz', 'format'] as const;
const maxOperationBytes = 16_384;
/** The body of a response to a request that cannot be parsed. */
export const unreadable = 'cannot read this request';

export function addRoutes(app: FastifyInstance, sources: AdminSources, guard: Guard): void {
  addProbes(app, sources);
  app.get('/metrics', { onRequest: guard('metrics') }, async (_, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await sources.metricsText()),
  );
  addStatus(app, sources, guard);
  addReports(app, sources, guard);
  if (sources.overview) addPage(app, sources, sources.overview, guard);
  if (sources.operate) addOperations(app, sources, sources.operate, guard);
  addErrorHandler(app, sources.log);
}

function addProbes(app: FastifyInstance, sources: AdminSources): void {
  app.get('/healthz', async (_, reply) => {
    const stalled = sources.stalled?.();
    return reply
      .code(stalled === undefined ? 200 : 503)
      .type('text/plain; charset=utf-8')
      .send(`${stalled ?? sources.health?.() ?? 'ok'}\n`);
  });
  app.get('/readyz', async (request, reply) => {
    const selected = parameters(request.query, ['source', 'sink']);
    const stalled = sources.stalled?.();
    const snapshot = stalled === undefined ? await sources.snapshot() : undefined;
    if (!snapshot) return reply.code(503).send({ ready: false, reasons: [stalled ?? stateMissing(sources)] });
    const missing = unknownId(snapshot, selected);
    if (missing !== undefined) return reply.code(404).send({ error: missing });
    const reasons = notReadyReasons(snapshot, selected);
    return reply.code(reasons.length === 0 ? 200 : 503).send({ ready: reasons.length === 0, reasons });
  });
}

function addStatus(app: FastifyInstance, sources: AdminSources, guard: Guard): void {
  app.get('/status', { onRequest: guard('read') }, async (_, reply) => {
    const snapshot = await snapshotOr503(sources, reply, sources.status);
    return snapshot ? statusJson(snapshot) : reply;
  });
  // `waybill status` formats the whole snapshot.
  app.get('/snapshot', { onRequest: guard('read') }, async (_, reply) => (await snapshotOr503(sources, reply, sources.status)) ?? reply);
}

function addReports(app: FastifyInstance, sources: AdminSources, guard: Guard): void {
  app.get('/ledger', { onRequest: guard('read') }, async (request, reply) => {
    const { by, format, ...others } = parameters(request.query, ledgerParameters);
    const selected = {
      ...others,
      by: choice('by', by, ['window', 'day', 'month']),
      format: choice('format', format, ['json', 'csv', 'html']),
    };
    if (!(await snapshotOr503(sources, reply))) return reply;
    const { type, text } = await sources.ledger(selected);
    if (selected.format === 'html') reply.header('content-security-policy', `${ledgerHtmlPolicy}; frame-ancestors 'none'`);
    return reply.type(type).send(text);
  });
  const report =
    <Name extends string>(names: readonly Name[], create: (selected: Partial<Record<Name, string>>) => Promise<AdminReport>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const selected = parameters(request.query, names);
      if (!(await snapshotOr503(sources, reply))) return reply;
      const { type, text } = await create(selected);
      return reply.type(type).send(text);
    };
  app.get('/gaps', { onRequest: guard('read') }, report(['source'], sources.gaps));
  app.get('/operations', { onRequest: guard('read') }, report(['from', 'to'], sources.operations));
}

function addPage(app: FastifyInstance, sources: AdminSources, overview: NonNullable<AdminSources['overview']>, guard: Guard): void {
  servePage(app, guard('read'));
  app.get('/overview', { onRequest: guard('read') }, async (request, reply) => {
    const { source } = parameters(request.query, ['source']);
    const found = await valueOr503(sources, reply, overview);
    return found ? reply.type('application/json; charset=utf-8').send(found.text(source)) : reply;
  });
}

function addOperations(app: FastifyInstance, sources: AdminSources, operate: NonNullable<AdminSources['operate']>, guard: Guard): void {
  app.post('/operations', { onRequest: guard('write'), bodyLimit: maxOperationBytes }, async (request, reply) => {
    // A form of a foreign page cannot send JSON without a CORS preflight request.
    if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
      return reply.code(415).send({ error: 'send application/json' });
    if (!(await sources.snapshot())) return reply.code(503).send({ error: stateMissing(sources), code: 'state_unusable' });
    return operate(request.body).catch((thrown: unknown) => {
      const code = codeOf(thrown);
      if (code === undefined || code === 'internal_error') throw thrown;
      return reply.code(code === 'usage' ? 400 : 503).send({ error: messageOf(thrown), code });
    });
  });
}

function addErrorHandler(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((thrown, request, reply) => {
    const code = codeOf(thrown);
    if (code === 'usage') return reply.code(400).send({ error: messageOf(thrown) });
    if (code === 'admin_busy')
      return reply
        .code(503)
        .header('retry-after', '1')
        .send({ error: messageOf(thrown) });
    const status = statusOf(thrown);
    if (status < 500) return reply.code(status).send({ error: unreadable });
    log.write('admin.request_failed', { error: thrown, url: request.routeOptions.url });
    return reply.code(500).send({ error: 'internal error; see the log' });
  });
}

function snapshotOr503(sources: AdminSources, reply: FastifyReply, read = sources.snapshot): Promise<Snapshot | undefined> {
  return valueOr503(sources, reply, read);
}

/** Sends 503 and returns undefined when there is no value. */
async function valueOr503<Value>(
  sources: AdminSources,
  reply: FastifyReply,
  read: () => Value | undefined | Promise<Value | undefined>,
): Promise<Value | undefined> {
  const stalled = sources.stalled?.();
  const value = stalled === undefined ? await read() : undefined;
  if (!value) await reply.code(503).send({ error: stalled ?? stateMissing(sources) });
  return value;
}

function stateMissing(sources: AdminSources): string {
  return sources.health?.() ?? 'the state is not open yet';
}

function unknownId(snapshot: Snapshot, { source, sink }: { source?: string; sink?: string }): string | undefined {
  if (source !== undefined && !snapshot.sources.some(({ id }) => id === source)) return `there is no source "${source}"`;
  if (sink !== undefined && !snapshot.sinks.some(({ id }) => id === sink)) return `there is no sink "${sink}"`;
  return undefined;
}

/** The status that Fastify gives its own errors. */
function statusOf(thrown: unknown): number {
  return typeof thrown === 'object' && thrown !== null && 'statusCode' in thrown && typeof thrown.statusCode === 'number'
    ? thrown.statusCode
    : 500;
}
