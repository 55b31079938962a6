/**
 * Numbered messages, batches of them, and a model of a sink's resume point in the journal, for the
 * tests of every sink.
 */
import { systemClock } from '../../../src/time/clock.ts';
import type { SinkLoss } from '../../../src/model/sink.ts';
import type { Position } from '../../../src/model/ledger.ts';
import type { Batch, ResumePoint, Message } from '../../../src/model/sink.ts';
import type { SinkContext } from '../../../src/sink/define.ts';
import { noting } from '../telemetry/written-events.ts';

/** The context that the daemon passes to a sink of this name. */
export function contextOf(id: string, overrides: Partial<SinkContext> = {}): SinkContext {
  const { log = { write: () => undefined } } = overrides;
  return { id, format: 'ecs', clock: systemClock, ...overrides, log: noting(log) };
}

const timeOf = (seq: number): number => Date.UTC(2026, 10, 20) * 1000 + seq;

/** The default text is valid for every kind of receiver. */
export function message(seq: number, text = textOf(seq)): Message {
  const id = Buffer.alloc(16, 7);
  id.writeUInt32BE(seq, 12);
  const uid = id.toString('base64url');
  return {
    seq,
    number: seq,
    uid,
    source: 'records',
    time: timeOf(seq),
    received: timeOf(seq),
    late: false,
    severity: 3,
    action: 'Open',
    key: 'k',
    bytes: Buffer.from(text),
  };
}

export function textOf(seq: number, name = `file ${seq}`): string {
  return JSON.stringify({ '@timestamp': new Date(timeOf(seq) / 1000).toISOString(), seq, name });
}

export function batchOf(messages: readonly Message[], uncertain = false): Batch {
  const bytes = messages.reduce((sum, each) => sum + each.bytes.length, 0);
  return { messages, through: positionOf(messages.at(-1)?.seq ?? 0), uncertain, bytes };
}

export function positionOf(seq: number): Position {
  return { seq, chain: Buffer.alloc(32, seq % 251) };
}

/**
 * A model of a sink's progress in the journal: only the test's acknowledgements and resume notes
 * change it.
 */
export class ModelKept implements ResumePoint {
  readonly journal: string;
  position: Position = { seq: 0, chain: new Uint8Array(32) };
  resumeNote: string | undefined;
  adopt = false;
  completeSince = 0;
  /** The last entry of this journal. */
  head = 1_000_000;
  notes = 0;

  constructor(journal = 'a'.repeat(32)) {
    this.journal = journal;
  }

  async chainAt(seq: number): Promise<Uint8Array | undefined> {
    return seq <= this.head ? positionOf(seq).chain : undefined;
  }

  async commitResumeNote(note: string): Promise<void> {
    this.resumeNote = note;
    this.notes += 1;
  }

  readonly checkpoints: string[] = [];

  async archiveCheckpoint(checkpoint: string): Promise<void> {
    this.checkpoints.push(checkpoint);
  }

  /** The next line of a replay from the archive. */
  replayed: number | undefined;

  replayedFrom(): number | undefined {
    return this.replayed;
  }

  readonly losses: SinkLoss[] = [];

  async restored(): Promise<void> {
    this.losses.length = 0;
  }

  async lost(loss: SinkLoss, note: string): Promise<void> {
    this.losses.push(loss);
    await this.commitResumeNote(note);
  }

  acknowledge(batch: Batch, note: string | undefined): void {
    this.position = batch.through;
    this.resumeNote = note ?? this.resumeNote;
  }
}

export function messages(from: number, through: number): Message[] {
  return Array.from({ length: Math.max(0, through - from + 1) }, (_, i) => message(from + i));
}
