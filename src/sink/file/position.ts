/**
 * The position file (settings/side-file.ts): two slots with checksums, written alternately, so that a kill leaves one. The sink does not
 * sync it: a lost write leaves an older slot, and the resume note in the journal may have a newer position.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { WaybillError } from '../../errors/errors.ts';
import type { Position } from '../../model/ledger.ts';
import { storedBy, type ResumePoint } from '../../model/sink.ts';

/** The identity of a file, independent of its name: device, inode and birth time. */
export interface FileName {
  readonly dev: string;
  readonly ino: string;
  readonly birth: string;
}

/** The file of a position and its length. Also the resume note in the journal. */
export interface FileMark {
  readonly file: FileName;
  readonly length: number;
  /** The last entry of the previous file: this file has later entries. Absent: unknown. */
  readonly after?: number | undefined;
}

interface FilePosition extends FileMark {
  readonly journal: string;
  /** The id of the sink; undefined: a release before names were stored. */
  readonly sink: string | undefined;
  readonly position: Position;
}

interface Slot extends FilePosition {
  readonly turn: number;
}

const slotBytes = 512;

export class PositionFile {
  readonly #handle: FileHandle;
  #turn: number;
  readonly newest: FilePosition | undefined;

  /** A slot with a wrong checksum counts as absent. */
  static async read(handle: FileHandle): Promise<PositionFile> {
    const bytes = Buffer.alloc(2 * slotBytes);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    const slots = [0, 1].flatMap((i) => slotOf(bytes.subarray(0, bytesRead).subarray(i * slotBytes, (i + 1) * slotBytes)) ?? []);
    return new PositionFile(handle, slots.sort((a, b) => b.turn - a.turn)[0]);
  }

  private constructor(handle: FileHandle, newest: Slot | undefined) {
    this.#handle = handle;
    this.#turn = newest?.turn ?? 0;
    this.newest = newest;
  }

  async write(at: FilePosition): Promise<void> {
    this.#turn += 1;
    const text = JSON.stringify({
      turn: this.#turn,
      journal: at.journal,
      sink: at.sink,
      seq: at.position.seq,
      chain: Buffer.from(at.position.chain).toString('hex'),
      file: at.file,
      length: at.length,
      after: at.after,
    });
    const line = `${checksum(text)} ${text}\n`;
    await this.#handle.write(Buffer.from(line.padEnd(slotBytes, ' ')), 0, slotBytes, (this.#turn % 2) * slotBytes);
  }
}

export function sameFile(a: FileName, b: FileName): boolean {
  return a.dev === b.dev && a.ino === b.ino && a.birth === b.birth;
}

/** Parses the resume note of the journal. @returns undefined without a file and its length */
function markOf(note: string | undefined): FileMark | undefined {
  if (note === undefined) return undefined;
  try {
    const mark = JSON.parse(note) as Partial<FileMark>;
    return mark.file && typeof mark.length === 'number' ? { file: mark.file, length: mark.length, after: mark.after } : undefined;
  } catch {
    return undefined;
  }
}

/** Selects the valid position: the resume note of the journal, or the newest slot of the position file. */
export async function validPosition(
  slots: PositionFile,
  kept: ResumePoint,
  id: string,
  path: string,
): Promise<{ position: Position; mark: FileMark | undefined; sink: string | undefined }> {
  const slot = slots.newest;
  if (kept.adopt === true) return { position: kept.position, mark: undefined, sink: id };
  const isOurs = slot?.sink === undefined || slot.sink === id;
  // Behind a position of another sink, the end of the file is no longer the end that this sink knows.
  const own = { position: kept.position, mark: isOurs ? markOf(kept.resumeNote) : undefined, sink: id };
  if (!slot) return own;
  if (slot.journal !== kept.journal) {
    throw new WaybillError(
      'sink_blocked',
      `cannot resume "${path}" for sink "${id}": it belongs to another state (the state was lost, or two daemons write it); restore that state, use another path, or see "waybill sinks adopt"`,
    );
  }
  if (slot.position.seq <= kept.position.seq) return own;
  // mutant: position-names-sink
  if (!isOurs)
    throw new WaybillError(
      'sink_blocked',
      `cannot continue "${path}" for sink "${id}": the sink "${slot.sink}" wrote it up to entry ${slot.position.seq}; give this sink another path, name it "${slot.sink}" again, or see "waybill sinks adopt"`,
    );
  const chain = await kept.chainAt(slot.position.seq);
  if (!chain || Buffer.compare(chain, slot.position.chain) !== 0) {
    throw new WaybillError(
      'sink_blocked',
      `cannot resume "${path}" for sink "${id}": it has entry ${slot.position.seq}, which this state does not know (an older copy was restored); restore the right state, use another path, or see "waybill sinks adopt"`,
    );
  }
  return {
    position: slot.position,
    mark: { file: slot.file, length: slot.length, after: slot.after },
    sink: storedBy(slot.sink, id, kept),
  };
}

function slotOf(bytes: Buffer): Slot | undefined {
  const line = bytes.toString('utf8').trimEnd();
  const text = line.slice(65);
  if (line.length < 66 || line.slice(0, 64) !== checksum(text)) return undefined;
  const slot = JSON.parse(text) as {
    turn: number;
    journal: string;
    sink?: string;
    seq: number;
    chain: string;
    file: FileName;
    length: number;
    after?: number;
  };
  const { turn, journal, sink, seq, chain, file, length, after } = slot;
  return { turn, journal, sink, position: { seq, chain: Buffer.from(chain, 'hex') }, file, length, after };
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
