/** Converts messages of the format raw to lines of an archive. Pure. */
import { z } from 'zod';
import type { EntryLine } from '../../archive/line.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Message } from '../../model/sink.ts';

const micros = z.int();

/** The ledger entries of the journal (src/journal): a window, a suspension or its end, an operation, a checkpoint of an archive. */
const ledgerEntry = z.discriminatedUnion('ledger', [
  z.object({
    ledger: z.literal('window'),
    source: z.string(),
    from: micros,
    to: micros,
    state: z.enum(['proven', 'gap', 'accepted']),
    query: z.record(z.string(), z.string()),
    total: z.int().optional(),
    records: z.int(),
    digest: z.string().optional(),
    proof: z.object({ passes: z.int() }).optional(),
    recounts: z.int(),
    reason: z.string().optional(),
  }),
  z.object({
    ledger: z.literal('suspension'),
    source: z.string(),
    from: micros,
    to: micros,
    state: z.enum(['suspended', 'active']),
    reason: z.string().optional(),
  }),
  z.object({
    ledger: z.literal('operation'),
    actor: z.string().nullable(),
    operation: z.string(),
    detail: z.record(z.string(), z.unknown()),
  }),
  z.object({ ledger: z.literal('archive-checkpoint'), sink: z.string(), checkpoint: z.string() }),
]);

/** @throws WaybillError `sink_blocked` for a ledger entry of an unknown form */
export function entryLine(message: Message): EntryLine {
  const { seq, uid, source, received, late, bytes } = message;
  if (!message.isLedger) return { kind: 'record', seq, uid, source, received, late, record: bytes };
  const entry = ledgerEntry.safeParse(JSON.parse(Buffer.from(bytes).toString())).data;
  if (!entry)
    throw new WaybillError('sink_blocked', `cannot archive entry ${seq} of the journal: its form is unknown; use the newest release`);
  const at = received;
  if (entry.ledger === 'operation')
    return { kind: 'operation', seq, at, actor: entry.actor, operation: entry.operation, detail: entry.detail };
  if (entry.ledger === 'archive-checkpoint') {
    const { sink, checkpoint } = entry;
    return { kind: 'operation', seq, at, actor: null, operation: entry.ledger, detail: { sink, checkpoint } };
  }
  const { from, to, reason = null } = entry;
  const window = { kind: 'ledger', seq, source: entry.source, from, to } as const;
  if (entry.ledger === 'suspension') {
    const state = entry.state === 'active' ? 'resumed' : entry.state;
    return { ...window, state, query: null, total: null, records: 0, digest: null, passes: null, recounts: 0, reason, at };
  }
  const { state, query, total = null, records, digest = null, proof, recounts } = entry;
  return { ...window, state, query, total, records, digest, passes: proof?.passes ?? null, recounts, reason, at };
}
