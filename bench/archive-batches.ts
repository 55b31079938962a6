/** Batches for an archive: records of the benchmark in windows of a quarter of an hour, each with its proof, as the journal sends them. */
import { createHash, hash } from 'node:crypto';
import type { Batch, Message } from '../src/model/sink.ts';
import { identify } from '../src/record/identity.ts';
import { readRecord } from '../src/record/read.ts';
import { perSecond, recordText } from './record.ts';

const beginMs = Date.UTC(2026, 0, 1);
const batchRecords = 10_000;
const windowRecords = perSecond * 900;

const identity = identify('production');

/** The uid of small record `i`. */
export function smallUid(i: number): string {
  return identity(readRecord(Buffer.from(smallText(i))));
}

/** @param isSmall  records with the fewest fields, for an archive with many of them */
export function* archiveBatches(records: number, isSmall: boolean): Generator<Batch> {
  let seq = 0;
  let messages: Message[] = [];
  let uids: Buffer[] = [];
  const batch = (): Batch => ({
    messages,
    through: { seq, chain: Buffer.from(hash('sha256', String(seq), 'hex'), 'hex') },
    uncertain: false,
    bytes: messages.reduce((sum, { bytes }) => sum + bytes.length, 0),
  });
  for (let i = 0; i < records; i += 1) {
    const micros = microsOf(i);
    const text = isSmall ? smallText(i) : recordText(i, beginMs);
    // `verify` computes it again.
    const uid = identity(readRecord(Buffer.from(text)));
    uids.push(Buffer.from(uid, 'base64url'));
    // A page of 1,000 records is received at once.
    const received = beginMs * 1000 + Math.floor(i / 1_000) * 33_333_333;
    messages.push(message((seq += 1), uid, micros, received, text));
    if ((i + 1) % windowRecords === 0 || i === records - 1) {
      const from = beginMs * 1000 + Math.floor(i / windowRecords) * 900_000_000;
      messages.push({ ...message((seq += 1), '', micros, micros, proofText(from, uids)), isLedger: true });
      uids = [];
    }
    if (messages.length < batchRecords) continue;
    yield batch();
    messages = [];
  }
  if (messages.length > 0) yield batch();
}

function message(seq: number, uid: string, time: number, received: number, text: string): Message {
  const bytes = Buffer.from(text);
  return {
    seq,
    number: undefined,
    uid,
    source: 'production',
    time,
    received,
    late: false,
    severity: 3,
    action: 'Decrypt',
    key: undefined,
    bytes,
  };
}

function microsOf(i: number): number {
  return beginMs * 1000 + Math.floor((i * 1_000_000) / perSecond);
}

function smallText(i: number): string {
  return `{"logId":${i},"logTimestamp":"${new Date(microsOf(i) / 1000).toISOString().slice(0, 23)}"}`;
}

/** The ledger entry of a proven window, as the journal writes it. */
function proofText(from: number, uids: readonly Buffer[]): string {
  const digest = createHash('sha256')
    .update(Buffer.concat([...uids].sort((a, b) => Buffer.compare(a, b))))
    .digest('hex');
  return JSON.stringify({
    ledger: 'window',
    source: 'production',
    from,
    to: from + 900_000_000,
    state: 'proven',
    query: { startTime: new Date(from / 1000).toISOString(), endTime: new Date(from / 1000 + 900_000).toISOString() },
    total: uids.length,
    records: uids.length,
    digest,
    proof: { passes: 1 },
    recounts: 0,
  });
}
