/** Operator actions on a sink. Sends go through the sink's delivery loop; each action is a row in `operations`. */
import { codeOf, WaybillError } from '../../errors/errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SinkState } from '../../journal/sink-positions.ts';
import type { ArchiveReplay, Operation, RangeReplay, Replay } from '../../model/journal.ts';
import { holdsAfter, lengthOf, without } from '../../archive/line-ranges.ts';
import { archiveOrder } from '../../archive/parse-line.ts';
import type { Window } from '../../model/ledger.ts';
import type { Rejection } from '../../model/sink.ts';
import type { SinkSnapshot } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { rfc3339 } from '../../report/format-time.ts';
import type { OperationResult, ConfiguredSinks, SinkOperation } from './requests.ts';

/** A clock that is ahead may date records later than the request. */
const clockAheadUs = 3_600_000_000;
const testCode = 'Decrypt:AccessDenied:UserPayloadNoAccess';

type Configured = NonNullable<ReturnType<ConfiguredSinks>>;
type Loop = NonNullable<Configured['loop']>;
type RequestOf<Name extends SinkOperation['operation']> = Extract<SinkOperation, { operation: Name }>;

/** The sink of a request, and the part of the row in `operations` that all operations share. */
interface Target {
  readonly journal: Journal;
  readonly sink: SinkState;
  /** Undefined when the sink is not in the configuration. */
  readonly configured: Configured | undefined;
  readonly operation: Omit<Operation, 'detail'>;
  /** The reason of the operator, as a part of `detail`. */
  readonly reason: { readonly reason?: string };
}

/** @throws WaybillError `usage` when the request does not fit the state; `sink_unavailable`, `sink_blocked`, `sink_outcome_unknown` from the sink */
export async function performOnSink(
  request: SinkOperation,
  journal: Journal,
  now: Micros,
  configured: ConfiguredSinks,
): Promise<OperationResult> {
  const sink = [...journal.sinkPositions.sinks()].find(({ id }) => id === request.sink);
  if (!sink) throw new WaybillError('usage', `cannot find the sink "${request.sink}" in the state`);
  const target: Target = {
    journal,
    sink,
    configured: configured(sink.id),
    operation: { at: now, actor: request.actor, operation: request.operation },
    reason: request.reason === undefined ? {} : { reason: request.reason },
  };
  switch (request.operation) {
    case 'sinks retire':
      return retire(target);
    case 'sinks adopt':
      return adopt(target);
    case 'sinks retry':
      return retry(target);
    case 'sinks reconcile':
      return reconcile(target, { from: request.from, to: now + clockAheadUs });
    case 'sinks test':
      return sendTest(target, request);
    case 'dead-letters retry':
      return retryDeadLetters(target, request);
    case 'dead-letters discard':
      return discardDeadLetters(target, request);
    case 'replay':
      return replay(target, request, configured);
    case 'replay cancel':
      return cancelReplay(target);
    case 'archive prune':
    case 'archive hold':
    case 'archive release':
      return orderOfArchive(target, request);
  }
}

async function retire({ journal, sink, configured, operation, reason }: Target): Promise<OperationResult> {
  if (sink.state === 'retired') throw new WaybillError('usage', `sink "${sink.id}" is retired already`);
  if (configured !== undefined || sink.state !== 'unconfigured')
    throw new WaybillError('usage', `cannot retire the sink "${sink.id}": it is configured; remove it from the configuration first`);
  const detail = { sink: sink.id, acknowledged: sink.acknowledged, ...reason };
  await journal.operate({ ...operation, detail }, () => journal.sinkPositions.retire(sink));
  return {};
}

async function adopt({ journal, sink, configured, operation, reason }: Target): Promise<OperationResult> {
  await adoptable(sink, configured);
  const detail = { sink: sink.id, acknowledged: sink.acknowledged, delivered: sink.delivered.seq, ...reason };
  await journal.operate({ ...operation, detail }, () => journal.sinkPositions.writeOrders(sink, { ...sink.orders, adopt: true }));
  configured?.loop?.wake();
  return {};
}

async function retry({ journal, sink, configured, operation, reason }: Target): Promise<OperationResult> {
  const { loop } = configuredOr(configured, sink.id);
  if (!loop)
    throw new WaybillError('usage', `cannot retry the sink "${sink.id}": no daemon is running; a daemon tries every sink when it starts`);
  const { state } = loop.view();
  if (state === 'active') throw new WaybillError('usage', `cannot retry the sink "${sink.id}": it is neither retrying nor blocked`);
  await journal.operate({ ...operation, detail: { sink: sink.id, state, ...reason } });
  loop.wake();
  return {};
}

async function reconcile(
  { journal, sink, configured, operation, reason }: Target,
  range: { readonly from: Micros; readonly to: Micros },
): Promise<OperationResult> {
  assertResolvable(sink, configured);
  await journal.operate({ ...operation, detail: { sink: sink.id, from: range.from, ...reason } }, () =>
    journal.sinkPositions.writeOrders(sink, { ...sink.orders, reconcile: range }),
  );
  return {};
}

async function sendTest(
  { journal, sink, configured, operation, reason }: Target,
  { as: code = testCode, count = 1 }: RequestOf<'sinks test'>,
): Promise<OperationResult> {
  const { loop, testMessages } = sending(configured, sink);
  const messages = testMessages(code, count);
  // Writes the operation before the send: after a crash, the test is on record without an outcome.
  const written = await journal.operate({ ...operation, detail: { sink: sink.id, code, count, ...reason } });
  const rejected = await loop.test(messages).catch(async (thrown: unknown) => {
    await journal.writeOutcome(written, `failed: ${codeOf(thrown) ?? 'internal'}`);
    throw thrown;
  });
  const delivered = count - rejected.length;
  await journal.writeOutcome(written, rejected.length === 0 ? 'delivered' : `${delivered} delivered, ${rejected.length} rejected`);
  return { sent: { delivered, rejected } };
}

async function retryDeadLetters(
  { sink, configured, operation, reason }: Target,
  { seqs }: RequestOf<'dead-letters retry'>,
): Promise<OperationResult> {
  const { loop, definition, settings } = sending(configured, sink);
  // An unknown outcome of a batch needs a sink that can look up records. Any other sink gets one message at a time.
  const isResolvable = definition.resolvable(settings) && !keepsPosition({ definition, settings });
  const rejected: Rejection[] = [];
  for (const batch of isResolvable ? [seqs] : seqs.map((seq) => [seq]))
    rejected.push(...(await loop.retry(batch, { ...operation, detail: reason })));
  return { sent: { delivered: seqs.length - rejected.length, rejected } };
}

async function discardDeadLetters(
  { journal, sink, operation, reason }: Target,
  request: RequestOf<'dead-letters discard'>,
): Promise<OperationResult> {
  const seqs = request.seqs === 'all' ? journal.deadLetters.stored(sink.id) : request.seqs;
  if (seqs.length > 0) await journal.discardDeadLetters(sink.id, seqs, { ...operation, detail: reason });
  return { discarded: seqs.length };
}

/**
 * The state stores the replay until it is complete. After a failure, the same request continues where the replay stopped, and one with the
 * number of a line of the archive goes on there.
 */
async function replay(target: Target, request: RequestOf<'replay'>, configured: ConfiguredSinks): Promise<OperationResult> {
  const { journal, sink, operation, reason } = target;
  const { loop } = sending(target.configured, sink);
  if (loop.view().replays?.some(({ state }) => state === 'running'))
    throw new WaybillError('usage', `cannot replay to the sink "${sink.id}": a replay is already running`);
  const { archive, first: line, from, to } = request;
  const stored = archive === undefined ? rangeReplay(target, request) : archiveReplay(target, request, archive, configured);
  const range = stored.kind === 'range' ? { first: stored.first, last: stored.last } : { archive, line };
  await journal.operate({ ...operation, detail: { sink: sink.id, ...range, from, to, ...reason } }, () =>
    journal.sinkPositions.writeReplay(sink, stored),
  );
  return { replay: loop.replay(stored) };
}

/** @throws WaybillError `usage` */
function rangeReplay({ journal, sink, operation }: Target, request: RequestOf<'replay'>): RangeReplay {
  const { id, acknowledged, replays } = sink;
  const times = timesOf(request);
  const requested = { first: request.first, last: request.last };
  const before = replays.range;
  if (before) {
    const isSame =
      before.requested.first === requested.first && before.requested.last === requested.last && isSameTime(before.times, times);
    if (isSame) return before;
    throw unfinished(id, `the entries ${before.first} to ${before.last}`, before);
  }
  const first = Math.max(request.first ?? 1, journal.pruned() + 1);
  const last = Math.min(request.last ?? acknowledged, acknowledged);
  const expected = journal.countOf(first, last, times);
  if (expected === 0)
    throw new WaybillError('usage', `cannot replay to the sink "${id}": nothing delivered in this range is still in the journal`);
  const began = Math.floor(operation.at / 1_000);
  const begin = { at: first - 1, completeFrom: first, passed: 0, sent: 0, rejected: 0 };
  return { kind: 'range', requested, first, last, times, began, expected, ...begin };
}

/** @throws WaybillError `usage` */
function archiveReplay(
  { sink, operation }: Target,
  request: RequestOf<'replay'>,
  archive: string,
  configured: ConfiguredSinks,
): ArchiveReplay {
  const { id, acknowledged, replays } = sink;
  if (configured(archive)?.definition.type !== 'archive')
    throw new WaybillError('usage', `cannot replay from "${archive}": it is not a configured sink of type archive`);
  const { first: line, last, to } = request;
  if (last !== undefined || (line !== undefined && to !== undefined))
    throw new WaybillError(
      'usage',
      'cannot end a replay from an archive at a line, or at a time if it begins at a line: pass two times, or --from LINE',
    );
  const times = timesOf(request);
  const before = replays.archive;
  if (before && !(before.archive === archive && (line !== undefined || isSameTime(before.times, times))))
    throw unfinished(id, `the archive ${before.archive}`, before);
  const began = Math.floor(operation.at / 1_000);
  const known = before ?? { kind: 'archive', archive, times, through: acknowledged, began, at: 0, sent: 0, rejected: 0 };
  return line === undefined ? known : behind(known, line);
}

/**
 * Leaves out the lines before `line` that the replay has not read.
 * @throws WaybillError `usage`
 */
function behind(replay: ArchiveReplay, line: number): ArchiveReplay {
  const { archive, at, leftOut = 0 } = replay;
  if (line <= at) throw new WaybillError('usage', `cannot replay from line ${line} of "${archive}": the replay continues after line ${at}`);
  return { ...replay, at: line - 1, leftOut: leftOut + line - 1 - at };
}

function unfinished(id: string, what: string, before: Replay): WaybillError {
  return new WaybillError(
    'usage',
    `cannot replay to the sink "${id}": the replay from ${what}${periodOf(before)} is unfinished: ` +
      `the same request continues it, and "waybill replay cancel --sink ${id}" ends it`,
  );
}

async function cancelReplay({ journal, sink, configured, operation, reason }: Target): Promise<OperationResult> {
  const { range, archive } = sink.replays;
  const stored = range ?? archive;
  if (!stored) throw new WaybillError('usage', `cannot cancel a replay to the sink "${sink.id}": none is under way`);
  // Before the transaction: the loop must not begin another batch after it.
  configured?.loop?.cancelReplays();
  const detail = { sink: sink.id, archive: archive?.archive, after: stored.at, ...reason };
  await journal.operate({ ...operation, detail }, () => void journal.sinkPositions.removeReplay(sink));
  return {};
}

/** The archive signs the order with its next segment. Only then it deletes segments. */
async function orderOfArchive(
  { journal, sink, configured, operation, reason }: Target,
  request: RequestOf<'archive prune' | 'archive hold' | 'archive release'>,
): Promise<OperationResult> {
  const { archive, operation: name } = request;
  if (configuredOr(configured, sink.id).definition.type !== 'archive')
    throw new WaybillError('usage', `cannot use the sink "${sink.id}" of type ${sink.type}: it is not an archive`);
  if (name === 'archive prune') {
    // The archive may not have signed a hold of the last minutes yet.
    const orders = journal.operationsOn(sink.id).flatMap((each) => archiveOrder.safeParse(each).data ?? []);
    const holds = holdsAfter(orders.filter((each) => each.archive === archive));
    const held = holds.find(({ lines }) => lengthOf(without(request.lines, lines)) < lengthOf(request.lines));
    if (held) throw new WaybillError('usage', `cannot prune the archive "${sink.id}": the case "${held.case}" holds some of the lines`);
  }
  const at = (time: Micros | null): string | null => (time === null ? null : rfc3339(time));
  const detail =
    name === 'archive release'
      ? { case: request.case }
      : name === 'archive hold'
        ? { case: request.case, from: at(request.from), to: at(request.to), lines: request.lines }
        : { before: at(request.before), lines: request.lines };
  await journal.operate({ ...operation, detail: { sink: sink.id, archive, ...detail, ...reason } });
  return {};
}

function timesOf({ from, to }: RequestOf<'replay'>): Window | undefined {
  return from === undefined && to === undefined ? undefined : { from: from ?? 0, to: to ?? Number.MAX_SAFE_INTEGER };
}

function isSameTime(one: Window | undefined, other: Window | undefined): boolean {
  return one?.from === other?.from && one?.to === other?.to;
}

function periodOf({ times }: Replay): string {
  if (!times) return '';
  const { from, to } = times;
  return `${from === 0 ? '' : ` from ${rfc3339(from)}`}${to === Number.MAX_SAFE_INTEGER ? '' : ` to ${rfc3339(to)}`}`;
}

type Identified = Pick<SinkState, 'id' | 'type'>;

/** @throws WaybillError `usage` unless the sink can look up which records it has */
export function assertResolvable({ id, type }: Identified, configured: Configured | undefined): void {
  const { definition, settings } = configuredOr(configured, id);
  if (!definition.resolvable(settings) || keepsPosition({ definition, settings }))
    throw new WaybillError('usage', `cannot reconcile the sink "${id}": a sink of type ${type} cannot look up which records it has`);
}

/**
 * Adoption needs a blocked sink that stores its position. With any other sink, writes after the
 * request would seem to come from another state.
 * @throws WaybillError `usage`
 */
export async function adoptable(
  { id, type, state }: Identified & { readonly state: string },
  configured: Configured | undefined,
): Promise<void> {
  if (!keepsPosition(configuredOr(configured, id)) || state === 'retired')
    throw new WaybillError('usage', `cannot adopt the sink "${id}": a sink of type ${type} stores no position; adopt does not apply`);
  const loop = configured?.loop;
  if (!loop) return;
  assertAdoptable(id, loop.view());
  if (loop.isOpen) throw fits(id);
}

/** @throws WaybillError `usage` when the sink is not blocked, or adoption would not help */
export function assertAdoptable(id: string, { state, lastCode, lastError }: Pick<SinkSnapshot, 'state' | 'lastCode' | 'lastError'>): void {
  if (state !== 'blocked') throw fits(id);
  // Another destination needs another id.
  if (lastCode === 'config_invalid') throw new WaybillError('usage', `cannot adopt the sink "${id}": ${lastError ?? ''}`);
}

function fits(id: string): WaybillError {
  return new WaybillError('usage', `cannot adopt the sink "${id}": it is not blocked, and its position matches this state`);
}

function keepsPosition({ definition, settings }: Pick<Configured, 'definition' | 'settings'>): boolean {
  return definition.keepsPosition?.(settings) === true;
}

/** @throws WaybillError `usage` when the sink accepts no on-demand sends */
function sending(configured: Configured | undefined, { id, type }: SinkState): Configured & { readonly loop: Loop } {
  const found = configuredOr(configured, id);
  const { definition, loop } = found;
  if (definition.takesOnce === true)
    throw new WaybillError('usage', `cannot send to the sink "${id}" on demand: a sink of type ${type} accepts each record only once`);
  if (!loop) throw new WaybillError('internal_error', `sink "${id}" has no loop`);
  return { ...found, loop };
}

function configuredOr(configured: Configured | undefined, id: string): Configured {
  if (configured) return configured;
  throw new WaybillError('usage', `cannot use the sink "${id}": it is not in the configuration`);
}
