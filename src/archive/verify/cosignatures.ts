/**
 * Checks the cosignatures of an archive. A witness cosigns one history of an archive only, so a cosigned checkpoint that the archive lacks shows that
 * the archive was set back, or that it has another history elsewhere.
 */
import type { Micros } from '../../model/time.ts';
import { openCheckpoint, parseCosignaturePath } from '../checkpoint.ts';
import { equal } from '../merkle.ts';
import type { Verifier } from '../signed-note.ts';
import type { ArchiveStore } from '../store.ts';
import type { SignedCheckpoint } from './checkpoints.ts';
import type { Dates } from './dates.ts';
import type { Findings } from './findings.ts';

export interface WitnessOptions {
  /** Keys of type 4, each different. */
  readonly witnesses: readonly Verifier[];
  /** How many of them must have cosigned. */
  readonly quorum: number;
}

/** What the witnesses confirm. */
export interface CosignatureReport {
  /** Witnesses that cosigned a checkpoint of the archive. */
  readonly witnesses: number;
  /** Lines that the quorum cosigned. */
  readonly lines: number;
  /** As many witnesses as the quorum have a cosignature of this time or later. */
  readonly newest: Micros;
}

/**
 * @param options  undefined: the cosignatures are only counted
 * @param dates  receives when the quorum had cosigned
 */
export async function checkCosignatures(
  store: ArchiveStore,
  signed: readonly SignedCheckpoint[],
  options: WitnessOptions | undefined,
  dates: Dates,
  findings: Findings,
): Promise<CosignatureReport | undefined> {
  const paths: string[] = [];
  for await (const path of store.list('cosignatures/')) if (parseCosignaturePath(path)) paths.push(path);
  if (!options) {
    if (paths.length > 0) findings.note('cosignatures/', `${paths.length} cosignatures were not checked (--witness FILE)`);
    return undefined;
  }
  const { witnesses, quorum } = options;
  const bySize = new Map(signed.map((checkpoint) => [checkpoint.size, checkpoint]));
  const newest = new Map<Verifier, Micros>();
  const cosigned: { readonly lines: number; readonly witness: Verifier; readonly time: Micros }[] = [];
  for (const path of paths.sort()) {
    const checkpoint = openCheckpoint(await store.read(path), witnesses);
    const found = typeof checkpoint === 'object' ? bySize.get(checkpoint.size) : undefined;
    if (typeof checkpoint === 'string') findings.unproven(path, checkpoint);
    else if (checkpoint.cosignedBy.length === 0) findings.noteFile(path, 'no witness of --witness cosigned it: it is no evidence');
    else if (checkpoint.origin !== signed.at(-1)?.origin) findings.noteFile(path, 'it is of another archive, and no evidence');
    else if (!found || !equal(found.root, checkpoint.root))
      findings.altered(path, `a witness cosigned a checkpoint of ${checkpoint.size} lines, and the archive does not contain it`);
    else
      for (const { witness, time } of checkpoint.cosignedBy) {
        newest.set(witness, Math.max(time, newest.get(witness) ?? 0));
        cosigned.push({ lines: found.size, witness, time });
      }
  }
  if (newest.size < quorum) {
    findings.unproven(
      'cosignatures/',
      `${newest.size} of ${witnesses.length} witnesses cosigned this archive, fewer than --quorum ${quorum}`,
    );
    return undefined;
  }
  const [first, lines] = [new Map<Verifier, Micros>(), [] as number[]];
  for (const each of cosigned.sort((a, b) => b.lines - a.lines)) {
    first.set(each.witness, Math.min(each.time, first.get(each.witness) ?? Infinity));
    const time = [...first.values()].sort((a, b) => a - b)[quorum - 1];
    if (time === undefined) continue;
    dates.add({ lines: each.lines, time });
    lines.push(each.lines);
  }
  const last = [...newest.values()].sort((a, b) => b - a)[quorum - 1] ?? 0;
  return { witnesses: newest.size, lines: lines[0] ?? 0, newest: last };
}
