/**
 * The chain of a journal, computed a second time from its rows alone, as docs/formats.md describes
 * it, and the tables to compare. It shares no code with the program.
 */
import { createHash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import type { Database } from 'better-sqlite3';

interface Row {
  seq: number;
  n: number;
  kind: number;
  number: number | null;
  id: string | null;
  received_us: number;
  flags: Buffer;
  uids: Buffer;
  ends: Buffer;
  body: Buffer;
  chain: Buffer;
}

/** The faults in the chain of a state, one line each; empty if it is intact. */
export function faultsOf(db: Database): string[] {
  const faults: string[] = [];
  const head = db.prepare('SELECT * FROM head').get() as {
    seq: number;
    number: number;
    chain: Buffer;
    pruned_seq: number;
    pruned_chain: Buffer;
  };
  let seq = head.pruned_seq;
  let chain: Buffer = head.pruned_chain;
  let number: number | undefined;
  const rows = db.prepare<[], Row>(
    'SELECT segments.*, sources.id FROM segments LEFT JOIN sources ON sources.source_no = segments.source ORDER BY seq',
  );
  for (const row of rows.iterate()) {
    if (row.seq !== seq + 1) faults.push(`segment ${row.seq} does not follow entry ${seq}`);
    const isLedger = (row.kind & 255) === 2;
    if (!isLedger) {
      if (number !== undefined && row.number !== number + 1) faults.push(`segment ${row.seq} begins at number ${row.number}`);
      number = (row.number ?? NaN) + row.n - 1;
    }
    const body = row.kind >> 8 === 1 ? zstdDecompressSync(row.body) : row.body;
    if (row.ends.length !== row.n * 4 || row.ends.readUInt32LE(row.n * 4 - 4) !== body.length) faults.push(`ends of segment ${row.seq}`);
    if (row.uids.length !== (isLedger ? 0 : row.n * 16)) faults.push(`uids of segment ${row.seq}`);
    const hash = createHash('sha256').update(chain);
    for (const value of [row.seq, row.n, row.kind & 255, row.number ?? 0, row.received_us]) hash.update(eight(value));
    for (const part of [Buffer.from(row.id ?? '', 'utf8'), row.flags, row.uids, row.ends, body])
      hash.update(eight(part.length)).update(part);
    chain = hash.digest();
    if (!chain.equals(row.chain)) faults.push(`chain of segment ${row.seq}`);
    chain = row.chain;
    seq = row.seq + row.n - 1;
  }
  if (seq !== head.seq || !chain.equals(head.chain)) faults.push(`head is at ${head.seq}, the segments end at ${seq}`);
  if (number !== undefined && number !== head.number) faults.push(`head counts ${head.number} records, the segments ${number}`);
  return faults;
}

/** How often each uid was appended, and whether `seen` contains exactly these. */
export function seenFaults(db: Database): string[] {
  const appended = uidsOf(db, 'SELECT uids FROM segments');
  const seen = new Set(uidsOf(db, 'SELECT uids FROM seen'));
  const once = new Set(appended);
  const faults = appended.length === once.size ? [] : [`${appended.length - once.size} uids were appended twice`];
  for (const uid of once) if (!seen.has(uid)) faults.push(`${uid} was appended and is not known`);
  for (const uid of seen) if (!once.has(uid)) faults.push(`${uid} is known and was not appended`);
  return faults;
}

/** The faults in the windows between `from` and `closedUntil` of each range. */
export function tilingFaults(db: Database): string[] {
  const faults: string[] = [];
  const ranges = db.prepare<[], { source: number; from_us: number; to_us: number | null; closed_until_us: number }>('SELECT * FROM ranges');
  const windows = db.prepare<[number, number, number], { from_us: number; to_us: number }>(
    'SELECT from_us, to_us FROM windows WHERE source = ? AND from_us >= ? AND from_us < ? ORDER BY from_us',
  );
  for (const range of ranges.all()) {
    let at = range.from_us;
    for (const window of windows.all(range.source, range.from_us, range.to_us ?? Number.MAX_SAFE_INTEGER)) {
      if (window.from_us !== at || window.to_us <= window.from_us) faults.push(`window ${window.from_us} does not begin at ${at}`);
      at = window.to_us;
    }
    if (at !== range.closed_until_us) faults.push(`windows end at ${at}, closed until ${range.closed_until_us}`);
  }
  return faults;
}

function uidsOf(db: Database, sql: string): string[] {
  return db
    .prepare<[], { uids: Buffer }>(sql)
    .all()
    .flatMap(({ uids }) => Array.from({ length: uids.length / 16 }, (_, i) => uids.toString('hex', i * 16, i * 16 + 16)));
}

function eight(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}
