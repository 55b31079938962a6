/** The next revision of a window: its row after a verdict, and the ledger entry that states it. Pure. */
import type { GapReason, Proof, Window, WindowStep } from '../model/ledger.ts';
import { storedJson } from './damage.ts';
import type { WindowDbRow } from './window-rows.ts';

/** The row after a verdict. A proven window that cannot be proven again stays proven and is marked as in doubt. */
export function revisedRow(before: WindowDbRow | undefined, window: Window, revision: WindowStep): WindowDbRow {
  const { verdict } = revision;
  const shared = {
    from_us: window.from,
    to_us: window.to,
    late: before?.late ?? 0,
    late_delays: before?.late_delays ?? null,
    closed_us: revision.at,
    recounts: (before?.recounts ?? 0) + (revision.recount ? 1 : 0),
    next_us: revision.next ?? null,
    revision: (before?.revision ?? 0) + 1,
    seq: 0,
  };
  if (verdict.proven) {
    const { proof } = verdict;
    // A window that once showed more records than are proven now has lost records to the service's
    // retention. It is proven but stays marked as shrunk, and its recounts end.
    const shrunk = before?.reason === 'shrunk' || Math.max(before?.received ?? 0, before?.total ?? 0) > proof.total;
    return {
      ...shared,
      next_us: shrunk ? null : shared.next_us,
      query: JSON.stringify(proof.query),
      state: 'proven',
      total: proof.total,
      records: proof.inWindow,
      received: proof.total,
      digest: Buffer.from(proof.digest),
      proof: proofText(proof),
      attempts: 0,
      reason: shrunk ? 'shrunk' : null,
      message: null,
    };
  }
  const attempts = (before?.attempts ?? 0) + 1;
  if (before?.state === 'proven')
    return {
      ...before,
      ...shared,
      attempts,
      received: Math.max(before.received, verdict.seen),
      reason: 'reread',
      message: verdict.message,
      closed_us: before.closed_us,
    };
  return {
    ...shared,
    query: JSON.stringify(verdict.query),
    state: 'gap',
    total: greatest(before?.total ?? undefined, verdict.total) ?? null,
    records: verdict.inWindow,
    received: Math.max(before?.received ?? 0, verdict.seen),
    digest: Buffer.from(verdict.digest),
    proof: null,
    attempts,
    reason: verdict.reason satisfies GapReason,
    message: verdict.message,
  };
}

function greatest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.max(a, b);
}

function proofText(proof: Proof): string {
  return JSON.stringify({ passes: proof.passes, requests: proof.requests, first: proof.first, last: proof.last });
}

/** The change of a revision, for ledger events (docs/formats.md, "Ledger events"). */
type WindowAction = 'proven' | 'recounted' | 'late' | 'gap' | 'in-doubt' | 'shrunk' | 'accepted';

function actionOf(before: WindowDbRow | undefined, row: WindowDbRow): WindowAction {
  if (row.state !== 'proven') return row.state;
  if (row.reason === 'shrunk') return 'shrunk';
  if (row.reason === 'reread') return 'in-doubt';
  if (before?.state === 'proven' && before.proof === row.proof) return 'recounted';
  return before?.state === 'proven' && (row.total ?? 0) > (before.total ?? 0) ? 'late' : 'proven';
}

/** The ledger entry with everything that the revision states about the window. */
export function ledgerLine(sourceId: string, before: WindowDbRow | undefined, row: WindowDbRow, extra: object = {}): string {
  return JSON.stringify({
    ledger: 'window',
    action: `window-${actionOf(before, row)}`,
    source: sourceId,
    from: row.from_us,
    to: row.to_us,
    revision: row.revision,
    state: row.state,
    reason: row.reason ?? undefined,
    message: row.message ?? undefined,
    query: storedJson(row.query),
    total: row.total ?? undefined,
    records: row.records,
    late: row.late,
    digest: row.digest?.toString('hex'),
    proof: row.proof === null ? undefined : storedJson(row.proof),
    closed: row.closed_us,
    recounts: row.recounts,
    next: row.next_us ?? undefined,
    attempts: row.attempts,
    ...extra,
  });
}
