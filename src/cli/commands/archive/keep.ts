/** `waybill archive prune` and `waybill archive hold`: what may leave an archive, and what must stay. */
import { originOf } from '../../../archive/head.ts';
import type { ArchiveOrder, HoldOrder, LineRange } from '../../../archive/line.ts';
import { hasLine, holdsAfter, joined, lengthOf, without } from '../../../archive/line-ranges.ts';
import type { LineFacts } from '../../../archive/parse-line.ts';
import { Prover, type ProvenSegment } from '../../../archive/prove.ts';
import type { OperationRequest } from '../../../daemon/operations/requests.ts';
import { WaybillError } from '../../../errors/errors.ts';
import type { Micros } from '../../../model/time.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { assertForward, parsePeriod, parseTime } from '../../../settings/period.ts';
import { systemClock } from '../../../time/clock.ts';
import { subcommand } from '../../command.ts';
import { printJson, type Io } from '../../io.ts';
import { actor, confirmed, operation, operationOptions, type OperationValues } from '../../operation.ts';
import { required, text, timeOptions, toggle, type ValuesOf } from '../../option.ts';
import { placeOf, shardOption, type Place } from './place.ts';
import { isInPeriod } from './prove.ts';

const sink = { sink: required(text('ID', 'archive sink of the configuration')), ...shardOption };
const pruneOptions = {
  ...sink,
  before: required(text('T', 'removes segments that were archived before this time: a time, a date, -400d')),
  ...operationOptions,
  reason: required(operationOptions.reason),
};
const holdOptions = {
  ...sink,
  case: required(text('ID', 'name of the case; a second hold with the same name adds to it')),
  ...timeOptions,
  release: toggle('ends every hold of the case'),
  ...operationOptions,
};

export const prune = subcommand({
  summary: 'removes the oldest segments, after a signed line that states who ordered it and why; keeps what is held',
  options: pruneOptions,
  run: runPrune,
});

export const hold = subcommand({
  summary: 'keeps the lines of a period from prune, and in a bucket from everyone (legal hold); --release ends it',
  options: holdOptions,
  run: async (values: ValuesOf<typeof holdOptions>, io) => (values.release ? release(values, io) : runHold(values, io)),
});

async function runPrune(values: ValuesOf<typeof pruneOptions>, io: Io): Promise<number> {
  if (values.reason.trim() === '') throw new WaybillError('usage', 'cannot prune: --reason is empty');
  const before = parseTime(values.before, '--before', systemClock.now() * 1_000, false);
  const archive = await Archive.read(values, io);
  await using _store = archive.store;
  const { segments, holds, removed, removing } = archive;
  const old = segments.slice(0, -1).filter(({ at }) => at < before);
  const kept = holds.length === 0 ? [] : await archive.heldOf(old);
  const gone = old.filter((segment) => !kept.includes(segment.first) && !hasLine(removing, segment.first));
  const held = counted(lengthOf(old.filter(({ first }) => kept.includes(first))), 'line is', 'lines are');
  const heldText = kept.length === 0 ? [] : [`  ${held} kept: ${holds.map((each) => `the case "${each.case}"`).join(', ')} holds them`];
  if (gone.length === 0) {
    io.stderr.write([`nothing to remove: no other segment was archived before ${rfc3339(before)}`, ...heldText, ''].join('\n'));
    if (values.json) printJson(io, { sink: values.sink, lines: [] });
    return 0;
  }
  const going = joined(gone);
  const plan = [
    `Removes ${counted(lengthOf(going), 'line')} of the archive "${archive.name}" permanently: ${going.map(rangeText).join(', ')}`,
    ...heldText,
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  // The newest order names all removed lines, so the segments of earlier orders may be removed.
  const lines = joined([...without(removed, archive.present), ...removing, ...going]);
  await archive.order({ operation: 'archive prune', before: rfc3339(before), lines: [...lines] }, values, io);
  return ordered(
    values,
    io,
    { sink: values.sink, lines: going },
    'the daemon deletes the segments after the archive has signed the order with its next segment',
  );
}

async function runHold(values: ValuesOf<typeof holdOptions>, io: Io): Promise<number> {
  if (values.from === undefined && values.to === undefined)
    throw new WaybillError('usage', 'cannot hold: pass --from, --to, or both; "--from 1970" holds everything');
  const { from, to } = parsePeriod(values, systemClock.now() * 1_000);
  assertForward('hold', from, to, values);
  const archive = await Archive.read(values, io);
  await using _store = archive.store;
  const period = { from: from ?? null, to: to ?? null };
  const held = await archive.segmentsOf((facts) => isHeld(facts, period));
  const lines = joined(held);
  const plan = [
    `Holds ${counted(lengthOf(lines), 'line')} of the archive "${archive.name}" for the case "${values.case}"`,
    ...(archive.bucket ? [`  sets a legal hold on ${counted(held.length, 'object')} of the bucket`] : []),
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  for (const { path } of held) await archive.bucket?.hold?.(path, true);
  const times = { from: from === undefined ? null : rfc3339(from), to: to === undefined ? null : rfc3339(to) };
  await archive.order({ operation: 'archive hold', case: values.case, ...times, lines: [...lines] }, values, io);
  return ordered(
    values,
    io,
    { held: values.case, lines },
    'prune obeys the hold already, and its line is signed with the next segment of the archive',
  );
}

async function release(values: ValuesOf<typeof holdOptions>, io: Io): Promise<number> {
  if ((values.from ?? values.to) !== undefined)
    throw new WaybillError('usage', 'cannot use --from or --to with --release: it ends every hold of the case');
  const archive = await Archive.read(values, io);
  await using _store = archive.store;
  // Also of a hold that has ended: an earlier attempt may have left objects of the bucket with it.
  const ended = archive.orders.filter((order) => order.operation === 'archive hold').filter((each) => each.case === values.case);
  if (ended.length === 0)
    throw new WaybillError(
      'usage',
      `cannot release the case "${values.case}": the archive "${archive.name}" has no hold with this name; a hold that was just ordered can be released after the archive has signed it with its next segment`,
    );
  const others = archive.holds.filter((each) => each.case !== values.case).flatMap(({ lines }) => lines);
  const lines = without(joined(ended.flatMap((each) => each.lines)), others);
  const plan = [`Ends the hold of the case "${values.case}": ${counted(lengthOf(lines), 'line is', 'lines are')} no longer held`];
  if (!(await confirmed(plan, values, io))) return 1;
  await archive.order({ operation: 'archive release', case: values.case }, values, io);
  for (const { path, first } of archive.segments) if (hasLine(lines, first)) await archive.bucket?.hold?.(path, false);
  return ordered(
    values,
    io,
    { released: values.case, lines },
    'the hold ends when its line is signed, with the next segment of the archive',
  );
}

function ordered({ json }: OperationValues, io: Io, result: object, effect: string): number {
  if (json) printJson(io, result);
  else io.stdout.write(`ordered: ${effect}\n`);
  return 0;
}

interface Segment extends Omit<ProvenSegment, 'facts'> {
  /** When it was archived. */
  readonly at: Micros;
}

type Order = Extract<OperationRequest, { operation: 'archive prune' | 'archive hold' | 'archive release' }>;
type OrderParts<Of> = Of extends unknown ? Omit<Of, 'sink' | 'archive' | 'actor' | 'reason'> : never;

/** The segments and the signed orders of an archive. */
class Archive {
  readonly segments: Segment[] = [];
  readonly orders: ArchiveOrder[] = [];
  /** Lines that an order named, and that the daemon is deleting. */
  removing: readonly LineRange[] = [];
  readonly #place: Place;
  readonly #prover: Prover;
  readonly #origin: string;
  readonly #signal: AbortSignal;

  private constructor(place: Place, prover: Prover, origin: string, signal: AbortSignal) {
    this.#place = place;
    this.#prover = prover;
    this.#origin = origin;
    this.#signal = signal;
  }

  /** @throws WaybillError `archive_broken` for an archive whose lines are not as signed */
  static async read(
    { sink, shard, config }: { readonly sink: string; readonly shard: number | undefined; readonly config: string | undefined },
    io: Io,
  ): Promise<Archive> {
    const place = await placeOf({ sink, shard, config, directory: undefined }, io);
    const archive = new Archive(place, await Prover.open(place.store), (await originOf(place.store)) ?? '', io.signal);
    for await (const { facts, ...segment } of archive.#read()) {
      for (const each of facts) if (each.kind === 'operation' && each.order?.archive === archive.#origin) archive.orders.push(each.order);
      const last = facts.at(-1);
      if (last?.kind !== 'position') continue;
      archive.removing = last.removing ?? [];
      archive.segments.push({ ...segment, at: last.at });
    }
    return archive;
  }

  get name(): string {
    return this.#place.name;
  }

  get store(): AsyncDisposable {
    return this.#place.store;
  }

  get holds(): readonly HoldOrder[] {
    return holdsAfter(this.orders);
  }

  /** The lines that an order named. */
  get removed(): readonly LineRange[] {
    return joined(this.orders.flatMap((order) => (order.operation === 'archive prune' ? order.lines : [])));
  }

  get present(): readonly LineRange[] {
    return joined(this.segments);
  }

  /** Undefined for a directory, and for a bucket without locks. */
  get bucket(): Place['store'] | undefined {
    const lock = this.#place.settings?.s3?.objectLock;
    return lock === undefined || lock === 'none' ? undefined : this.#place.store;
  }

  /** The first line of each of these segments that a hold keeps, or that contains the line of a hold that has not ended. */
  async heldOf(among: readonly Segment[]): Promise<readonly number[]> {
    const { holds } = this;
    const lines = holds.flatMap((each) => each.lines);
    const isOrder = (facts: LineFacts): boolean =>
      facts.kind === 'operation' && facts.order?.operation === 'archive hold' && holds.some((each) => each.case === caseOf(facts.order));
    const found = await this.segmentsOf((facts) => isOrder(facts) || holds.some((each) => isHeld(facts, each)));
    const firsts = new Set(found.map(({ first }) => first));
    return among.map(({ first }) => first).filter((first) => firsts.has(first) || hasLine(lines, first));
  }

  /** The segments with such a line. */
  async segmentsOf(isWanted: (facts: LineFacts) => boolean): Promise<readonly ProvenSegment[]> {
    const found: ProvenSegment[] = [];
    for await (const segment of this.#read()) if (segment.facts.some(isWanted)) found.push({ ...segment, facts: [] });
    return found;
  }

  async order(parts: OrderParts<Order>, values: OperationValues & { readonly sink: string }, io: Io): Promise<void> {
    const { loadConfig } = await import('../../../config/load.ts');
    const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
    const request = { ...parts, sink: values.sink, archive: this.#origin, ...actor(values, io) } as Order;
    await operation(config, request, io.signal);
  }

  async *#read(): AsyncGenerator<ProvenSegment> {
    const altered: string[] = [];
    for await (const segment of this.#prover.segments(({ result, problem }) => result === 'altered' && altered.push(problem ?? ''))) {
      this.#signal.throwIfAborted();
      yield segment;
    }
    const [problem] = altered;
    if (problem !== undefined)
      throw new WaybillError('archive_broken', `cannot use the archive "${this.name}": ${problem}; see "waybill archive verify"`);
  }
}

function caseOf(order: ArchiveOrder | undefined): string | undefined {
  return order && 'case' in order ? order.case : undefined;
}

/** A record without a readable time may be of any. */
function isHeld(facts: LineFacts, { from, to }: Pick<HoldOrder, 'from' | 'to'>): boolean {
  return (facts.kind === 'record' && facts.time === undefined) || isInPeriod(facts, undefined, from ?? -Infinity, to ?? Infinity);
}

function rangeText({ first, last }: LineRange): string {
  return `lines ${grouped(first)} to ${grouped(last)}`;
}
