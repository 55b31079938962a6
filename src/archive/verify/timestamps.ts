/**
 * Checks the time stamps of an archive. Signed lines name each one with its hash, so that a later time stamp covers it, as RFC 4998
 * renews time stamps: a time stamp whose certificate has ended counts if a later one covered it before.
 */
import type { X509Certificate } from 'node:crypto';
import type { Micros } from '../../model/time.ts';
import { checkpointNumber, checkpointPath, tokenNumber, tokenPath } from '../checkpoint.ts';
import { sha256 } from '../merkle.ts';
import type { ArchiveStore } from '../store.ts';
import type { Token } from '../timestamp/token.ts';
import type { SignedCheckpoint } from './checkpoints.ts';
import type { Dates } from './dates.ts';
import type { Findings } from './findings.ts';
import type { SegmentFacts } from './segment-facts.ts';

export interface TimeStampOptions {
  /** Certificates of time-stamping authorities. */
  readonly roots: readonly X509Certificate[];
  /** Wall clock, for certificates that end. */
  readonly now: Micros;
}

/** The time stamps that are valid. */
export interface TimeStampReport {
  readonly count: number;
  /** The lines that the newest one covers, and its time. */
  readonly lines: number;
  readonly newest: Micros;
}

interface Naming {
  readonly sha256: string;
  /** The first segment that names the time stamp, and the checkpoint that signs it. */
  readonly segment: string;
  readonly number: number;
}

interface Valid {
  readonly path: string;
  readonly number: number;
  readonly lines: number;
  readonly token: Token;
}

/** A certificate that ends earlier than this is reported. */
const renewUs = 30 * 86_400_000_000;

export class TimeStampCheck {
  readonly #store: ArchiveStore;
  readonly #findings: Findings;
  readonly #named = new Map<number, Naming>();

  constructor(store: ArchiveStore, findings: Findings) {
    this.#store = store;
    this.#findings = findings;
  }

  /** The lines of the next segment. */
  add(segment: string, { position }: SegmentFacts, checkpoint: SignedCheckpoint): void {
    if (!position) return;
    const { timestamp } = position;
    const number = checkpointNumber(checkpoint.path) ?? 0;
    if (timestamp && !this.#named.has(timestamp.checkpoint))
      this.#named.set(timestamp.checkpoint, { sha256: timestamp.sha256, segment, number });
  }

  /**
   * @param options  undefined: only the hashes are checked
   * @param dates  receives the times
   */
  async finish(
    signed: readonly SignedCheckpoint[],
    options: TimeStampOptions | undefined,
    dates: Dates,
  ): Promise<TimeStampReport | undefined> {
    if (!options) {
      const unchecked = await this.#unchecked();
      if (unchecked > 0) this.#findings.note('timestamps/', `${unchecked} time stamps were not checked (--timestamp-ca FILE)`);
      return undefined;
    }
    const valid = await this.#findings.inOrder(() => this.#check(signed, options));
    for (const { lines, token } of valid) dates.add({ lines, time: token.time });
    const last = valid.at(-1);
    if (!last) this.#findings.unproven('timestamps/', 'no time stamp is valid');
    return last && { count: valid.length, lines: last.lines, newest: last.token.time };
  }

  async #check(signed: readonly SignedCheckpoint[], { roots, now }: TimeStampOptions): Promise<readonly Valid[]> {
    const valid = await this.#readValid(signed, roots);
    const { leadsTo } = await import('../timestamp/token.ts');
    for (const [i, { path, number, token }] of valid.entries()) {
      const before = valid[i - 1];
      if (before && token.time < before.token.time) this.#findings.altered(path, `its time is before that of "${before.path}"`);
      const named = this.#named.get(number);
      const cover = valid.slice(i + 1).find((later) => named && named.number <= later.number);
      if (!leadsTo(roots, token, cover?.token.time ?? now))
        this.#findings.unproven(path, 'its certificate ended before another time stamp covered it');
      else if (!cover && !leadsTo(roots, token, now + renewUs))
        this.#findings.note(path, 'its certificate ends within 30 days: another time stamp must cover it before');
    }
    return valid;
  }

  /** The checkpoints of all time stamps that are stored or named, in order. */
  async #numbers(): Promise<readonly number[]> {
    const stored = (await Array.fromAsync(this.#store.list('timestamps/'))).flatMap((path) => tokenNumber(path) ?? []);
    return [...new Set([...this.#named.keys(), ...stored])].sort((a, b) => a - b);
  }

  /** @returns the file, empty if it is missing or too large; undefined, with a finding, if it contradicts a signed line */
  async #read(number: number): Promise<Buffer | undefined> {
    const path = tokenPath(number);
    const bytes = await this.#store.read(path);
    const named = this.#named.get(number);
    if (!named || (bytes && sha256(bytes).toString('hex') === named.sha256)) return bytes ?? Buffer.alloc(0);
    this.#findings.altered(
      path,
      `${bytes ? 'a signed line names another SHA-256' : 'it is missing, and a signed line names it'}: "${named.segment}"`,
    );
    return undefined;
  }

  async #unchecked(): Promise<number> {
    let count = 0;
    for (const number of await this.#numbers()) if (await this.#read(number)) count += 1;
    return count;
  }

  async #readValid(signed: readonly SignedCheckpoint[], roots: readonly X509Certificate[]): Promise<readonly Valid[]> {
    const { validToken } = await import('../timestamp/token.ts');
    const checkpoints = new Map(signed.map((each) => [each.path, each]));
    const valid: Valid[] = [];
    for (const number of await this.#numbers()) {
      const bytes = await this.#read(number);
      if (!bytes) continue;
      const path = tokenPath(number);
      const checkpoint = checkpoints.get(checkpointPath(number));
      const content = checkpoint && (await this.#store.read(checkpoint.path));
      if (!content) {
        this.#findings.noteFile(path, 'no key of --key signed its checkpoint: it is no evidence');
        continue;
      }
      const token = validToken(bytes, content, roots);
      if (typeof token === 'object') valid.push({ path, number, lines: checkpoint.size, token });
      else this.#findings.unproven(path, `it is no time stamp that --timestamp-ca proves: ${token}`);
    }
    return valid;
  }
}
