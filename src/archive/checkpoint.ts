/** Checkpoints of C2SP tlog-checkpoint: origin, size and root of a log as the text of a signed note. Pure. */
import { hashBytes } from './merkle.ts';
import { decodeBase64, openNote, type OpenedNote, type Verifier } from './signed-note.ts';

export interface Checkpoint {
  /** The identity of the log: `waybill/` and a random id. */
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
}

/** @returns undefined for anything but a checkpoint without extension lines, which the format advises against */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  const [, origin, digits, encoded = ''] = /^([^\n]+)\n(0|[1-9][0-9]{0,14})\n([^\n]+)\n$/.exec(text) ?? [];
  const root = decodeBase64(encoded);
  const size = Number(digits);
  if (origin === undefined || root?.length !== hashBytes) return undefined;
  return { origin, size, root };
}

/**
 * A checkpoint and its signatures. The caller trusts it only if `signedBy` has a key.
 * @returns the reason as text for bytes that are not a signed checkpoint, or whose signature by a known key is invalid
 */
export function openCheckpoint(bytes: Uint8Array = new Uint8Array(), verifiers: readonly Verifier[]): (Checkpoint & OpenedNote) | string {
  const note = openNote(bytes, verifiers);
  const checkpoint = typeof note === 'string' ? undefined : parseCheckpoint(note.text);
  if (typeof note === 'string') return note;
  return checkpoint ? { ...checkpoint, ...note } : 'it is not a checkpoint';
}

const numberText = (number: number): string => String(number).padStart(10, '0');

/** The path of a checkpoint. Numbers begin with 1 and have no holes. */
export function checkpointPath(number: number): string {
  return `checkpoints/${numberText(number)}`;
}

/** The path of its time stamp. */
export function tokenPath(number: number): string {
  return `timestamps/${numberText(number)}.tsr`;
}

/** The path of its cosignature by one witness. */
export function cosignaturePath(number: number, witness: Pick<Verifier, 'id'>): string {
  return `cosignatures/${numberText(number)}-${witness.id.toString('hex')}`;
}

/** The number in the path of a checkpoint; undefined for another path. */
export function checkpointNumber(path: string): number | undefined {
  return Number(/^checkpoints\/(\d{10})$/.exec(path)?.[1]) || undefined;
}

/** The number of the stamped checkpoint; undefined for another path. */
export function tokenNumber(path: string): number | undefined {
  return Number(/^timestamps\/(\d{10})\.tsr$/.exec(path)?.[1]) || undefined;
}

/** The number of the checkpoint, and the id of the key of the witness in hex; undefined for another path. */
export function parseCosignaturePath(path: string): { readonly number: number; readonly id: string } | undefined {
  const [, digits = '0', id = ''] = /^cosignatures\/(\d{10})-([0-9a-f]{8})$/.exec(path) ?? [];
  return Number(digits) > 0 ? { number: Number(digits), id } : undefined;
}
