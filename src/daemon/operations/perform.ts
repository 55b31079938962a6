/** Performs operator requests, with a running daemon (through its socket) or without one (under the lock). Checks each request against the state. */
import { WaybillError } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Micros } from '../../model/time.ts';
import { operationSchema } from './requests.ts';
import type { OperationResult, ConfiguredSinks, Reading } from './requests.ts';
import { performOnSink } from './sinks.ts';

/** The log fields of a completed request. */
export function operationOf(given: unknown): {
  operation: string;
  source?: string;
  sink?: string;
  actor: string;
  reason: string | undefined;
} {
  const parsed = operationSchema.parse(given);
  const { operation, actor, reason } = parsed;
  return { operation, ...('source' in parsed ? { source: parsed.source } : { sink: parsed.sink }), actor, reason };
}

/** @throws WaybillError `usage` when the request does not fit the state, `journal_full` when it cannot be stored */
export async function perform(
  given: unknown,
  journal: Journal,
  now: Micros,
  reading: Reading,
  configured: ConfiguredSinks = () => undefined,
): Promise<OperationResult> {
  const parsed = operationSchema.safeParse(given);
  if (!parsed.success)
    throw new WaybillError('usage', `cannot read the request: ${parsed.error.issues.map(({ message }) => message).join(', ')}`);
  const asked = parsed.data;
  if (!('source' in asked)) return performOnSink(asked, journal, now, configured);
  const operation = { actor: asked.actor, reason: asked.reason };
  const { history } = journal;
  switch (asked.operation) {
    case 'backfill': {
      const { source, from, to, rate, sinks, expected } = asked;
      const known = [...journal.sinkPositions.sinks()].map((sink) => sink.id);
      const unknown = sinks?.filter((sink) => !known.includes(sink)) ?? [];
      if (unknown.length > 0)
        throw new WaybillError('usage', `cannot find the sink "${unknown.join('", "')}" in the state: there are ${known.join(', ')}`);
      return { added: history.add(source, { from, to }, { rate, sinks, expected }, operation) };
    }
    case 'backfill pause':
    case 'backfill resume':
      history.pause(asked.source, asked.from, asked.operation === 'backfill pause', operation);
      return {};
    case 'backfill cancel':
      return { ends: history.cancel(asked.source, asked.from, reading(asked.source, asked.from)?.to, operation) };
    case 'gaps retry':
    case 'gaps accept': {
      known(journal, asked.source);
      const gapOperation = { at: now, actor: asked.actor, reason: asked.reason ?? '' };
      if (asked.operation === 'gaps retry') await journal.retryGap(asked.source, asked.from, gapOperation);
      else await journal.acceptGap(asked.source, asked.from, { ...gapOperation, evidence: asked.evidence });
      return {};
    }
    case 'sources retire':
      history.retire(asked.source, operation);
      return {};
  }
}

function known(journal: Journal, source: string): void {
  if (!journal.hasSource(source)) throw new WaybillError('usage', `cannot find the source "${source}" in the state`);
}
