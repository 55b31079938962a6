/**
 * A proof that one record is in an archive, without any other record: the line, its entry, the path
 * to a root, and the checkpoint that signs the root.
 */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { openCheckpoint } from './checkpoint.ts';
import { formatEntry } from './entry.ts';
import { equal, leafHash, provesInclusion } from './merkle.ts';
import { parseLine } from './parse-line.ts';
import { repeatedKey } from './record-text.ts';
import { decodeBase64, type Verifier } from './signed-note.ts';
import type { Micros } from '../model/time.ts';
import { dateOf, type ProofDates } from './verify/proof-date.ts';
import { Turns } from './verify/turns.ts';

export interface InclusionProof {
  /** Exactly as in its segment, without the line break. */
  readonly line: Buffer;
  readonly entry: Buffer;
  /** The index of its leaf. */
  readonly index: number;
  readonly hashes: readonly Uint8Array[];
  /** A signed note, which may have cosignatures. */
  readonly checkpoint: Buffer;
  /** A TimeStampResp over the checkpoint. */
  readonly timeStamp?: Buffer | undefined;
}

const base64 = z.string().transform((text, context) => {
  const bytes = decodeBase64(text);
  if (!bytes) context.addIssue({ code: 'custom', message: 'is not base64' });
  return bytes ?? z.NEVER;
});
const text = z
  .string()
  .refine((value) => value.isWellFormed())
  .transform((value) => Buffer.from(value));

/** A change of these fields needs another number. The second format has a time stamp. */
const formats = ['waybill-proof/1', 'waybill-proof/2'] as const;
/** A record may have bytes that are not UTF-8. They must not change, so such a line is in base64. */
const proofSchema = z
  .strictObject({
    format: z.literal(formats),
    line: text.optional(),
    lineBase64: base64.optional(),
    entry: base64,
    index: z.int().nonnegative(),
    hashes: z.array(base64),
    checkpoint: text,
    timeStamp: base64.optional(),
  })
  .refine(({ line, lineBase64 }) => (line === undefined) !== (lineBase64 === undefined))
  .refine(({ format, timeStamp }) => (timeStamp !== undefined) === (format === formats[1]))
  .transform(({ line, lineBase64, ...others }) => ({ ...others, line: line ?? lineBase64 ?? Buffer.alloc(0) }));

/** One line: a file may have many proofs. */
export function formatProof({ line, entry, index, hashes, checkpoint, timeStamp }: InclusionProof): string {
  const fields = {
    format: formats[timeStamp ? 1 : 0],
    ...(isUtf8(line) ? { line: line.toString() } : { lineBase64: line.toString('base64') }),
    entry: entry.toString('base64'),
    index,
    hashes: hashes.map((hash) => Buffer.from(hash).toString('base64')),
    checkpoint: checkpoint.toString(),
    ...(timeStamp && { timeStamp: timeStamp.toString('base64') }),
  };
  return `${JSON.stringify(fields)}\n`;
}

/**
 * A proof for tools of transparency logs (C2SP tlog-proof). The entry is what the log has; the line belongs to it by its SHA-256. The format
 * has no place for them but its opaque data: the 57 bytes of the entry, then the line.
 */
export function formatTlogProof({ line, entry, index, hashes, checkpoint }: InclusionProof): string {
  const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const extra = `extra ${base64Of(Buffer.concat([entry, line]))}`;
  return ['c2sp.org/tlog-proof@v1', extra, `index ${index}`, ...hashes.map(base64Of), '', checkpoint.toString()].join('\n');
}

/** @returns undefined for a text that is not a proof. One with a key twice shows another reader another line. */
export function parseProof(json: string): InclusionProof | undefined {
  try {
    const proof = proofSchema.safeParse(JSON.parse(json)).data;
    return proof && repeatedKey(json) === undefined ? proof : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** An empty line takes as long as so many bytes. */
const minWork = 1_024;

/**
 * Checks the lines of a file of `archive prove` or `archive export`.
 * @param onIntact  called in order for each proof that is intact
 * @param dates  what must date each proof, or it is unproven
 * @throws the reason of the signal of `turns` when it is aborted
 */
export async function checkProofs(
  lines: AsyncIterable<string> | Iterable<string>,
  verifiers: readonly Verifier[],
  turns = new Turns(),
  onIntact: (verified: VerifiedLine) => Promise<void> | void = () => undefined,
  dates: ProofDates = {},
): Promise<readonly ProofResult[]> {
  const results: ProofResult[] = [];
  const known = [...verifiers, ...(dates.cosignatures?.witnesses ?? [])];
  // Lines of an export have the same checkpoint, whose signature takes longer than the rest of a proof.
  let last: { readonly bytes: Buffer; readonly note: Note } | undefined;
  const noteOf = (bytes: Buffer): Note => {
    if (last?.bytes.equals(bytes) !== true) last = { bytes, note: openCheckpoint(bytes, known) };
    return last.note;
  };
  for await (const line of lines) {
    const proof = parseProof(line);
    const checked = proof ? check(proof, noteOf) : noProof;
    const isForeign = checked.result === 'altered' && !formats.some((format) => line.includes(`"${format}"`));
    const { size, ...result } = isForeign ? foreign : checked;
    const note = proof && size !== undefined ? noteOf(proof.checkpoint) : undefined;
    const date = proof && typeof note === 'object' ? await dateOf(proof, note.cosignedBy, dates) : undefined;
    const isDated = typeof date !== 'string';
    results.push(size === undefined ? result : isDated ? intact : { result: 'unproven', message: date });
    if (proof && size !== undefined && isDated)
      await onIntact({ number: results.length, line: proof.line, index: proof.index, size, date });
    if (turns.isDue(Math.max(line.length, minWork))) await turns.next();
  }
  return results;
}

/** The worst result of a file of proofs. Nothing is proven by a file without a proof. */
export function worstOf(proofs: readonly ProofResult[]): ProofResult['result'] {
  if (proofs.some(({ result }) => result === 'altered')) return 'altered';
  return proofs.length > 0 && proofs.every(({ result }) => result === 'intact') ? 'intact' : 'unproven';
}

const intact: ProofResult = { result: 'intact', message: undefined };
const noProof = { result: 'altered', message: 'it does not prove that the archive has its line', size: undefined } as const;
const foreign: Checked = { result: 'unproven', message: 'it is not a proof of the format waybill-proof/1 or 2', size: undefined };

/** The result of a proof: `unproven` if no known key signed its checkpoint. */
interface ProofResult {
  readonly result: 'intact' | 'altered' | 'unproven';
  /** The reason, unless the proof is intact. */
  readonly message: string | undefined;
}

interface Checked extends ProofResult {
  /** Of the tree of the checkpoint; undefined unless the proof is intact. */
  readonly size: number | undefined;
}

/** A line that the archive contains. */
export interface VerifiedLine extends Pick<InclusionProof, 'line' | 'index'> {
  /** Of the proof in its file; the first is 1. */
  readonly number: number;
  readonly size: number;
  /** It existed then, by a time stamp or a quorum of witnesses. */
  readonly date: Micros | undefined;
}

type Note = ReturnType<typeof openCheckpoint>;

export function checkProof(proof: InclusionProof, verifiers: readonly Verifier[]): ProofResult {
  return check(proof, (bytes) => openCheckpoint(bytes, verifiers));
}

function check({ line, entry, index, hashes, checkpoint }: InclusionProof, noteOf: (bytes: Buffer) => Note): Checked {
  const altered = (reason: string): Checked => ({ ...noProof, message: `${noProof.message}: ${reason}` });
  const facts = parseLine(line);
  if (!facts || line.includes('\n') || !equal(formatEntry(facts, line), entry)) return altered('the entry does not match the line');
  const tree = noteOf(checkpoint);
  if (typeof tree === 'string') return altered(`the checkpoint: ${tree}`);
  if (!provesInclusion({ index, hash: leafHash(entry) }, tree, hashes))
    return altered('the hashes do not lead from the entry to the root of the checkpoint');
  if (tree.signedBy.some(({ name }) => name === tree.origin)) return { ...intact, size: tree.size };
  const message = `no key of --key signed the checkpoint; signed with "${tree.unknown.join('", "')}"`;
  return { result: 'unproven', message, size: undefined };
}
