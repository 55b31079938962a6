import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import type { WritableArchiveStore } from '../../../src/archive/store.ts';
import { signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { ArchiveWriter } from '../../../src/archive/writer.ts';
import { keyFrom, MemoryStore, openWriter, recordLine, start, through, windowLines, writeArchive } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-archive-'));
  folders.push(folder);
  return folder;
}

const open = (store: WritableArchiveStore, seed = 'reopened'): Promise<ArchiveWriter> => openWriter(store, seed);
const broken = expect.objectContaining({ code: 'archive_broken' }) as Error;
const conflict = expect.objectContaining({ code: 'archive_conflict' }) as Error;

/** The sequence numbers of the lines that checkpoints commit, in order, read without the code under test. */
function committed(store: MemoryStore): number[] {
  const sizes = [...store.files].filter(([path]) => /^checkpoints\/\d+$/.test(path)).sort(([a], [b]) => (a < b ? -1 : 1));
  const ends = sizes.map(([, note]) => Number(note.toString().split('\n')[1]));
  const seqs: number[] = [];
  for (const [i, end] of ends.entries()) {
    const first = String(i === 0 ? 0 : ends[i - 1]).padStart(16, '0');
    const candidates = [...store.files].filter(([path]) => path.startsWith(`segments/${first}-`));
    // Only the last attempt reached its checkpoint.
    const lines = gunzipSync(candidates.at(-1)?.[1] ?? Buffer.alloc(0))
      .toString()
      .trimEnd()
      .split('\n');
    expect(lines.length).toBe(end - Number(first));
    seqs.push(
      ...lines
        .map((line) => JSON.parse(line) as { kind: string; seq: number })
        .flatMap(({ kind, seq }) => (kind === 'position' ? [] : [seq])),
    );
  }
  return seqs;
}

/** The alterations that `archive verify` reports. */
async function alterations(store: MemoryStore): Promise<readonly string[]> {
  const { findings } = await verifyArchive(store, [signerOf((await open(store)).origin, keyFrom(1))]);
  return findings.filter(({ severity }) => severity === 'altered').map(({ object, message }) => `${object}: ${message}`);
}

/** Fails at one of its writes: before the write, or after it, as if the response were lost. */
class FailingStore extends MemoryStore {
  writes = 0;
  readonly #failAt: number;
  readonly #isAfter: boolean;

  constructor(files: Iterable<readonly [string, Buffer]>, failAt: number, isAfter: boolean) {
    super(files);
    this.#failAt = failAt;
    this.#isAfter = isAfter;
  }

  override create(path: string, bytes: Uint8Array): Promise<boolean> {
    return this.#write(() => super.create(path, bytes));
  }

  override replace(path: string, bytes: Uint8Array): Promise<void> {
    return this.#write(() => super.replace(path, bytes));
  }

  async #write<Result>(work: () => Promise<Result>): Promise<Result> {
    this.writes += 1;
    if (this.writes > this.#failAt || (this.writes === this.#failAt && !this.#isAfter)) throw new Error('the disk is gone');
    const result = await work();
    if (this.writes === this.#failAt) throw new Error('the answer is lost');
    return result;
  }
}

describe('the writer', () => {
  it('continues an archive after it is opened again', async () => {
    const store = new MemoryStore();
    const lines = windowLines(60, 11);
    for (let i = 0; i < lines.length; i += 100) {
      const writer = await open(store, `opened ${i}`);
      expect(writer.position?.seq ?? 0).toBe(i);
      const batch = lines.slice(i, i + 100);
      await writer.append(batch, through(batch.at(-1)?.seq ?? 0));
    }
    expect(committed(store)).toEqual(lines.map(({ seq }) => seq));
    expect((await open(store)).position).toEqual({ kind: 'position', after: 700, ...through(720) });
  });

  // In `npm test` an attempt fails at every third write.
  it('archives each line once, wherever an attempt fails', async () => {
    const lines = windowLines(50, 9);
    const [first, second, third] = [lines.slice(0, 250), lines.slice(250, 400), lines.slice(400)];
    const base = new MemoryStore();
    await writeArchive(base, first, 250);
    for (let failAt = 1, isOver = false; !isOver; failAt += sized(3, 1)) {
      for (const isAfter of [false, true]) {
        const store = new FailingStore(base.files, failAt, isAfter);
        const writer = await open(store, 'broken');
        const error = await writer.append(second, through(400)).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        isOver = error === undefined;
        const place = `write ${failAt} ${isAfter ? 'after' : 'before'}`;
        const { findings } = await verifyArchive(store, [signerOf(writer.origin, keyFrom(1))]);
        expect(
          findings.filter(({ severity }) => severity === 'altered'),
          place,
        ).toEqual([]);
        const healed = new MemoryStore(store.files);
        const again = await open(healed, 'healed');
        const rest = lines.filter(({ seq }) => seq > (again.position?.seq ?? 0));
        expect([second[0]?.seq, third[0]?.seq]).toContain(rest[0]?.seq);
        if (error === undefined) expect(rest[0]?.seq).toBe(third[0]?.seq);
        await again.append(rest, through(500));
        expect(committed(healed), place).toEqual(lines.map(({ seq }) => seq));
        expect(await alterations(healed), place).toEqual([]);
      }
    }
  });

  it('replaces its key by one checkpoint of both keys, wherever an attempt fails', async () => {
    const lines = windowLines(50, 9);
    const published = new MemoryStore();
    await writeArchive(published, lines.slice(0, 250), 250);
    // The writer with the former key may have ended before it stored the tiles.
    const unpublished = [...published.files].filter(([path]) => /^(segments|checkpoints)\//.test(path));
    const keys = { key: keyFrom(2), previousKey: keyFrom(1) };
    for (const files of [published.files, unpublished])
      for (let failAt = 1, isOver = false; !isOver; failAt += sized(3, 1))
        for (const isAfter of [false, true]) {
          const store = new FailingStore(files, failAt, isAfter);
          const attempt = openWriter(store, 'broken', keys).then((writer) => writer.append(lines.slice(250, 400), through(400)));
          isOver = await attempt.then(
            () => true,
            () => false,
          );
          const healed = new MemoryStore(store.files);
          const { position, origin } = await openWriter(healed, 'published', keys);
          const verifiers = [1, 2].map((seed) => signerOf(origin, keyFrom(seed)));
          const place = `write ${failAt} ${isAfter ? 'after' : 'before'}`;
          // A key that signs no checkpoint is unproven: the second signs none before the change.
          const isChanged = bothSigned(healed) > 0;
          expect(await verifyArchive(healed, isChanged ? verifiers : verifiers.slice(0, 1)), place).toMatchObject({ result: 'intact' });
          const again = await openWriter(healed, 'healed', keys);
          await again.append(
            lines.filter(({ seq }) => seq > (position?.seq ?? 0)),
            through(500),
          );
          expect(await verifyArchive(healed, verifiers), place).toMatchObject({ result: 'intact' });
          expect(committed(healed), place).toEqual(lines.map(({ seq }) => seq));
          expect(bothSigned(healed), place).toBe(1);
          expect([...healed.files.keys()].filter((path) => path.startsWith('keys/')).length, place).toBe(2);
        }
  });

  /** How many checkpoints have two signatures. */
  function bothSigned({ files }: MemoryStore): number {
    const notes = [...files].filter(([path]) => path.startsWith('checkpoints/')).map(([, note]) => note.toString());
    return notes.filter((note) => note.split('\n\u2014 ').length === 3).length;
  }

  it('fails only after its last write has ended', async () => {
    class SlowStore extends MemoryStore {
      running = 0;
      override async replace(path: string, bytes: Uint8Array): Promise<void> {
        this.running += 1;
        const turns = this.running;
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
        this.running -= 1;
        if (turns === 1) throw new Error('the disk is full');
        await super.replace(path, bytes);
      }
    }
    const store = new SlowStore();
    const writer = await open(store);
    await expect(writer.append(windowLines(60, 9), through(600))).rejects.toThrow('the disk is full');
    expect(store.running).toBe(0);
    expect(store.files.has('checkpoint')).toBe(false);
  });

  it('is blocked when another writer created the next checkpoint, and signs nothing', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(1, 3), 4);
    const [mine, other] = [await open(store, 'mine'), await open(store, 'other')];
    await other.append([recordLine(5, start)], through(5));
    const published = new Map(store.files);
    await expect(mine.append([recordLine(5, start), recordLine(6, start)], through(6))).rejects.toThrow(conflict);
    const changed = [...store.files]
      .filter(([path, bytes]) => published.get(path)?.equals(bytes) !== true)
      .map(([path]) => path.split('/')[0]);
    expect(changed).toEqual(['segments']);
    expect(await alterations(store)).toEqual([]);
    // After the restart the archive continues with the lines of the other writer.
    expect((await open(store)).position?.seq).toBe(5);
  });

  it('publishes the newest checkpoint of a writer that ended before it stored the tiles', async () => {
    const store = new MemoryStore();
    const lines = windowLines(60, 9);
    await writeArchive(store, lines.slice(0, 300), 300);
    const before = new Map(store.files);
    await (await open(store, 'complete')).append(lines.slice(300), through(600));
    const stopped = new MemoryStore([...before, ...[...store.files].filter(([path]) => /^(segments|checkpoints)\//.test(path))]);
    await open(stopped);
    expect(stopped.files).toEqual(store.files);
  });

  it('refuses entries that do not follow the archived ones', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(1, 3), 4);
    const writer = await open(store);
    const internal = expect.objectContaining({ code: 'internal_error' }) as Error;
    await expect(writer.append([recordLine(4, start)], through(5))).rejects.toThrow(internal);
    await expect(writer.append([recordLine(6, start), recordLine(5, start)], through(6))).rejects.toThrow(internal);
    await expect(writer.append([recordLine(7, start)], through(6))).rejects.toThrow(internal);
    expect(store.files.has('checkpoints/0000000002')).toBe(false);
  });

  it('does not continue an archive whose end was changed', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(70, 9), 300);
    const segment = [...store.files.keys()].find((path) => path.startsWith('segments/0000000000000602-')) ?? '';
    const paths = ['checkpoints/0000000003', segment, 'tile/0/002.p/191', 'tile/1/000.p/2', 'tile/entries/002.p/191'];
    const continued: string[] = [];
    for (const path of paths) {
      for (const change of ['removed', 'cut', 'flipped']) {
        const files = new MemoryStore(store.files);
        const bytes = Buffer.from(store.files.get(path) ?? '');
        expect(bytes.length, path).toBeGreaterThan(40);
        bytes[0] = (bytes[0] ?? 0) ^ 1;
        if (change === 'removed') files.files.delete(path);
        else files.files.set(path, change === 'cut' ? bytes.subarray(0, 40) : bytes);
        await open(files).then(
          () => continued.push(`${path} ${change}`),
          (thrown: unknown) => {
            expect(thrown).toEqual(broken);
          },
        );
      }
    }
    expect(continued).toEqual([]);
  });

  it('adopts no segment that another process placed', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(1, 3), 4);
    const foreign = new MemoryStore();
    await writeArchive(foreign, [recordLine(5, start)], 1);
    for (const [path, bytes] of foreign.files)
      if (path.startsWith('segments/')) store.files.set(path.replace('0000000000000000', '0000000000000005'), bytes);
    store.files.set(`segments/0000000000000000-${'0'.repeat(64)}.ndjson.gz`, Buffer.from('not gzip'));
    const writer = await open(store);
    expect(writer.position?.seq).toBe(4);
    await writer.append([recordLine(5, start + 1)], through(5));
    expect((await open(store)).position?.seq).toBe(5);
  });

  it('refuses an archive whose newest checkpoints were removed', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(3, 3), 4);
    store.files.delete('checkpoints/0000000003');
    await expect(open(store)).rejects.toThrow(broken);
    for (const number of [1, 2]) store.files.delete(`checkpoints/000000000${number}`);
    await expect(open(store)).rejects.toThrow(broken);
    store.files.set('checkpoints/0000000004', store.files.get('checkpoint') ?? Buffer.alloc(0));
    await expect(open(store)).rejects.toThrow(broken);
  });

  it('refuses an archive that another key signed', async () => {
    const store = new MemoryStore();
    await writeArchive(store, windowLines(1, 3), 4, keyFrom(2));
    await expect(open(store)).rejects.toThrow(broken);
  });
});

describe('a directory', () => {
  it('contains the same archive as memory', async () => {
    const folder = newFolder();
    const memory = new MemoryStore();
    const lines = windowLines(40, 9);
    await writeArchive(new DirectoryStore(join(folder, 'a/b')), lines, 150);
    await writeArchive(memory, lines, 150);
    const files = readdirSync(join(folder, 'a/b'), { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const read = files
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [path.slice(folder.length + 5), readFileSync(path)] as const);
    expect(new Map(read)).toEqual(memory.files);
    const store = new DirectoryStore(join(folder, 'a/b'));
    expect(await Array.fromAsync(store.list(''))).toEqual(expect.arrayContaining([...memory.files.keys()]));
    expect((await Array.fromAsync(store.list('checkpoints/'))).sort()).toEqual([1, 2, 3].map((number) => `checkpoints/000000000${number}`));
  });

  it('never replaces existing files, and lets only its owner read them', async () => {
    const folder = newFolder();
    const store = new DirectoryStore(folder);
    expect(await store.create('checkpoints/1', Buffer.from('one'))).toBe(true);
    expect(await store.create('checkpoints/1', Buffer.from('two'))).toBe(false);
    expect(await store.create('checkpoints/1', Buffer.from('one'))).toBe(true);
    expect((await store.read('checkpoints/1'))?.toString()).toBe('one');
    await store.replace('checkpoint', Buffer.from('one'));
    await store.replace('checkpoint', Buffer.from('two'));
    expect((await store.read('checkpoint'))?.toString()).toBe('two');
    expect(await store.read('checkpoints/2')).toBeUndefined();
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['checkpoint', 'checkpoints', 'checkpoints/1']);
    expect([folder, join(folder, 'checkpoints')].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
    expect(statSync(join(folder, 'checkpoint')).mode & 0o777).toBe(0o440);
  });

  it('reads no link, pipe or folder in place of a file', async () => {
    const folder = newFolder();
    symlinkSync('/etc/hostname', join(folder, 'checkpoint'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    mkdirSync(join(folder, 'folder'));
    for (const path of ['checkpoint', 'pipe', 'folder', 'missing', 'pipe/file'])
      expect(await new DirectoryStore(folder).read(path), path).toBeUndefined();
  });

  it('writes and reads in a directory that is a link', async () => {
    const folder = newFolder();
    symlinkSync(newFolder(), join(folder, 'archive'));
    const store = new DirectoryStore(join(folder, 'archive'));
    expect(await store.create('tile/0/000', Buffer.from('one'))).toBe(true);
    expect((await store.read('tile/0/000'))?.toString()).toBe('one');
  });
});
