/** The path of the cosignature of a checkpoint by one witness. Pure. */
import type { Verifier } from './signed-note.ts';

/** @param number  of the checkpoint */
export function cosignaturePath(number: number, witness: Pick<Verifier, 'id'>): string {
  return `cosignatures/${String(number).padStart(10, '0')}-${witness.id.toString('hex')}`;
}

/** The number of the checkpoint, and the id of the key of the witness in hex; undefined for another path. */
export function parseCosignaturePath(path: string): { readonly number: number; readonly id: string } | undefined {
  const [, digits = '0', id = ''] = /^cosignatures\/(\d{10})-([0-9a-f]{8})$/.exec(path) ?? [];
  return Number(digits) > 0 ? { number: Number(digits), id } : undefined;
}
