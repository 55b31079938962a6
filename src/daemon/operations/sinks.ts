/**
 * What a person may do to a sink: retire it, take the present journal for what it holds, have it asked for what it has, try it out, send something
 * to it again. What is sent goes through the sink's own loop; each operation is a row in `operations`.
 */
import { codeOf, WaybillError } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SinkState } from '../../journal/sink-positions.ts';
import type { Operation } from '../../model/journal.ts';
import type { Rejection } from '../../model/sink.ts';
import type { Micros } from '../../model/time.ts';
import type { OperationResult, ConfiguredSinks, SinkOperation } from './requests.ts';

/** What is dated later than the order itself, by a clock that is ahead, is asked for too. */
const clockAheadUs = 3_600_000_000;
const testCode = 'Decrypt:AccessDenied:UserPayloadNoAccess';

type Configured = NonNullable<ReturnType<ConfiguredSinks>>;

/** Does what is asked. @throws WaybillError `usage` when it cannot be done, `sink_unavailable`, `sink_blocked`, `sink_outcome_unknown` when the sink did not take it */
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
          `cannot retire the sink "${sink.id}": it is configured; take it out of the configuration and start again`,
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
      // Before it is sent: a test that a crash interrupts is on record all the same, without an outcome.
      const written = await journal.operate({ ...operation, detail: { sink: sink.id, code, count, ...reason } });
      const { rejected } = await loop.onDemand.test(messages).catch(async (thrown: unknown) => {
        await journal.writeOutcome(written, `failed: ${codeOf(thrown) ?? 'internal'}`);
        throw thrown;
      });
      await journal.writeOutcome(
        written,
        rejected.length === 0 ? 'accepted' : `${count - rejected.length} accepted, ${rejected.length} refused`,
      );
      return { sent: { delivered: count - rejected.length, rejected } };
    }
    case 'dead-letters retry': {
      const { loop, definition, settings } = sending(made, sink);
      // A sink that can be asked which records it has finds out what became of a batch; any other is sure of one message at a time.
      const isAskable = definition.resolvable(settings) && !keepsPosition({ definition, settings });
      const rejected: Rejection[] = [];
      for (const seqs of isAskable ? [asked.seqs] : asked.seqs.map((seq) => [seq]))
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
    first: Math.max(asked.first ?? 1, journal.pruned() + 1),
    last: Math.min(asked.last ?? acknowledged, acknowledged),
    times,
  };
  const expected = journal.countOf(range.first, range.last, times);
  if (expected === 0)
    throw new WaybillError('usage', `cannot replay to the sink "${id}": the journal holds nothing of that which it was sent already`);
  await journal.operate({ ...operation, detail: { sink: id, first: range.first, last: range.last, from, to, ...operation.detail } });
  const rejected = journal.deadLetters.rejected(id);
  loop.onDemand.replay(range, expected, (seq) => rejected.has(seq));
  return { replay: loop.view().replay };
}

type Asked = Pick<SinkState, 'id' | 'type'> & { readonly state: string };

/** One that can be asked which records it has. @throws WaybillError `usage` for another */
export function assertResolvable({ id, type }: Asked, made: Configured | undefined): void {
  const { definition, settings } = configuredOr(made, id);
  if (!definition.resolvable(settings) || keepsPosition({ definition, settings }))
    throw new WaybillError('usage', `cannot reconcile the sink "${id}": a sink of type ${type} cannot be asked which records it has`);
}

/** One that keeps our position, and does not deliver: what it writes after the order would else be taken for another's. */
export function adoptable({ id, type, state }: Asked, made: Configured | undefined): void {
  if (!keepsPosition(configuredOr(made, id)) || state === 'retired')
    throw new WaybillError('usage', `cannot adopt the sink "${id}": a sink of type ${type} keeps no position that could be another's`);
  const loop = made?.loop;
  if (loop && (loop.isOpen || loop.view().state !== 'blocked')) throw fits(id);
}

/** Why one that takes cannot be adopted. */
export function fits(id: string): WaybillError {
  return new WaybillError('usage', `cannot adopt the sink "${id}": it is not blocked, its position fits this state`);
}

function keepsPosition({ definition, settings }: Pick<Configured, 'definition' | 'settings'>): boolean {
  return definition.keepsPosition?.(settings) === true;
}

/** One through whose loop something can be sent. */
function sending(made: Configured | undefined, { id, type }: SinkState): Configured & { loop: NonNullable<Configured['loop']> } {
  const found = configuredOr(made, id);
  const { definition, loop } = found;
  if (definition.takesOnce === true)
    throw new WaybillError('usage', `cannot send this to the sink "${id}": a sink of type ${type} takes each record once and for all`);
  if (!loop) throw new WaybillError('internal_error', `sink "${id}" has no loop`);
  return { ...found, loop };
}

function configuredOr(made: Configured | undefined, id: string): Configured {
  if (made) return made;
  throw new WaybillError('usage', `cannot use the sink "${id}": it is not in the configuration`);
}
