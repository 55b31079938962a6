/** Checkpoints of C2SP tlog-checkpoint: origin, size and root of a log as the text of a signed note. Pure. */
import { hashBytes } from './merkle.ts';
import { decodeBase64 } from './signed-note.ts';

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

/** The path of a checkpoint. Numbers begin with 1 and have no holes. */
export function checkpointPath(number: number): string {
  return `checkpoints/${String(number).padStart(10, '0')}`;
}

/** The number in the path of a checkpoint; undefined for another path. */
export function checkpointNumber(path: string): number | undefined {
  const number = Number(/^checkpoints\/(\d{10})$/.exec(path)?.[1]);
  return number > 0 ? number : undefined;
}
