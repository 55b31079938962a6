/**
 * The real journal in a directory of the test, with numbered records of one source, so that tests
 * can find missing and duplicate records at a receiver.
 */
import { cpSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/time/clock.ts';
import { Journal } from '../../src/journal/journal.ts';
import type { CollectedRecord, RangeReplay, Replay } from '../../src/model/journal.ts';
import type { Message } from '../../src/model/sink.ts';
import type { Clock } from '../../src/model/time.ts';
import { identify } from '../../src/record/identity.ts';
import { readText } from '../../src/record/read.ts';

export const source = 'records';
const begin = Date.UTC(2026, 10, 20);
const uidOf = identify(source);

export function temporary(): string {
  return mkdtempSync(join(tmpdir(), 'waybill-deliver-'));
}

export async function openJournal(directory: string, clock: Clock): Promise<Journal> {
  const options = { directory, maxSize: 1e9, lockWait: 5_000, version: '0.1.0', expectState: false, retention: 1e12 };
  // Appending never moves a test's manual clock: the journal yields to the real event loop.
  const turning: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
  };
  const journal = await Journal.open(options, turning, new AbortController().signal);
  journal.registerSource(source, 'service', begin * 1000);
  return journal;
}

/** A replay of a range that has not begun. */
export function rangeReplay(first: number, last: number, more: Partial<RangeReplay> = {}): RangeReplay {
  const begin = { at: first - 1, completeFrom: first, passed: 0, sent: 0, rejected: 0 };
  return { kind: 'range', requested: {}, first, last, times: undefined, began: 1, expected: last - first + 1, ...begin, ...more };
}

/** Stores a replay, as the request of an operator does, without a row in `operations`. */
export function storeReplay(journal: Journal, id: string, replay: Replay): void {
  journal.db
    .prepare('INSERT OR REPLACE INTO replays (sink, kind, began_ms, progress) VALUES (?, ?, ?, ?)')
    .run(id, replay.kind, replay.began, JSON.stringify(replay));
  const sink = journal.sinkPositions.sink(id);
  sink.replays = { ...sink.replays, [replay.kind]: replay };
}

export function registerSink(journal: Journal, id: string): void {
  journal.sinkPositions.register(id, 'model', `place of ${id}`, journal.positionFor('journal'), undefined);
}

/** Record `n` (from 1), one second after record n − 1, with additional fields. */
export function record(n: number, overrides: Readonly<Record<string, string>> = {}): CollectedRecord {
  const time = begin + n * 1000;
  const logTimestamp = new Date(time).toISOString().slice(0, 19);
  const value = { logId: n, actionAttempted: 'Open', result: 'Success', resultReason: '', logTimestamp, ...overrides };
  const text = JSON.stringify(value);
  return { bytes: Buffer.from(text), text, uid: uidOf(readText(text)), time: time * 1000, isObject: true };
}

/** Appends `count` records after the existing ones, in pages of at most 1,000. */
export async function append(
  journal: Journal,
  count: number,
  overrides: (n: number) => Readonly<Record<string, string>> = () => ({}),
  receivedMs = begin,
): Promise<void> {
  const first = journal.head().seq + 1;
  for (let from = first; from < first + count; from += 1_000) {
    const size = Math.min(1_000, first + count - from);
    const records = Array.from({ length: size }, (_, i) => record(from + i, overrides(from + i)));
    await journal.append({ source, records, received: receivedMs * 1000, serverNow: receivedMs * 1000 });
  }
}

/** The number that `record` gave to the record in a JSON message. */
export function numberOf({ bytes }: Pick<Message, 'bytes'>): number {
  return (JSON.parse(Buffer.from(bytes).toString('utf8')) as { logId: number }).logId;
}

/** The progress of a sink in the state file, read without the program's memory. */
export function committed(journal: Journal, sink: string): { acknowledged: number; delivered: number; resumeNote: string | null } {
  return journal.db.prepare('SELECT acknowledged, delivered, resume_note AS resumeNote FROM sinks WHERE id = ?').get(sink) as {
    acknowledged: number;
    delivered: number;
    resumeNote: string | null;
  };
}

interface DeadLetterRow {
  readonly sink: string;
  readonly seq: number;
  readonly body: string;
  readonly code: string;
  readonly message: string;
  readonly attempts: number;
}

export function deadLetters(journal: Journal): DeadLetterRow[] {
  return journal.db
    .prepare('SELECT sink, seq, CAST(body AS TEXT) AS body, code, message, attempts FROM dead_letters ORDER BY sink, seq')
    .all() as DeadLetterRow[];
}

/** The state as a power cut at this moment would leave it, in a new directory. */
export function copyState(directory: string): string {
  const copy = join(temporary(), 'state');
  mkdirSync(copy, { mode: 0o700 });
  for (const name of ['waybill.db', 'waybill.db-wal']) cpSync(join(directory, name), join(copy, name));
  return copy;
}

export function range(from: number, through: number): number[] {
  return Array.from({ length: Math.max(0, through - from + 1) }, (_, i) => from + i);
}
