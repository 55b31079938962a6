/** Reads the signed checkpoints of an archive, and compares the objects that only copy them. */
import { type Checkpoint, checkpointNumber, checkpointPath, openCheckpoint, parseCosignaturePath, tokenNumber } from '../checkpoint.ts';
import { equal } from '../merkle.ts';
import { parseSegmentPath } from '../segment.ts';
import { formatVerifier, keyName, type Verifier } from '../signed-note.ts';
import type { ArchiveStore } from '../store.ts';
import { checkpointNumbers } from '../stored-log.ts';
import type { Findings } from './findings.ts';

/** A numbered checkpoint of the archive, or a checkpoint file from the user (`--since`). */
export interface SignedCheckpoint extends Checkpoint {
  readonly path: string;
  /** The known keys that signed it, as `name+id`. */
  readonly signedBy: readonly string[];
}

interface Checkpoints {
  /** Signed by a known key, in order of size; the findings name the others. */
  readonly signed: readonly SignedCheckpoint[];
  /**
   * These, and before each one the checkpoints of unknown keys, which only state where a segment
   * ends.
   */
  readonly steps: readonly SignedCheckpoint[];
  /** The highest number, whatever its file has. */
  readonly last: number;
}

export async function readCheckpoints(store: ArchiveStore, verifiers: readonly Verifier[], findings: Findings): Promise<Checkpoints> {
  const [signed, steps]: [SignedCheckpoint[], SignedCheckpoint[]] = [[], []];
  const keys = new KeySuccession(findings);
  let unknown: SignedCheckpoint[] = [];
  let last = 0;
  for (const number of await checkpointNumbers(store)) {
    if (number > last + 1) findings.altered(checkpointPath(last + 1), missing(number - last - 1));
    last = number;
    const path = checkpointPath(number);
    const bytes = await store.read(path);
    const checkpoint = bytes ? signedCheckpoint(bytes, path, verifiers, findings) : undefined;
    const before = signed.at(-1);
    if (!bytes) findings.altered(path, 'it is missing');
    else if (checkpoint?.signedBy.length === 0) unknown.push(checkpoint);
    else if (checkpoint && before && checkpoint.origin !== before.origin)
      findings.altered(path, `it does not continue the checkpoint before: its origin "${checkpoint.origin}" is not "${before.origin}"`);
    else if (checkpoint && checkpoint.size <= (before?.size ?? 0))
      findings.altered(path, `it does not continue the checkpoint before: its size ${checkpoint.size} is not larger`);
    else if (checkpoint && keys.admits(checkpoint)) {
      signed.push(checkpoint);
      steps.push(...unknown, checkpoint);
      unknown = [];
    }
  }
  if (last === 0) findings.altered(checkpointPath(1), 'it is missing: there is no archive, or all of its checkpoints are missing');
  else judgeKeys(signed, verifiers, findings);
  return { signed, steps, last };
}

/** Whoever stole a former key can cut an archive before the change of key, and go on alone: then a later key signed nothing. */
function judgeKeys(signed: readonly SignedCheckpoint[], verifiers: readonly Verifier[], findings: Findings): void {
  const used = new Set(signed.flatMap(({ signedBy }) => signedBy));
  const origin = signed.at(-1)?.origin;
  // A key file may have the keys of more archives.
  const unused = verifiers.filter((key) => key.name === origin && !used.has(keyName(key))).map(keyName);
  if (used.size === 0) findings.unproven('--key', 'no key of --key signed a checkpoint: this is not the archive of these keys');
  else
    for (const key of unused)
      findings.unproven('--key', `"${key}" signed no checkpoint: the archive may have been cut before the change to this key`);
}

function missing(count: number): string {
  return count === 1 ? 'it is missing' : `it is missing, and the ${count - 1} after it`;
}

/**
 * A finding names a checkpoint that no known key signed. A key signs for the origin that is its name, and for no other archive.
 * @param verifiers  may have witnesses, for a checkpoint from elsewhere: a witness checked the signature of the log
 * @returns undefined, with a finding, for bytes that are not a checkpoint
 */
export function signedCheckpoint(
  bytes: Uint8Array,
  path: string,
  verifiers: readonly Verifier[],
  findings: Findings,
): SignedCheckpoint | undefined {
  const opened = openCheckpoint(bytes, verifiers);
  if (typeof opened === 'string') {
    findings.altered(path, opened);
    return undefined;
  }
  const signers = opened.signedBy.filter(({ name }) => name === opened.origin);
  const signedBy = [...signers, ...opened.cosignedBy.map(({ witness }) => witness)].map(keyName);
  if (signedBy.length === 0)
    findings.unproven(
      path,
      `no key of --key signed it; signed with "${[...opened.signedBy.map(keyName), ...opened.unknown].join('", "')}"`,
    );
  return { ...opened, path, signedBy };
}

/**
 * A key replaces another by a checkpoint that both sign. From then on, the former key must sign
 * nothing.
 */
class KeySuccession {
  readonly #findings: Findings;
  #present = new Set<string>();
  readonly #replaced = new Set<string>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** @returns false, with a finding, for a checkpoint that a replaced key signed */
  admits({ path, signedBy }: SignedCheckpoint): boolean {
    const valid = signedBy.filter((key) => !this.#replaced.has(key));
    if (valid.length === 0) {
      this.#findings.altered(
        path,
        `it does not continue the checkpoint before: "${signedBy.join('", "')}" signed it, and an earlier one replaced this key`,
      );
      return false;
    }
    const added = valid.filter((key) => !this.#present.has(key));
    if (this.#present.size > 0 && added.length === valid.length)
      this.#findings.unproven(path, `no checkpoint links its key to the one before: "${added.join('", "')}"`);
    const present = new Set(added.length > 0 ? added : valid);
    for (const key of this.#present) if (!present.has(key)) this.#replaced.add(key);
    this.#present = present;
    return true;
  }
}

/**
 * Compares the copy of the newest checkpoint. It is no evidence, unless it is signed for a larger
 * tree: then checkpoints were removed. Or for another tree: then the key signed two histories.
 * @param bytes  read before the checkpoints were listed: a daemon may add checkpoints meanwhile
 * @returns true when it is a copy: then tiles and entries of the newest checkpoint are stored too
 */
export function compareCopy(
  bytes: Uint8Array | undefined,
  { signed, last }: Checkpoints,
  verifiers: readonly Verifier[],
  findings: Findings,
): boolean {
  const opened = openCheckpoint(bytes, verifiers);
  const copy = typeof opened === 'object' && opened.signedBy.some(({ name }) => name === opened.origin) ? opened : undefined;
  const newest = signed.at(-1);
  const isLarger = copy !== undefined && copy.size > (newest?.size ?? 0);
  if (isLarger) findings.altered(checkpointPath(last + 1), `it is missing: "checkpoint" is signed for ${copy.size} lines`);
  if (isLarger) return false;
  const original = signed.find(({ origin, size, root }) => origin === copy?.origin && size === copy.size && equal(root, copy.root));
  if (copy && newest?.origin === copy.origin && !original)
    findings.altered('checkpoint', 'it is signed, and the archive does not contain it');
  else if (!newest || original !== newest) findings.note('checkpoint', 'it is not a copy of the newest checkpoint, and no evidence');
  return newest !== undefined && original === newest;
}

/** The keys in an archive are only for convenience: an auditor uses trusted copies. */
export async function compareKeys(store: ArchiveStore, verifiers: readonly Verifier[], findings: Findings): Promise<void> {
  for await (const path of store.list('keys/')) {
    const verifier = verifiers.find((each) => path === `keys/${keyName(each)}`);
    const isSame = verifier !== undefined && (await store.read(path))?.toString() === `${formatVerifier(verifier)}\n`;
    if (!isSame) findings.noteFile(path, 'it is not one of the keys of --key, and no evidence');
  }
}

/** Files that no verifier reads. The files of the index are one finding. */
export async function noteOthers(store: ArchiveStore, findings: Findings): Promise<void> {
  let isIndexed = false;
  for await (const path of store.list('')) {
    const isKnown =
      path === 'checkpoint' ||
      /^(?:keys|tile)\//.test(path) ||
      checkpointNumber(path) ||
      tokenNumber(path) ||
      parseCosignaturePath(path) ||
      parseSegmentPath(path);
    if (path.startsWith('index/')) isIndexed = true;
    else if (!isKnown) findings.noteFile(path, 'it was not checked, and is no evidence');
  }
  if (isIndexed) findings.note('index/', 'it was not checked, and is no evidence');
}
