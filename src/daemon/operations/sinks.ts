/** Operator actions on a sink. Sends go through the sink's delivery loop; each action is a row in `operations`. */
import { codeOf, WaybillError } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SinkState } from '../../journal/sink-positions.ts';
import type { Operation } from '../../model/journal.ts';
import type { Rejection } from '../../model/sink.ts';
import type { Micros } from '../../model/time.ts';
import type { OperationResult, ConfiguredSinks, SinkOperation } from './requests.ts';

/** Records may be dated later than the request, by a clock that is ahead. */
const clockAheadUs = 3_600_000_000;
const testCode = 'Decrypt:AccessDenied:UserPayloadNoAccess';

type Configured = NonNullable<ReturnType<ConfiguredSinks>>;

/** @throws WaybillError `usage` when the request does not fit the state; `sink_unavailable`, `sink_blocked`, `sink_outcome_unknown` from the sink */
export async function performOnSink(
  asked: SinkOperation,
  journal: Journal,
  now: Micros,
  configured: ConfiguredSinks,
): Promise<OperationResult> {
  const sink = [...journal.sinkPositions.sinks()].find(({ id }) => id === asked.sink);
  if (!sink) throw new WaybillError('usage', `cannot find the sink "${asked.sink}" in the state`);
  const made = configured(sink.id);
  const operation = { at: now, actor: asked.actor, operation: asked.operation };
  const reason = asked.reason === undefined ? {} : { reason: asked.reason };
  switch (asked.operation) {
    case 'sinks retire':
      if (sink.state === 'retired') throw new WaybillError('usage', `sink "${sink.id}" is retired already`);
      if (made !== undefined || sink.state !== 'unconfigured')
        throw new WaybillError(
          'usage',
          `cannot retire the sink "${sink.id}": it is configured; remove it from the configuration and restart`,
        );
      await journal.operate({ ...operation, detail: { sink: sink.id, acknowledged: sink.acknowledged, ...reason } }, () =>
        journal.sinkPositions.retire(sink),
      );
      return {};
    case 'sinks adopt':
      adoptable(sink, made);
      await journal.operate(
        { ...operation, detail: { sink: sink.id, acknowledged: sink.acknowledged, delivered: sink.delivered.seq, ...reason } },
        () => journal.sinkPositions.writeOrders(sink, { ...sink.orders, adopt: true }),
      );
      made?.loop?.wake();
      return {};
    case 'sinks retry': {
      const loop = configuredOr(made, sink.id).loop;
      if (!loop) throw new WaybillError('usage', `cannot retry the sink "${sink.id}": no daemon is running; its start tries every sink`);
      const { state } = loop.view();
      if (state === 'active') throw new WaybillError('usage', `cannot retry the sink "${sink.id}": it is neither retrying nor blocked`);
      await journal.operate({ ...operation, detail: { sink: sink.id, state, ...reason } });
      loop.wake();
      return {};
    }
    case 'sinks reconcile': {
      assertResolvable(sink, made);
      const reconcile = { from: asked.from, to: now + clockAheadUs };
      await journal.operate({ ...operation, detail: { sink: sink.id, from: asked.from, ...reason } }, () =>
        journal.sinkPositions.writeOrders(sink, { ...sink.orders, reconcile }),
      );
      return {};
    }
    case 'sinks test': {
      const { loop, testMessages } = sending(made, sink);
      const { as: code = testCode, count = 1 } = asked;
      const messages = testMessages(code, count);
      // Written before the send: a test that a crash interrupts is recorded without an outcome.
      const written = await journal.operate({ ...operation, detail: { sink: sink.id, code, count, ...reason } });
      const { rejected } = await loop.onDemand.test(messages).catch(async (thrown: unknown) => {
        await journal.writeOutcome(written, `failed: ${codeOf(thrown) ?? 'internal'}`);
        throw thrown;
      });
      await journal.writeOutcome(
        written,
        rejected.length === 0 ? 'accepted' : `${count - rejected.length} accepted, ${rejected.length} rejected`,
      );
      return { sent: { delivered: count - rejected.length, rejected } };
    }
    case 'dead-letters retry': {
      const { loop, definition, settings } = sending(made, sink);
      // Only a sink that can look up records resolves an unknown outcome of a batch; others get one message at a time.
      const isResolvable = definition.resolvable(settings) && !keepsPosition({ definition, settings });
      const rejected: Rejection[] = [];
      for (const seqs of isResolvable ? [asked.seqs] : asked.seqs.map((seq) => [seq]))
        rejected.push(...(await loop.onDemand.retry(seqs, { ...operation, detail: reason })).rejected);
      return { sent: { delivered: asked.seqs.length - rejected.length, rejected } };
    }
    case 'dead-letters discard': {
      const seqs = asked.seqs === 'all' ? journal.deadLetters.kept(sink.id) : asked.seqs;
      if (seqs.length > 0) await journal.discardDeadLetters(sink.id, seqs, { ...operation, detail: reason });
      return { discarded: seqs.length };
    }
    case 'replay':
      return replay(asked, journal, sink, sending(made, sink), { ...operation, detail: reason });
  }
}

async function replay(
  asked: Extract<SinkOperation, { operation: 'replay' }>,
  journal: Journal,
  { id, acknowledged }: SinkState,
  { loop }: { loop: NonNullable<Configured['loop']> },
  operation: Operation,
): Promise<OperationResult> {
  if (loop.view().replay?.state === 'running') throw new WaybillError('usage', `cannot replay to the sink "${id}": a replay is under way`);
  const { from, to } = asked;
  const times = from === undefined && to === undefined ? undefined : { from: from ?? 0, to: to ?? Number.MAX_SAFE_INTEGER };
  const range = {
    first: Math.max(asked.first ?? 1, (await journal.pruned()) + 1),
    last: Math.min(asked.last ?? acknowledged, acknowledged),
    times,
  };
  const expected = journal.countOf(range.first, range.last, times);
  if (expected === 0)
    throw new WaybillError('usage', `cannot replay to the sink "${id}": nothing delivered in this range is still in the journal`);
  await journal.operate({ ...operation, detail: { sink: id, first: range.first, last: range.last, from, to, ...operation.detail } });
  const rejected = journal.deadLetters.rejected(id);
  loop.onDemand.replay(range, expected, (seq) => rejected.has(seq));
  return { replay: loop.view().replay };
}

type Asked = Pick<SinkState, 'id' | 'type'> & { readonly state: string };

/** @throws WaybillError `usage` unless the sink can look up which records it has */
export function assertResolvable({ id, type }: Asked, made: Configured | undefined): void {
  const { definition, settings } = configuredOr(made, id);
  if (!definition.resolvable(settings) || keepsPosition({ definition, settings }))
    throw new WaybillError('usage', `cannot reconcile the sink "${id}": a sink of type ${type} cannot be asked which records it has`);
}

/** Adoption needs a blocked sink that stores its position: later writes would else look like those of another state. */
export function adoptable({ id, type, state }: Asked, made: Configured | undefined): void {
  if (!keepsPosition(configuredOr(made, id)) || state === 'retired')
    throw new WaybillError('usage', `cannot adopt the sink "${id}": a sink of type ${type} stores no position; adopt does not apply`);
  const loop = made?.loop;
  if (loop && (loop.isOpen || loop.view().state !== 'blocked')) throw fits(id);
}

export function fits(id: string): WaybillError {
  return new WaybillError('usage', `cannot adopt the sink "${id}": it is not blocked, its position fits this state`);
}

function keepsPosition({ definition, settings }: Pick<Configured, 'definition' | 'settings'>): boolean {
  return definition.keepsPosition?.(settings) === true;
}

/** @throws WaybillError `usage` when nothing can be sent on demand to this sink */
function sending(made: Configured | undefined, { id, type }: SinkState): Configured & { loop: NonNullable<Configured['loop']> } {
  const found = configuredOr(made, id);
  const { definition, loop } = found;
  if (definition.takesOnce === true)
    throw new WaybillError('usage', `cannot send this to the sink "${id}": a sink of type ${type} accepts each record only once`);
  if (!loop) throw new WaybillError('internal_error', `sink "${id}" has no loop`);
  return { ...found, loop };
}

function configuredOr(made: Configured | undefined, id: string): Configured {
  if (made) return made;
  throw new WaybillError('usage', `cannot use the sink "${id}": it is not in the configuration`);
}
