/**
 * Verifies an archive against public keys: signatures, hashes, and the ledger. Tiles and entries
 * are compared with those computed from the lines, and prove nothing themselves.
 */
import type { Micros } from '../../model/time.ts';
import { microsToIso } from '../../record/timestamp.ts';
import { checkpointNumber } from '../checkpoint.ts';
import { EntryLog, type Growth } from '../entry-log.ts';
import { equal } from '../merkle.ts';
import { keyName, type Verifier } from '../signed-note.ts';
import type { ArchiveStore } from '../store.ts';
import { Turns } from './turns.ts';
import { compareCopy, compareKeys, noteOthers, readCheckpoints, signedCheckpoint, type SignedCheckpoint } from './checkpoints.ts';
import { Findings, type Finding } from './findings.ts';
import { checkCosignatures, type CosignatureReport, type WitnessOptions } from './cosignatures.ts';
import { Dates } from './dates.ts';
import { LedgerCheck, type SourceWindows } from './ledger.ts';
import { Order } from './order.ts';
import { RemovedSegments } from './removed.ts';
import { Segments } from './segments.ts';
import { TimeStampCheck, type TimeStampOptions, type TimeStampReport } from './timestamps.ts';

export interface VerifyOptions {
  /** Windows outside this period are not checked. */
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** Segments whose lines were archived before this time may be missing. */
  readonly removedBefore?: Micros | undefined;
  /** Checkpoints stored at another place. */
  readonly since?: Uint8Array | readonly Uint8Array[] | undefined;
  /** The archive whose last checkpoint the first line names: it is verified too, without the period, `since`, `freshSince` and `cosignatures`. */
  readonly former?: ArchiveStore | undefined;
  /** Undefined: signatures of time stamps are not checked. */
  readonly timeStamps?: TimeStampOptions | undefined;
  /** The longest time, in µs, from the archiving of a line to its first time stamp or cosignature; default 48 h. */
  readonly within?: number | undefined;
  /** A key was stolen then: lines are unproven unless a time stamp or cosignatures from before it, or `since`, cover them. */
  readonly keyUntil?: Micros | undefined;
  /** The newest line, and the newest time stamp and cosignature if they are checked, must not be older. */
  readonly freshSince?: Micros | undefined;
  /** Nor later: a time in the future does not show that the archive is still written. */
  readonly freshUntil?: Micros | undefined;
  /** Undefined: cosignatures are not checked. */
  readonly cosignatures?: WitnessOptions | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after each checkpoint. */
  readonly onProgress?: (done: { readonly lines: number; readonly of: number }) => void;
}

export interface VerifyReport {
  readonly result: 'intact' | 'altered' | 'unproven';
  readonly origin?: string | undefined;
  readonly checkpoints: number;
  readonly lines: number;
  /** Those of them that were not read, because their segments are missing. */
  readonly missing: number;
  /** Of the newest checkpoint, in base64. */
  readonly root?: string | undefined;
  readonly records: number;
  /** The keys that signed it, as `name+id`, with the numbers of lines of the first and the last checkpoint that each signed. */
  readonly keys: readonly { readonly key: string; readonly first: number; readonly last: number }[];
  /** When the newest line was archived, by the clock of the collector. */
  readonly archivedAt?: Micros | undefined;
  readonly sources: readonly SourceWindows[];
  readonly findings: readonly Finding[];
  /** The number of lines that this checkpoint confirms. */
  readonly confirmed: number;
  /** Undefined without `timestampRoots`, or without a valid time stamp. */
  readonly timeStamps?: TimeStampReport | undefined;
  /** Undefined without witnesses, or without a quorum of them. */
  readonly cosignatures?: CosignatureReport | undefined;
  /** The longest time, in µs, from the archiving of a line to its first time stamp or cosignature; undefined if none has one. */
  readonly within?: number | undefined;
}

/** @param findings  receives each finding at once: it is known also if the store fails later */
export async function verifyArchive(
  store: ArchiveStore,
  verifiers: readonly Verifier[],
  options: VerifyOptions = {},
  findings = new Findings(),
): Promise<VerifyReport> {
  const copy = await store.read('checkpoint');
  const checkpoints = await readCheckpoints(store, verifiers, findings);
  const { signed, steps: ends } = checkpoints;
  const isPublished = compareCopy(copy, checkpoints, verifiers, findings);
  await compareKeys(store, verifiers, findings);
  await noteOthers(store, findings);
  const turns = new Turns(options.signal);
  const newest = signed.at(-1);
  const segments = await Segments.list(store, newest?.size ?? 0, findings, turns);
  const order = new Order(findings);
  const removed = new RemovedSegments(findings, options.removedBefore);
  const timeStamps = new TimeStampCheck(store, findings);
  using ledger = new LedgerCheck(findings, options, turns);
  let log = new EntryLog();
  let records = 0;
  let former: string | undefined;
  const dates = new Dates();
  let before = 0;
  for (const checkpoint of ends) {
    options.signal?.throwIfAborted();
    const number = checkpointNumber(checkpoint.path) ?? 0;
    const steps = await segments.follow(log, checkpoint, number - before);
    if (!steps) break;
    before = number;
    for (const { segment, lost, growth, log: after } of steps) {
      log = after;
      await compareObjects(store, growth, findings, checkpoint === newest ? () => isPublished : isNeeded);
      if (segment) {
        const beginsAt = removed.next(segment.facts, log.size - segment.facts.lines, checkpoint.origin);
        if (beginsAt !== undefined) ledger.beginAt(beginsAt);
        order.add(segment.path, segment.facts);
        timeStamps.add(segment.path, segment.facts, checkpoint);
        await ledger.add(segment.facts);
        records += segment.facts.records;
        if (log.size === segment.facts.lines) former = segment.facts.position?.former;
        if (segment.facts.position) dates.addSegment(log.size, segment.facts.position.at);
      } else if (lost) {
        order.lacksLines();
        if (lost.isAbsent) {
          removed.add(lost);
          continue;
        }
        findings.altered(lost.object, lost.message);
        ledger.lacksLines();
      }
    }
    options.onProgress?.({ lines: log.size, of: newest?.size ?? 0 });
  }
  removed.finish();
  order.finish();
  segments.noteUncommitted();
  const known = [...verifiers, ...(options.cosignatures?.witnesses ?? [])];
  const elsewhere = [options.since ?? []].flat().map((note) => confirmedLines(note, signed, known, findings));
  const confirmed = Math.max(0, ...elsewhere);
  const stamped = await timeStamps.finish(signed, options.timeStamps, dates);
  const cosigned = await checkCosignatures(store, signed, options.cosignatures, dates, findings);
  const within = dates.within(options.within, options.timeStamps ? 'timestamps/' : 'cosignatures/', findings);
  const sources = ledger.finish();
  const { keyUntil, freshSince = -Infinity, freshUntil = Infinity } = options;
  const dated = keyUntil === undefined ? log.size : Math.max(confirmed, dates.linesBefore(keyUntil));
  if (keyUntil !== undefined && dated < log.size)
    findings.unproven(
      '--key-until',
      `no time stamp, cosignature or --since dates the last ${log.size - dated} of ${log.size} lines before ${microsToIso(keyUntil)}`,
    );
  const { archivedAt } = dates;
  for (const [name, time] of Object.entries({ line: archivedAt, 'time stamp': stamped?.newest, cosignature: cosigned?.newest }))
    if (time !== undefined && (time < freshSince || time > freshUntil))
      findings.unproven('--fresh', `the newest ${name} is of ${microsToIso(time)}`);
  await verifyFormer(former, verifiers, options, findings);
  return {
    result: findings.result,
    origin: newest?.origin,
    checkpoints: signed.length,
    lines: log.size,
    missing: removed.lines,
    root: newest && Buffer.from(newest.root).toString('base64'),
    records,
    keys: keySpans(signed, verifiers),
    archivedAt,
    sources,
    findings: findings.all,
    confirmed,
    timeStamps: stamped,
    cosignatures: cosigned,
    within,
  };
}

/**
 * Its key was lost, so nobody can sign for it any more: it has the checkpoint that the first line of the newer archive names.
 * @param note  in that line
 */
async function verifyFormer(
  note: string | undefined,
  verifiers: readonly Verifier[],
  { former: store, timeStamps, within, removedBefore, signal }: VerifyOptions,
  findings: Findings,
): Promise<void> {
  if (note === undefined) {
    if (store) findings.unproven('--former', 'the first line of the archive names no former archive');
    return;
  }
  if (!store) {
    findings.note('--former', 'the first line names the last checkpoint of a former archive, which was not checked');
    return;
  }
  const options = { timeStamps, within, removedBefore, signal, since: Buffer.from(note) };
  for (const { severity, object, message } of (await verifyArchive(store, verifiers, options)).findings)
    findings[severity]('--former', `${object.replace('--since', 'the first line')}: ${message}`);
}

function keySpans(signed: readonly SignedCheckpoint[], verifiers: readonly Verifier[]): VerifyReport['keys'] {
  return verifiers.map(keyName).flatMap((key) => {
    const sizes = signed.filter(({ signedBy }) => signedBy.includes(key)).map(({ size }) => size);
    const [first, last] = [sizes[0], sizes.at(-1)];
    return first === undefined || last === undefined ? [] : [{ key, first, last }];
  });
}

/** A partial tile or bundle of an older checkpoint may be missing: a later one holds its hashes. */
function isNeeded(path: string): boolean {
  return !path.includes('.p/');
}

async function compareObjects(
  store: ArchiveStore,
  { objects }: Growth,
  findings: Findings,
  mustExist: (path: string) => boolean,
): Promise<void> {
  const stored = await Promise.all(objects.map(({ path }) => store.read(path)));
  for (const [i, { path, bytes }] of objects.entries()) {
    const found = stored[i];
    if (found === undefined && mustExist(path)) findings.altered(path, 'it is missing');
    else if (found !== undefined && !found.equals(bytes)) findings.altered(path, 'it differs from what the lines give');
  }
}

/** The checkpoint from another place must be one of this archive. */
function confirmedLines(
  since: Uint8Array,
  signed: readonly SignedCheckpoint[],
  verifiers: readonly Verifier[],
  findings: Findings,
): number {
  const elsewhere = signedCheckpoint(since, '--since', verifiers, findings);
  if (!elsewhere || elsewhere.signedBy.length === 0) return 0;
  const { origin, size, root } = elsewhere;
  const found = signed.find((each) => each.size === size);
  if (found && found.origin === origin && equal(found.root, root)) return size;
  findings.altered('--since', `the archive does not contain this checkpoint: it is signed for ${size} lines of "${origin}"`);
  return 0;
}
