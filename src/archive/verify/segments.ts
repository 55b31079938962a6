/**
 * Follows the log from one signed checkpoint to the next: recomputes the leaves from the lines of
 * the segments, and the root from the leaves.
 */
import { parseBundle } from '../entry.ts';
import { EntryLog, type Growth } from '../entry-log.ts';
import type { LineRange, LineTexts } from '../line.ts';
import { equal, sha256 } from '../merkle.ts';
import { parseLine } from '../parse-line.ts';
import { linesOf, SegmentError, segmentPlace, unpackSegment, type SegmentName } from '../segment.ts';
import type { ArchiveStore } from '../store.ts';
import { segmentNames } from '../stored-log.ts';
import { bundlePath, tileAt, tileWidth } from '../tiles.ts';
import type { Turns } from './turns.ts';
import type { SignedCheckpoint } from './checkpoints.ts';
import type { Findings } from './findings.ts';
import { SegmentFacts } from './segment-facts.ts';

/** A part of the log that leads to a signed root. */
interface Step {
  readonly log: EntryLog;
  readonly growth: Growth;
  /** Undefined if the lines do not match the log, so that only the entries are known. */
  readonly segment: { readonly path: string; readonly facts: SegmentFacts } | undefined;
  /** Set instead of the segment: the object at fault. */
  readonly lost?: LostSegment;
}

export interface LostSegment {
  readonly object: string;
  readonly message: string;
  readonly lines: LineRange;
  /** There is no file for its lines: retention may have removed it. */
  readonly isAbsent: boolean;
}

/** Foreign segments form very many ways from one checkpoint to another if all between are missing. */
const maxTries = 10_000;

export class Segments {
  readonly #store: ArchiveStore;
  readonly #findings: Findings;
  readonly #turns: Turns;
  /** Lines of the newest signed checkpoint. */
  readonly #size: number;
  readonly #byLeaf: Map<number, readonly SegmentName[]>;
  readonly #committed = new Set<string>();
  /** Files that may still be read between two checkpoints. */
  #triesLeft = maxTries;
  /** The next segment, read and unpacked in advance. */
  #prepared: { readonly path: string; readonly texts: Promise<LineTexts | undefined> } | undefined;

  private constructor(store: ArchiveStore, size: number, findings: Findings, turns: Turns, byLeaf: Map<number, readonly SegmentName[]>) {
    this.#store = store;
    this.#findings = findings;
    this.#turns = turns;
    this.#size = size;
    this.#byLeaf = byLeaf;
  }

  /** @param size  the lines of the newest signed checkpoint */
  static async list(store: ArchiveStore, size: number, findings: Findings, turns: Turns): Promise<Segments> {
    const byLeaf = Map.groupBy(await segmentNames(store), ({ firstLeaf }) => firstLeaf);
    return new Segments(store, size, findings, turns, byLeaf);
  }

  /**
   * The caller reports a lost segment.
   * @param count  of the checkpoints since `from`, also unreadable ones: each commits a segment
   * @returns undefined, with a finding, when neither lines nor entries lead to the root
   */
  async follow(from: EntryLog, to: SignedCheckpoint, count: number): Promise<readonly Step[] | undefined> {
    const problems: string[] = [];
    this.#triesLeft = maxTries;
    const steps = await this.#lead(from, to, count, problems);
    if (steps) {
      for (const { segment } of steps) if (segment) this.#committed.add(segment.path);
      return steps;
    }
    const [named] = this.#byLeaf.get(from.size) ?? [];
    // A listed file may be gone: retention may run meanwhile.
    const isAbsent = problems.length === 0;
    if (isAbsent) this.#byLeaf.delete(from.size);
    const lost = {
      object: named?.path ?? segmentPlace(from.size),
      message: isAbsent
        ? `it is missing: "${to.path}" commits ${to.size - from.size} lines from leaf ${from.size} on`
        : `it is not as signed: ${problems[0] ?? ''}`,
      lines: { first: from.size + 1, last: to.size },
      isAbsent,
    };
    const log = await this.#leadByEntries(from, to);
    if (log) return [{ log, growth: log.take(), segment: undefined, lost }];
    if (to.signedBy.length > 0) this.#findings.altered(lost.object, lost.message);
    this.#findings.altered(to.path, 'it is not as signed: neither lines nor entries lead to its root, and nothing after it was checked');
    return undefined;
  }

  /** Segments of unfinished attempts. */
  noteUncommitted(): void {
    for (const { path } of [...this.#byLeaf.values()].flat())
      if (!this.#committed.has(path)) this.#findings.noteFile(path, 'no checkpoint commits it: it is no evidence');
  }

  /** A checkpoint that cannot be read lies between two segments, so several may lead to the next one. */
  async #lead(from: EntryLog, to: SignedCheckpoint, count: number, problems: string[]): Promise<readonly Step[] | undefined> {
    for (const name of this.#byLeaf.get(from.size) ?? []) {
      if (count > 1 && (this.#triesLeft -= 1) < 0) return undefined;
      const step = await this.#read(name, from, to.size - from.size, count > 1, problems);
      if (!step) continue;
      if (step.log.size < to.size) {
        const rest = count > 1 ? await this.#lead(step.log, to, count - 1, problems) : undefined;
        if (rest) return [step, ...rest];
      } else if (equal(step.log.root(), to.root)) {
        return [step];
      } else {
        problems.push(`its lines do not have the root that "${to.path}" signs`);
      }
    }
    return undefined;
  }

  /**
   * Lines are counted before they are read: anyone may plant a file with any number of them.
   * @param room  the most lines that the segment may have; without `isPart` it has so many
   */
  async #read(name: SegmentName, from: EntryLog, room: number, isPart: boolean, problems: string[]): Promise<Step | undefined> {
    const log = from.copy();
    let facts: SegmentFacts;
    try {
      const texts = await this.#textsOf(name);
      if (!texts) return undefined;
      const lines = texts.ends.length;
      if (lines > room || (lines < room && !isPart)) throw new SegmentError(`it has ${lines} lines, and the checkpoint commits ${room}`);
      facts = new SegmentFacts(texts.ends.length);
      // While these lines are hashed, threads read and unpack what follows.
      this.#prepare(from.size + texts.ends.length);
      for (const line of linesOf(texts)) {
        const fact = parseLine(line);
        if (!fact) throw new SegmentError(`line ${facts.lines + 1} is not a line of an archive`);
        facts.add(fact);
        log.append(fact, line);
        if (this.#turns.isDue(line.length)) await this.#turns.next();
      }
    } catch (thrown) {
      if (!(thrown instanceof SegmentError)) throw thrown;
      problems.push(thrown.message);
      return undefined;
    }
    return { log, growth: log.take(), segment: { path: name.path, facts } };
  }

  #prepare(firstLeaf: number): void {
    const [next] = this.#byLeaf.get(firstLeaf) ?? [];
    if (!next || this.#prepared?.path === next.path) return;
    const texts = this.#unpack(next);
    // `#textsOf` awaits the promise later and throws the error then. Until then it must not be an unhandled rejection.
    texts.catch(() => undefined);
    this.#prepared = { path: next.path, texts };
  }

  async #textsOf(name: SegmentName): Promise<LineTexts | undefined> {
    const prepared = this.#prepared;
    if (prepared?.path !== name.path) return this.#unpack(name);
    this.#prepared = undefined;
    return prepared.texts;
  }

  /** @returns undefined for a segment that does not exist */
  async #unpack({ path, digest }: SegmentName): Promise<LineTexts | undefined> {
    const bytes = await this.#store.read(path);
    if (bytes && sha256(bytes).toString('hex') !== digest) throw new SegmentError('its SHA-256 is not the one in its name');
    return bytes && unpackSegment(bytes);
  }

  /**
   * Continues the log with its stored entries when the lines are lost, so that the segments after them can
   * be checked.
   */
  async #leadByEntries(from: EntryLog, to: SignedCheckpoint): Promise<EntryLog | undefined> {
    const log = from.copy();
    for (let index = Math.floor(from.size / tileWidth); log.size < to.size; index += 1) {
      const { width } = tileAt(0, index, to.size);
      // A later bundle holds the entries of a partial one, which may be missing.
      const later = bundlePath(tileAt(0, index, this.#size));
      const bundle = (await this.#store.read(bundlePath({ index, width }))) ?? (await this.#store.read(later));
      const entries = parseBundle(bundle ?? Buffer.alloc(0))?.slice(log.size - index * tileWidth, width);
      if (index * tileWidth + width !== log.size + (entries?.length ?? 0)) return undefined;
      for (const entry of entries ?? []) log.appendEntry(entry);
    }
    return equal(log.root(), to.root) ? log : undefined;
  }
}
