/**
 * A witness of archives (C2SP tlog-witness): it cosigns a checkpoint only if that extends the last one it cosigned for the same archive. So of
 * two different histories of an archive at most one has its cosignatures. An answer is given after the state is durable.
 */
import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { WaybillError } from '../../errors/errors.ts';
import { openCheckpoint, type Checkpoint } from '../checkpoint.ts';
import { DirectoryStore } from '../directory-store.ts';
import { emptyRoot, equal, provesExtension } from '../merkle.ts';
import { cosignatureLine, decodeBase64, openNote, type Signer, type Verifier } from '../signed-note.ts';

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: 'text/x.tlog.size';
  /** What the owner of the witness must know: a signed checkpoint that contradicts the cosigned one, or may. */
  readonly alarm?: string | undefined;
}

interface Cosigned extends Checkpoint {
  /** The checkpoint with its signatures, and after them the cosignature of this witness. */
  readonly note: string;
}

interface WitnessOptions {
  /** The file of the state: the newest cosigned checkpoint of each archive, in an array of JSON. */
  readonly state: string;
  readonly signer: Signer;
  /** The public keys of archives; an archive that replaced its key has several. */
  readonly archives: readonly Verifier[];
  /** @returns seconds since 1970 */
  readonly now: () => number;
}

const requestStart = /^old (0|[1-9]\d{0,14})\n((?:[A-Za-z0-9+/]{43}=\n){0,63})\n/;

export class Witness {
  readonly #options: WitnessOptions;
  readonly #newest: Map<string, Cosigned>;
  #work: Promise<unknown> = Promise.resolve();

  private constructor(options: WitnessOptions, newest: readonly Cosigned[]) {
    this.#options = options;
    this.#newest = new Map(newest.map((each) => [each.origin, each]));
  }

  /**
   * A file that is missing is an error: a witness that forgot what it cosigned would cosign another history.
   * @throws WaybillError `usage`
   */
  static async open(options: WitnessOptions): Promise<Witness> {
    const { state, signer } = options;
    const refused = (reason: string): WaybillError => new WaybillError('usage', `cannot use --state "${state}": ${reason}`);
    const bytes = await new DirectoryStore(dirname(state)).read(basename(state));
    if (!bytes) throw refused('there is no such file; if this witness has not cosigned anything yet, create it once with --new');
    let notes: unknown;
    try {
      notes = JSON.parse(bytes.toString());
    } catch {
      throw refused('it is not the state of a witness');
    }
    if (!Array.isArray(notes)) throw refused('it is not the state of a witness');
    const newest = notes.map((note: unknown) => {
      const opened = openCheckpoint(Buffer.from(String(note)), [signer]);
      if (typeof opened === 'string' || opened.cosignedBy.length === 0) throw refused('it has a checkpoint that this key did not cosign');
      return { ...opened, note: String(note) };
    });
    return new Witness(options, newest);
  }

  /** @returns false if there is a state already */
  static createState(state: string): Promise<boolean> {
    return new DirectoryStore(dirname(state)).create(basename(state), Buffer.from('[]\n'));
  }

  /** @param hash  SHA-256 of the origin in hex. @returns the newest cosigned checkpoint */
  checkpointOf(hash: string): string | undefined {
    return [...this.#newest.values()].find(({ origin }) => createHash('sha256').update(origin).digest('hex') === hash)?.note;
  }

  /** One request at a time: none may be checked against a state that another one is replacing. */
  addCheckpoint(body: Buffer): Promise<Answer> {
    const answer = this.#work.then(() => this.#add(body));
    this.#work = answer.catch(() => undefined);
    return answer;
  }

  /** Waits for requests that are being answered. */
  async idle(): Promise<void> {
    await this.#work;
  }

  async #add(body: Buffer): Promise<Answer> {
    const [start = '', digits, lines = ''] = requestStart.exec(body.toString('latin1')) ?? [];
    const note = body.subarray(start.length);
    const proof = lines.split('\n').slice(0, -1).map(decodeBase64);
    const opened = openCheckpoint(note, []);
    if (digits === undefined || typeof opened === 'string') return { status: 400, text: 'not a request of add-checkpoint\n' };
    const { origin, size, root } = opened;
    const keys = this.#options.archives.filter(({ name }) => name === origin);
    if (keys.length === 0) return { status: 404, text: 'unknown origin\n' };
    const signed = openCheckpoint(note, keys);
    if (typeof signed === 'string' || signed.signedBy.length === 0) return { status: 403, text: 'no valid signature by a known key\n' };
    const old = Number(digits);
    if (old > size) return { status: 400, text: 'the old size is above that of the checkpoint\n' };
    const newest = this.#newest.get(origin) ?? { size: 0, root: emptyRoot };
    const text = `${opened.text}\n${signaturesOf(note, opened.text, keys)}`;
    const doubt = doubtOf({ size, root }, newest);
    const alarm = doubt && `"${origin}" ${doubt}: ${JSON.stringify(text)}; cosigned before: ${this.#newest.get(origin)?.note ?? ''}`;
    if (old !== newest.size)
      return { status: 409, text: `${newest.size}\n`, type: 'text/x.tlog.size', alarm: size > newest.size ? undefined : alarm };
    if (!extendsTree(newest, { size, root }, proof)) return { status: 422, text: 'it does not extend the last one\n', alarm };
    const line = cosignatureLine(opened.text, this.#options.signer, this.#options.now());
    await this.#store({ origin, size, root, note: `${text}${line}` });
    return { status: 200, text: line };
  }

  /** After an error the file may have the checkpoint. Nobody has its cosignature, so the former state still counts. */
  async #store(cosigned: Cosigned): Promise<void> {
    const newest = new Map(this.#newest).set(cosigned.origin, cosigned);
    const { state } = this.#options;
    const notes = [...newest.values()].map(({ note }) => note);
    await new DirectoryStore(dirname(state)).replace(basename(state), Buffer.from(`${JSON.stringify(notes, undefined, 1)}\n`));
    this.#newest.set(cosigned.origin, cosigned);
  }
}

/** The first valid signature of each known key. Other lines could be invalid to a reader that knows their keys, and could fill the state. */
function signaturesOf(note: Buffer, text: string, keys: readonly Verifier[]): string {
  const lines = note
    .toString()
    .slice(text.length + 1)
    .split(/(?<=\n)/);
  const signatures = new Map<Verifier, string>();
  for (const line of lines) {
    const signed = openNote(Buffer.from(`${text}\n${line}`), keys);
    const [key] = typeof signed === 'string' ? [] : signed.signedBy;
    if (key && !signatures.has(key)) signatures.set(key, line);
  }
  return [...signatures.values()].join('');
}

type Tree = Pick<Checkpoint, 'size' | 'root'>;

/** Why a signed checkpoint that is not cosigned matters. Only two roots of one size are evidence: everybody can send an old checkpoint, or a wrong proof. */
function doubtOf(sent: Tree, cosigned: Tree): string | undefined {
  if (sent.size < cosigned.size)
    return `has ${sent.size} lines, fewer than the ${cosigned.size} that were cosigned: it is an old checkpoint, or the archive was set back`;
  if (sent.size > cosigned.size)
    return `has ${sent.size} lines, but no proof that they extend the ${cosigned.size} that were cosigned: the request is wrong, or the archive has two histories`;
  return equal(sent.root, cosigned.root)
    ? undefined
    : `has two histories: the root of its ${sent.size} lines differs from the root that was cosigned`;
}

/** Every tree extends the tree without leaves. */
function extendsTree(before: Tree, after: Tree, proof: readonly (Buffer | undefined)[]): boolean {
  const hashes = proof.filter((hash) => hash !== undefined);
  if (before.size > 0) return hashes.length === proof.length && provesExtension(before, after, hashes);
  return proof.length === 0 && (after.size > 0 || equal(after.root, emptyRoot));
}
