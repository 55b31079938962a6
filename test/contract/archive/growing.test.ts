/** Reading an archive while its daemon adds segments: a reader must not report what it has not yet seen as altered. */
import { expect, test } from 'vitest';
import { ArchivedRecordReader } from '../../../src/archive/archived-records.ts';
import { checkpointNumber } from '../../../src/archive/checkpoint.ts';
import { openHead } from '../../../src/archive/head.ts';
import { Prover } from '../../../src/archive/prove.ts';
import type { LeftOut } from '../../../src/archive/prove.ts';
import { formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { keyFrom, MemoryStore, recordLine, start, windowLines, writeArchive } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';
import { growingArchives, hasPython, resultOf } from '../../support/second-verifier.ts';

type Write = readonly [path: string, bytes: Buffer];

/** The writes of an archive of six segments, in order. */
const writes: Write[] = [];
class Recorder extends MemoryStore {
  override create(path: string, bytes: Uint8Array): Promise<boolean> {
    writes.push([path, Buffer.from(bytes)]);
    return super.create(path, bytes);
  }
  override replace(path: string, bytes: Uint8Array): Promise<void> {
    writes.push([path, Buffer.from(bytes)]);
    return super.replace(path, bytes);
  }
}
await writeArchive(new Recorder(), windowLines(6, 3), 4);
const segments = writes.flatMap(([path], i) => (path.startsWith('segments/') ? [i] : []));

function countOf(begin: number, path: RegExp): number {
  return writes.slice(0, begin).filter(([each]) => path.test(each)).length;
}

/** Holds the first `begin` writes. The others up to `end` happen right before operation `at` of the reader. */
class GrowingStore extends MemoryStore {
  /** Segments that had a numbered checkpoint before the reader started, and those whose tiles were stored too. */
  readonly committed: number;
  readonly published: number;
  #operations = 0;
  readonly #at: number;
  readonly #more: readonly Write[];

  constructor(begin: number, at: number, end: number) {
    super(writes.slice(0, begin));
    this.committed = countOf(begin, /^checkpoints\//);
    this.published = countOf(begin, /^checkpoint$/);
    this.#at = at;
    this.#more = writes.slice(begin, end);
  }

  get isGrown(): boolean {
    return this.#operations > this.#at;
  }

  override read(path: string): Promise<Buffer | undefined> {
    this.#operate();
    return super.read(path);
  }

  /** A name that is added while a folder is read may be found or not. */
  override async *list(folder: string): AsyncGenerator<string> {
    this.#operate();
    const before = [...this.files.keys()];
    this.#operate();
    const added = [...this.files.keys()].filter((path) => !before.includes(path));
    const newest = added.filter((path) => checkpointNumber(path) !== undefined).slice(-1);
    for (const path of [...before, ...newest]) if (path.startsWith(folder)) yield path;
  }

  #operate(): void {
    if (this.#operations === this.#at) for (const [path, bytes] of this.#more) this.files.set(path, bytes);
    this.#operations += 1;
  }
}

/** Between two tried numbers of writes. */
const step = sized(3, 1);

/** From the second segment on, any write can be the last one before the reader starts; then two segments follow. */
async function whileGrowing(work: (store: GrowingStore) => Promise<void>): Promise<void> {
  for (let begin = segments[1] ?? 0; begin < (segments[3] ?? 0); begin += step)
    for (const end of [segments[4] ?? 0, writes.length])
      for (let at = 0, isGrown = true; isGrown; at += 1) {
        const store = new GrowingStore(begin, at, end);
        await work(store).catch((cause: unknown) => {
          throw new Error(`${begin} writes, and ${end} from operation ${at} on`, { cause });
        });
        isGrown = store.isGrown;
      }
}

const origin =
  writes
    .find(([path]) => path === 'checkpoint')?.[1]
    .toString()
    .split('\n')[0] ?? '';
const key = formatVerifier(signerOf(origin, keyFrom(1)));
const verifiers = [parseVerifier(key)].flatMap((verifier) => verifier ?? []);
const { uid } = recordLine(1, start);

test('verify finds no alteration', async () => {
  await whileGrowing(async (store) => {
    const { result, findings } = await verifyArchive(store, verifiers);
    expect(findings.filter(({ severity }) => severity !== 'note')).toEqual([]);
    expect(result).toBe('intact');
  });
});

test.skipIf(!hasPython)('verify.py finds no alteration', async () => {
  const cases: { begin: number; at: number; end: number }[] = [];
  for (let begin = segments[1] ?? 0; begin < (segments[3] ?? 0); begin += step)
    for (const end of [segments[4] ?? 0, writes.length]) for (let at = 0; at < 40; at += 1) cases.push({ begin, at, end });
  const judgements = await growingArchives(writes, key, cases);
  expect(
    judgements.map((judgement, i) => ({ ...cases[i], judgement })).filter(({ judgement }) => resultOf(judgement) !== 'intact'),
  ).toEqual([]);
});

const none = ({ from }: LeftOut): void => expect.fail(`leaf ${from} is left out`);

test('prove and export find each committed line', async () => {
  await whileGrowing(async (store) => {
    const prover = await Prover.open(store);
    expect(await prover.record(uid)).toBeDefined();
    const lines = await Array.fromAsync(prover.lines(({ kind }) => kind === 'record', none));
    expect(lines.length).toBeGreaterThanOrEqual(3 * store.published);
  });
});

test('replay reads each committed record', async () => {
  await whileGrowing(async (store) => {
    const reader = await ArchivedRecordReader.open(store, [keyFrom(1)], { journal: 'journal-1', seq: Infinity });
    const entries = await reader.read(0, { records: 1_000, bytes: 1 << 20 });
    expect(entries.length).toBeGreaterThanOrEqual(3 * store.committed);
  });
});

test('check reads the end', async () => {
  await whileGrowing(async (store) => {
    expect((await openHead(store, [keyFrom(1)], () => 'waybill/new')).number).toBeGreaterThanOrEqual(store.committed);
  });
});
