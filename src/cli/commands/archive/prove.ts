/** `waybill archive prove` and `waybill archive export`: proofs that lines are in an archive. */
import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../../../time/clock.ts';
import { formatProof, formatTlogProof } from '../../../archive/proof-file.ts';
import { Prover, type LeftOut } from '../../../archive/prove.ts';
import type { ArchiveStore } from '../../../archive/store.ts';
import { parseRecordLine, type LineFacts } from '../../../archive/parse-line.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { UidSet } from '../../../record/uid-set.ts';
import type { Micros } from '../../../model/time.ts';
import { readRecord } from '../../../record/read.ts';
import { counted, grouped } from '../../../report/format-time.ts';
import { assertForward, parsePeriod } from '../../../settings/period.ts';
import { subcommand } from '../../command.ts';
import { writeResult, type Io } from '../../io.ts';
import { notFound } from '../../not-found.ts';
import { choice, parsed, required, text, texts, timeOptions, toggle, type ValuesOf } from '../../option.ts';
import { fieldOf } from '../compare/ids.ts';
import { placeOf, placeOptions } from './place.ts';

const proveOptions = {
  uid: required(
    parsed('UID', 'the uid of the record: dpas.uid of its event', 'the uid of a record: 22 characters', (given) =>
      /^[\w-]{21}[AQgw]$/.test(given) ? given : undefined,
    ),
  ),
  format: choice(
    'FORMAT',
    ['waybill-proof', 'tlog-proof'],
    'waybill-proof for "archive verify --proof" (the default), or tlog-proof of C2SP',
  ),
  stamped: toggle(
    'prove it to the first checkpoint with a time stamp or cosignature that covers it, and put that in; tlog-proof: a cosignature',
  ),
  ...placeOptions,
};

export const prove = subcommand({
  summary: 'prints one record with a proof that the archive contains it, and no other record',
  options: proveOptions,
  run: async (values: ValuesOf<typeof proveOptions>, io) => {
    const { store: opened, name } = await placeOf(values, io);
    await using store = opened;
    const prover = await proverOf(store, io);
    const newest = await prover.record(values.uid, () => io.stderr.write('the index cannot locate the record: reading every line\n'));
    if (!newest)
      throw new WaybillError('archive_broken', `cannot prove "${values.uid}": the archive "${name}" has no such record${within(prover)}`);
    const isTlog = values.format === 'tlog-proof';
    const folders = isTlog ? ['cosignatures/'] : ['timestamps/', 'cosignatures/'];
    const proof = values.stamped ? await prover.stamped(newest, folders) : newest;
    if (!proof)
      throw new WaybillError(
        'archive_broken',
        `cannot prove "${values.uid}" with --stamped: ${isTlog ? 'no' : 'no time stamp or'} cosignature covers it`,
      );
    io.stdout.write(isTlog ? formatTlogProof(proof) : formatProof(proof));
    return 0;
  },
});

async function proverOf(store: ArchiveStore, io: Pick<Io, 'stderr'>): Promise<Prover> {
  const prover = await Prover.open(store);
  if (prover.newer) io.stderr.write(newerText(prover.size, prover.newer));
  return prover;
}

function newerText(size: number, { path, lines }: NonNullable<Prover['newer']>): string {
  if (lines === undefined)
    return (
      `warning: lines may be left out, from leaf ${grouped(size)} on: "${path}" does not follow the checkpoint before it; ` +
      'see "waybill archive verify"\n'
    );
  const reason =
    `tiles of "${path}" are missing or wrong: a daemon may be writing them at this moment; ` +
    'if the warning stays, see "waybill archive verify"';
  return leftOutText(size, size + lines, reason);
}

function within({ size, newer }: Prover): string {
  if (!newer) return '';
  const rest = newer.lines === undefined ? 'lines after them may be' : counted(newer.lines, 'line is', 'lines are');
  return ` in its first ${counted(size, 'line')}, and ${rest} left out`;
}

const exportOptions = {
  source: text('ID', 'only lines of this source; default all, and the operations'),
  match: texts('FIELD=VALUE', 'only records with this value, e.g. userId=ab12 or userNetwork.machineName=PC7; repeated: all of them'),
  ...timeOptions,
  out: text('FILE', 'write to this new file instead of standard output'),
  ...placeOptions,
};

export const exportLines = subcommand({
  summary: 'prints the lines of a period, each with a proof that the archive contains it, one a line',
  options: exportOptions,
  run: async (values: ValuesOf<typeof exportOptions>, io) => {
    const { store: opened, name } = await placeOf(values, io);
    await using store = opened;
    const now = systemClock.now() * 1_000;
    const { from = -Infinity, to = Infinity } = parsePeriod(values, now);
    assertForward('export', from, to, values);
    const matches = values.match.map(fieldAndValue);
    const prover = await proverOf(store, io);
    const [sources, results] = [new Set<string>(), new Set<LeftOut['result']>()];
    // An archive that another state continued may have a record twice.
    const [uids, compared] = [new UidSet(), new UidSet()];
    let count = 0;
    const select = (facts: LineFacts, line: Buffer): boolean => {
      io.signal.throwIfAborted();
      if ('source' in facts) sources.add(facts.source);
      if (!isInPeriod(facts, values.source, from, to)) return false;
      if (facts.kind !== 'record') return matches.length === 0;
      compared.add(facts.uid);
      const isSelected = matches.length === 0 || hasFields(line, matches);
      if (isSelected) uids.add(facts.uid);
      return isSelected;
    };
    const leaveOut = (part: LeftOut): void => {
      results.add(part.result);
      io.stderr.write(leftOutText(part.from, part.to, reasonOf(part)));
    };
    async function* chunks(): AsyncGenerator<string> {
      for await (const proof of prover.lines(select, leaveOut)) {
        count += 1;
        yield formatProof(proof);
      }
      const isComplete = !results.has('altered') && !results.has('missing') && !prover.newer;
      if (values.source !== undefined && !sources.has(values.source) && isComplete) throw notFound('source', values.source, [...sources]);
    }
    if (values.out === undefined) for await (const chunk of chunks()) await writeResult(io, [chunk]);
    else await writeNew(values.out, chunks(), io);
    const none = `no line: the archive "${name}" has none of this ${values.source === undefined ? 'period' : 'source and period'}`;
    if (matches.length > 0) io.stderr.write(`${grouped(uids.size)} of ${counted(compared.size, 'different record')} match\n`);
    io.stderr.write(`exported ${count > 0 ? `${counted(count, 'line')} with ${counted(uids.size, 'different record')}` : none}\n`);
    if (results.has('altered')) return 1;
    return count === 0 || results.has('missing') || prover.newer ? 3 : 0;
  },
});

function fieldAndValue(text: string): readonly [field: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1) throw new WaybillError('usage', `cannot use --match "${text}": expected a field and a value such as userId=ab12`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** @param line  of a record. One that is no JSON has no field. */
function hasFields(line: Buffer, matches: readonly (readonly [field: string, value: string])[]): boolean {
  const record = readRecord(parseRecordLine(line).record);
  return record.isObject && matches.every(([field, value]) => fieldOf(record.tree(), field) === value);
}

function reasonOf({ result, problem }: LeftOut): string {
  return {
    removed: 'their segments are missing, as retention leaves an archive; see "waybill archive verify --retention"',
    missing: 'their segments are missing; see "waybill archive verify"',
    altered: `${problem ?? ''}; see "waybill archive verify"`,
  }[result];
}

function leftOutText(from: number, to: number, reason: string): string {
  return `warning: ${counted(to - from, 'line is', 'lines are')} left out, leaf ${grouped(from)} to leaf ${grouped(to - 1)}: ${reason}\n`;
}

/** True for a record or an operation whose time is in the period, and for a window that overlaps it. */
export function isInPeriod(facts: LineFacts, source: string | undefined, from: Micros, to: Micros): boolean {
  if (facts.kind === 'position') return false;
  if (facts.kind === 'operation') return source === undefined && from <= facts.at && facts.at < to;
  if (source !== undefined && facts.source !== source) return false;
  // A suspension and its end have no duration: `from` equals `to`.
  if (facts.kind === 'ledger') return facts.from < to && (facts.to > from || facts.from >= from);
  return facts.time === undefined ? from === -Infinity && to === Infinity : from <= facts.time && facts.time < to;
}

/** A part of a result must not pass for it, and would be in the way of the next attempt. */
async function writeNew(file: string, chunks: AsyncIterable<string>, { signal }: Io): Promise<void> {
  const failed = (cause: unknown): WaybillError => new WaybillError('usage', `cannot write to "${file}": ${messageOf(cause)}`, { cause });
  const handle = await open(file, 'wx', 0o600).catch((cause: unknown) => {
    throw failed(cause);
  });
  try {
    await pipeline(chunks, handle.createWriteStream(), { signal });
  } catch (cause) {
    await rm(file, { force: true });
    signal.throwIfAborted();
    throw cause instanceof WaybillError ? cause : failed(cause);
  }
}
