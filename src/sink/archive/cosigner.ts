/**
 * Has the newest checkpoint of an archive cosigned by one witness (C2SP tlog-witness), at most once a minute, in parallel to the sink: a witness that
 * is down, or that refuses, never stops archiving.
 */
import { checkpointPath, cosignaturePath, openCheckpoint, parseCosignaturePath } from '../../archive/checkpoint.ts';
import type { Verifier } from '../../archive/signed-note.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import { readConsistencyProof } from '../../archive/stored-log.ts';
import type { Cosigned } from '../../archive/witness/client.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { CosignatureState } from '../../model/sink.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';

/** The client of a witness. */
export interface WitnessAccess extends AsyncDisposable {
  readonly key: Verifier;
  cosign(note: Buffer, old: number, proof: readonly Uint8Array[], signal: AbortSignal): Promise<Cosigned | number>;
}

interface CosignerParts {
  readonly id: string;
  readonly store: WritableArchiveStore;
  readonly witness: WitnessAccess;
  readonly clock: Clock;
  readonly log: Log;
}

/** Of two checkpoints. */
const intervalMs = 60_000;
/** After failed attempts the pause doubles up to this one. */
const lastPauseMs = 900_000;
/** A cosignature with a time further away from the local clock would hide how old it is. */
const maxClockErrorUs = 3_600_000_000;
/** Unreadable ones that are read at the start. */
const maxUnreadable = 100;

export class Cosigner implements AsyncDisposable {
  readonly #parts: CosignerParts;
  readonly #stop = new AbortController();
  #newest: Micros | undefined;
  /** The number of lines that the witness has cosigned, as far as this process knows. */
  #size = 0;
  /** The number of the checkpoint that has the newest cosignature, and of the newest one. */
  #cosigned = 0;
  #checkpoint = 0;
  #lastError: string | undefined;
  #work: Promise<void> | undefined;

  private constructor(parts: CosignerParts) {
    this.#parts = parts;
  }

  /** @param checkpoint  the newest one */
  static async open(parts: CosignerParts, checkpoint: number): Promise<Cosigner> {
    const cosigner = new Cosigner(parts);
    await cosigner.#readNewest(checkpoint);
    return cosigner;
  }

  get state(): CosignatureState {
    return { witness: this.#parts.witness.key.name, newest: this.#newest, lastError: this.#lastError };
  }

  /** Requests a cosignature of the newest checkpoint, now or when the witness may be asked again. */
  consider(checkpoint: number): void {
    this.#checkpoint = checkpoint;
    if (this.#work || checkpoint <= this.#cosigned || this.#stop.signal.aborted) return;
    this.#work = this.#cosignInTime().finally(() => {
      this.#work = undefined;
      // A checkpoint may have come since the last look.
      this.consider(this.#checkpoint);
    });
  }

  /** Abandons a request in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new WaybillError('aborted', 'the sink is closed'));
    await this.#work;
    await this.#parts.witness[Symbol.asyncDispose]();
  }

  /** Asks until the newest checkpoint has a cosignature, or the sink is closed. */
  async #cosignInTime(): Promise<void> {
    const { id, witness, clock, log } = this.#parts;
    const { signal } = this.#stop;
    for (let failures = 0; !signal.aborted && this.#checkpoint > this.#cosigned;) {
      let pause = intervalMs;
      try {
        await this.#cosign(this.#checkpoint, signal);
        failures = 0;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#lastError = messageOf(error);
        pause = Math.min(intervalMs * 2 ** failures, lastPauseMs);
        failures += 1;
        log.write('archive.cosign_failed', { sink: id, witness: witness.key.name, retryInMs: pause, error });
      }
      await clock.sleep(pause, signal).catch(() => undefined);
    }
  }

  async #cosign(checkpoint: number, signal: AbortSignal): Promise<void> {
    const { id, store, witness, clock, log } = this.#parts;
    const path = cosignaturePath(checkpoint, witness.key);
    const note = await store.read(checkpointPath(checkpoint));
    if (!note) throw broken(checkpointPath(checkpoint), 'it is missing');
    const size = sizeOf(note);
    // The witness has cosigned more than this process knows when a kill came before the cosignature was stored.
    const first = await this.#ask(note, Math.min(this.#size, size), size, signal);
    const answer = typeof first === 'number' ? await this.#ask(note, first, size, signal) : first;
    if (typeof answer === 'number')
      throw this.#refused(`it says that it has cosigned ${Number(first)} lines, and then that it has cosigned ${answer}`);
    if (Math.abs(answer.time - clock.now() * 1_000) > maxClockErrorUs)
      throw this.#refused(
        `its cosignature has the time ${new Date(answer.time / 1_000).toISOString()}, more than 1 h away from the clock of this machine`,
      );
    // An earlier request, whose result was lost, may have stored a cosignature of another time.
    const stored = (await store.create(path, answer.bytes)) ? { ...answer, size } : this.#read(await store.read(path));
    if (stored?.size !== size) throw this.#refused(`its cosignature cannot be stored: something else has the name "${path}"`);
    [this.#size, this.#cosigned, this.#newest, this.#lastError] = [size, checkpoint, stored.time, undefined];
    log.write('archive.cosigned', { sink: id, witness: witness.key.name, path });
  }

  async #ask(note: Buffer, old: number, size: number, signal: AbortSignal): Promise<Cosigned | number> {
    if (old > size) throw this.#refused(setBackMessage(old, size));
    const { store, witness } = this.#parts;
    const proof = await readConsistencyProof(store, { from: old, to: size }, broken);
    return witness.cosign(note, old, proof, signal);
  }

  #refused(reason: string): WaybillError {
    return new WaybillError(
      'sink_unavailable',
      `cannot use the witness "${this.#parts.witness.key.name}" (sinks.${this.#parts.id}.witnesses): ${reason}`,
    );
  }

  /** @returns undefined unless this witness cosigned it */
  #read(bytes: Buffer | undefined): { readonly size: number; readonly time: Micros } | undefined {
    const opened = openCheckpoint(bytes, [this.#parts.witness.key]);
    if (typeof opened === 'string') return undefined;
    const [cosignature] = opened.cosignedBy;
    return cosignature && { size: opened.size, time: cosignature.time };
  }

  /** Treats an unreadable cosignature as missing. */
  async #readNewest(last: number): Promise<void> {
    const { store, witness } = this.#parts;
    const id = witness.key.id.toString('hex');
    const paths: string[] = [];
    for await (const path of store.list('cosignatures/')) {
      const found = parseCosignaturePath(path);
      if (found?.id === id && found.number <= last) paths.push(path);
    }
    for (const path of paths.sort().reverse().slice(0, maxUnreadable)) {
      const found = this.#read(await store.read(path));
      if (!found) continue;
      this.#cosigned = parseCosignaturePath(path)?.number ?? 0;
      this.#size = found.size;
      this.#newest = found.time;
      return;
    }
  }
}

export function setBackMessage(cosigned: number, size: number): string {
  return `it has cosigned ${cosigned} lines, and this archive has ${size}: the archive was set back, or has two histories`;
}

/** @throws WaybillError `archive_broken` for bytes that are no checkpoint */
export function sizeOf(note: Buffer): number {
  const opened = openCheckpoint(note, []);
  if (typeof opened === 'string') throw broken('checkpoints/', opened);
  return opened.size;
}

function broken(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot have "${path}" cosigned: ${reason}`);
}
