/** Performs operator requests: in a running daemon, or in a command that holds the lock. Checks each request against the state. */
import { WaybillError } from '../../errors/errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Micros } from '../../model/time.ts';
import { operationSchema, type OperationResult, type ConfiguredSinks, type Collecting } from './requests.ts';
import { performOnSink } from './sinks.ts';

/** The log fields of a completed request. */
type Performed = Record<'operation' | 'actor', string> & Partial<Record<'source' | 'sink' | 'reason', string | undefined>>;

export function operationOf(given: unknown): Performed {
  const parsed = operationSchema.parse(given);
  const { operation, actor, reason } = parsed;
  return { operation, ...('source' in parsed ? { source: parsed.source } : { sink: parsed.sink }), actor, reason };
}

/** @throws WaybillError `usage` when the request does not fit the state, `journal_full` when it cannot be stored */
export async function perform(...request: Parameters<typeof performed>): Promise<OperationResult> {
  const result = await performed(...request);
  // Operations on the history store without a promise.
  // mutant: settled-operation
  await request[1].settled();
  return result;
}

async function performed(
  given: unknown,
  journal: Journal,
  now: Micros,
  collecting: Collecting,
  configured: ConfiguredSinks = () => undefined,
): Promise<OperationResult> {
  const parsed = operationSchema.safeParse(given);
  if (!parsed.success)
    throw new WaybillError('usage', `cannot read the request: ${parsed.error.issues.map(({ message }) => message).join(', ')}`);
  const request = parsed.data;
  if (!('source' in request)) return performOnSink(request, journal, now, configured);
  const operation = { actor: request.actor, reason: request.reason };
  const { history } = journal;
  switch (request.operation) {
    case 'backfill': {
      const { source, from, to, rate, sinks, expected } = request;
      const known = [...journal.sinkPositions.sinks()].map((sink) => sink.id);
      const unknown = sinks?.filter((sink) => !known.includes(sink)) ?? [];
      if (unknown.length > 0)
        throw new WaybillError('usage', `cannot find the sink "${unknown.join('", "')}" in the state; it has ${known.join(', ')}`);
      return { added: history.add(source, { from, to }, { rate, sinks, expected }, operation) };
    }
    case 'backfill pause':
    case 'backfill resume':
      history.pause(request.source, request.from, request.operation === 'backfill pause', operation);
      return {};
    case 'backfill cancel':
      return {
        ends: history.cancel(request.source, request.from, collecting(request.source)?.backfiller.reading(request.from)?.to, operation),
      };
    case 'gaps retry':
    case 'gaps accept': {
      known(journal, request.source);
      const gapOperation = { at: now, actor: request.actor, reason: request.reason ?? '' };
      if (request.operation === 'gaps retry') await journal.retryGap(request.source, request.from, gapOperation);
      else await journal.acceptGap(request.source, request.from, { ...gapOperation, evidence: request.evidence });
      return {};
    }
    case 'sources retry': {
      const { source, reason } = request;
      const collector = collecting(source);
      if (!collector)
        throw new WaybillError(
          'usage',
          `cannot retry the source "${source}": no daemon polls it; a daemon asks every source when it starts`,
        );
      await journal.operate({ at: now, actor: request.actor, operation: 'sources retry', detail: { source, ...(reason && { reason }) } });
      collector.retry();
      return {};
    }
    case 'sources retire':
      history.retire(request.source, operation);
      return {};
    case 'sources move':
      // The loop that polls the former service would count its windows there.
      if (collecting(request.source))
        throw new WaybillError(
          'usage',
          `cannot move the source "${request.source}": the running daemon polls it with another configuration; reload that first`,
        );
      return { moved: history.move(request.source, request.destination, operation) };
  }
}

function known(journal: Journal, source: string): void {
  if (!journal.hasSource(source)) throw new WaybillError('usage', `cannot find the source "${source}" in the state`);
}
